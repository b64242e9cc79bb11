"""The adaptive search: the gate first, then toward the goal, within the time that is left."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial.bench.search.boundary import CLOSE, DOUBLE, Bracket, between
from seatrial.bench.search.goodput import CLIENT_AT_GATE, toward_most_goodput
from seatrial.bench.search.saturation import NEARLY_ALL, fullness, saturation
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
PAST_FULL = 1.6  # so far past the load that fills the endpoint, throughput that stopped growing shows


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
    fitting = next((one for one in lower if one not in view.measured and _fits(one, view, left_s)), None)
    needed = view.forecast.duration_s(step.concurrency)
    short = f"{step.concurrency} per copy would take about {needed:.0f} s, and {left_s:.0f} s are left"
    if fitting is None:
        return Stop(because=short)
    return NextLevel(concurrency=fitting, because=f"{short}: the highest level that fits")


def _fits(concurrency: int, view: View, left_s: float) -> bool:
    needed = view.forecast.duration_s(concurrency)
    return needed is None or needed <= left_s


def _toward_knee(view: View) -> Step:
    """Look for the SLO's knee; where throughput stops growing before that, for the load that fills the endpoint."""
    queueing = saturation(view.valid) if view.missed is None else None
    if queueing is not None:
        return _toward_fullness(view, queueing)
    full = view.forecast.full(view.bottom, view.top, NEARLY_ALL) if view.forecast.predicted else None
    if view.missed is not None or full is None or view.held is None:
        return _toward_slo(view, view.crossing)
    crossing, queued = view.crossing, max(full * PAST_FULL, view.held * DOUBLE)
    return _toward_slo(view, queued if crossing is None or crossing > queued else crossing)


def _toward_fullness(view: View, queueing: Saturation) -> Step:
    bracket = fullness(view.valid)
    low, high = bracket.good or view.bottom, bracket.bad or view.top
    crossing = view.forecast.full(low, high, NEARLY_ALL)
    found = between(bracket, view.bottom, view.top, crossing, view.measured, trusted=False)
    full = f"{NEARLY_ALL:.0%} of the highest throughput"
    if found is None:
        return Stop(because=f"{queueing.sentence}; {bracket.bad} per copy are the least that give {full}")
    return NextLevel(concurrency=found, because=f"{queueing.sentence}; {bracket.bad} per copy give {full}")


def _toward_highest(view: View) -> Step:
    return _toward_slo(view, view.crossing)


def _toward_slo(view: View, crossing: float | None) -> Step:
    if not view.valid:
        return NextLevel(concurrency=view.top, because=CLIENT_AT_GATE)
    bracket = Bracket(view.held, view.missed)
    found = between(bracket, view.bottom, view.top, crossing, view.measured)
    if found is None:
        return Stop(because=_slo_known(bracket))
    return NextLevel(concurrency=found, because=_slo_wanted(bracket, crossing))


def _slo_known(bracket: Bracket) -> str:
    if bracket.good is None:
        return f"the SLO is missed at {bracket.bad} per copy, the lowest level"
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
    "max_concurrency": _toward_highest,
    "max_goodput": toward_most_goodput,
}
