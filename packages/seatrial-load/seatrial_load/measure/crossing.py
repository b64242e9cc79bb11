"""Where a metric that rises (or falls) with load reaches its bound: between a load that is within it and one beyond.

Latency and throughput follow a power law over short stretches of load, so the line is drawn logarithm over logarithm:
least squares through every measured load within a factor of two of the middle of the two. More loads than the two that
enclose the bound make the crossing steadier: of simulated endpoints whose levels vary by 2 %, ten trials differ by at
most 15 % in more cases than by the line between the two alone (benchmarks/search/stability.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_load.documents.result import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

NEAR = 2.0  # a load within this factor of the middle of the bracket helps to draw the line


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
    load = math.exp((math.log(bound) - level) / slope)
    return _within(load, slope, held, missed)


def _line(readings: Sequence[Reading]) -> tuple[float, float]:
    """Return slope and height of the least-squares line, logarithm over logarithm."""
    points = [(math.log(one.load), math.log(one.value)) for one in readings]
    mean_x = math.fsum(x for x, _ in points) / len(points)
    mean_y = math.fsum(y for _, y in points) / len(points)
    spread = math.fsum((x - mean_x) ** 2 for x, _ in points)
    slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return slope, mean_y - slope * mean_x


def _within(load: float, slope: float, held: Reading, missed: Reading) -> Crossing:
    """Keep a crossing between the loads that enclose it; its interval is that of the metric over the slope."""
    kept = min(max(load, held.load), missed.load)
    ends = [_shifted(kept, slope, one) for one in (held, missed)]
    known = [one for one in ends if one is not None]
    if not known:
        return Crossing(load=kept, interval=None)
    return Crossing(
        load=kept, interval=Interval(low=min(min(one) for one in known), high=max(max(one) for one in known))
    )


def _shifted(load: float, slope: float, reading: Reading) -> tuple[float, float] | None:
    """Return where the crossing would lie if the metric were at the ends of its interval all along."""
    bounds = reading.interval
    if bounds is None or bounds.low is None or bounds.high is None or bounds.low <= 0:
        return None
    low, high = (load * (reading.value / end) ** (1 / slope) for end in (bounds.high, bounds.low))
    return low, high


POOLED = 0.1  # a level within this share of the highest throughput is as good, and steadies it
MIN_RISING = 3  # a line through two levels is each of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """The load that saturates an endpoint.

    Attributes:
        load: Requests in flight per copy; at most the highest measured load.
        lowest: The throughput at the lowest load.
        highest: The highest throughput, pooled, at the load where it was highest.
        is_reached: Whether throughput fell behind the load at all, so that the load isn't just the highest measured.
        interval: 95 % interval of the load; None without intervals of throughput.
    """

    load: float
    lowest: Reading
    highest: Reading
    is_reached: bool
    interval: Interval | None


def saturation(throughputs: Sequence[Reading]) -> Saturation | None:
    """Find the load at which the highest throughput would be reached at the unloaded pace; None without any.

    Operational analysis (Lazowska, Zahorjan, Graham and Sevcik, Quantitative System Performance, 1984, 5.2):
    throughput is at most what it is unloaded times the requests in flight, and at most its highest value. The two
    bounds meet at N* = X_max x R_0, by Little's law the number of requests in flight that fill the endpoint if none
    waits. It takes no slope of throughput.

    Neither factor is one level's, so that one level's noise hardly moves it: X_max is the mean over the levels within
    10 % of the highest; R_0 is the latency at the lowest load on the line R = a + bN through the levels below these
    (an iteration's time grows with its batch in that way; least squares of relative distances). Of simulated endpoints
    whose levels vary by 2 %, ten trials differ by at most 13 %; with one level for each factor they differ by up to
    22 %, by the breakpoint of two lines by up to 100 % (benchmarks/search/README.md).

    Args:
        throughputs: Throughput by load, ascending, each load once.
    """
    positive = [one for one in throughputs if one.value > 0]
    if not positive:
        return None
    lowest, highest = positive[0], max(positive, key=lambda one: one.value)
    full = (1 - POOLED) * highest.value
    most_tok_s = _mean([one.value for one in positive if one.value >= full])
    pace_tok_s = lowest.load / _unloaded_latency(lowest, [one for one in positive if one.value < full])
    most = positive[-1].load
    load = lowest.load * most_tok_s / pace_tok_s
    return Saturation(
        load=min(load, most),
        lowest=lowest,
        highest=Reading(load=highest.load, value=most_tok_s, interval=highest.interval),
        is_reached=load < most,
        interval=_saturation_interval(lowest, highest, most),
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _unloaded_latency(lowest: Reading, rising: Sequence[Reading]) -> float:
    """Return the latency R at the lowest load, by Little's law: load over throughput.

    It is that of the line R = a + bN through the levels on which throughput rises; with two of them or fewer, or where
    noise turns the line downward, that of the lowest level itself.
    """
    measured = lowest.load / lowest.value
    if len(rising) < MIN_RISING:
        return measured
    paces, values = [one.value / one.load for one in rising], [one.value for one in rising]  # 1 / R and N / R
    aa, ab, bb = _dot(paces, paces), _dot(paces, values), _dot(values, values)
    ones_a, ones_b = math.fsum(paces), math.fsum(values)
    fixed = ones_a * bb - ones_b * ab  # normal equations of (a + bN) / R = 1, times their determinant
    slope = ones_b * aa - ones_a * ab
    found = (fixed + slope * lowest.load) / (aa * bb - ab**2)
    return found if slope >= 0 and found > 0 else measured


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def _saturation_interval(lowest: Reading, highest: Reading, most: float) -> Interval | None:
    low, high = lowest.interval, highest.interval
    if low is None or high is None or not low.low or low.high is None or high.low is None or high.high is None:
        return None
    ends = (lowest.load * high.low / low.high, lowest.load * high.high / low.low)
    return Interval(low=min(ends[0], most), high=min(ends[1], most))
