"""Which level to measure next: a function of what was asked and of what was measured so far, without any state.

Closed loops only: the levels of an open loop are rates, and the trial takes them in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_load.model.stop import Stop
from seatrial_load.search.adaptive import next_adaptive
from seatrial_load.search.step import NextLevel, Step
from seatrial_load.search.sweep import ALL_MEASURED, next_of_sweep, why_stop
from seatrial_load.trial.budget import budget_over

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.model.request import TrialRequest
    from seatrial_load.model.result import LevelResult

__all__ = ["ALL_MEASURED", "NextLevel", "Step", "Stop", "next_level", "why_stop"]


def next_level(request: TrialRequest, levels: Sequence[LevelResult], *, left_s: float) -> Step:
    """Choose the next level, or say why there is none.

    Args:
        request: What was asked; `load.search` and `load.goal` choose the way.
        levels: Everything measured so far, void levels too, in the order of measurement.
        left_s: Time left for measuring.
    """
    if left_s <= 0:
        return budget_over(request)
    if request.load.search == "sweep":
        return next_of_sweep(request.load, levels)
    return next_adaptive(request, levels, left_s=left_s)
