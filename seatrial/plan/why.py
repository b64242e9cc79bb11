"""Why one instance type is the plan's, or lost: a verdict for each degree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.catalog import instances
from seatrial.catalog.table import nearest
from seatrial.errors import PlanError
from seatrial.model import FrozenModel
from seatrial.plan.candidate import Loss
from seatrial.plan.cost import hourly_words
from seatrial.plan.estimate import estimate
from seatrial.plan.finding import search_for
from seatrial.plan.fitting import candidates
from seatrial.plan.judge import judge, misses_alone
from seatrial.plan.ranking import known, order, why_best, why_outdone
from seatrial.units import tenths

if TYPE_CHECKING:
    from seatrial.plan.candidate import Candidate, Offer
    from seatrial.plan.demand import Demand
    from seatrial.plan.ranking import Key
    from seatrial.plan.search import Found
    from seatrial.spec.load import LoadedSpec


class Verdict(FrozenModel):
    """What became of an instance type with one degree.

    Attributes:
        won: It is the plan's.
        stage: Where it was decided: `chosen`, `allowed` (not among the allowed types), `ranking` (it keeps everything,
            another is better), or the question at which it failed: `specifications`, `degree`, `memory`, `slo`,
            `copies`, `price`, `budget`.
        because: Full sentences.
        usd_per_hour: Price of the size that it would have; `None` when unknown or not reached.
        output_tok_s: Of all its copies at the planned load; `None` when not reached.
    """

    instance_type: str
    tensor_parallel_degree: int
    won: bool
    stage: str
    because: str
    usd_per_hour: float | None
    output_tok_s: float | None


def explain(loaded: LoadedSpec, instance_type: str, *, accept_slo_miss: bool = False) -> tuple[Verdict, ...]:
    """Say of an instance type, degree by degree, why it was chosen or lost.

    Args:
        loaded: What is asked for.
        instance_type: SageMaker's name.
        accept_slo_miss: As for the plan.

    Raises:
        PlanError: SEA110 when the catalog lacks the instance type, and whatever keeps the spec from being read.
    """
    instance = instances.find(instance_type)
    if instance is None:
        near = ", ".join(nearest(instance_type, tuple(each.instance_type for each in instances.every())))
        message = f"{instance_type} is not in the catalog"
        raise PlanError.of("SEA110", message, hint=f"similar in the catalog: {near or 'none'}")
    resolved, found = search_for(loaded, accept_slo_miss=accept_slo_miss)
    verdicts = tuple(_verdict(resolved.demand, found, each) for each in candidates(resolved.demand, instance))
    return verdicts if instance in resolved.allowed else tuple(map(_not_allowed, verdicts))


def _verdict(demand: Demand, found: Found, candidate: Candidate | Loss) -> Verdict:
    if isinstance(candidate, Loss):
        return _lost(candidate)
    judged = misses_alone(demand, candidate) or judge(demand, estimate(demand, candidate))
    return _lost(judged) if isinstance(judged, Loss) else _offered(demand, found, judged)


def _lost(loss: Loss) -> Verdict:
    return Verdict(
        instance_type=loss.instance_type,
        tensor_parallel_degree=loss.degree,
        won=False,
        stage=loss.stage,
        because=loss.because,
        usd_per_hour=None if loss.usd_per_hour is None else known(loss.usd_per_hour),
        output_tok_s=None if loss.output_tok_s is None else round(loss.output_tok_s, 1),
    )


def _offered(demand: Demand, found: Found, offer: Offer) -> Verdict:
    candidate, best = offer.candidate, found.ranked[0] if found.ranked else None
    won = best is not None and str(best.candidate) == str(candidate)
    if best is None:
        because = "Meets every requirement."
    elif won:
        because = why_best(found.ranked, found.considered, demand)
    elif _key(demand, offer) < _key(demand, best):
        price = hourly_words(known(offer.merit.usd_per_hour), demand.discount)
        alone = f"{tenths(offer.merit.ms_per_token_alone)} ms per token for a single request"
        numbers = f"{alone}, at most {offer.merit.highest_tok_s:,.0f} output tok/s"
        because = f"Predicted to {demand.kept}; ranks above the chosen {best.candidate}: {price}, {numbers}."
    else:
        chosen = f"Chosen: {best.candidate}."
        because = f"{why_outdone(best.merit, offer.merit, demand.endpoint.objective)} {chosen}"
    return Verdict(
        instance_type=candidate.instance.instance_type,
        tensor_parallel_degree=candidate.degree,
        won=won,
        stage="chosen" if won else "ranking",
        because=because,
        usd_per_hour=known(offer.merit.usd_per_hour),
        output_tok_s=round(offer.merit.output_tok_s, 1),
    )


def _key(demand: Demand, offer: Offer) -> Key:
    return order(offer.candidate, offer.merit, demand.endpoint.objective)


def _not_allowed(verdict: Verdict) -> Verdict:
    because = f"Not in `instance_types`. If allowed: {verdict.because[:1].lower()}{verdict.because[1:]}"
    return verdict.model_copy(update={"won": False, "stage": "allowed", "because": because})
