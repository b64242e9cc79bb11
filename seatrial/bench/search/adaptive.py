"""The adaptive search: the gate first, then toward the goal, within the time that is left."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial.bench.search.boundary import CLOSE, Bracket, between
from seatrial.bench.search.goodput import toward_most_goodput
from seatrial.bench.search.saturation import onset, saturation
from seatrial.bench.search.step import NextLevel, Step, Stop
from seatrial.bench.search.view import View, view_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seatrial.bench.load import Goal
    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import LevelResult
    from seatrial.bench.search.saturation import Saturation

MOST_DEAD = 2
MOST_VOID = 2


def next_adaptive(request: TrialRequest, levels: Sequence[LevelResult], *, left_s: float) -> Step:
    """Choose the next level of an adaptive search, or say why there is none."""
    view = view_of(request, levels)
    gate = request.gate_concurrency
    if not levels:
        return NextLevel(concurrency=gate, because=f"the verdict is about the gate, {gate} per copy")
    if reason := _hopeless(view):
        return Stop(because=reason)
    return _in_time(GOALS[request.load.goal](view), view, left_s)


def _hopeless(view: View) -> str:
    if view.dead and (len(view.dead) >= MOST_DEAD or view.dead[0].concurrency <= view.bottom):
        return f"no request succeeded at concurrency {_listed(view.dead)} per copy"
    if view.void and (len(view.void) >= MOST_VOID or view.void[0].concurrency <= view.bottom):
        return f"the client was the limit at concurrency {_listed(view.void)} per copy: {view.void[0].void_because}"
    return ""


def _listed(levels: Sequence[LevelResult]) -> str:
    return " and ".join(str(level.concurrency) for level in levels)


def _in_time(step: Step, view: View, left_s: float) -> Step:
    """Replace a level that would be cut by the highest new one that fits into the time left."""
    if isinstance(step, Stop) or _fits(step.concurrency, view, left_s):
        return step
    least = max((level.concurrency for level in view.valid if level.concurrency < step.concurrency), default=0)
    lower = range(step.concurrency - 1, max(view.bottom, math.floor(least * CLOSE)), -1)
    fitting = next((one for one in lower if _fits(one, view, left_s)), None)
    needed = view.forecast.duration_s(step.concurrency)
    short = f"{step.concurrency} per copy would take about {needed:.0f} s, and {left_s:.0f} s are left"
    if fitting is None:
        return Stop(because=short)
    return NextLevel(concurrency=fitting, because=f"{short}: the highest level that fits")


def _fits(concurrency: int, view: View, left_s: float) -> bool:
    needed = view.forecast.duration_s(concurrency)
    return needed is None or needed <= left_s


def _toward_knee(view: View) -> Step:
    """Look for the SLO's knee; where throughput stops growing before it, for the load at which it does."""
    held = [level for level in view.valid if level.meets_slo and level.concurrency <= (view.held or 0)]
    queueing = saturation(held)
    if queueing is None or view.missed is not None:
        return _toward_slo(view)
    return _toward_onset(view, held, queueing)


def _toward_onset(view: View, held: Sequence[LevelResult], queueing: Saturation) -> Step:
    bracket = onset(held)
    found = between(bracket, view.bottom, view.top, _expected_onset(view, held), view.measured)
    if found is None:
        return Stop(because=f"{queueing.sentence}; where that begins is known within 10 %, {bracket.bad} per copy")
    return NextLevel(concurrency=found, because=f"{queueing.sentence}; it begins at {bracket.bad} or below")


def _expected_onset(_view: View, held: Sequence[LevelResult]) -> float | None:
    """Return where the rise from the levels below, in proportion to the load, meets the highest throughput."""
    del held
    return None


def _toward_slo(view: View) -> Step:
    bracket = Bracket(view.held, view.missed)
    crossing = view.crossing
    found = between(bracket, view.bottom, view.top, crossing, view.measured)
    if found is None:
        return Stop(because=_slo_known(bracket))
    return NextLevel(concurrency=found, because=_slo_wanted(bracket, crossing))


def _slo_known(bracket: Bracket) -> str:
    if bracket.good is None:
        return f"the SLO is missed at {bracket.bad} per copy, the lowest level" if bracket.bad else "no level is valid"
    if bracket.bad is None:
        return f"the SLO holds at {bracket.good} per copy, the highest level"
    return f"the SLO holds at {bracket.good} and is missed at {bracket.bad} per copy: known within 10 %"


def _slo_wanted(bracket: Bracket, crossing: float | None) -> str:
    expected = "" if crossing is None else f"; it is expected to be missed from {crossing:.0f} on"
    if bracket.good is None:
        return f"the SLO is missed at {bracket.bad} per copy{expected}"
    if bracket.bad is None:
        return f"the SLO holds at {bracket.good} per copy{expected}"
    return f"the SLO holds at {bracket.good} and is missed at {bracket.bad} per copy{expected}"


GOALS: Mapping[Goal, Callable[[View], Step]] = {
    "knee": _toward_knee,
    "max_concurrency": _toward_slo,
    "max_goodput": toward_most_goodput,
}
