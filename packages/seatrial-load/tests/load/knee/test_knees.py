from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_load.documents.request import Prior
from seatrial_load.knee import knees_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import LevelResult

    MakeLevel = Callable[..., LevelResult]


def test_every_detector_answers_once(trial_request: Callable[..., TrialRequest], level: MakeLevel) -> None:
    request = trial_request(prior=Prior(batch_limit=16), gate_concurrency=2)
    knees = knees_of(request, [level(1), level(2)])
    assert [(knee.detector, knee.concurrency) for knee in knees] == [
        ("slo", 2),
        ("saturation", 2),
        ("gate", 2),
        ("kneedle", None),
        ("two_segment", None),
        ("half_latency", None),
        ("theory", 16),
    ]
    assert all(knee.because for knee in knees)
