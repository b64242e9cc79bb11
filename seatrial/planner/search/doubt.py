"""Neighbours of a plan: the cheaper deployment that may meet the SLO too, the more expensive one that more likely does.

The cheaper one is predicted to miss the SLO by less than the band: a probe would decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.search.candidate import Size
from seatrial.planner.search.capacity import MOST_IN_FLIGHT, copies_needed, spread
from seatrial.planner.search.evaluate import chance_of, chance_within, slower_in_doubt
from seatrial.planner.search.sizing import UNKNOWN, excesses, score_of, usd_per_hour

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial.documents.prediction import Band
    from seatrial.planner.search.best_first import SearchResult
    from seatrial.planner.search.candidate import Candidate
    from seatrial.planner.search.demand import Demand

LEAST_SAVING = 0.15
"""Share of the price that a cheaper deployment must save: a probe costs about an hour of both."""
_MOST_SIMULATED = 8
LIKELY = 0.95
"""A plan that meets the SLO with this chance needs no more expensive deployment beside it."""
_MOST_DEARER = 2.0  # times the plan's price: nobody pays more for a little more certainty
_MOST_DEARER_SIMULATED = 4
_SLACK = 1.25  # of the closed form's means over simulated percentiles, as where candidates are estimated


@dataclass(frozen=True, slots=True)
class Doubt:
    """A cheaper size that misses an objective by less than the band.

    Attributes:
        field: The objective, as in the spec.
        predicted: What is predicted of it, in its unit.
        bound: Its bound, in the same unit.
        ratio: By how much the prediction is worse than the bound, above 1.
        band: How far the prediction may be off, as a share.
        chance: That it meets the SLO, with its bands as 80 % of log-normal errors.
    """

    size: Size
    field: str
    predicted: float
    bound: float
    ratio: float
    band: float
    chance: float


def doubt(demand: Demand, result: SearchResult, band_of: Callable[[Candidate], Band]) -> Doubt | None:
    """Return the cheaper size whose probe promises the largest saving; `None` where no size is in doubt.

    Only where the price decides: for the objectives `cost` and `cost_per_token`, with a known price.
    """
    price = _deciding_price(demand, result)
    if price is None:
        return None
    sizes = [
        size
        for candidate in result.fitted
        for size in _sizes(demand, candidate, 0.0, price * (1 - LEAST_SAVING))
        if not _hopeless(demand, size, band_of(candidate))
    ]
    sizes.sort(key=lambda size: (size.usd_per_hour, str(size.candidate)))
    # The cheapest save the most; a simulation of each would take as long as the whole search.
    doubts = [_doubt(demand, size, band_of(size.candidate)) for size in sizes[:_MOST_SIMULATED]]
    # What a probe promises: what the size saves, times the chance that it may be used.
    return max(filter(None, doubts), key=lambda each: (price - each.size.usd_per_hour) * each.chance, default=None)


def safer(
    demand: Demand, result: SearchResult, band_of: Callable[[Candidate], Band], chance: float
) -> tuple[Size, float] | None:
    """Return the cheapest size that misses the SLO half as likely as the plan, with its chance; `None` where none does.

    Only where the price decides, as in `doubt`, and up to twice the plan's price.
    """
    price, wanted = _deciding_price(demand, result), 1 - (1 - chance) / 2
    if price is None or chance >= LIKELY:
        return None
    sizes = [
        size
        for candidate in result.fitted
        for size in _sizes(demand, candidate, price, price * _MOST_DEARER)
        if _may_reach(demand, size, band_of(candidate), wanted)
    ]
    sizes.sort(key=lambda size: (size.usd_per_hour, str(size.candidate)))
    # The first that is likely enough is the cheapest of them, and the others need no simulation.
    for size in sizes[:_MOST_DEARER_SIMULATED]:
        score = score_of(demand, size.candidate, size.load, size.load.output_tok_s / size.load.copy_count)
        if excesses(demand, size.candidate, score):
            continue
        own = chance_of(demand.endpoint, size.candidate, size.load, band_of(size.candidate))
        if own is not None and own >= wanted:
            return size, own
    return None


def _deciding_price(demand: Demand, result: SearchResult) -> float | None:
    """Return the plan's price in USD per hour; `None` where it is unknown, or where another objective decides."""
    price = result.ranked[0].score.usd_per_hour
    decides = demand.endpoint.objective in ("cost", "cost_per_token") and price != UNKNOWN
    return price if decides else None


def _may_reach(demand: Demand, size: Size, band: Band, wanted: float) -> bool:
    """Tell whether the closed form's means, with some slack, leave a size the chance that is wanted."""
    level = size.load.concurrency_per_copy
    if level > MOST_IN_FLIGHT:
        return False
    point = predict_at(size.candidate.copy, level)
    return all(
        chance_within(objective.mean_ratio(point) / _SLACK, band.latency_of(objective.metric)) >= wanted
        for objective in demand.objectives[:-1]
    )


def _sizes(demand: Demand, candidate: Candidate, above_usd: float, most_usd: float) -> Iterator[Size]:
    """Yield the sizes of a candidate in a range of prices that the spec allows, the smallest first."""
    workload, scaling = demand.endpoint.workload, demand.endpoint.scaling
    each = usd_per_hour(candidate.instance, 1, demand.discount)
    fewest = max(scaling.min_copies, copies_needed(candidate.copy, workload, MOST_IN_FLIGHT))
    most = min(scaling.max_copies, workload.concurrency or scaling.max_copies)
    if each is None:
        return
    for count in range(math.floor(above_usd / each) + 1, math.floor(most_usd / each) + 1):
        copies = min(most, count * candidate.copies_per_instance)
        if copies < fewest or (count - 1) * candidate.copies_per_instance >= most:
            continue
        load = spread(candidate.copy, workload, copies, lambda level: predict_at(candidate.copy, level).output_tok_s)
        yield Size(candidate, load, count, each * count)


def _hopeless(demand: Demand, size: Size, band: Band) -> bool:
    """Tell whether the closed form's mean is beyond a bound by more than the band."""
    level = size.load.concurrency_per_copy
    if level > MOST_IN_FLIGHT:
        return True
    point = predict_at(size.candidate.copy, level)
    return any(
        objective.out_of_reach(point, (1 + band.latency_of(objective.metric)) * _SLACK)
        for objective in demand.objectives
    )


def _doubt(demand: Demand, size: Size, band: Band) -> Doubt | None:
    """Simulate a size; `None` where it is beyond the band, misses nothing, or was measured at this level."""
    candidate, concurrency = size.candidate, size.load.concurrency_per_copy
    if demand.is_measured(candidate.instance.instance_type, candidate.degree, concurrency):
        return None
    outcome = candidate.levels.under(size.load)
    worst = max(demand.objectives, key=lambda objective: objective.ratio(outcome))
    wanted_tok_s, reached = demand.endpoint.slo.output_tok_s or 0.0, size.load.output_tok_s
    slow = wanted_tok_s / reached
    if slow > 1 + band.throughput:
        return None
    if worst.ratio(outcome) > 1:
        field, predicted, bound = ".".join(worst.path), worst.predicted(outcome), worst.bound_ms
        ratio, most = worst.ratio(outcome), band.latency_of(worst.metric)
    else:
        field, predicted, bound, ratio, most = "slo.output_tok_s", reached, wanted_tok_s, slow, band.throughput
    if not 1 < ratio <= 1 + most:
        return None
    slower = slower_in_doubt(band)
    every = chance_of(demand.endpoint, candidate, size.load, band, slower)
    own = chance_within(ratio, most, slower)
    chance = own if every is None else min(own, every)
    return Doubt(size, field, predicted, bound, ratio, most, chance)
