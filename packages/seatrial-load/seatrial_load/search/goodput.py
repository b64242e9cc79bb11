"""The most goodput: golden-section search on the logarithm of the load; goodput rises to one maximum, then falls."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial_load.model.stop import Stop, StopReason
from seatrial_load.search.boundary import CLOSE, Bracket, between
from seatrial_load.search.step import NextLevel, Step

if TYPE_CHECKING:
    from seatrial_load.model.result import LevelResult
    from seatrial_load.search.view import View

GOLDEN = (3 - math.sqrt(5)) / 2  # the smaller part of a golden section
CLIENT_AT_GATE = "the client was the limit at the gate; next: less load"
FLAT = 0.02  # neighbours within this share of the best are as good: an assumption about a level's noise


def toward_most_goodput(view: View) -> Step:
    """Choose the level that tells most about where goodput is highest."""
    if not view.valid:
        return NextLevel(concurrency=view.top, because=CLIENT_AT_GATE)
    best = max(view.valid, key=_goodput)
    at = view.valid.index(best)
    lower = view.valid[at - 1] if at else None
    upper = view.valid[at + 1] if at + 1 < len(view.valid) else None
    so_far = f"highest goodput so far: {_goodput(best):.2f} requests/s at {best.concurrency} per copy"
    if not _goodput(best):
        return _without_goodput(view, so_far)
    if upper is None and best.concurrency < view.top:
        return NextLevel(concurrency=_outside(view, best, up=True), because=f"{so_far}, the highest level")
    if lower is None and best.concurrency > view.bottom:
        return NextLevel(concurrency=_outside(view, best, up=False), because=f"{so_far}, the lowest level")
    return _inside(best, lower, upper, so_far)


def _without_goodput(view: View, so_far: str) -> Step:
    lowest = view.valid[0]
    if lowest.concurrency <= view.bottom:
        return Stop(reason=StopReason.GOAL_KNOWN, because=f"{so_far}, the lowest level")
    return NextLevel(concurrency=_outside(view, lowest, up=False), because=f"{so_far}; next: less load")


def _outside(view: View, best: LevelResult, *, up: bool) -> int:
    bracket = Bracket(best.concurrency, None) if up else Bracket(None, view.valid[0].concurrency)
    found = between(bracket, view.bottom, view.top, view.crossing, view.measured)
    return (view.top if up else view.bottom) if found is None else found


def _inside(best: LevelResult, lower: LevelResult | None, upper: LevelResult | None, so_far: str) -> Step:
    here = best.concurrency
    gaps = [(_gap(here, one), one.concurrency) for one in (lower, upper) if one is not None and _is_open(best, one)]
    if not gaps:
        return Stop(reason=StopReason.GOAL_KNOWN, because=f"{so_far}: {_why_known(best, lower, upper)}")
    gap, end = max(gaps)
    wanted = here * (end / here) ** GOLDEN
    low, high = min(here, end), max(here, end)
    return NextLevel(
        concurrency=min(max(round(wanted), low + 1), high - 1),
        because=f"{so_far}; neighbours are {gap:.1f} times apart",
    )


def _why_known(best: LevelResult, lower: LevelResult | None, upper: LevelResult | None) -> str:
    beside = (one for one in (lower, upper) if one is not None)
    as_good = [one for one in beside if not _is_near(best, one)]
    if not as_good:
        return "less than 10 % apart"
    named = " and ".join(str(one.concurrency) for one in as_good)
    return f"equal within {FLAT * 100:.0f} % to {named}"


def _is_open(best: LevelResult, neighbour: LevelResult) -> bool:
    return not _is_near(best, neighbour) and _goodput(neighbour) < (1 - FLAT) * _goodput(best)


def _is_near(best: LevelResult, neighbour: LevelResult) -> bool:
    return abs(best.concurrency - neighbour.concurrency) <= 1 or _gap(best.concurrency, neighbour) <= CLOSE


def _gap(here: int, neighbour: LevelResult) -> float:
    return max(here / neighbour.concurrency, neighbour.concurrency / here)


def _goodput(level: LevelResult) -> float:
    return level.goodput_requests_per_s or 0.0
