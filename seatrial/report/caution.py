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
    if plan is None:
        yield "No plan was given, so this report holds no prediction and no cost."
    elif own is None:
        yield (
            f"The plan given ({plan.digest}) is not the one that this trial was made from "
            f"({result.request.plan_digest}), so this report holds no prediction and no cost."
        )
