"""Neighbours of a plan: proposed, never taken.

Deployments with narrower weights that accelerator, engine and model support; the cheaper deployment that may meet the
SLO too, which is predicted to miss it by less than the band: a probe would decide; and the more expensive one that more
likely meets it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from seatrial.documents.plan import Probe, Proposal, SaferDeployment
from seatrial.planner.predict.band import chance_within
from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.search.best_first import Search, ranking_order
from seatrial.planner.search.candidate import FeasibleCandidate, Size, band_for, known
from seatrial.planner.search.capacity import MOST_IN_FLIGHT, copies_needed, spread
from seatrial.planner.search.evaluate import chance_of, evaluate, planned_load, slower_in_doubt
from seatrial.planner.search.sizing import UNKNOWN, excesses, score_of, usd_per_hour
from seatrial_base.catalog.instances import computes_in
from seatrial_base.units import counted, hourly_words, tenths, usd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.documents.prediction import Band
    from seatrial.planner.search.best_first import Key, SearchResult
    from seatrial.planner.search.candidate import Candidate, Estimate
    from seatrial.planner.search.demand import Demand
    from seatrial_base.catalog.instances import Instance

_MEASURE = "Answers may differ: compare their quality on your own prompts."
_GIVES_UP = {
    "fp8": f"The weights are rounded to 8 bits when the engine loads them. {_MEASURE}",
    "nvfp4": f"It needs a checkpoint in NVFP4: the weights are rounded to 4 bits in blocks of 16. {_MEASURE}",
}
_AT_LOAD = "fp8"  # what engines quantize to while they load 16-bit weights
_NEEDS_CHECKPOINT = "nvfp4"
_WORTHWHILE = 0.03  # a gain below it is within what simulations differ by
_MOST_EVALUATED = 8
_FIRST_TGI_WITH_FP8 = 2  # its changelog, 2.0.0

LEAST_SAVING = 0.15
"""Share of the price that a cheaper deployment must save: a probe costs about an hour of both."""
_MOST_SIMULATED = 8
LIKELY = 0.95
"""A plan that meets the SLO with this chance needs no more expensive deployment beside it."""
_MOST_SAFER_PRICE = 2.0  # times the plan's price: more is not worth a little more certainty
_MOST_SAFER_SIMULATED = 4
_SLACK = 1.25  # of the closed form's means over simulated percentiles, as where candidates are estimated


def propose_precisions(demand: Demand, allowed: Sequence[Instance], best: FeasibleCandidate) -> tuple[Proposal, ...]:
    """Return, for each quantization worth proposing, the best deployment where it beats the plan: fp8, then nvfp4.

    Nothing where the weights are quantized already, by the spec or in the named repository.
    """
    if demand.quantization is not None:
        return ()
    tgi, major = demand.engine.family == "tgi", demand.engine_version.partition(".")[0]
    loads_fp8 = not tgi or (int(major) if major.isdigit() else 0) >= _FIRST_TGI_WITH_FP8
    tried = [*([_AT_LOAD] if loads_fp8 else []), *([] if tgi else [_NEEDS_CHECKPOINT])]
    deployments = ((name, _best(demand, allowed, best, name)) for name in tried)
    return tuple(_proposal(demand, best, name, each) for name, each in deployments if each is not None)


def _proposal(demand: Demand, plan: FeasibleCandidate, quantization: str, best: FeasibleCandidate) -> Proposal:
    ours, theirs = plan.score, best.score
    price, paid = (hourly_words(known(each.usd_per_hour), demand.discount) for each in (theirs, ours))
    because = (
        f"{best.instance_count} x {best.candidate}: {price} instead of {paid}, "
        f"{tenths(theirs.ms_per_token_alone)} instead of {tenths(ours.ms_per_token_alone)} ms per token for a single "
        f"request, at most {theirs.highest_tok_s:,.0f} instead of {ours.highest_tok_s:,.0f} output tok/s."
    )
    return Proposal(
        quantization=quantization,
        **best.size.fields,
        output_tok_s=round(theirs.output_tok_s, 1),
        highest_tok_s=round(theirs.highest_tok_s, 1),
        ms_per_token_alone=round(theirs.ms_per_token_alone, 2),
        because=because,
        gives_up=_GIVES_UP[quantization],
    )


def _best(
    demand: Demand, allowed: Sequence[Instance], best: FeasibleCandidate, quantization: str
) -> FeasibleCandidate | None:
    """Return the best deployment with a quantization, if it beats the plan; the price bounds what is tried."""
    overrides = demand.overrides.model_copy(update={"quantization": quantization})
    serving = demand.endpoint.serving.model_copy(update={"overrides": overrides})
    # The calibration was measured with the weights of the plan, so it says nothing of narrower ones.
    narrow = replace(demand, endpoint=demand.endpoint.model_copy(update={"serving": serving}), calibrated=None)
    tried = [instance for instance in allowed if _may_gain(demand, instance, best, quantization)]
    # Only what the estimate does not rule out already: most are too dear or too slow, and a simulation costs more.
    estimates = [each for each in Search(narrow).estimates(tried).estimates if each.comes_into_question]
    feasible = _best_of(narrow, estimates)
    return feasible if feasible is not None and _gains(demand, best, feasible) else None


def _best_of(demand: Demand, estimates: Sequence[Estimate]) -> FeasibleCandidate | None:
    """Return the best deployment of some: the best by estimate are simulated first, until no estimate is better."""

    def order(one: Estimate | FeasibleCandidate) -> Key:
        return ranking_order(one.candidate, one.score, demand.endpoint.objective.goal)

    cheapest: FeasibleCandidate | None = None
    hopeful = (one for one in sorted(estimates, key=order) if planned_load(demand, one) is not None)
    for estimated in islice(hopeful, _MOST_EVALUATED):
        if cheapest is not None and order(estimated) >= order(cheapest):
            break
        result = evaluate(demand, estimated)
        if isinstance(result, FeasibleCandidate) and (cheapest is None or order(result) < order(cheapest)):
            cheapest = result
    return cheapest


def _may_gain(demand: Demand, instance: Instance, best: FeasibleCandidate, quantization: str) -> bool:
    """Tell whether an instance type supports a quantization and, where cost counts, could beat the plan."""
    if not computes_in(instance, quantization) or instance.is_offered < best.candidate.instance.is_offered:
        return False
    if instance == best.candidate.instance:
        return True
    if demand.endpoint.objective.goal in ("latency", "throughput"):
        return False
    price = usd_per_hour(instance, 1, demand.discount)
    return price is not None and price < best.score.usd_per_hour * (1 - _WORTHWHILE)


def _gains(demand: Demand, best: FeasibleCandidate, other: FeasibleCandidate) -> bool:
    """Tell whether a deployment is better by more than simulations differ, in what the spec's objective counts."""
    ours, theirs = best.score, other.score
    less, more = 1 - _WORTHWHILE, 1 + _WORTHWHILE
    faster = theirs.ms_per_token_alone < ours.ms_per_token_alone * less
    roomier = theirs.highest_tok_s > ours.highest_tok_s * more
    return {
        "cost": theirs.usd_per_hour < ours.usd_per_hour * less
        or (theirs.usd_per_hour <= ours.usd_per_hour and (faster or roomier)),
        "cost_per_token": theirs.usd_per_million_output_tokens < ours.usd_per_million_output_tokens * less,
        "latency": faster,
        "throughput": roomier,
    }[demand.endpoint.objective.goal]


@dataclass(frozen=True, slots=True)
class Doubt:
    """A cheaper size that misses an objective by less than the band.

    Attributes:
        field: The objective, as in the spec.
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


def doubt(demand: Demand, result: SearchResult) -> Doubt | None:
    """Return the cheaper size whose probe promises the largest saving; `None` where no size is in doubt.

    Only where the price decides: for the objectives `cost` and `cost_per_token`, with a known price.
    """
    price = _deciding_price(demand, result)
    if price is None:
        return None
    sizes = [
        size
        for candidate in _as_offered(result)
        for size in _sizes(demand, candidate, 0.0, price * (1 - LEAST_SAVING))
        if not _hopeless(demand, size, band_for(demand, candidate))
    ]
    sizes.sort(key=lambda size: (size.usd_per_hour, str(size.candidate)))
    # The cheapest save the most; a simulation of each would take as long as the whole search.
    doubts = [_doubt(demand, size, band_for(demand, size.candidate)) for size in sizes[:_MOST_SIMULATED]]
    # What a probe promises: what the size saves, times the chance that it may be used.
    return max(filter(None, doubts), key=lambda each: (price - each.size.usd_per_hour) * each.chance, default=None)


def propose_safer(demand: Demand, result: SearchResult, chance: float) -> SaferDeployment | None:
    """Return the cheapest deployment that misses the SLO half as likely as the plan; `None` where none does.

    Only where the price decides, as in `doubt`, and up to twice the plan's price.
    """
    price, wanted = _deciding_price(demand, result), 1 - (1 - chance) / 2
    if price is None or chance >= LIKELY:
        return None
    sizes = [
        size
        for candidate in _as_offered(result)
        for size in _sizes(demand, candidate, price, price * _MOST_SAFER_PRICE)
        if _may_reach(demand, size, band_for(demand, candidate), wanted)
    ]
    sizes.sort(key=lambda size: (size.usd_per_hour, str(size.candidate)))
    # The first that is likely enough is the cheapest of them, and the others need no simulation.
    for size in sizes[:_MOST_SAFER_SIMULATED]:
        score = score_of(demand, size.candidate, size.load, size.load.output_tok_s / size.load.copy_count)
        if excesses(demand, size.candidate, score):
            continue
        own = chance_of(demand.endpoint, size.candidate, size.load, band_for(demand, size.candidate))
        if own is not None and own >= wanted:
            return SaferDeployment(
                **size.fields,
                more_usd_per_hour=round(size.usd_per_hour - price, 4),
                concurrency_per_copy=size.load.concurrency_per_copy,
                chance=round(own, 3),
            )
    return None


def _as_offered(result: SearchResult) -> Iterator[Candidate]:
    """Yield what holds the model and is known to be offered in the region, as far as the plan is."""
    chosen = result.ranked[0].candidate.instance
    return (each for each in result.fitted if each.instance.is_offered >= chosen.is_offered)


def _deciding_price(demand: Demand, result: SearchResult) -> float | None:
    """Return the plan's price in USD per hour; `None` where it is unknown, or where another objective decides."""
    price = result.ranked[0].score.usd_per_hour
    decides = demand.endpoint.objective.goal in ("cost", "cost_per_token") and price != UNKNOWN
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


def propose_probe(demand: Demand, result: SearchResult) -> Probe | None:
    """Return the level of the cheaper deployment that is worth measuring; `None` where none is."""
    doubtful = doubt(demand, result)
    if doubtful is None:
        return None
    saving = result.ranked[0].score.usd_per_hour - doubtful.size.usd_per_hour
    size, level = doubtful.size, counted(doubtful.size.load.concurrency_per_copy, "concurrent request")
    throughput = doubtful.field == "slo.output_tok_s"
    band = f"the band of TTFT, ±{doubtful.band:.0%}" if ".ttft_ms." in doubtful.field else "the band"
    unit, within = ("tok/s", "at least") if throughput else ("ms", "at most")
    predicted, bound = f"{tenths(doubtful.predicted, grouped=True)} {unit}", f"{doubtful.bound:,.12g} {unit}"
    cost = f"{size.instance_count} x {size.candidate} costs {usd(size.usd_per_hour)} per hour"
    because = (
        f"{cost}, {usd(saving)} less than the plan. "
        f"It is predicted to miss {doubtful.field} by {doubtful.ratio - 1:.0%}, which is within {band}: {predicted} "
        f"against {bound}, with {level} per copy. Measure this level: {within} {bound} and this deployment is the "
        "cheaper plan, else the plan stays."
    )
    return Probe(
        **doubtful.size.fields,
        saving_usd_per_hour=round(saving, 4),
        concurrency_per_copy=doubtful.size.load.concurrency_per_copy,
        field=doubtful.field,
        predicted=round(doubtful.predicted, 2),
        bound=doubtful.bound,
        chance=round(doubtful.chance, 2),
        because=because,
    )
