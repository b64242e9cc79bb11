"""Where two straight lines meet: least squares of throughput over concurrency, continuous at the breakpoint.

The best breakpoint is found exactly (Hudson: Fitting segmented curves whose join points have to be estimated, JASA
61(316), 1966). It lies either between two levels, where the line of the levels below meets the line of those above, or
on a level, where both lines are bound to one value. Both kinds are tried everywhere, each with two levels or more a
side, and the least sum of squares wins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from seatrial.bench.knee.points import throughputs
from seatrial.bench.result import Knee

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.bench.result import LevelResult
    from seatrial.measure.crossing import Reading

MIN_LEVELS = 4
STRAIGHT = 0.05  # of the range of throughputs: what a level's throughput may be off by itself (an assumption)
FLATTER = 0.5  # of the first slope: else the second line still pays


@dataclass(frozen=True, slots=True)
class Line:
    """y = height + slope x (x - at), and what it leaves: the sum of squared distances."""

    at: float
    height: float
    slope: float
    squares: float


@dataclass(frozen=True, slots=True)
class Bend:
    """Two lines that meet at `concurrency`, and the sum of squared distances that they leave."""

    concurrency: float
    first_slope: float
    second_slope: float
    squares: float


def two_segment_knee(levels: Sequence[LevelResult]) -> Knee:
    """Find where the throughput of the levels turns from one straight line to a flatter one.

    There is no knee where one line explains the levels, to within 5 % of the range of their throughputs (root mean
    square), or where the second line still rises at more than half of the first one's slope.
    """
    points = throughputs(levels)
    if len(points) < MIN_LEVELS:
        return _none(f"{len(points)} levels with a throughput are too few, {MIN_LEVELS} are needed")
    span = f"between {points[0].load:g} and {points[-1].load:g} per copy"
    ys = [point.value for point in points]
    off = math.sqrt(line(points).squares / len(points))
    if off <= STRAIGHT * (max(ys) - min(ys)):
        return _none(f"one straight line explains the throughput {span}, off by {off:.1f} tok/s in the mean")
    found = best_bend(points)
    if found.second_slope > FLATTER * found.first_slope:
        return _none(f"the throughput does not turn flatter {span}")
    slopes = f"from {found.first_slope:.1f} to {found.second_slope:.1f} tok/s for each further request in flight"
    because = f"two straight lines meet at {found.concurrency:.1f} per copy: {slopes}"
    return Knee(detector="two_segment", concurrency=found.concurrency, because=because)


def _none(because: str) -> Knee:
    return Knee(detector="two_segment", concurrency=None, because=because)


def best_bend(points: Sequence[Reading]) -> Bend:
    """Return the two lines that lie nearest to four points or more, ascending."""
    return min((*_between_levels(points), *_on_levels(points)), key=attrgetter("squares"))


def line(points: Sequence[Reading]) -> Line:
    """Return the least-squares line of two points or more."""
    mean_x = sum(point.load for point in points) / len(points)
    mean_y = sum(point.value for point in points) / len(points)
    spread = sum((point.load - mean_x) ** 2 for point in points)
    slope = sum((point.load - mean_x) * (point.value - mean_y) for point in points) / spread
    squares = sum((point.value - mean_y - slope * (point.load - mean_x)) ** 2 for point in points)
    return Line(mean_x, mean_y, slope, squares)


def _between_levels(points: Sequence[Reading]) -> Iterator[Bend]:
    for above in range(2, len(points) - 1):
        first, second = line(points[:above]), line(points[above:])
        if first.slope == second.slope:
            continue
        gap = second.height - first.height + first.slope * first.at - second.slope * second.at
        meet = gap / (first.slope - second.slope)
        if points[above - 1].load <= meet <= points[above].load:
            yield Bend(meet, first.slope, second.slope, first.squares + second.squares)


def _on_levels(points: Sequence[Reading]) -> Iterator[Bend]:
    """Yield the lines that meet on each inner level x: y = height + a min(u, 0) + b max(u, 0), where u = C - x."""
    for knot in range(1, len(points) - 1):
        below = [(point.load - points[knot].load, point.value) for point in points[: knot + 1]]
        above = [(point.load - points[knot].load, point.value) for point in points[knot + 1 :]]
        height = _height(below, above)
        slopes = [_slope_from(height, side) for side in (below, above)]
        squares = sum(
            (y - height - slope * u) ** 2 for slope, side in zip(slopes, (below, above), strict=True) for u, y in side
        )
        yield Bend(float(points[knot].load), slopes[0], slopes[1], squares)


def _height(*sides: Sequence[tuple[float, float]]) -> float:
    """Return the value at the breakpoint: the normal equations, with both slopes eliminated."""
    weight, total = 0.0, 0.0
    for side in sides:
        u, uu = sum(u for u, _ in side), sum(u * u for u, _ in side)
        weight += len(side) - u * u / uu
        total += sum(y for _, y in side) - u / uu * sum(u * y for u, y in side)
    return total / weight


def _slope_from(height: float, side: Sequence[tuple[float, float]]) -> float:
    return sum(u * (y - height) for u, y in side) / sum(u * u for u, _ in side)
