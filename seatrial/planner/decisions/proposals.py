"""Deployments with narrower weights that accelerator, engine and model support: proposed, never taken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from seatrial.documents.plan import Proposal
from seatrial.planner.search.best_first import Search, ranking_order
from seatrial.planner.search.candidate import FeasibleCandidate, known
from seatrial.planner.search.evaluate import evaluate, planned_load
from seatrial.planner.search.sizing import usd_per_hour
from seatrial_base.catalog.instances import computes_in
from seatrial_base.units import hourly_words, tenths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.planner.search.best_first import Key
    from seatrial.planner.search.candidate import Estimate
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


def propose_precisions(
    demand: Demand, allowed: Sequence[Instance], best: FeasibleCandidate, engine_version: str
) -> tuple[Proposal, ...]:
    """Return the proposals of narrower weights, in the order fp8, nvfp4."""
    return tuple(_proposal(demand, best, narrow) for narrow in narrower(demand, allowed, best, engine_version))


def _proposal(demand: Demand, plan: FeasibleCandidate, narrow: NarrowerDeployment) -> Proposal:
    best, score = narrow.best, narrow.best.score
    ours, theirs = plan.score, best.score
    price, paid = (hourly_words(known(each.usd_per_hour), demand.discount) for each in (theirs, ours))
    because = (
        f"{best.instance_count} x {best.candidate}: {price} instead of {paid}, "
        f"{tenths(theirs.ms_per_token_alone)} instead of {tenths(ours.ms_per_token_alone)} ms per token for a single "
        f"request, at most {theirs.highest_tok_s:,.0f} instead of {ours.highest_tok_s:,.0f} output tok/s."
    )
    return Proposal(
        quantization=narrow.quantization,
        **best.size.fields,
        output_tok_s=round(score.output_tok_s, 1),
        highest_tok_s=round(score.highest_tok_s, 1),
        ms_per_token_alone=round(score.ms_per_token_alone, 2),
        because=because,
        gives_up=_GIVES_UP[narrow.quantization],
    )


@dataclass(frozen=True, slots=True)
class NarrowerDeployment:
    """The best deployment with weights of one quantization that beats the plan."""

    quantization: str
    best: FeasibleCandidate


def narrower(
    demand: Demand, allowed: Sequence[Instance], best: FeasibleCandidate, engine_version: str
) -> tuple[NarrowerDeployment, ...]:
    """Return, for each quantization worth proposing, the best deployment where it beats the plan.

    Nothing where the weights are quantized already, by the spec or in the named repository.

    Args:
        engine_version: The engine's version: older ones lack a quantization.
    """
    if demand.quantization is not None:
        return ()
    tgi, major = demand.engine.family == "tgi", engine_version.partition(".")[0]
    loads_fp8 = not tgi or (int(major) if major.isdigit() else 0) >= _FIRST_TGI_WITH_FP8
    tried = [*([_AT_LOAD] if loads_fp8 else []), *([] if tgi else [_NEEDS_CHECKPOINT])]
    deployments = ((name, _best(demand, allowed, best, name)) for name in tried)
    return tuple(NarrowerDeployment(name, each) for name, each in deployments if each is not None)


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
        return ranking_order(one.candidate, one.score, demand.endpoint.objective)

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
    if not computes_in(instance, quantization):
        return False
    if instance == best.candidate.instance:
        return True
    if demand.endpoint.objective in ("latency", "throughput"):
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
    }[demand.endpoint.objective]
