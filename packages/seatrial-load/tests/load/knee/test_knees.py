from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_load.documents.request import Prior
from seatrial_load.knee.detectors import knees_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.result import LevelResult

    MakeLevel = Callable[..., LevelResult]


def test_every_detector_answers_once(level: MakeLevel) -> None:
    knees = knees_of([level(1), level(2)], Prior(batch_limit=16))
    assert [(knee.detector, knee.concurrency) for knee in knees] == [
        ("slo", 2),
        ("saturation", 1),
        ("kneedle", None),
        ("two_segment", None),
        ("half_latency", None),
        ("theory", 16),
    ]
    assert all(knee.because for knee in knees)
