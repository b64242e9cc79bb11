"""The load at which a metric reaches its bound: between a load that is within it and one beyond.

Latency and throughput follow a power law over short stretches of load, so the line is drawn logarithm over logarithm:
least squares through every measured load within a factor of three of the middle of the two. More loads than the two
that enclose the bound make the crossing steadier (benchmarks/search/stability.py). A load whose interval holds the
bound may be on either side of it: the line decides, between the loads that are beyond doubt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from seatrial_load.documents.distribution import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

NEAR = 3.0  # a load within this factor of the middle of the bracket helps to draw the line
LOOSE = 1.2  # where no load is beyond doubt on a side, the crossing is at most this factor outside of the loads there


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A metric at one load.

    Attributes:
        load: Requests in flight per copy.
    """

    load: float
    value: float
    interval: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """The load at which a metric reaches its bound.

    Attributes:
        interval: The crossings for any value in the metric's 95 % interval; None where that is unknown.
    """

    load: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class _Line:
    """The least-squares line of some readings, logarithm over logarithm.

    Attributes:
        x, y: The middle of the loads and of the metric, as logarithms.
        slope: Of the metric over the load.
        spread: The sum of squared distances of the loads from their middle.
    """

    count: int
    x: float
    y: float
    slope: float
    spread: float

    def load(self, bound: float) -> float:
        """Return the load at which the metric reaches a bound."""
        return math.exp(self.x + (math.log(bound) - self.y) / self.slope)


def crossing(readings: Sequence[Reading], held: Reading, missed: Reading, bound: float) -> Crossing:
    """Find where the metric reaches its bound: from `held`, within it, to `missed`, beyond it at a higher load.

    Args:
        readings: The metric at every measured load, ascending, these two too.
        bound: The bound; the metric may be one that should stay below it or above it.
    """
    if min(bound, held.value, missed.value) <= 0:
        share = (bound - held.value) / (missed.value - held.value)
        return Crossing(load=held.load + share * (missed.load - held.load), interval=None)
    middle = math.sqrt(held.load * missed.load)
    near = [point for point in readings if point.value > 0 and max(point.load / middle, middle / point.load) <= NEAR]
    near = [*near, *(point for point in (held, missed) if point not in near)]
    line, (low, high) = _line(near), _doubtless(near, held, missed, bound)
    if line.slope * (missed.value - held.value) <= 0:  # noise bends the line the other way: only the two are left
        line = _line([held, missed])
    load = min(max(line.load(bound), low), high)
    return Crossing(load=load, interval=_interval(load, line, near, bound))


def _doubtless(near: Sequence[Reading], held: Reading, missed: Reading, bound: float) -> tuple[float, float]:
    """Return the highest load that is within the bound beyond doubt, and the lowest one above that is beyond it.

    Where there is none, `LOOSE` times outside of the loads.
    """
    rises = missed.value > held.value
    sure = [point for point in near if _is_sure(point, bound)]
    beyond = [point.load for point in sure if point.load >= missed.load and (point.value > bound) == rises]
    high = min(beyond, default=LOOSE * max(point.load for point in near))
    within = [point.load for point in sure if point.load < high and (point.value > bound) != rises]
    return max(within, default=min(point.load for point in near) / LOOSE), high


def _is_sure(point: Reading, bound: float) -> bool:
    """Return whether a reading's interval leaves no doubt on which side of a bound it is."""
    bounds = point.interval
    return bounds is None or bounds.low is None or bounds.high is None or not bounds.low <= bound <= bounds.high


def _line(readings: Sequence[Reading]) -> _Line:
    points = [(math.log(point.load), math.log(point.value)) for point in readings]
    mean_x = math.fsum(x for x, _ in points) / len(points)
    mean_y = math.fsum(y for _, y in points) / len(points)
    spread = math.fsum((x - mean_x) ** 2 for x, _ in points)
    slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return _Line(len(points), mean_x, mean_y, slope, spread)


def _interval(load: float, line: _Line, near: Sequence[Reading], bound: float) -> Interval | None:
    """Return the 95 % interval of a crossing: Fieller's of a line, whose readings vary as their own intervals say.

    It is within `LOOSE` of the readings, and there altogether where the slope may as well be none. (Draper and Smith,
    Applied Regression Analysis, 3rd edition, 3.2.)
    """
    # Half the 95 % interval of a reading's logarithm, the median of those that have one; None without any.
    bounds = [one.interval for one in near if one.interval is not None]
    halves = [math.log(one.high / one.low) / 2 for one in bounds if one.low and one.high is not None]
    noise = median(halves) if halves else None
    if noise is None:
        return None
    least, most = min(one.load for one in near) / LOOSE, max(one.load for one in near) * LOOSE
    doubt = (noise / line.slope) ** 2 / line.spread
    if doubt >= 1:
        return Interval(low=min(least, load), high=max(most, load))
    away = (math.log(bound) - line.y) / line.slope
    half = noise / abs(line.slope) * math.sqrt((1 - doubt) / line.count + away**2 / line.spread) / (1 - doubt)
    low, high = (line.x + away / (1 - doubt) + one for one in (-half, half))
    return Interval(
        low=min(math.exp(max(low, math.log(least))), load), high=max(math.exp(min(high, math.log(most))), load)
    )
