"""The adaptive search: the gate first, then toward the goal, within the time that is left.

Part of the goal is the load from which more stops paying: its range by the measured levels, and the level that narrows
it down.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

from seatrial_base.units import whole_or_tenths
from seatrial_load.documents.progress import NextLevel, Step
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.knee import saturation_of, service_limit, slo_knee, throughputs
from seatrial_load.measure.curves import FILLED, GROWN, WIDE, half_interval
from seatrial_load.search.view import View, search_view

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from seatrial_load.documents.request import Goal, TrialRequest
    from seatrial_load.documents.result import LevelResult
    from seatrial_load.search.view import Unsure

KNOWN = 1.1  # ends that differ by this factor or less
NEARLY_ALL = 0.93  # of the highest throughput: a level with as much is expected to be full
LITTLE_GAIN = 1.3  # twice the load with less than this factor of throughput: the next level is half-way, not above
SAME_LOAD = 1.1  # a level within this factor of a load represents it
NARROW = 1.25  # throughput falls between two loads that differ by this factor or less: known well enough
UNSEEN = 4  # two levels that differ by more hide a peak of throughput
LEAST, MOST = 8, 2  # the latency of the batch is drawn from an eighth of the filling load to twice as much
CLOSE = 1.1  # ends that differ by this factor or less: the highest good load is known within 10 %
TRUSTED = 1.2  # ends that differ by this factor or less, with the crossing expected within `CLOSE` of the good one
FARTHEST = 8.0  # most that one level may be outside of the measured ones, as a factor: load above the knee costs time
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


@dataclass(frozen=True, slots=True)
class Pays:
    """The range in which more load stops paying.

    Attributes:
        low: It pays up to here, whatever is measured above.
        high: It doesn't from here on.
        shown: The highest load that must be measured to know the target, if the SLO is met there: the gate, where that
            gives no less than the knee.
        settled: Whether more load would bring no more throughput.
        filling: Requests in flight that would fill the endpoint if none waited; None where nothing depends on them.
        fall: The measured loads between which throughput falls; None where it doesn't, or nothing depends on it.
    """

    low: float
    high: float
    shown: int
    settled: bool
    filling: float | None
    fall: tuple[float, float] | None

    @property
    def is_known(self) -> bool:
        """Whether the two are near enough."""
        return self.high <= self.low * KNOWN


def load_that_pays(view: View) -> Pays | None:
    """Return the range of the load from which more stops paying; None where no level has a throughput.

    It is that of `saturation`, at most what is in service at once, by the plan or by the levels, and at least what
    copies are planned for (`leading_knee`). A level with errors above the others is as good as one without more
    throughput.
    """
    full = saturation_of(view.valid)
    if full is None:
        return None
    gate, in_service = view.request.gate_concurrency, service_limit(view.valid)
    limit = min(view.request.prior.batch_limit or view.top, in_service or view.top)
    falls = full.falls_from is not None and full.falls_from < max(gate, FILLED * full.filling)
    utilization = view.request.target_utilization
    floor = full.planned(gate, utilization) / utilization  # the knee whose share is what copies are planned for
    refused = view.valid[-1].succeeded < view.valid[-1].requests
    at_most = full.load if refused else min(full.at_most, view.top)
    counts = max(floor, full.load / KNOWN) < min(limit, full.load * KNOWN)
    low = max(min(full.load, limit), floor)
    return Pays(
        low=low,
        high=max(min(at_most, limit), floor),
        shown=gate if low == floor else math.ceil(low),
        settled=full.settled,
        filling=full.filling if counts else None,
        fall=full.falls_between if falls else None,
    )


def stops_paying(pays: Pays) -> str:
    """Return where more load stops paying, in words."""
    return f"more load stops paying at {whole_or_tenths(min(pays.low, pays.shown))} per copy"


def settling(view: View, pays: Pays) -> Step:
    """Choose the level that narrows down most where more load stops paying; stop where none does."""
    lattice = doublings(view.bottom, view.top)
    highest = view.valid[-1].concurrency
    if (unseen := _unseen(view, pays, lattice)) is not None:
        return NextLevel(concurrency=unseen, because="throughput may be higher below the gate")
    if not pays.is_known and highest < lattice[-1]:
        return _higher(view, lattice, highest, pays)
    so_far = stops_paying(pays)
    if pays.fall is not None and pays.fall[1] > max(pays.fall[0] * NARROW, pays.fall[0] + 1):
        because = f"{so_far}: throughput falls between {pays.fall[0]:g} and {pays.fall[1]:g}"
        return NextLevel(concurrency=round(math.sqrt(pays.fall[0] * pays.fall[1])), because=because)
    if pays.filling is not None:
        wanted = [load for load in _steps(view, pays.filling, lattice) if pays.filling / LEAST <= load]
        missing = [
            load for load in wanted if not any(load / SAME_LOAD <= at <= load * SAME_LOAD for at in view.measured)
        ]
        if missing:
            return NextLevel(concurrency=missing[-1], because=f"{so_far}; a level below steadies it")
    return Stop(reason=StopReason.GOAL_KNOWN, because=so_far)


def _steps(view: View, filling: float, lattice: Sequence[int]) -> list[int]:
    """Return the levels that steady the fit: twice as many, and higher ones, where throughput is known badly."""
    if half_interval(throughputs(view.valid)) <= WIDE:
        return [load for load in lattice if load <= filling * MOST]
    between = [round(math.sqrt(low * high)) for low, high in pairwise(lattice)]
    return sorted(load for load in {*lattice, *between} if load < view.valid[-1].concurrency)


def _unseen(view: View, pays: Pays, lattice: Sequence[int]) -> int | None:
    """Return a load between two levels so far apart that a peak of throughput may hide there; None without any.

    That is so above the lowest level, and where the upper one of two has hardly more. Above the load that pays no
    peak matters.
    """
    lowest = view.valid[0]
    for below, above in pairwise(view.valid):
        is_wide = above.concurrency > below.concurrency * UNSEEN and above.concurrency <= pays.low
        grown = (above.output_tok_s or 0.0) >= GROWN * (below.output_tok_s or 0.0)
        between = [load for load in lattice if below.concurrency < load < above.concurrency]
        if is_wide and between and (below is lowest or not grown):
            middle = math.log(below.concurrency * above.concurrency) / 2
            return min(between, key=lambda load: abs(math.log(load) - middle))
    return None


def doublings(bottom: int, top: int) -> list[int]:
    """Return the levels of the doubling sweep of a range, its top included."""
    loads = [bottom]
    while loads[-1] * 2 <= top:
        loads.append(loads[-1] * 2)
    return loads if loads[-1] == top else [*loads, top]


def _higher(view: View, lattice: Sequence[int], highest: int, pays: Pays) -> NextLevel:
    if (half := _halfway(view)) is not None:
        return NextLevel(concurrency=half, because=f"throughput may have stopped growing below {highest} per copy")
    following = lattice[bisect_right(lattice, highest)]
    if pays.settled:
        because = f"throughput has stopped growing; more load pays up to {whole_or_tenths(pays.high)} per copy at most"
        return NextLevel(concurrency=min(following, math.ceil(max(pays.high, highest * KNOWN))), because=because)
    expected = view.forecast.full(view.bottom, view.top, NEARLY_ALL) if view.forecast.predicted else None
    if expected is None or expected <= following:
        return NextLevel(concurrency=following, because=f"throughput may grow above {highest} per copy")
    reach = max(bisect_right(lattice, highest * FARTHEST) - 1, 0)
    wanted = lattice[min(bisect_left(lattice, expected), reach)]
    because = f"throughput is expected to saturate at {expected:.0f} per copy"
    return NextLevel(concurrency=max(wanted, following), because=because)


def _halfway(view: View) -> int | None:
    """Return half of the highest load, where throughput grew little on the way to it and nothing near was measured.

    It is above the level before: half of 3 would be 1 again.
    """
    if len(view.valid) < 2:  # noqa: PLR2004 (one level has grown from nothing)
        return None
    before, last = view.valid[-2], view.valid[-1]
    ratio, half = last.concurrency / before.concurrency, max(last.concurrency // 2, before.concurrency + 1)
    if ratio <= 2 * SAME_LOAD or not before.output_tok_s or not last.output_tok_s:
        return None
    growth = (last.output_tok_s / before.output_tok_s) ** (1 / math.log2(ratio))
    return half if growth < LITTLE_GAIN else None


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
        because = (
            f"the client was the limit at concurrency {_listed(view.void)} per copy: {view.void[0].invalid_because}"
        )
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
    """Look for the lower of two knees, of which the SLO's is above `pays.low`."""
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
    knee = slo_knee(view.valid, view.request.level_bounds)
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
    # A search must not creep after an expectation that is wrong again and again.
    return max(CLOSE, last * last) if last <= CREEP else CLOSE
