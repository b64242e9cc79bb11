"""Why one instance type is the plan's, or was rejected: a verdict for each degree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.documents.comparison import DegreeVerdict
from seatrial.planner.search.best_first import Search
from seatrial.planner.search.candidate import RejectedCandidate, known
from seatrial.planner.search.pipeline import search_for
from seatrial.planner.search.ranking import ranking_order, why_best, why_outdone
from seatrial.specs.load import priced
from seatrial_base.catalog.instances import INSTANCES, find_instance
from seatrial_base.catalog.rows import nearest_names
from seatrial_base.errors import PlanError
from seatrial_base.units import hourly_words, tenths

if TYPE_CHECKING:
    from seatrial.planner.search.best_first import SearchResult
    from seatrial.planner.search.candidate import FeasibleCandidate
    from seatrial.planner.search.demand import Demand
    from seatrial.planner.search.ranking import Key
    from seatrial.specs.load import LoadedSpec


def explain(
    loaded: LoadedSpec, instance_type: str, *, accept_slo_miss: bool = False, allow_unknown_price: bool = False
) -> tuple[DegreeVerdict, ...]:
    """Say of an instance type, degree by degree, why it was chosen or rejected.

    Args:
        loaded: What is asked for.
        instance_type: SageMaker's name.
        accept_slo_miss: As for the plan.
        allow_unknown_price: As for the plan.

    Raises:
        PlanError: SEA110 when the catalog lacks the instance type, and whatever keeps the spec from being read.
    """
    known_type = find_instance(instance_type)
    if known_type is None:
        near = ", ".join(nearest_names(instance_type, tuple(each.instance_type for each in INSTANCES.rows)))
        message = f"{instance_type} is not in the catalog"
        hint = f"similar in the catalog: {near}" if near else "name an instance type, for example ml.g5.xlarge"
        raise PlanError.of("SEA110", message, hint=hint)
    instance = priced(known_type, loaded)
    resolved, found = search_for(loaded, accept_slo_miss=accept_slo_miss, allow_unknown_price=allow_unknown_price)
    verdicts = tuple(_verdict(resolved.demand, found, each) for each in Search(resolved.demand).on(instance))
    return verdicts if instance in resolved.allowed else tuple(map(_not_allowed, verdicts))


def _verdict(demand: Demand, found: SearchResult, judged: FeasibleCandidate | RejectedCandidate) -> DegreeVerdict:
    return _rejected(judged) if isinstance(judged, RejectedCandidate) else _feasible(demand, found, judged)


def _rejected(rejection: RejectedCandidate) -> DegreeVerdict:
    return DegreeVerdict(
        instance_type=rejection.instance_type,
        tensor_parallel_degree=rejection.degree,
        won=False,
        stage=rejection.stage,
        because=rejection.because,
        usd_per_hour=None if rejection.usd_per_hour is None else known(rejection.usd_per_hour),
        output_tok_s=None if rejection.output_tok_s is None else round(rejection.output_tok_s, 1),
    )


def _feasible(demand: Demand, found: SearchResult, feasible: FeasibleCandidate) -> DegreeVerdict:
    candidate, best = feasible.candidate, found.ranked[0] if found.ranked else None
    won = best is not None and best.candidate.place == candidate.place
    if best is None:
        because = "Meets every requirement."
    elif won:
        because = why_best(found.ranked, found.considered, demand)
    elif _key(demand, feasible) < _key(demand, best):
        price = hourly_words(known(feasible.score.usd_per_hour), demand.discount)
        alone = f"{tenths(feasible.score.ms_per_token_alone)} ms per token for a single request"
        numbers = f"{alone}, at most {feasible.score.highest_tok_s:,.0f} output tok/s"
        because = f"Predicted to {demand.kept}; ranks above the chosen {best.candidate}: {price}, {numbers}."
    else:
        chosen = f"Chosen: {best.candidate}."
        because = f"{why_outdone(best.score, feasible.score, demand.endpoint.objective)} {chosen}"
    return DegreeVerdict(
        instance_type=candidate.instance.instance_type,
        tensor_parallel_degree=candidate.degree,
        won=won,
        stage="chosen" if won else "ranking",
        because=because,
        usd_per_hour=known(feasible.score.usd_per_hour),
        output_tok_s=round(feasible.score.output_tok_s, 1),
    )


def _key(demand: Demand, feasible: FeasibleCandidate) -> Key:
    return ranking_order(feasible.candidate, feasible.score, demand.endpoint.objective)


def _not_allowed(verdict: DegreeVerdict) -> DegreeVerdict:
    because = f"Not in `instance_types`. If allowed: {verdict.because[:1].lower()}{verdict.because[1:]}"
    return verdict.model_copy(update={"won": False, "stage": "allowed", "because": because})
