"""The cheaper deployment that is predicted to miss the SLO by less than the band, and the probe that would decide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from seatrial.planner.cost import usd_per_hour
from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.search.capacity import MOST_IN_FLIGHT, copies_needed, spread
from seatrial.planner.search.sizing import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial.documents.prediction import Band
    from seatrial.planner.search.best_first import SearchResult
    from seatrial.planner.search.candidate import Candidate
    from seatrial.planner.search.capacity import LoadSpread
    from seatrial.planner.search.demand import Demand

LEAST_SAVING = 0.15
"""Share of the price that a cheaper deployment must save: a probe costs about an hour of both."""
_MOST_SIMULATED = 8
_SLACK = 1.25  # of the closed form's means over simulated percentiles, as where candidates are estimated
_COVERAGE_Z = NormalDist().inv_cdf(0.9)  # a band holds 80 % of the errors: 10 % lie beyond either end


@dataclass(frozen=True, slots=True)
class Doubt:
    """A cheaper size that misses an objective by less than the band.

    Attributes:
        candidate: The deployment.
        load: The workload spread over its copies.
        instance_count: Instances of that size.
        usd_per_hour: All of them.
        field: The objective, as in the spec.
        predicted: What is predicted of it, in its unit.
        bound: Its bound, in the same unit.
        ratio: By how much the prediction is worse than the bound, above 1.
        chance: That the truth meets the bound, with the band as 80 % of a log-normal error.
    """

    candidate: Candidate
    load: LoadSpread
    instance_count: int
    usd_per_hour: float
    field: str
    predicted: float
    bound: float
    ratio: float
    chance: float


@dataclass(frozen=True, slots=True)
class _Size:
    """A candidate with a number of instances, and its load by the closed form."""

    candidate: Candidate
    instance_count: int
    usd_per_hour: float
    load: LoadSpread


def doubt(demand: Demand, found: SearchResult, band_of: Callable[[Candidate], Band]) -> Doubt | None:
    """Return the cheaper size whose probe promises the largest saving; `None` where no size is in doubt.

    Only where the price decides: for the objectives `cost` and `cost_per_token`, with a known price.

    Args:
        demand: What is asked.
        found: What was found; the first of it is the plan.
        band_of: How far the predictions of a candidate may be off.
    """
    price = found.ranked[0].score.usd_per_hour
    if demand.endpoint.objective not in ("cost", "cost_per_token") or price == UNKNOWN:
        return None
    sizes = [
        size
        for candidate in found.fitted
        for size in _cheaper(demand, candidate, price * (1 - LEAST_SAVING))
        if not _hopeless(demand, size, band_of(candidate).latency)
    ]
    sizes.sort(key=lambda size: (size.usd_per_hour, str(size.candidate)))
    doubts = [_doubt(demand, size, band_of(size.candidate)) for size in sizes[:_MOST_SIMULATED]]
    return max(filter(None, doubts), key=lambda each: (price - each.usd_per_hour) * each.chance, default=None)


def _cheaper(demand: Demand, candidate: Candidate, most_usd: float) -> Iterator[_Size]:
    """Yield the sizes of a candidate that cost at most so much and that the spec allows, the smallest first."""
    workload, scaling = demand.endpoint.workload, demand.endpoint.scaling
    each = usd_per_hour(candidate.instance, 1, demand.discount)
    fewest = max(scaling.min_copies, copies_needed(candidate.copy, workload, MOST_IN_FLIGHT))
    most = min(scaling.max_copies, workload.concurrency or scaling.max_copies)
    if each is None:
        return
    for count in range(1, math.floor(most_usd / each) + 1):
        copies = min(most, count * candidate.copies_per_instance)
        if copies < fewest or (count - 1) * candidate.copies_per_instance >= most:
            continue
        load = spread(candidate.copy, workload, copies, lambda level: predict_at(candidate.copy, level).output_tok_s)
        yield _Size(candidate, count, each * count, load)


def _hopeless(demand: Demand, size: _Size, band: float) -> bool:
    """Tell whether the closed form's mean is beyond a bound by more than the band."""
    level = size.load.concurrency_per_copy
    if level > MOST_IN_FLIGHT:
        return True
    point = predict_at(size.candidate.copy, level)
    return any(objective.out_of_reach(point, (1 + band) * _SLACK) for objective in demand.objectives)


def _doubt(demand: Demand, size: _Size, band: Band) -> Doubt | None:
    """Simulate a size; `None` where it is beyond the band, misses nothing, or was measured at this level."""
    candidate, concurrency = size.candidate, size.load.concurrency_per_copy
    if demand.is_measured(candidate.instance.instance_type, candidate.degree, concurrency):
        return None
    each = size.load.rate_per_copy
    outcome = candidate.levels.at(concurrency) if each is None else candidate.levels.at_rate(each)
    worst = max(demand.objectives, key=lambda objective: objective.ratio(outcome))
    asked, reached = demand.endpoint.slo.output_tok_s or 0.0, size.load.output_tok_s
    slow = asked / reached
    if worst.ratio(outcome) > 1:
        field, predicted, bound = ".".join(worst.path), worst.predicted(outcome), worst.bound_ms
        ratio, most = worst.ratio(outcome), band.latency
        if slow > 1 + band.throughput:
            return None
    else:
        field, predicted, bound, ratio, most = "slo.output_tok_s", reached, asked, slow, band.throughput
    if not 1 < ratio <= 1 + most:
        return None
    chance = NormalDist().cdf(-math.log(ratio) / (math.log1p(most) / _COVERAGE_Z))
    return Doubt(candidate, size.load, size.instance_count, size.usd_per_hour, field, predicted, bound, ratio, chance)
