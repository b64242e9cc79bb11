"""One copy in the steady state of a closed loop: means and percentiles of many requests a client.

    throughput = concurrency / end-to-end mean * output tokens                                   (Little's law)
    end-to-end = TTFT + TPOT * (output tokens - 1)                                               means

Clients begin one after the other, spread over the time of one request. Were they to begin at once, requests of one
length would also end at once, and all prompts would wait for each other in every round: TTFT would be that of a queue,
which real lengths and real clients lose after a few rounds.

A level that is too large to be simulated is computed in closed form. The closed form is then scaled by what the
simulation of the same copy says at the largest concurrency that is simulated: of the end-to-end mean, p50 and p90, and
of TPOT.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter
from statistics import fmean
from typing import TYPE_CHECKING

from seatrial.planner.predict.closed_form import mean_step, predict_at, running_batch
from seatrial.planner.predict.simulation import PUBLISHED, Protocol, closed_static, simulate, simulate_static
from seatrial_base.units import MS_PER_S
from seatrial_load.measure.interval import percentile

if TYPE_CHECKING:
    from seatrial.planner.predict.copy_model import Copy
    from seatrial.planner.predict.simulation import Batches, Request

_RAMP = 3  # requests a client before the measured ones
_ROUNDS = 6  # requests a client: the ramp, two that are measured, one during which others end
_MOST_SIMULATED = 512  # requests in flight on one copy
_MOST_ITERATIONS = 30_000  # prefills and chunks of one simulated level: about a second of work


@dataclass(frozen=True, slots=True)
class SteadyLevel:
    """What a copy, or several, do in the steady state with some requests in flight; times in milliseconds.

    Attributes:
        concurrency: Requests in flight.
        output_tokens: Generated length of a request.
        ttft_ms: Mean time to first token, queueing included.
        e2e_ms: Mean from sending to the last token.
        e2e_p50_ms: Its median; `None` in closed form.
        e2e_p90_ms: Its 90th percentile; `None` in closed form.
    """

    concurrency: int
    output_tokens: int
    ttft_ms: float
    e2e_ms: float
    e2e_p50_ms: float | None
    e2e_p90_ms: float | None

    @property
    def output_tok_s(self) -> float:
        """Output tokens per second, by Little's law."""
        return self.concurrency * self.output_tokens / self.e2e_ms * MS_PER_S

    @property
    def tpot_ms(self) -> float:
        """Mean time per output token after the first; 0 where there is none."""
        return (self.e2e_ms - self.ttft_ms) / (self.output_tokens - 1 or 1)

    @property
    def late_ms(self) -> float:
        """The 90th percentile of the end-to-end latency, or its mean in closed form."""
        return self.e2e_ms if self.e2e_p90_ms is None else self.e2e_p90_ms


def steady(copy: Copy, concurrency: int, batches: Batches | None = None) -> SteadyLevel:
    """Predict the steady state of one copy, with percentiles.

    Args:
        copy: The copy.
        concurrency: Requests in flight on it, at least one.
        batches: How dynamic batches are made; `None` for continuous batching.
    """
    largest = _largest_simulated(copy)
    if batches is not None:
        return (
            _dynamic(copy, concurrency, batches) if concurrency <= largest else steady_mean(copy, concurrency, batches)
        )
    if concurrency <= largest:
        return _simulated(copy, concurrency)
    return _scaled(steady_mean(copy, concurrency), _simulated(copy, largest), steady_mean(copy, largest))


def steady_mean(copy: Copy, concurrency: int, batches: Batches | None = None) -> SteadyLevel:
    """Predict the steady state of one copy in closed form, without percentiles; the arguments are those of `steady`."""
    if batches is not None:
        _, seconds = closed_static(copy, concurrency, batches)
        latency = seconds * MS_PER_S
        return SteadyLevel(concurrency, copy.output_tokens, latency, latency, None, None)
    point = predict_at(copy, concurrency)
    return SteadyLevel(concurrency, copy.output_tokens, point.ttft_ms, point.e2e_latency_ms, None, None)


def _largest_simulated(copy: Copy) -> int:
    """Return the largest concurrency that is simulated: a power of two."""
    chunks = 1.0
    if copy.engine.scheduler == "chunked":
        chunks += copy.input_tokens / copy.batched_tokens
    largest = _MOST_SIMULATED
    while largest > 1 and _ROUNDS * largest * chunks > _MOST_ITERATIONS:
        largest //= 2
    return largest


@cache
def _simulated(copy: Copy, concurrency: int) -> SteadyLevel:
    latency_s = predict_at(copy, concurrency).e2e_latency_ms / MS_PER_S
    protocol = _protocol(copy, stagger_s=latency_s / concurrency)
    measured = _measured(simulate(copy, concurrency, protocol), concurrency)
    ttft_s = fmean(request.first_token_s - request.sent_s for request in measured)
    return _level(concurrency, copy, measured, (ttft_s + _behind_others_s(copy, concurrency)) * MS_PER_S)


def _protocol(copy: Copy, stagger_s: float = 0.0) -> Protocol:
    return Protocol(requests_per_concurrency=_ROUNDS, stagger_s=stagger_s, round_trip_s=round_trip_s(copy))


def round_trip_s(copy: Copy) -> float:
    """Return the time of a request outside the engine; that of the published protocol where none was fitted."""
    return copy.engine.performance.request_s or PUBLISHED.round_trip_s


def _behind_others_s(copy: Copy, concurrency: int) -> float:
    """Return how long a prompt waits for prompts that arrive with it, as the closed form has it."""
    batch, _ = running_batch(copy, concurrency)
    return copy.engine.performance.bunching * (batch - 1) / 2 * mean_step(copy, batch).prefill


@cache
def _dynamic(copy: Copy, concurrency: int, batches: Batches) -> SteadyLevel:
    """Simulate dynamic batches, whose tokens all come at the end."""
    measured = _measured(simulate_static(copy, concurrency, _protocol(copy), batches), concurrency)
    return _level(concurrency, copy, measured, ttft_ms=None)


def _measured(requests: list[Request], concurrency: int) -> list[Request]:
    """Leave out the rounds in which the batch fills, and the one in which clients have nothing left to send."""
    return sorted(requests, key=attrgetter("sent_s"))[_RAMP * concurrency : (_ROUNDS - 1) * concurrency]


def _level(concurrency: int, copy: Copy, measured: list[Request], ttft_ms: float | None) -> SteadyLevel:
    waits = sorted((request.last_token_s - request.sent_s) * MS_PER_S for request in measured)
    mean_ms = fmean(waits)
    first_ms = mean_ms if ttft_ms is None else min(ttft_ms, mean_ms)
    p50_ms, p90_ms = percentile(waits, 50), percentile(waits, 90)
    return SteadyLevel(concurrency, copy.output_tokens, first_ms, mean_ms, p50_ms, p90_ms)


def _scaled(closed: SteadyLevel, simulated: SteadyLevel, closed_there: SteadyLevel) -> SteadyLevel:
    """Scale a closed form by how far it is off the simulation at another concurrency.

    The time of decoding takes no larger share of a request than in the simulation: what is in flight beyond it waits.
    """
    e2e = closed.e2e_ms * simulated.e2e_ms / closed_there.e2e_ms
    decoding = (simulated.e2e_ms - simulated.ttft_ms) / simulated.e2e_ms * e2e
    if closed_there.tpot_ms > 0:
        factor = simulated.tpot_ms / closed_there.tpot_ms
        decoding = min(decoding, factor * (closed.e2e_ms - closed.ttft_ms))
    return replace(
        closed,
        ttft_ms=e2e - decoding,
        e2e_ms=e2e,
        e2e_p50_ms=e2e * (simulated.e2e_p50_ms or simulated.e2e_ms) / simulated.e2e_ms,
        e2e_p90_ms=e2e * simulated.late_ms / simulated.e2e_ms,
    )
