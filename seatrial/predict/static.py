"""Dynamic (static) batching in virtual time: a batch waits to fill, runs until it ends, and only then comes the next.

The first waiting request waits for others up to the delay or until the batch is full; requests that come later wait for
the whole batch. Every request of a row has the same length, so a batch ends at once; a real one lasts as long as its
longest request. Answers come whole: nothing is streamed.

It is what LMI's `engine=Python` does, which splits a model's layers over the accelerators (Accelerate's device map) and
runs them one after the other. So the bandwidth and the FLOPS of one accelerator count at a time, and no all-reduce.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.predict.costs import costs_of
from seatrial.predict.memory import kv_bytes_per_token
from seatrial.predict.simulation import Request

if TYPE_CHECKING:
    from seatrial.predict.copy import Copy
    from seatrial.predict.protocol import Protocol


@dataclass(frozen=True, slots=True)
class Batches:
    """How dynamic batches are made.

    Attributes:
        size: Requests of a batch at most.
        delay_s: How long the first request of a batch waits for others.
    """

    size: int
    delay_s: float

    def most(self, copy: Copy) -> int:
        """Return the requests of a batch at most: no more than the KV room holds."""
        return max(1, min(self.size, copy.most_running))


def simulate_static(copy: Copy, concurrency: int, protocol: Protocol, batches: Batches) -> list[Request]:
    """Run a closed loop to its end and return its requests in the order in which they end.

    Args:
        copy: The copy; its degree is the number of accelerators that hold the layers.
        concurrency: Clients.
        protocol: How they send.
        batches: How batches are made.
    """
    half, most = protocol.round_trip_s / 2, batches.most(copy)
    arrivals = [half + client * protocol.stagger_s for client in range(concurrency)]
    unsent = concurrency * (protocol.requests_per_concurrency - 1)
    times = {size: batch_time_s(copy, size) for size in range(1, min(most, concurrency) + 1)}
    now, done = 0.0, list[Request]()
    while arrivals:
        batch = _next_batch(arrivals, now, most, batches.delay_s)
        closes = batch[-1] if len(batch) == most else batch[0] + batches.delay_s
        now = max(now, closes) + times[len(batch)]
        done += [Request(arrival - half, now + half, now + half) for arrival in batch]
        following = min(len(batch), unsent)
        unsent -= following
        for _ in range(following):
            heapq.heappush(arrivals, now + 2 * half)
    return done


def closed_static(copy: Copy, concurrency: int, batches: Batches) -> tuple[float, float]:
    """Return output tokens per second, and the latency in seconds, of the steady state: all that wait come in turn."""
    size = min(concurrency, batches.most(copy))
    turn_s = batch_time_s(copy, size) + (batches.delay_s if concurrency < batches.most(copy) else 0.0)
    return size * copy.output_tokens / turn_s, concurrency / size * turn_s


def _next_batch(arrivals: list[float], now: float, most: int, delay_s: float) -> list[float]:
    """Take the arrivals of the next batch off the heap: those up to when it is full or its delay is over."""
    batch = [heapq.heappop(arrivals)]
    closes = max(now, batch[0] + delay_s)
    while arrivals and len(batch) < most and arrivals[0] <= closes:
        batch.append(heapq.heappop(arrivals))
    return batch


def batch_time_s(copy: Copy, batch: int) -> float:
    """Return how long a batch runs: its prefill, then a decode step for each further token."""
    whole = kv_bytes_per_token(copy.architecture, 1)
    pipeline = replace(copy, degree=1, kv_bytes_per_token=whole)  # one accelerator works at a time
    costs, steps = costs_of(pipeline), pipeline.decode_steps
    context = batch * copy.architecture.cached_tokens(copy.input_tokens + (copy.output_tokens + 1) / 2)
    return costs.prefill(batch, copy.input_tokens) + steps * (costs.step(batch) + context * costs.attention(batch))
