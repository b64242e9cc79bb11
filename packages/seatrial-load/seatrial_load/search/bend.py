"""Where throughput stops growing: the levels that the `two_segment` detector needs, and no others.

Its breakpoint depends on which levels it is given. So the search measures levels of the doubling sweep, and of these
the ones that decide: the lowest, those of the three doublings below the load that fills the endpoint, and two that
are full, a factor of two apart. The further ones of a sweep lie on the same two lines.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from seatrial_load.knee.detectors import saturation_knee
from seatrial_load.model.stop import Stop, StopReason
from seatrial_load.search.boundary import CLOSE, DOUBLE, FARTHEST
from seatrial_load.search.step import NextLevel, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.model.result import LevelResult
    from seatrial_load.search.view import View

NEARLY_ALL = 0.93  # of the highest throughput: a level that gives as much is full
SIDE = 8  # the rising line is drawn from an eighth of the least full load


def toward_bend(view: View) -> Step:
    """Choose the next level that `two_segment` needs, or say where it sees the bend.

    The view holds a valid level.
    """
    lattice = doublings(view.bottom, view.top)
    full = _least_full(view.valid)
    highest = view.valid[-1].concurrency
    if highest < min(lattice[-1], full * DOUBLE):
        return _up(view, lattice, highest)
    wanted = [load for load in lattice if full / SIDE <= load <= full or load == lattice[0]]
    missing = [load for load in wanted if not any(load / CLOSE <= one <= load * CLOSE for one in view.measured)]
    filled = f"{full} per copy gives {NEARLY_ALL * 100:.0f} % of the highest throughput"
    if missing:
        return NextLevel(concurrency=missing[-1], because=f"{filled}; the bend is below")
    return Stop(reason=StopReason.GOAL_KNOWN, because=f"{filled}; {saturation_knee(view.valid).because}")


def doublings(bottom: int, top: int) -> list[int]:
    """Return the levels of the doubling sweep of a range, its top included."""
    found = [bottom]
    while found[-1] * 2 <= top:
        found.append(found[-1] * 2)
    return found if found[-1] == top else [*found, top]


def _up(view: View, lattice: Sequence[int], highest: int) -> NextLevel:
    following = lattice[bisect_right(lattice, highest)]
    expected = view.forecast.full(view.bottom, view.top, NEARLY_ALL) if view.forecast.predicted else None
    if expected is None or expected <= following:
        return NextLevel(concurrency=following, because=f"throughput may grow above {highest} per copy")
    reach = max(bisect_right(lattice, highest * FARTHEST) - 1, 0)
    wanted = lattice[min(bisect_left(lattice, expected), reach)]
    because = f"throughput is expected to saturate at {expected:.0f} per copy"
    return NextLevel(concurrency=max(wanted, following), because=because)


def _least_full(levels: Sequence[LevelResult]) -> int:
    highest = max(tok_s(level) for level in levels)
    return min(level.concurrency for level in levels if tok_s(level) >= NEARLY_ALL * highest)


def tok_s(level: LevelResult) -> float:
    """Return the throughput that levels are compared by: output tokens, or requests where tokens weren't told."""
    return level.requests_per_s or 0.0 if level.output_tok_s is None else level.output_tok_s
