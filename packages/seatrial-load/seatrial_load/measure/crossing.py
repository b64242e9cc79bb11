"""Where a metric that rises (or falls) with load reaches its bound: between a load that is within it and one beyond.

Latency and throughput follow a power law over short stretches of load, so the line is drawn logarithm over logarithm:
least squares through every measured load within a factor of three of the middle of the two. More loads than the two
that enclose the bound make the crossing steadier: of simulated endpoints whose levels vary by 2 %, ten trials differ by
at most 15 % in more cases than by the line between the two alone (benchmarks/search/stability.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_load.documents.result import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

NEAR = 3.0  # a load within this factor of the middle of the bracket helps to draw the line
LOOSE = 1.2  # an end whose interval holds the bound is left by at most this factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A metric at one load.

    Attributes:
        load: Requests in flight per copy.
        value: The metric, in its own unit.
        interval: Its 95 % interval; None without one.
    """

    load: float
    value: float
    interval: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Where a metric reaches its bound.

    Attributes:
        load: Requests in flight per copy.
        interval: Where the crossing lies if the metric lies anywhere in its 95 % interval; None where that is unknown.
    """

    load: float
    interval: Interval | None


def crossing(readings: Sequence[Reading], held: Reading, missed: Reading, bound: float) -> Crossing:
    """Find where the metric reaches its bound: from `held`, within it, to `missed`, beyond it at a higher load.

    Args:
        readings: The metric at every measured load, these two too.
        held: The highest load within the bound.
        missed: The lowest load above it that is beyond the bound.
        bound: The bound; the metric may be one that should stay below it or above it.
    """
    if min(bound, *(one.value for one in (held, missed))) <= 0:
        share = (bound - held.value) / (missed.value - held.value)
        return Crossing(load=held.load + share * (missed.load - held.load), interval=None)
    middle = math.sqrt(held.load * missed.load)
    near = [one for one in readings if one.value > 0 and max(one.load / middle, middle / one.load) <= NEAR]
    slope, level = _line([*near, *(one for one in (held, missed) if one not in near)])
    if slope * (missed.value - held.value) <= 0:  # noise bends the line the other way: only the two are left
        slope, level = _line([held, missed])
    low, high = (_left(held, bound, 1 / LOOSE), _left(missed, bound, LOOSE))
    load = min(max(math.exp((math.log(bound) - level) / slope), low), high)
    return Crossing(load=load, interval=_interval(load, slope, held, missed))


def _left(end: Reading, bound: float, factor: float) -> float:
    """Return how far the crossing may lie: beyond an end only where the end's interval holds the bound."""
    bounds = end.interval
    if bounds is None or bounds.low is None or bounds.high is None or not bounds.low <= bound <= bounds.high:
        return end.load
    return end.load * factor


def _line(readings: Sequence[Reading]) -> tuple[float, float]:
    """Return slope and height of the least-squares line, logarithm over logarithm."""
    points = [(math.log(one.load), math.log(one.value)) for one in readings]
    mean_x = math.fsum(x for x, _ in points) / len(points)
    mean_y = math.fsum(y for _, y in points) / len(points)
    spread = math.fsum((x - mean_x) ** 2 for x, _ in points)
    slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return slope, mean_y - slope * mean_x


def _interval(load: float, slope: float, held: Reading, missed: Reading) -> Interval | None:
    """Return the interval of a crossing: that of the metric over the slope."""
    ends = [_shifted(load, slope, one) for one in (held, missed)]
    known = [one for one in ends if one is not None]
    return Interval(low=min(min(one) for one in known), high=max(max(one) for one in known)) if known else None


def _shifted(load: float, slope: float, reading: Reading) -> tuple[float, float] | None:
    """Return where the crossing would lie if the metric were at the ends of its interval all along."""
    bounds = reading.interval
    if bounds is None or bounds.low is None or bounds.high is None or bounds.low <= 0:
        return None
    low, high = (load * (reading.value / end) ** (1 / slope) for end in (bounds.high, bounds.low))
    return low, high
