from __future__ import annotations

import pytest

from seatrial.documents.prediction import PredictedKnee
from seatrial.planner.predict.regime import PredictedTarget, predicted_target
from seatrial_load.measure.curves import FILLED, Reading, saturation

CURVE = [Reading(load=float(2**power), value=2**power / (1 + 0.02 * 2**power)) for power in range(9)]


def target(capacity: int, gate: int, *, batch_limit: int = 1_000, alone: bool = False) -> PredictedTarget:
    return predicted_target(
        CURVE,
        capacity=capacity,
        batch_limit=batch_limit,
        gate=gate,
        target_knee="slo" if alone else "lowest",
        utilization=0.8,
    )


def test_an_slo_that_is_missed_before_saturation_sets_the_knee() -> None:
    found = target(49, 10)
    assert (found.knee, found.concurrency) == (PredictedKnee(concurrency=49, detector="slo"), 39.2)


def test_a_loose_slo_leaves_it_to_saturation_as_in_a_trial() -> None:
    measured = saturation(CURVE)
    assert measured is not None
    found = target(512, 10)
    assert found.knee == PredictedKnee(concurrency=int(FILLED * measured.filling), detector="saturation")
    assert found.concurrency == pytest.approx(0.8 * measured.load, abs=0.05)
    assert found.because == "slo would give 409.6"


def test_a_batch_limit_bounds_it() -> None:
    assert target(512, 10, batch_limit=47).knee == PredictedKnee(concurrency=47, detector="saturation")


def test_copies_are_not_planned_for_more_than_the_target() -> None:
    found = target(512, 200)
    assert (found.knee, found.concurrency) == (PredictedKnee(concurrency=200, detector="gate"), 200.0)


def test_the_slo_alone_for_who_asks_for_it() -> None:
    assert target(512, 10, alone=True).knee == PredictedKnee(concurrency=512, detector="slo")
