"""Evaluates a candidate: by the closed form to order the search, by simulation to accept or reject it.

Errors of predictions are log-normal, and a band holds 80 % of them; of TTFT, which is less certain, a wider one does.
One error makes all latencies of a deployment longer, so the chance that it meets the SLO is that of its least likely
bound. `docs/explanation/accuracy.md` shows how often such chances come true.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.planner.predict.band import carried_chance, chance_within
from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.predict.simulation import saturation_per_s
from seatrial.planner.search.candidate import Estimate, FeasibleCandidate, Miss, RejectedCandidate, band_for
from seatrial.planner.search.capacity import MOST_IN_FLIGHT, capacity, estimated_capacity
from seatrial.planner.search.demand import read_objectives
from seatrial.planner.search.fitting import rejection_of
from seatrial.planner.search.sizing import (
    UNKNOWN,
    bounds_money,
    carrying_copies,
    copies_at_rate,
    excesses,
    instances_for,
    keeps,
    score_of,
    size,
    too_fast,
)
from seatrial.specs.shapes import MOST_COPIES
from seatrial_base.units import counted, tenths

if TYPE_CHECKING:
    from seatrial.documents.prediction import Band
    from seatrial.planner.search.candidate import Candidate, Score
    from seatrial.planner.search.capacity import LoadSpread
    from seatrial.planner.search.demand import Demand
    from seatrial.planner.search.sizing import Sizing
    from seatrial.specs.endpoint import EndpointSpec

_LATENCY_SLACK = 1.25
# Simulated throughputs lie at most about this much above the closed form's: an estimate must not be too low.
_THROUGHPUT_SLACK = 1.15
# Kinds of shortfall: the higher, the later a candidate is simulated. 0, which comes into question, is before them all.
_TOO_MANY_COPIES, _TOO_SLOW, _NO_PRICE, _TOO_DEAR, LACKS_HEADROOM = 5, 4, 3, 2, 1
# Cheaper deployments in doubt were slower than predicted more often than faster while their model or degree was left
# out, and as often as not while only lengths were. With this number their chances come true about as often as stated
# (the table of benchmarks/planner_accuracy/chances.py).
SLOWER_IN_DOUBT = 0.2


def estimate(demand: Demand, candidate: Candidate) -> Estimate:
    """Estimate a candidate that keeps the objectives with a single request."""

    def tok_s(concurrency: int) -> float:
        return predict_at(candidate.copy, concurrency).output_tok_s * _THROUGHPUT_SLACK

    # With slack the score is a little better than the simulation will say: best-first search is right only as long as
    # no estimate is too low. The capacity at which the simulation begins has no slack.
    highest = max(1, estimated_capacity(candidate.copy, demand.objectives, _LATENCY_SLACK))
    sized = size(demand, candidate, highest, tok_s)
    score = score_of(demand, candidate, sized.load, tok_s(highest))
    likely = estimated_capacity(candidate.copy, demand.objectives)
    return Estimate(candidate, likely, score, _shortfall(demand, candidate, sized, score))


def _shortfall(demand: Demand, candidate: Candidate, sized: Sizing, score: Score) -> tuple[int, float]:
    most, wanted_tok_s = demand.endpoint.scaling.max_copies, demand.endpoint.slo.output_tok_s or 0.0
    lack = by_headroom(demand, candidate, sized.load)
    if sized.needed > most:
        return _TOO_MANY_COPIES, sized.needed / most
    if sized.load.output_tok_s < wanted_tok_s:
        return _TOO_SLOW, wanted_tok_s / sized.load.output_tok_s
    if score.usd_per_hour == UNKNOWN:
        choosable = demand.may_choose(candidate.instance) and not bounds_money(demand)
        return lack if choosable else (_NO_PRICE, 0.0)
    beyond = excesses(demand, candidate, score)
    return (_TOO_DEAR, max(excess.price / excess.bound for excess in beyond)) if beyond else lack


def carried_by(demand: Demand, candidate: Candidate, load: LoadSpread) -> float:
    """Return the chance that copies carry the workload's rate; 1 where it is no rate."""
    if load.rate_per_copy is None:
        return 1.0
    return carried_chance(load.rate_per_copy, saturation_per_s(candidate.copy), band_for(demand, candidate))


def by_headroom(demand: Demand, candidate: Candidate, load: LoadSpread) -> tuple[int, float]:
    """Return the shortfall of a deployment by the chance that it carries the rate, where nothing else falls short."""
    # Rounded, as the copies were counted by the inverse of the chance: equal but for the last digits is equal.
    lack = round(demand.endpoint.objective.headroom - carried_by(demand, candidate, load), 9)
    return (LACKS_HEADROOM, lack) if lack > 0 else (0, 0.0)


def without_headroom(demand: Demand, feasible: FeasibleCandidate) -> RejectedCandidate:
    """Return the rejection of a deployment that lacks nothing but headroom, where another one has it."""
    load, chance = feasible.load, carried_by(demand, feasible.candidate, feasible.load)
    because, field = f"{headroom_words(demand, load.copy_count, chance)}.", ("objective", "headroom")
    money = feasible.score.usd_per_hour, load.output_tok_s
    return RejectedCandidate(*feasible.candidate.place, "copies", because, 1 / chance, field, "", *money)


def headroom_words(demand: Demand, copies: int, chance: float) -> str:
    """Say that copies carry a rate, but not with the wanted chance."""
    carry, wanted = counted(copies, "copy carries", "copies carry"), demand.endpoint.objective.headroom
    return f"{carry} the rate with a chance of {chance:.1%}, below objective.headroom {wanted:g}"


def misses_alone(demand: Demand, candidate: Candidate) -> RejectedCandidate | None:
    """Return the rejection of a candidate that misses an objective even with a single request."""
    outcome = candidate.alone
    missed = [objective for objective in demand.objectives if objective.ratio(outcome) > 1]
    if not missed:
        return None
    # Every objective that is missed is kept: where nothing fits, the message says which of them nothing reaches.
    misses = tuple(Miss(objective, objective.predicted(outcome)) for objective in missed)
    worst = max(misses, key=lambda miss: miss.predicted_ms / miss.objective.bound_ms)
    parts = ", ".join(f"{tenths(miss.predicted_ms, grouped=True)} ms against {miss.objective}" for miss in misses)
    return RejectedCandidate(
        *candidate.place,
        stage="slo",
        because=f"A single request is predicted to take {parts}.",
        gap=worst.predicted_ms / worst.objective.bound_ms,
        field=worst.objective.path,
        misses=misses,
    )


def evaluate(demand: Demand, estimated: Estimate) -> FeasibleCandidate | RejectedCandidate:
    """Simulate a candidate around its estimate, and evaluate it."""
    if demand.open_trial:
        return _evaluate_at_rate(demand, estimated)
    candidate = estimated.candidate
    highest = capacity(candidate.levels, demand.objectives, estimated.capacity)
    sized = _sized(demand, candidate, highest)
    # The search for the capacity has seen some levels only. Where the planned one lies between them and misses, a copy
    # gets fewer requests, and there are more copies, until it holds.
    while sized.needed <= demand.endpoint.scaling.max_copies and not _holds(demand, candidate, sized.load):
        highest = min(highest, sized.load.concurrency_per_copy) - 1
        sized = _sized(demand, candidate, highest)
    if sized.needed > demand.endpoint.scaling.max_copies:
        return _too_many_copies(demand, candidate, highest, sized.needed)
    # Requests that come at a rate queue, which a closed loop does not show: that may need more copies.
    if demand.arrivals is not None:
        fewest = _copies_at_rate(demand, candidate, sized.load.copy_count)
        if fewest > demand.endpoint.scaling.max_copies:
            return _too_fast(demand, candidate, fewest)
        if fewest > sized.load.copy_count:
            sized = _sized(demand, candidate, highest, fewest)
    if sized.load.output_tok_s < (demand.endpoint.slo.output_tok_s or 0.0):
        return _too_slow(demand, candidate, sized.load)
    # What a copy gives at most: past a full batch the last round of a level runs half empty.
    full = candidate.levels.at(min(highest, candidate.copy.most_running))
    holding = [full] if all(objective.ratio(full) <= 1 for objective in demand.objectives) else []
    ends = (candidate.levels.at(level) for level in (highest, sized.load.concurrency_per_copy))
    score = score_of(demand, candidate, sized.load, max(outcome.output_tok_s for outcome in (*holding, *ends)))
    count = instances_for(candidate, sized.load.copy_count)
    chosen = FeasibleCandidate(candidate, highest, sized.needed, sized.load, count, score)
    return _affordable(demand, candidate, score, sized) or chosen


def _evaluate_at_rate(demand: Demand, estimated: Estimate) -> FeasibleCandidate | RejectedCandidate:
    """Evaluate a candidate whose trial is an open loop: what counts is the rate of one copy, and no concurrency."""
    candidate, highest = estimated.candidate, max(1, estimated.capacity)
    fewest = _copies_at_rate(demand, candidate, 1)
    if fewest > demand.endpoint.scaling.max_copies:
        return _too_fast(demand, candidate, fewest)
    sized = size(demand, candidate, highest, lambda level: predict_at(candidate.copy, level).output_tok_s, fewest)
    sized = replace(sized, load=at_its_rate(candidate, sized.load))
    if sized.load.output_tok_s < (demand.endpoint.slo.output_tok_s or 0.0):
        return _too_slow(demand, candidate, sized.load)
    score = score_of(demand, candidate, sized.load, predict_at(candidate.copy, highest).output_tok_s)
    count, taken = instances_for(candidate, sized.load.copy_count), max(sized.load.concurrency_per_copy, highest)
    chosen = FeasibleCandidate(candidate, taken, sized.needed, sized.load, count, score)
    return _affordable(demand, candidate, score, sized) or chosen


def at_its_rate(candidate: Candidate, load: LoadSpread) -> LoadSpread:
    """Return a load with the requests that its rate keeps in flight on one copy, as simulated."""
    in_flight = math.ceil(candidate.levels.at_rate(load.rate_per_copy or 0.0).in_flight)
    return replace(load, concurrency_per_copy=max(1, in_flight))


def _copies_at_rate(demand: Demand, candidate: Candidate, fewest: int) -> int:
    rate = demand.endpoint.workload.requests_per_second or 0.0
    fewest = max(fewest, carrying_copies(demand, candidate))
    return copies_at_rate(candidate.levels, demand.objectives, rate, demand.endpoint.scaling, fewest)


def planned_load(demand: Demand, estimated: Estimate) -> FeasibleCandidate | None:
    """Return a candidate at the size of the closed form, simulated at its planned load alone; `None` if it fails.

    Its capacity is the closed form's, which costs a fraction of `evaluate`: enough to show what is not chosen.
    """
    candidate, highest = estimated.candidate, max(1, estimated.capacity)
    sized = size(demand, candidate, highest, lambda level: predict_at(candidate.copy, level).output_tok_s)
    load = sized.load
    if sized.needed > demand.endpoint.scaling.max_copies or not _holds(demand, candidate, load):
        return None
    if by_headroom(demand, candidate, load)[0]:
        return None
    if load.rate_per_copy is not None and not keeps(candidate.levels, demand.objectives, load.rate_per_copy):
        return None
    if load.output_tok_s < (demand.endpoint.slo.output_tok_s or 0.0):
        return None
    score = score_of(demand, candidate, load, predict_at(candidate.copy, highest).output_tok_s)
    count = instances_for(candidate, load.copy_count)
    return FeasibleCandidate(candidate, highest, sized.needed, load, count, score)


def _sized(demand: Demand, candidate: Candidate, highest: int, fewest: int | None = None) -> Sizing:
    return size(demand, candidate, highest, lambda level: candidate.levels.at(level).output_tok_s, fewest)


def _holds(demand: Demand, candidate: Candidate, load: LoadSpread) -> bool:
    """Tell whether the planned load keeps the objectives: a level between those that were searched may not."""
    if demand.open_trial:
        return True
    outcome = candidate.levels.at(load.concurrency_per_copy)
    # A single request was judged before (`misses_alone`).
    return load.concurrency_per_copy == 1 or all(objective.ratio(outcome) <= 1 for objective in demand.objectives)


def _too_many_copies(demand: Demand, candidate: Candidate, highest: int, needed: int) -> RejectedCandidate:
    most = demand.endpoint.scaling.max_copies
    because = (
        f"One copy sustains {counted(highest, 'concurrent request')}; the workload needs "
        f"{counted(needed, 'copy', 'copies')}, max_copies is {most}."
    )
    raised = f"set max_copies to at least {needed}, " if needed <= MOST_COPIES else ""
    instead = f"{raised}{_loosened(demand, candidate, most)}"
    return RejectedCandidate(
        *candidate.place,
        stage="copies",
        because=because,
        gap=needed / most,
        field=("scaling", "max_copies"),
        hint=f"{instead}or allow faster instance types" if instead else "allow faster instance types, or less traffic",
    )


def _too_fast(demand: Demand, candidate: Candidate, needed: int) -> RejectedCandidate:
    most, rate = demand.endpoint.scaling.max_copies, demand.endpoint.workload.requests_per_second or 0.0
    return RejectedCandidate(
        *candidate.place,
        stage="copies",
        because=too_fast(candidate.levels, demand.objectives, rate, most),
        gap=needed / most,
        field=("scaling", "max_copies"),
        hint="raise max_copies, loosen the SLO, or allow faster instance types",
    )


def _loosened(demand: Demand, candidate: Candidate, copies: int) -> str:
    """Return what the objectives would have to allow for the most copies to take a number of requests in flight."""
    concurrency = demand.endpoint.workload.concurrency
    if concurrency is None or concurrency > copies * MOST_IN_FLIGHT:
        return ""
    outcome = candidate.levels.at(math.ceil(concurrency / copies))
    missed = [objective for objective in demand.objectives if objective.ratio(outcome) > 1]
    allow = [f"{'.'.join(o.path)} {math.ceil(o.predicted(outcome)):,} ms" for o in missed if o is not demand.timeout]
    past = demand.timeout in missed  # no objective helps when requests end before they are answered
    return "" if past or not allow else f"allow {' and '.join(allow)}, "


def _too_slow(demand: Demand, candidate: Candidate, load: LoadSpread) -> RejectedCandidate:
    wanted_tok_s, reached = demand.endpoint.slo.output_tok_s or 0.0, load.output_tok_s
    is_rate = load.rate_per_copy is not None
    because = (
        f"{counted(load.copy_count, 'copy', 'copies')}: {reached:,.0f} output tok/s "
        f"{'offered' if is_rate else 'predicted'}, below slo.output_tok_s {wanted_tok_s:,.0f}."
    )
    what = "max_copies or " if load.concurrency_per_copy > 1 and not is_rate else ""
    return RejectedCandidate(
        *candidate.place,
        stage="copies",
        because=because,
        gap=wanted_tok_s / reached,
        field=("slo", "output_tok_s"),
        hint=f"lower it to {math.floor(reached):,}, or raise {what}the workload's traffic",
    )


def _affordable(demand: Demand, candidate: Candidate, score: Score, sized: Sizing) -> RejectedCandidate | None:
    """Return the rejection of a candidate that costs too much, or whose price can't be held against a bound."""
    if score.usd_per_hour == UNKNOWN:
        if bounds_money(demand):
            because = "The price is unknown, so the budget can't be checked."
        elif not demand.may_choose(candidate.instance):
            name = "name the type in instance_types or plan with --allow-unknown-price to choose it."
            because = f"The price is unknown: {name}"
        else:
            return None
        rejection = rejection_of(candidate.instance, candidate.degree, "price", because)
        return replace(rejection, output_tok_s=sized.load.output_tok_s)
    beyond = excesses(demand, candidate, score)
    if not beyond:
        return None
    worst = max(beyond, key=lambda excess: excess.price / excess.bound)
    return RejectedCandidate(
        *candidate.place,
        stage="budget",
        because=" ".join(excess.because for excess in beyond),
        gap=worst.price / worst.bound,
        field=worst.field,
        usd_per_hour=score.usd_per_hour,
        output_tok_s=sized.load.output_tok_s,
        excesses=tuple(beyond),
    )


def slower_in_doubt(band: Band) -> float:
    """Return by how many standard deviations a cheaper deployment in doubt is slower than predicted."""
    return 0.0 if band.of_same_deployment else SLOWER_IN_DOUBT


def chance_of(
    endpoint: EndpointSpec, candidate: Candidate, load: LoadSpread, band: Band, slower: float = 0.0
) -> float | None:
    """Return the chance that a deployment meets the SLO; `None` where the spec bounds nothing.

    A rate that is not carried meets none, as its queue grows without end; else the tokens that it offers are answered.

    Args:
        slower: By how many standard deviations it is taken to be slower than predicted.
    """
    # The last objective is the request timeout, which is no promise of the SLO.
    bounds, wanted_tok_s = read_objectives(endpoint)[:-1], endpoint.slo.output_tok_s
    outcome = candidate.levels.under(load) if bounds else None
    chances = [
        chance_within(bound.ratio(outcome), band.latency_of(bound.metric), slower) for bound in bounds if outcome
    ]
    if wanted_tok_s is not None and load.rate_per_copy is None:
        chances.append(chance_within(wanted_tok_s / load.output_tok_s, band.throughput, slower))
    if load.rate_per_copy is not None and endpoint.slo.bounds_speed:
        chances.append(carried_chance(load.rate_per_copy, saturation_per_s(candidate.copy), band, slower))
    return min(chances, default=None)
