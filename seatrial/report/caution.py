"""What must be known before any number is read, and which plan belongs to a trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.result import TrialResult
    from seatrial.plan.document import Plan


def plan_of_trial(result: TrialResult, plan: Plan | None) -> Plan | None:
    """Return the plan if the trial was made from it; `cautions` says when it wasn't."""
    return plan if plan is not None and plan.digest == result.request.plan_digest else None


def is_comparable(result: TrialResult, plan: Plan) -> bool:
    """Return whether the plan predicts the thing that was measured: a local engine is not the planned hardware.

    A plan that is calibrated with points of the same local engine predicts that engine.
    """
    return result.engine_note == plan.band.engine_note


def cautions(result: TrialResult, plan: Plan | None) -> Iterator[str]:
    """Yield what must be known before any number is read."""
    own = plan_of_trial(result, plan)
    if result.engine_note:
        planned = "the GPU that was planned" if own is None else f"the GPU that was planned ({own.instance_type.value})"
        yield (
            f"Local engine: the endpoint announced itself as “{result.engine_note}”. All measured numbers are of a "
            f"small random model on this machine's CPU, not of {planned}. They show that the deployment and the trial "
            "work; they say nothing about the speed or the cost of the real endpoint."
        )
    void = [str(level.concurrency) for level in result.levels if not level.valid]
    if void:
        yield (
            f"Void (○): at concurrency {', '.join(void)} the client was the limit, not the endpoint. These levels "
            "count for no knee, no verdict and no cost."
        )
    if result.cross_check is not None and result.cross_check.agreed is False:
        yield f"boto3 reads another answer than the trial's own parser: {result.cross_check.because}."
    if result.comparison is not None and result.comparison.status == "worse":
        yield f"Worse than the last release: {result.comparison.because}."
    if plan is None and result.request.target.kind == "sagemaker":
        yield "No plan was given, so this report holds no planned cost, and no prediction but the trial request's."
    elif plan is not None and own is None:
        yield (
            f"The plan given ({plan.digest}) is not the one that this trial was made from "
            f"({result.request.plan_digest}), so this report leaves it out."
        )
