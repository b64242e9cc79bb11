"""How many copies a rate of requests needs, and how fast they may come to one copy: by simulation of the arrivals."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.planner.predict.open_loop import saturation_per_s
from seatrial.planner.search.candidate import FeasibleCandidate, SustainedRate
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.planner.search.capacity import Levels
    from seatrial.planner.search.demand import Demand, LatencyBound
    from seatrial.specs.scaling import ScalingSpec

_HALVINGS = 4  # of the way from the planned rate to saturation


def keeps(levels: Levels, objectives: Sequence[LatencyBound], rate_per_s: float) -> bool:
    """Tell whether a copy keeps every objective when requests arrive at a rate."""
    outcome = levels.at_rate(rate_per_s)
    return all(objective.ratio(outcome) <= 1 for objective in objectives)


def copies_at_rate(
    levels: Levels, objectives: Sequence[LatencyBound], rate_per_s: float, scaling: ScalingSpec, fewest: int
) -> int:
    """Return the fewest copies among which a rate keeps every objective; one more than are allowed where none does.

    Each copy gets its share of the requests, as they come: routing at random splits a Poisson process into such ones.

    Args:
        levels: One copy.
        objectives: What must hold.
        rate_per_s: Requests per second, all copies together.
        scaling: The most copies.
        fewest: Copies at least.
    """
    most = scaling.max_copies
    least = max(fewest, math.ceil(rate_per_s / saturation_per_s(levels.copy)))
    if least > most:
        return least
    step, low, high = 1, least, least
    while high <= most and not keeps(levels, objectives, rate_per_s / high):
        low, high, step = high + 1, high + step, 2 * step
    if high > most and (low > most or not keeps(levels, objectives, rate_per_s / most)):
        return most + 1
    high = min(high, most)
    return bisect_left(range(high), x=True, lo=low, key=lambda count: keeps(levels, objectives, rate_per_s / count))


def settled(best: FeasibleCandidate, demand: Demand) -> FeasibleCandidate:
    """Return the chosen deployment with the highest rate that one of its copies sustains, where its trial is open.

    It is found to a sixteenth of what is left from the planned rate to saturation.
    """
    low = best.load.rate_per_copy
    if low is None or not demand.open_trial:
        return best
    levels = best.candidate.levels
    high = max(low, saturation_per_s(levels.copy))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(levels, demand.objectives, middle) else (low, middle)
    found = levels.at_rate(low)
    sustained = SustainedRate(low, found.in_flight, found.most_in_flight)
    capacity = max(best.load.concurrency_per_copy, math.floor(found.in_flight))
    return replace(best, capacity=capacity, sustained=sustained)


def too_fast(levels: Levels, objectives: Sequence[LatencyBound], rate_per_s: float, most_copies: int) -> str:
    """Say what the most copies miss at a rate, in a full sentence."""
    saturation = saturation_per_s(levels.copy)
    each = rate_per_s / most_copies
    among = counted(most_copies, "copy", "copies")
    if each >= saturation:
        return f"One copy answers {saturation:.3g} requests per second; {rate_per_s:g} over {among} are more."
    outcome = levels.at_rate(each)
    missed = [
        f"{objective.predicted(outcome):,.0f} ms against {objective}"
        for objective in objectives
        if objective.ratio(outcome) > 1
    ]
    return f"At {rate_per_s:g} requests per second over {among}: {', '.join(missed)}."
