"""The capacity of one copy, from its simulated levels, and the copies that the traffic needs."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.predict.simulation import (
    AT_RANDOM,
    REQUESTS_AT_A_RATE,
    TRIAL,
    Level,
    Protocol,
    open_level,
    outcome,
)
from seatrial_base.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial.planner.predict.copy_model import Copy
    from seatrial.planner.predict.simulation import OpenLevel
    from seatrial.planner.search.demand import LatencyBound
    from seatrial.specs.endpoint import TrialSpec, WorkloadSpec
    from seatrial_load.documents.arrivals import Arrivals


MOST_IN_FLIGHT = 512  # per copy: two of the largest batches; past them only the queue grows
_MOST_REQUESTS_PER_CONCURRENCY = 10  # more of them change a percentile less than the prediction is worth


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of one copy.

    Attributes:
        protocol: How the trial sends.
        timeout_s: Time after which a request ends.
        seen: What was simulated so far, by concurrency.
        seen_rates: The same by requests per second.
    """

    copy: Copy
    protocol: Protocol
    timeout_s: float
    arrivals: Arrivals = AT_RANDOM
    seen: dict[int, Level] = field(default_factory=dict, compare=False, repr=False)
    seen_rates: dict[float, OpenLevel] = field(default_factory=dict, compare=False, repr=False)

    def at(self, concurrency: int) -> Level:
        """Return what the copy is simulated to do with this many requests in flight."""
        if concurrency not in self.seen:
            self.seen[concurrency] = outcome(self.copy, concurrency, self.protocol, self.timeout_s)
        return self.seen[concurrency]

    def at_rate(self, rate_per_s: float) -> OpenLevel:
        """Return what the copy is simulated to do when requests arrive at a rate."""
        if rate_per_s not in self.seen_rates:
            self.seen_rates[rate_per_s] = open_level(
                self.copy,
                self.arrivals,
                rate_per_s,
                requests=REQUESTS_AT_A_RATE,
                round_trip_s=self.protocol.round_trip_s,
                timeout_s=self.timeout_s,
            )
        return self.seen_rates[rate_per_s]

    def under(self, load: LoadSpread) -> Level:
        """Return what the copy is simulated to do with its share of a load: a rate, or requests in flight."""
        if load.rate_per_copy is not None:
            return self.at_rate(load.rate_per_copy)
        return self.at(load.concurrency_per_copy)


def trial_protocol(trial: TrialSpec) -> Protocol:
    """Return how the endpoint's trial sends; the simulation stops at ten requests for each in flight."""
    requests = min(trial.requests_per_concurrency, _MOST_REQUESTS_PER_CONCURRENCY)
    return replace(
        TRIAL, requests_per_concurrency=requests, ramp_per_concurrency=trial.ramp_per_concurrency, start=trial.start
    )


_STEP, _LONGEST_STEP = 1.15, 2.0
_FEW = 4  # more requests in flight than the steady state needs
_RESOLUTION = 20  # of a capacity: to the last request up to 40, to 5 % beyond


@dataclass(frozen=True, slots=True)
class LoadSpread:
    """The workload spread over copies.

    Attributes:
        concurrency_per_copy: Requests in flight on the busiest of them.
        output_tok_s: Output tokens per second of all copies.
        rate_per_copy: Requests per second of one of them; `None` where the workload is a number of requests in flight.
    """

    copy_count: int
    concurrency_per_copy: int
    output_tok_s: float
    rate_per_copy: float | None = None


def estimated_capacity(copy: Copy, objectives: Sequence[LatencyBound], slack: float = 1.0) -> int:
    """Return the concurrency past which a mean of the closed form is above an objective's bound, with some slack."""
    # With slack this is to be no lower than the simulated capacity, so the mean wait for the next prefill is left out:
    # requests that move in step, as a trial's do, hardly have it.
    waits = slack > 1 and copy.engine.scheduler != "chunked"
    steps = copy.engine.steps_between_prefills / 2 if waits else 0

    def misses(concurrency: int) -> bool:
        point = predict_at(copy, concurrency)
        waited_ms = min(steps * point.tpot_ms * max(1.0, copy.tokens_per_step), point.ttft_ms)
        hoped = replace(point, ttft_ms=point.ttft_ms - waited_ms)
        return any(objective.out_of_reach(hoped, slack) for objective in objectives)

    return last_without(misses, most=MOST_IN_FLIGHT)


def capacity(levels: Levels, objectives: Sequence[LatencyBound], guess: int) -> int:
    """Return the highest concurrency that keeps every objective by simulation, and so does every lower one simulated.

    A percentile of a few requests can fall a little while the load grows. So every level that was simulated counts: one
    that misses bounds the capacity from above, whatever holds beyond it. 0 when even a single request misses.
    """

    def worst(concurrency: int) -> float:
        outcome = levels.at(concurrency)
        return max(objective.ratio(outcome) for objective in objectives)

    if worst(1) > 1:
        return 0
    low, high = _bracket(worst, min(max(1, guess), MOST_IN_FLIGHT))
    # Each step is a simulation, and the last per cent of a large capacity is less than its error.
    while high - low > max(1, low // _RESOLUTION):
        middle = (low + high) // 2
        low, high = (middle, high) if worst(middle) <= 1 else (low, middle)
    # Bisection alone trusts that what holds at a level holds below it; levels that others simulated may say otherwise.
    failed = [concurrency for concurrency in levels.seen if concurrency <= low and worst(concurrency) > 1]
    return low if not failed else max(level for level in levels.seen if level < min(failed))


def answered_in_time(levels: Levels, timeout: LatencyBound) -> int:
    """Return a concurrency at which every request is answered in time: near the highest, and 0 when there is none."""
    concurrency = last_without(lambda level: timeout.out_of_reach(predict_at(levels.copy, level)), most=MOST_IN_FLIGHT)
    while concurrency and timeout.ratio(levels.at(concurrency)) > 1:
        concurrency = min(concurrency - 1, _smaller(concurrency, timeout.ratio(levels.at(concurrency))))
    return concurrency


def _bracket(worst: Callable[[int], float], guess: int) -> tuple[int, int]:
    """Return a level that holds and a higher one that doesn't, near a guess; a single request holds.

    Past the batch limit latency grows in proportion to the load, so the worst ratio says how far to step down.
    """
    if worst(guess) <= 1:
        low, high = guess, _larger(guess)
        while high <= MOST_IN_FLIGHT and worst(high) <= 1:
            low, high = high, _larger(high)
        return low, min(high, MOST_IN_FLIGHT + 1)
    low, high = _smaller(guess, worst(guess)), guess
    while low > 1 and worst(low) > 1:
        low, high = _smaller(low, worst(low)), low
    return low, high


def _larger(concurrency: int) -> int:
    return max(concurrency + 1, math.ceil(concurrency * _STEP))


def _smaller(concurrency: int, ratio: float) -> int:
    step = min(_LONGEST_STEP, max(_STEP, ratio))
    return max(1, math.floor(concurrency / step))


def copies_needed(copy: Copy, workload: WorkloadSpec, highest: int) -> int:
    """Return how many copies, each loaded to `highest` at most, take the workload's traffic."""
    if workload.concurrency is not None:
        return math.ceil(workload.concurrency / highest)
    return math.ceil(_tokens_per_second(workload) / _steady_tok_s(copy, workload, highest))


def spread(copy: Copy, workload: WorkloadSpec, copy_count: int, tok_s: Callable[[int], float]) -> LoadSpread:
    """Spread the workload over copies.

    A request rate becomes a concurrency by Little's law (concurrency = rate * latency), whose latency depends on the
    concurrency: the smallest concurrency that serves the rate in the steady state is the fixed point. A few more
    requests in flight make up for the end of a level, when clients have no more to send.

    Args:
        tok_s: Output tokens per second of one copy at a concurrency.
    """
    if workload.concurrency is not None:
        fewer, busiest = divmod(workload.concurrency, copy_count)
        total = busiest * tok_s(fewer + 1) if busiest else 0.0
        total += (copy_count - busiest) * tok_s(fewer) if fewer else 0.0
        return LoadSpread(copy_count, fewer + (1 if busiest else 0), total)
    wanted_tok_s = _tokens_per_second(workload)
    each = wanted_tok_s / copy_count

    def serves(concurrency: int) -> bool:
        # The fixed point is an equality, which rounding must not decide.
        return _steady_tok_s(copy, workload, concurrency) >= each * (1 - 1e-9)

    least = 1 + last_without(serves, most=MOST_IN_FLIGHT)
    # A level of the trial ends emptier than it ran: what is required must be reached over the whole of it.
    enough = (level for level in range(least, 2 * least + _FEW) if tok_s(level) >= each)
    return LoadSpread(copy_count, next(enough, least), wanted_tok_s, each / workload.output_tokens)


def _steady_tok_s(copy: Copy, workload: WorkloadSpec, concurrency: int) -> float:
    """Return the output tokens per second that a number of clients without a pause get, by Little's law."""
    latency_s = predict_at(copy, concurrency).e2e_latency_ms / MS_PER_S + TRIAL.round_trip_s
    return concurrency / latency_s * workload.output_tokens


def _tokens_per_second(workload: WorkloadSpec) -> float:
    if workload.requests_per_second is None:
        raise ValueError("a workload has a concurrency or a request rate")
    return workload.requests_per_second * workload.output_tokens


def last_without(fails: Callable[[int], bool], *, most: int) -> int:
    """Return the last whole number before a condition that, once true, stays true; 0 when it is true from 1 on."""
    return bisect_left(range(most + 1), x=True, lo=1, key=fails) - 1
