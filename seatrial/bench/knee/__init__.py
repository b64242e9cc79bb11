"""Where more load stops paying: six detectors, each named, each with its reason, None when it sees no knee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.bench.knee.half_latency import half_latency_knee
from seatrial.bench.knee.kneedle import kneedle_knee
from seatrial.bench.knee.saturation import saturation_knee
from seatrial.bench.knee.slo import slo_knee
from seatrial.bench.knee.theory import theory_knee
from seatrial.bench.knee.two_segment import two_segment_knee

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.prior import Prior
    from seatrial.bench.request import Objective
    from seatrial.bench.result import Knee, LevelResult

__all__ = [
    "half_latency_knee",
    "kneedle_knee",
    "knees_of",
    "saturation_knee",
    "slo_knee",
    "theory_knee",
    "two_segment_knee",
]


def knees_of(levels: Sequence[LevelResult], prior: Prior, objectives: Sequence[Objective] = ()) -> tuple[Knee, ...]:
    """Return the knee of every detector: first the two that scaling takes, then those shown beside.

    Args:
        levels: The measured levels, in any order; those that the client limited don't count.
        prior: What the plan predicts.
        objectives: The SLO.
    """
    taken = (slo_knee(levels, objectives), saturation_knee(levels))
    shown = (kneedle_knee(levels), two_segment_knee(levels), half_latency_knee(levels), theory_knee(prior))
    return (*taken, *shown)
