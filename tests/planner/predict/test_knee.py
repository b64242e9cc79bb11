from __future__ import annotations

import pytest

from seatrial.documents.prediction import PredictedKnee
from seatrial.planner.predict.knee import predicted_knee


@pytest.mark.parametrize(
    ("capacity", "batch_limit", "knee"),
    [
        (150, 225, PredictedKnee(concurrency=150, detector="slo")),
        (49, 47, PredictedKnee(concurrency=47, detector="batch_limit")),
        (47, 47, PredictedKnee(concurrency=47, detector="slo")),
    ],
)
def test_the_knee_is_the_lesser_of_capacity_and_batch_limit(
    capacity: int, batch_limit: int, knee: PredictedKnee
) -> None:
    assert predicted_knee(capacity, batch_limit) == knee
