"""The adaptive search: the gate first, then toward the goal, within the time that is left."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from seatrial_load.documents.progress import NextLevel, Step
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.knee.detectors import slo_knee
from seatrial_load.search.saturating import load_that_pays, settling, stops_paying
from seatrial_load.search.view import View, search_view

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from seatrial_load.documents.request import Goal, TrialRequest
    from seatrial_load.documents.result import LevelResult
    from seatrial_load.search.saturating import Pays
    from seatrial_load.search.view import Unsure


CLOSE = 1.1  # ends that differ by this factor or less: the highest good load is known within 10 %
TRUSTED = 1.2  # ends that differ by this factor or less, with the crossing expected within `CLOSE` of the good one
FARTHEST = 8.0  # most that one level may lie outside of what was measured, as a factor: load above the knee costs time
DOUBLE = 2.0
BESIDE = math.sqrt(CLOSE)  # the first level is this factor below an expected crossing
BEYOND = 1.2  # the second one this factor above the first: a miss there closes the bracket
CREEP = 1.3  # a step by less than this, after which the end is still unknown, has crept: the next is its square
PATIENCE = 5  # levels near a bracket after which an expectation is ignored
NEAR = 1.6  # a level is near a bracket within this factor of an end

AROUND = (1.3, 2.0)  # levels within these factors of the SLO's knee help to place it: the nearer ones first
STEADY = 0.07  # half the interval of the knee, over it: known well enough
ENOUGH = 10  # levels around the knee, after which it is taken as it is

GOLDEN = (3 - math.sqrt(5)) / 2  # the smaller part of a golden section
CLIENT_AT_GATE = "the client was the limit at the gate; next: less load"
FLAT = 0.02  # neighbours within this share of the best are as good: an assumption about a level's noise

MOST_DEAD = 2
MOST_VOID = 2


def next_adaptive(request: TrialRequest, levels: Sequence[LevelResult], *, left_s: float) -> Step:
    """Choose the next level of an adaptive search, or return why there is none."""
    view = search_view(request, levels)
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
    fitting = next((load for load in lower if load not in view.measured and _fits(load, view, left_s)), None)
    needed = view.forecast.duration_s(step.concurrency)
    short = f"{step.concurrency} per copy needs about {needed:.0f} s, but {left_s:.0f} s are left"
    if fitting is None:
        return Stop(reason=StopReason.BUDGET, because=short)
    return NextLevel(concurrency=fitting, because=f"{short}; this level fits")


def _fits(concurrency: int, view: View, left_s: float) -> bool:
    needed = view.forecast.duration_s(concurrency)
    return needed is None or needed <= left_s


def _toward_knee(view: View) -> Step:
    """Look for the knee that scaling takes: the lower of where the SLO is missed and where more load stops paying."""
    pays, bracket = load_that_pays(view), Bracket(view.held, view.missed)
    if pays is None or bracket.good is None or (view.request.objectives and view.request.target_knee == "slo"):
        return _toward_slo(view)
    if bracket.bad is not None and bracket.bad <= pays.low * CLOSE:
        return _toward_slo(view)
    if view.valid[0].concurrency > view.bottom:
        return NextLevel(concurrency=view.bottom, because=f"{_slo_so_far(bracket)}; the unloaded latency")
    if (unsure := view.unsure) is not None and unsure.low < pays.high:
        return _between_unsure(unsure)
    return _toward_lower(view, pays, bracket)


def _toward_lower(view: View, pays: Pays, bracket: Bracket) -> Step:
    """Look for the lower of two knees, of which the SLO's lies above `pays.low`."""
    good = bracket.good or 0
    if good < pays.high and good <= pays.low:
        if bracket.bad is None and not pays.is_known:
            # Up while the SLO holds and throughput grows: no farther than where the SLO is expected to be missed.
            step, slo = settling(view, pays), _toward_slo(view)
            if view.crossing is None or not isinstance(step, NextLevel) or not isinstance(slo, NextLevel):
                return step
            return min(step, slo, key=attrgetter("concurrency"))
        if bracket.bad is None and good < min(pays.shown, view.top):
            because = f"{_slo_so_far(bracket)}; {stops_paying(pays)}"
            return NextLevel(concurrency=min(pays.shown, view.top), because=because)
        if bracket.bad is not None and not bracket.is_closed(view.crossing):
            return _toward_slo(view)
    return settling(view, pays)


def _toward_slo(view: View) -> Step:
    if not view.valid:
        return NextLevel(concurrency=view.top, because=CLIENT_AT_GATE)
    bracket, crossing = Bracket(view.held, view.missed), view.crossing
    holds_to_top = crossing is None and bracket.bad is None and view.forecast.predicted
    reach = view.top * BESIDE if holds_to_top else crossing
    level = between(bracket, view.bottom, view.top, reach, view.measured)
    if level is not None:
        return NextLevel(concurrency=level, because=f"{_slo_so_far(bracket)}{_expected(crossing)}")
    if (unsure := view.unsure) is not None:
        return _between_unsure(unsure)
    known = _slo_so_far(bracket)
    if view.request.load.goal == "knee" and (near := _near_knee(view)) is not None:
        return NextLevel(concurrency=near, because=f"{known}; the interval of the knee is wide: a level near it")
    if bracket.good is None:
        why = ", the lowest level"
    elif bracket.bad is None:
        why = ", the highest level"
    elif bracket.bad == bracket.good + 1:
        why = "; adjacent levels"
    else:
        why = "; less than 10 % apart" if bracket.is_narrow else _expected(crossing)
    return Stop(reason=StopReason.GOAL_KNOWN, because=f"{known}{why}")


def _near_knee(view: View) -> int | None:
    """Return a load near the SLO's knee, where the levels around it leave it uncertain; None where they don't."""
    knee = slo_knee(view.valid, view.request.objectives)
    at, bounds = knee.concurrency, knee.interval
    if at is None or bounds is None or bounds.low is None or bounds.high is None:
        return None
    *_, (lowest, highest) = around = [(math.ceil(at / factor), math.floor(at * factor)) for factor in AROUND]
    near = [level for level in view.valid if lowest <= level.concurrency <= highest]
    if len(near) >= ENOUGH or bounds.high - bounds.low <= 2 * STEADY * at:
        return None
    ranges = (range(max(view.bottom, low), min(view.top, high) + 1) for low, high in around)
    free = ([load for load in loads if load not in view.measured] for loads in ranges)
    return min(next(filter(None, free), []), key=lambda load: abs(load - at), default=None)


def _between_unsure(unsure: Unsure) -> NextLevel:
    because = f"the SLO margin is small from {unsure.low:.0f} to {unsure.high} per copy; a level between"
    return NextLevel(concurrency=unsure.middle, because=because)


def _slo_so_far(bracket: Bracket) -> str:
    if bracket.good is None:
        return f"SLO missed at {bracket.bad} per copy"
    if bracket.bad is None:
        return f"SLO met at {bracket.good} per copy"
    return f"SLO met at {bracket.good} and missed at {bracket.bad} per copy"


def _expected(crossing: float | None) -> str:
    return "" if crossing is None else f"; expected to be missed from {crossing:.0f}"


def toward_most_goodput(view: View) -> Step:
    """Choose the level that narrows down most where goodput is highest."""
    if not view.valid:
        return NextLevel(concurrency=view.top, because=CLIENT_AT_GATE)
    best = max(view.valid, key=_goodput)
    at = view.valid.index(best)
    lower = view.valid[at - 1] if at else None
    upper = view.valid[at + 1] if at + 1 < len(view.valid) else None
    so_far = f"highest goodput so far: {_goodput(best):.2f} requests/s at {best.concurrency} per copy"
    if not _goodput(best):
        lowest = view.valid[0]
        if lowest.concurrency <= view.bottom:
            return Stop(reason=StopReason.GOAL_KNOWN, because=f"{so_far}, the lowest level")
        return NextLevel(concurrency=_outside(view, lowest, up=False), because=f"{so_far}; next: less load")
    if upper is None and best.concurrency < view.top:
        return NextLevel(concurrency=_outside(view, best, up=True), because=f"{so_far}, the highest level")
    if lower is None and best.concurrency > view.bottom:
        return NextLevel(concurrency=_outside(view, best, up=False), because=f"{so_far}, the lowest level")
    return _inside(best, lower, upper, so_far)


def _outside(view: View, best: LevelResult, *, up: bool) -> int:
    bracket = Bracket(best.concurrency, None) if up else Bracket(None, view.valid[0].concurrency)
    level = between(bracket, view.bottom, view.top, view.crossing, view.measured)
    return (view.top if up else view.bottom) if level is None else level


def _inside(best: LevelResult, lower: LevelResult | None, upper: LevelResult | None, so_far: str) -> Step:
    here = best.concurrency
    far = [level for level in (lower, upper) if level is not None and not _is_near(best, level)]
    gaps = [(_gap(here, level), level.concurrency) for level in far if _goodput(level) < (1 - FLAT) * _goodput(best)]
    if not gaps:
        named = " and ".join(str(level.concurrency) for level in far)
        why = f"equal within {FLAT * 100:.0f} % to {named}" if far else "less than 10 % apart"
        return Stop(reason=StopReason.GOAL_KNOWN, because=f"{so_far}: {why}")
    gap, end = max(gaps)
    wanted = here * (end / here) ** GOLDEN
    low, high = min(here, end), max(here, end)
    return NextLevel(
        concurrency=min(max(round(wanted), low + 1), high - 1),
        because=f"{so_far}; neighbours are {gap:.1f} times apart",
    )


def _is_near(best: LevelResult, neighbour: LevelResult) -> bool:
    return abs(best.concurrency - neighbour.concurrency) <= 1 or _gap(best.concurrency, neighbour) <= CLOSE


def _gap(here: int, neighbour: LevelResult) -> float:
    return max(here / neighbour.concurrency, neighbour.concurrency / here)


def _goodput(level: LevelResult) -> float:
    return level.goodput_requests_per_s or 0.0


GOALS: Mapping[Goal, Callable[[View], Step]] = {
    "knee": _toward_knee,
    "max_concurrency": _toward_slo,
    "max_goodput": toward_most_goodput,
}


@dataclass(frozen=True, slots=True)
class Bracket:
    """The highest load that is good, and the lowest above it that isn't; None is not known yet."""

    good: int | None
    bad: int | None

    @property
    def is_narrow(self) -> bool:
        """Whether the ends themselves are near enough: within `CLOSE`, or with no load between."""
        return self.good is not None and self.bad is not None and self.bad <= max(self.good + 1, self.good * CLOSE)

    def is_closed(self, crossing: float | None) -> bool:
        """Whether the highest good load is known well enough: by both ends, or by what is expected between them."""
        if self.good is None or self.bad is None or crossing is None:
            return self.is_narrow
        return self.is_narrow or (self.bad <= self.good * TRUSTED and crossing <= self.good * CLOSE)


def between(bracket: Bracket, bottom: int, top: int, crossing: float | None, measured: Collection[int]) -> int | None:
    """Choose the load to measure next; None when the bracket is closed or the range ends.

    Args:
        crossing: Where good loads are expected to end; None when they aren't expected to, or nothing is expected.
    """
    good, bad = bracket.good, bracket.bad
    if good is not None and bad is not None:
        return None if bracket.is_closed(crossing) else _between(good, bad, crossing, measured)
    if good is not None:
        if good >= top:
            return None
        expected = good * DOUBLE if crossing is None else min(crossing / BESIDE, good * FARTHEST)
        nearest = max((load for load in measured if load < good), default=0)
        stride = _stride(good / nearest) if nearest else CLOSE
        if expected <= good * math.sqrt(BESIDE):
            expected = good * BEYOND
        return min(top, max(good + 1, math.floor(max(expected, good * stride))))
    return _below(bad, bottom, crossing, measured) if bad is not None else None


def _between(good: int, bad: int, crossing: float | None, measured: Collection[int]) -> int:
    middle = math.sqrt(good * bad)
    tried = sum(good / NEAR <= load <= bad * NEAR for load in measured)
    if crossing is None or not good < crossing <= bad * BESIDE or tried > PATIENCE:
        return _strictly(middle, good, bad)
    below = min(crossing, bad) / BESIDE
    wanted = below if below > good * math.sqrt(BESIDE) else good * BEYOND
    nearest = max((load for load in measured if load < good), default=0)
    crept = good * _stride(good / nearest) if nearest else 0.0
    return _strictly(min(max(wanted, crept), max(middle, wanted)), good, bad)


def _strictly(wanted: float, good: int, bad: int) -> int:
    return min(max(math.floor(wanted), good + 1), bad - 1)


def _below(bad: int, bottom: int, crossing: float | None, measured: Collection[int]) -> int | None:
    if bad <= bottom:
        return None
    believed = crossing is not None and crossing <= bad * BESIDE
    expected = max(crossing / BESIDE, bad / FARTHEST) if crossing is not None and believed else bad / DOUBLE
    nearest = min((load for load in measured if load > bad), default=0)
    stride = _stride(nearest / bad) if nearest else CLOSE
    return max(bottom, min(bad - 1, math.floor(min(expected, bad / stride))))


def _stride(last: float) -> float:
    """Return the least factor of the next step outward, so that a search doesn't creep after a wrong expectation."""
    return max(CLOSE, last * last) if last <= CREEP else CLOSE
