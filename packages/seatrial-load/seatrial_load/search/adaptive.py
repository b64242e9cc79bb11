"""The adaptive search: the gate first, then toward the goal, within the time that is left."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial_load.model.stop import Stop, StopReason
from seatrial_load.search.bend import toward_bend
from seatrial_load.search.boundary import BESIDE, CLOSE, Bracket, between
from seatrial_load.search.goodput import CLIENT_AT_GATE, toward_most_goodput
from seatrial_load.search.step import NextLevel, Step
from seatrial_load.search.view import View, view_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seatrial_load.model.request import Goal, TrialRequest
    from seatrial_load.model.result import LevelResult

MOST_DEAD = 2
MOST_VOID = 2


def next_adaptive(request: TrialRequest, levels: Sequence[LevelResult], *, left_s: float) -> Step:
    """Choose the next level of an adaptive search, or say why there is none."""
    view = view_of(request, levels)
    gate = request.gate_concurrency
    if not levels:
        return NextLevel(concurrency=gate, because=f"the gate, {gate} per copy")
    if (stop := _hopeless(view)) is not None:
        return stop
    return _in_time(GOALS[request.load.goal](view), view, left_s)


def _hopeless(view: View) -> Stop | None:
    if view.dead and (len(view.dead) >= MOST_DEAD or view.dead[0].concurrency <= view.bottom):
        because = f"no request succeeded at concurrency {_listed(view.dead)} per copy"
        return Stop(reason=StopReason.NO_SUCCESS, because=because)
    if view.void and (len(view.void) >= MOST_VOID or view.void[0].concurrency <= view.bottom):
        because = f"the client was the limit at concurrency {_listed(view.void)} per copy: {view.void[0].void_because}"
        return Stop(reason=StopReason.CLIENT_LIMIT, because=because)
    return None


def _listed(levels: Sequence[LevelResult]) -> str:
    return " and ".join(str(level.concurrency) for level in levels)


def _in_time(step: Step, view: View, left_s: float) -> Step:
    """Replace a level that would be cut by the highest new one that fits into the time left."""
    if isinstance(step, Stop) or _fits(step.concurrency, view, left_s):
        return step
    least = max((level.concurrency for level in view.valid if level.concurrency < step.concurrency), default=0)
    lower = range(step.concurrency - 1, max(view.bottom, math.floor(least * CLOSE)), -1)
    fitting = next((one for one in lower if one not in view.measured and _fits(one, view, left_s)), None)
    needed = view.forecast.duration_s(step.concurrency)
    short = f"{step.concurrency} per copy needs about {needed:.0f} s, but {left_s:.0f} s are left"
    if fitting is None:
        return Stop(reason=StopReason.BUDGET, because=short)
    return NextLevel(concurrency=fitting, because=f"{short}; this level fits")


def _fits(concurrency: int, view: View, left_s: float) -> bool:
    needed = view.forecast.duration_s(concurrency)
    return needed is None or needed <= left_s


def _toward_knee(view: View) -> Step:
    """Look for the knee that scaling takes: with objectives that of the SLO, without that of saturation.

    An SLO that holds where throughput is full still has its knee above: to stop there, at a level that noise chooses,
    would give another target each time.
    """
    if view.request.objectives or not view.valid:
        return _toward_slo(view, view.crossing)
    return toward_bend(view)


def _toward_highest(view: View) -> Step:
    return _toward_slo(view, view.crossing)


def _toward_slo(view: View, crossing: float | None) -> Step:
    if not view.valid:
        return NextLevel(concurrency=view.top, because=CLIENT_AT_GATE)
    bracket = Bracket(view.held, view.missed)
    holds_to_top = crossing is None and bracket.bad is None and view.forecast.predicted
    reach = view.top * BESIDE if holds_to_top else crossing
    found = between(bracket, view.bottom, view.top, reach, view.measured)
    if found is not None:
        return NextLevel(concurrency=found, because=f"{_slo_so_far(bracket)}{_expected(crossing)}")
    if (unsure := view.unsure) is not None:
        because = f"the SLO margin is small from {unsure.low:.0f} to {unsure.high} per copy; a level between"
        return NextLevel(concurrency=unsure.middle, because=because)
    return Stop(reason=StopReason.GOAL_KNOWN, because=_slo_known(bracket, crossing))


def _slo_known(bracket: Bracket, crossing: float | None) -> str:
    known = _slo_so_far(bracket)
    if bracket.good is None:
        return f"{known}, the lowest level"
    if bracket.bad is None:
        return f"{known}, the highest level"
    if bracket.bad == bracket.good + 1:
        return f"{known}; adjacent levels"
    return f"{known}; less than 10 % apart" if bracket.is_narrow else f"{known}{_expected(crossing)}"


def _slo_so_far(bracket: Bracket) -> str:
    if bracket.good is None:
        return f"SLO missed at {bracket.bad} per copy"
    if bracket.bad is None:
        return f"SLO met at {bracket.good} per copy"
    return f"SLO met at {bracket.good} and missed at {bracket.bad} per copy"


def _expected(crossing: float | None) -> str:
    return "" if crossing is None else f"; expected to be missed from {crossing:.0f}"


GOALS: Mapping[Goal, Callable[[View], Step]] = {
    "knee": _toward_knee,
    "max_concurrency": _toward_highest,
    "max_goodput": toward_most_goodput,
}
