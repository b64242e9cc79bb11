"""The choice of the next level: a function of the request and of the measured levels, without any state.

Closed loops only: the levels of an open loop are rates, and the trial takes them in turn.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from seatrial_load.documents.progress import NextLevel, Step
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.search.adaptive import load_that_pays, next_adaptive, stops_paying
from seatrial_load.search.view import search_view
from seatrial_load.trial.budget import budget_over

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import LevelResult


ALL_MEASURED = Stop(reason=StopReason.ALL_MEASURED, because="every level was measured")
LISTED = "next listed level"

__all__ = ["ALL_MEASURED", "NextLevel", "Step", "Stop", "next_level", "why_stop"]


def next_level(request: TrialRequest, levels: Sequence[LevelResult], *, left_s: float) -> Step:
    """Choose the next level, or return why there is none.

    Args:
        levels: Everything measured so far, void levels too, in the order of measurement.
    """
    if left_s <= 0:
        return budget_over(request)
    if request.load.search == "adaptive":
        return next_adaptive(request, levels, left_s=left_s)
    return next_of_sweep(request, levels)


def next_of_sweep(request: TrialRequest, levels: Sequence[LevelResult]) -> Step:
    """Return the lowest listed level above the last one, unless there is a reason to stop."""
    if levels and (stop := why_stop(levels)) is not None:
        return stop
    load, highest = request.load, max((level.concurrency for level in levels), default=0)
    following = next((concurrency for concurrency in load.concurrency_levels if concurrency > highest), None)
    if following is None:
        return ALL_MEASURED
    if load.search == "sweep" and load.protocol == "seatrial" and (stop := why_enough(request, levels)) is not None:
        return stop
    return NextLevel(concurrency=following, because=LISTED)


def why_enough(request: TrialRequest, levels: Sequence[LevelResult]) -> Stop | None:
    """Return why more load can't change verdict or scaling target any more, levels ascending; None while it can.

    That is so when the gate was measured, and either the SLO is missed at a load up to which more load pays in any
    case, or the load from which more stops paying is known (`measure.curves`).
    """
    view = search_view(request, levels)
    if not view.valid or view.valid[-1].concurrency < request.gate_concurrency:
        return None
    missed, pays = view.missed, load_that_pays(view)
    if request.objectives and missed is not None:
        slo_leads = pays is None or request.target_knee == "slo" or missed <= pays.low
        if slo_leads or view.held is None:
            return Stop(reason=StopReason.GOAL_KNOWN, because=f"SLO missed at {missed} per copy")
    if pays is None or not pays.is_known or (request.objectives and request.target_knee == "slo"):
        return None
    if missed is None and view.valid[-1].concurrency < pays.shown:
        return None
    return Stop(reason=StopReason.GOAL_KNOWN, because=stops_paying(pays))


def why_stop(levels: Sequence[LevelResult]) -> Stop | None:
    """Return why more load is of no use, levels ascending; None when it is.

    That is so after a level without success, after two levels in a row that each missed the SLO and had less throughput
    than the level before, and after two levels in a row that the client limited.
    """
    last = levels[-1]
    if not last.succeeded:
        because = f"no request succeeded at concurrency {last.concurrency} per copy"
        return Stop(reason=StopReason.NO_SUCCESS, because=because)
    at = f"last at concurrency {last.concurrency} per copy"
    if [level.valid for level in levels[-2:]] == [False, False]:
        because = f"the client was the limit twice in a row, {at}: {last.invalid_because}"
        return Stop(reason=StopReason.CLIENT_LIMIT, because=because)
    falling = [not after.meets_slo and _throughput(after) < _throughput(before) for before, after in pairwise(levels)]
    if last.valid and falling[-2:] == [True, True]:
        because = f"throughput fell and the SLO was missed twice in a row, {at}"
        return Stop(reason=StopReason.FALLING, because=because)
    return None


def _throughput(level: LevelResult) -> float:
    return level.requests_per_s or 0.0 if level.output_tok_s is None else level.output_tok_s
