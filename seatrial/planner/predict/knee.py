"""The predicted knee of one copy: the concurrency past which more load is predicted not to pay."""

from __future__ import annotations

from typing import Literal, TypeAlias

from seatrial_base.frozen_model import FrozenModel

PredictedBy: TypeAlias = Literal["slo", "batch_limit"]
MEANING = {
    "slo": "the highest load predicted to meet the SLO",
    "batch_limit": "the sequences that the engine batches at once",
}


class PredictedKnee(FrozenModel):
    """The knee that the autoscaling target is a share of until a trial has measured one.

    Attributes:
        concurrency: Requests in flight on the copy.
        detector: What sets it: `slo`, as in a trial, or `batch_limit` where the engine batches fewer.
    """

    concurrency: int
    detector: PredictedBy

    @property
    def meaning(self) -> str:
        """What the detector looks for, in words."""
        return MEANING[self.detector]


def predicted_knee(capacity: int, batch_limit: int) -> PredictedKnee:
    """Return the lesser of the highest load predicted to meet the SLO and of the engine's batch limit.

    Args:
        capacity: Highest concurrency of one copy that is predicted to meet every objective.
        batch_limit: Sequences that the copy batches at once.
    """
    if batch_limit < capacity:
        return PredictedKnee(concurrency=batch_limit, detector="batch_limit")
    return PredictedKnee(concurrency=capacity, detector="slo")
