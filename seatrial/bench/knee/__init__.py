"""Where more load stops paying: five detectors, each named, each with its reason, None when it sees no knee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.bench.knee.half_latency import half_latency_knee
from seatrial.bench.knee.kneedle import kneedle_knee
from seatrial.bench.knee.slo import slo_knee
from seatrial.bench.knee.theory import theory_knee
from seatrial.bench.knee.two_segment import two_segment_knee

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.prior import Prior
    from seatrial.bench.result import Knee, LevelResult

__all__ = ["half_latency_knee", "kneedle_knee", "knees_of", "slo_knee", "theory_knee", "two_segment_knee"]


def knees_of(levels: Sequence[LevelResult], prior: Prior) -> tuple[Knee, ...]:
    """Return the knee of every detector, in the order in which they are to be believed.

    Args:
        levels: The measured levels, in any order; those that the client limited don't count.
        prior: What the plan predicts.
    """
    measured = (slo_knee(levels), kneedle_knee(levels), two_segment_knee(levels), half_latency_knee(levels))
    return (*measured, theory_knee(prior))
