"""What is said of a deployment with narrower weights: its gain over the plan, and what it gives up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.documents.plan import Proposal
from seatrial.planner.search.candidate import known
from seatrial.planner.search.cheaper_precision import narrower
from seatrial_base.units import hourly_words, tenths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.planner.search.candidate import FeasibleCandidate
    from seatrial.planner.search.cheaper_precision import NarrowerDeployment
    from seatrial.planner.search.demand import Demand
    from seatrial_base.catalog.instances import Instance

_MEASURE = "Answers may differ: compare their quality on your own prompts."
_GIVES_UP = {
    "fp8": f"The weights are rounded to 8 bits when the engine loads them. {_MEASURE}",
    "nvfp4": f"It needs a checkpoint in NVFP4: the weights are rounded to 4 bits in blocks of 16. {_MEASURE}",
}


def propose_precisions(
    demand: Demand, allowed: Sequence[Instance], best: FeasibleCandidate, engine_version: str
) -> tuple[Proposal, ...]:
    """Return the proposals of narrower weights, in the order fp8, nvfp4."""
    return tuple(_proposal(demand, best, found) for found in narrower(demand, allowed, best, engine_version))


def _proposal(demand: Demand, plan: FeasibleCandidate, found: NarrowerDeployment) -> Proposal:
    best, score = found.best, found.best.score
    return Proposal(
        quantization=found.quantization,
        **best.size.fields,
        output_tok_s=round(score.output_tok_s, 1),
        highest_tok_s=round(score.highest_tok_s, 1),
        ms_per_token_alone=round(score.ms_per_token_alone, 2),
        because=_because(demand, plan, best),
        gives_up=_GIVES_UP[found.quantization],
    )


def _because(demand: Demand, plan: FeasibleCandidate, best: FeasibleCandidate) -> str:
    ours, theirs = plan.score, best.score
    price, paid = (hourly_words(known(each.usd_per_hour), demand.discount) for each in (theirs, ours))
    return (
        f"{best.instance_count} x {best.candidate}: {price} instead of {paid}, "
        f"{tenths(theirs.ms_per_token_alone)} instead of {tenths(ours.ms_per_token_alone)} ms per token for a single "
        f"request, at most {theirs.highest_tok_s:,.0f} instead of {ours.highest_tok_s:,.0f} output tok/s."
    )
