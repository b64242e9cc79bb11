"""Judges one candidate by simulation: does it keep the objectives, take the workload, and stay affordable?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial.catalog.instances import PRICE_REGION
from seatrial.plan.candidate import Loss, Miss, Offer
from seatrial.plan.copies import capacity
from seatrial.plan.fitting import lost
from seatrial.plan.levels import MOST_IN_FLIGHT
from seatrial.plan.sizing import UNKNOWN, bounds_money, excesses, instances_for, merit_of, size
from seatrial.plan.words import counted
from seatrial.spec.endpoint import MOST_COPIES
from seatrial.units import tenths

if TYPE_CHECKING:
    from seatrial.plan.candidate import Candidate, Estimate, Merit
    from seatrial.plan.copies import Load
    from seatrial.plan.demand import Demand
    from seatrial.plan.sizing import Sizing


def misses_alone(demand: Demand, candidate: Candidate) -> Loss | None:
    """Return the loss of a candidate that misses an objective even with a single request."""
    outcome = candidate.alone
    missed = [objective for objective in demand.objectives if objective.ratio(outcome) > 1]
    if not missed:
        return None
    misses = tuple(Miss(objective, objective.predicted(outcome)) for objective in missed)
    worst = max(misses, key=lambda miss: miss.predicted_ms / miss.objective.bound_ms)
    parts = ", ".join(f"{tenths(miss.predicted_ms, grouped=True)} ms against {miss.objective}" for miss in misses)
    return Loss(
        instance_type=candidate.instance.instance_type,
        degree=candidate.degree,
        stage="slo",
        because=f"A single request is predicted to take {parts}.",
        gap=worst.predicted_ms / worst.objective.bound_ms,
        field=worst.objective.path,
        misses=misses,
    )


def judge(demand: Demand, estimated: Estimate) -> Offer | Loss:
    """Simulate a candidate around its estimate, and judge it."""
    candidate = estimated.candidate
    highest = capacity(candidate.levels, demand.objectives, estimated.capacity)
    sized = _sized(demand, candidate, highest)
    while sized.needed <= demand.endpoint.scaling.max_copies and not _holds(demand, candidate, sized.load):
        highest = min(highest, sized.load.concurrency_per_copy) - 1
        sized = _sized(demand, candidate, highest)
    if sized.needed > demand.endpoint.scaling.max_copies:
        return _too_many_copies(demand, candidate, highest, sized.needed)
    if sized.load.output_tok_s < (demand.endpoint.slo.output_tok_s or 0.0):
        return _too_slow(demand, candidate, sized.load)
    merit = merit_of(demand, candidate, sized.load, _most_tok_s(demand, candidate, highest, sized.load))
    return _affordable(demand, candidate, merit, sized) or Offer(
        candidate=candidate,
        capacity=highest,
        needed=sized.needed,
        load=sized.load,
        instance_count=instances_for(candidate, sized.load.copy_count),
        merit=merit,
    )


def _sized(demand: Demand, candidate: Candidate, highest: int) -> Sizing:
    return size(demand, candidate, highest, lambda concurrency: candidate.levels.at(concurrency).output_tok_s)


def _most_tok_s(demand: Demand, candidate: Candidate, highest: int, load: Load) -> float:
    """Return what a copy gives at most: past a full batch the last round of a level runs half empty."""
    full = candidate.levels.at(min(highest, candidate.copy.most_running))
    holding = [full] if all(objective.ratio(full) <= 1 for objective in demand.objectives) else []
    ends = (candidate.levels.at(level) for level in (highest, load.concurrency_per_copy))
    return max(outcome.output_tok_s for outcome in (*holding, *ends))


def _holds(demand: Demand, candidate: Candidate, load: Load) -> bool:
    """Tell whether the planned load keeps the objectives: a level between those that were searched may not."""
    outcome = candidate.levels.at(load.concurrency_per_copy)
    return load.concurrency_per_copy == 1 or all(objective.ratio(outcome) <= 1 for objective in demand.objectives)


def _too_many_copies(demand: Demand, candidate: Candidate, highest: int, needed: int) -> Loss:
    most = demand.endpoint.scaling.max_copies
    because = (
        f"One copy sustains {counted(highest, 'concurrent request')}; the workload needs "
        f"{counted(needed, 'copy', 'copies')}, max_copies is {most}."
    )
    raised = f"set max_copies to at least {needed}, " if needed <= MOST_COPIES else ""
    instead = f"{raised}{_loosened(demand, candidate, most)}"
    return Loss(
        instance_type=candidate.instance.instance_type,
        degree=candidate.degree,
        stage="copies",
        because=because,
        gap=needed / most,
        field=("scaling", "max_copies"),
        hint=f"{instead}or allow faster instance types" if instead else "allow faster instance types, or less traffic",
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


def _too_slow(demand: Demand, candidate: Candidate, load: Load) -> Loss:
    asked, reached = demand.endpoint.slo.output_tok_s or 0.0, load.output_tok_s
    because = (
        f"{counted(load.copy_count, 'copy', 'copies')}: {reached:,.0f} output tok/s predicted, below slo.output_tok_s "
        f"{asked:,.0f}."
    )
    what = "max_copies or " if load.concurrency_per_copy > 1 else ""
    return Loss(
        instance_type=candidate.instance.instance_type,
        degree=candidate.degree,
        stage="copies",
        because=because,
        gap=asked / reached,
        field=("slo", "output_tok_s"),
        hint=f"lower it to {math.floor(reached):,}, or raise {what}the workload's traffic",
    )


def _affordable(demand: Demand, candidate: Candidate, merit: Merit, sized: Sizing) -> Loss | None:
    """Return the loss of a candidate that costs too much, or whose price can't be held against a bound."""
    if merit.usd_per_hour == UNKNOWN:
        because = f"The price in {PRICE_REGION} is unknown, so the budget can't be checked."
        return lost(candidate.instance, candidate.degree, "price", because) if bounds_money(demand) else None
    beyond = excesses(demand, candidate, merit)
    if not beyond:
        return None
    worst = max(beyond, key=lambda excess: excess.price / excess.bound)
    return Loss(
        instance_type=candidate.instance.instance_type,
        degree=candidate.degree,
        stage="budget",
        because=" ".join(excess.because for excess in beyond),
        gap=worst.price / worst.bound,
        field=worst.field,
        usd_per_hour=merit.usd_per_hour,
        output_tok_s=sized.load.output_tok_s,
        excesses=tuple(beyond),
    )
