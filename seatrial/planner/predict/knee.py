"""The predicted knee of one copy: the concurrency past which more load is predicted not to pay."""

from __future__ import annotations

from seatrial.documents.prediction import PredictedKnee


def predicted_knee(capacity: int, batch_limit: int) -> PredictedKnee:
    """Return the lesser of the highest load predicted to meet the SLO and of the engine's batch limit.

    Args:
        capacity: Highest concurrency of one copy that is predicted to meet every objective.
        batch_limit: Sequences that the copy batches at once.
    """
    if batch_limit < capacity:
        return PredictedKnee(concurrency=batch_limit, detector="batch_limit")
    return PredictedKnee(concurrency=capacity, detector="slo")
