"""How much one copy can take, and how many copies the traffic needs."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.plan.latency import predict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seatrial.plan.demand import Objective
    from seatrial.plan.document import CurvePoint
    from seatrial.plan.latency import Copy
    from seatrial.spec.endpoint import WorkloadSpec


# The service takes batches of 5 to 50 % of a component's copies (RollingUpdatePolicy.MaximumBatchSize).
_COPIES_PER_BATCH_AT_MOST = 20
_COPIES_PER_BATCH_AT_LEAST = 2


@dataclass(frozen=True, slots=True)
class Load:
    """The workload spread over copies.

    Attributes:
        copy_count: Copies.
        concurrency_per_copy: Requests in flight on each, rounded up.
        point: The prediction for one copy there.
    """

    copy_count: int
    concurrency_per_copy: int
    point: CurvePoint

    @property
    def output_tok_s(self) -> float:
        """Output tokens per second of all copies."""
        return self.copy_count * self.point.output_tok_s


def capacity(copy: Copy, objectives: Iterable[Objective]) -> int:
    """Return the highest concurrency at which every objective holds; 0 when even a single request misses.

    One of the objectives bounds the end-to-end latency, which grows with the queue without limit, so there is one.
    """
    bounds = tuple(objectives)

    def misses(concurrency: int) -> bool:
        point = predict(copy, concurrency)
        return any(objective.ratio(point) > 1 for objective in bounds)

    return _last_without(misses)


def copies_needed(copy: Copy, workload: WorkloadSpec, highest: int) -> int:
    """Return how many copies, each loaded to `highest` at most, take the workload's traffic."""
    if workload.concurrency is not None:
        return math.ceil(workload.concurrency / highest)
    return math.ceil(_requests_per_second(workload) / (predict(copy, highest).output_tok_s / copy.output_tokens))


def copies_replaced_at_once(min_copies: int, max_copies: int) -> int | None:
    """Return the smallest batch of a rolling update that is valid however many copies run.

    `None` when there is none, as always with a single copy: the service then starts as many new copies as old ones run.
    """
    batch = math.ceil(max_copies / _COPIES_PER_BATCH_AT_MOST)
    return batch if batch * _COPIES_PER_BATCH_AT_LEAST <= min_copies else None


def spread(copy: Copy, workload: WorkloadSpec, copy_count: int) -> Load:
    """Spread the workload over copies.

    A request rate becomes a concurrency by Little's law (concurrency = rate * latency), whose latency depends on the
    concurrency: the smallest concurrency that serves the rate is the fixed point.
    """
    if workload.concurrency is not None:
        concurrency = math.ceil(workload.concurrency / copy_count)
        return Load(copy_count, concurrency, predict(copy, concurrency))
    tokens_per_second = _requests_per_second(workload) / copy_count * copy.output_tokens

    def too_slow(concurrency: int) -> bool:
        return predict(copy, concurrency).output_tok_s < tokens_per_second * (1 - 1e-9)

    concurrency = 1 + _last_without(lambda candidate: not too_slow(candidate))
    return Load(copy_count, concurrency, predict(copy, concurrency))


def _requests_per_second(workload: WorkloadSpec) -> float:
    if workload.requests_per_second is None:
        raise ValueError("a workload has a concurrency or a request rate")
    return workload.requests_per_second


def _last_without(fails: Callable[[int], bool]) -> int:
    """Return the last whole number before a condition that, once true, stays true; 0 when it is true from 1 on."""
    high = 1
    while not fails(high):
        high *= 2
    return bisect_left(range(high + 1), x=True, lo=high // 2 + 1, key=fails) - 1
