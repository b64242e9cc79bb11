"""Metrics over load: the load at which one reaches a bound, and the load that saturates an endpoint.

Crossing: a bound is reached between a load that is within it and one beyond. Latency and throughput follow a power law
over short ranges of load, so the line is drawn logarithm over logarithm: least squares through every measured load
within a factor of three of the middle of the two. More loads than the two that enclose the bound make the crossing
steadier (benchmarks/search/stability.py). A load whose interval holds the bound may be on either side of it: the line
decides, between the loads that are beyond doubt. Where readings lie off the line by more than their noise, as where a
limit of sequences makes requests wait from one load to the next, or the line passes a load that is beyond doubt on the
other side, no power law holds: the two decide alone, and all that is known is that the crossing lies between them.
Beyond a limit that is known, each request more makes all wait longer by the same: that is a straight line.

Saturation: beyond it, more load buys little throughput and much latency.
Operational analysis (Lazowska, Zahorjan, Graham and Sevcik, Quantitative System Performance, 1984, 5.2): by Little's
law N* = X_max x R_0 requests in flight, highest throughput times unloaded latency, would fill an endpoint if none
waited. Requests do slow each other, so the knee is `FILLED` times N*. Where latency is that of a batch, R = a + bN, it
has at least F / (1 + F) of the highest throughput at 1 + F times the unloaded latency at most: 75 % at 4 times.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import attrgetter
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from seatrial_load.documents.distribution import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

NEAR = 3.0  # a load within this factor of the middle of the bracket helps to draw the line
CROOKED = 2.0  # times the noise of the readings, by which they lie off a line: no power law holds around the bound
LEAST_CROOKED = 0.2  # as a logarithm: what readings may lie off a line where their noise is less, or unknown
DEVIATIONS = 1.96  # of a normal distribution, on either side of 95 % of it
LOOSE = 1.2  # where no load is beyond doubt on a side, the crossing is at most this factor outside of the loads there
FILLED = 3.0
KEPT = 0.9  # of the highest throughput: an endpoint with less at more load has fallen
GROWN = 1.1  # twice the load had less than this factor: on R = a + bN any more load adds at most half of that
WIDE = 0.06  # half the interval of a throughput, over it: the noise of a level is more than 3 %
FULL_STEP = 1.02  # of the loads at which throughput may stop growing
DOUBLING = math.log(2)
SAME = 1e-9  # fits and determinants that differ by less are equal


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
        off: What readings lie off it, as a standard deviation; 0 of two.
    """

    count: int
    x: float
    y: float
    slope: float
    spread: float
    off: float

    def load(self, bound: float) -> float:
        """Return the load at which the metric reaches a bound."""
        return math.exp(self.x + (math.log(bound) - self.y) / self.slope)


def crossing(readings: Sequence[Reading], held: Reading, missed: Reading, bound: float) -> Crossing:
    """Find where the metric reaches its bound: from `held`, within it, to `missed`, beyond it at a higher load.

    Args:
        readings: The metric at every measured load, ascending, these two too.
    """
    if min(bound, held.value, missed.value) <= 0:
        share = (bound - held.value) / (missed.value - held.value)
        return Crossing(load=held.load + share * (missed.load - held.load), interval=None)
    middle = math.sqrt(held.load * missed.load)
    near = [point for point in readings if point.value > 0 and max(point.load / middle, middle / point.load) <= NEAR]
    near = [*near, *(point for point in (held, missed) if point not in near)]
    line, (low, high) = _line(near), _doubtless(near, held, missed, bound)
    noise = _noise(near)
    is_crooked = line.off > max(CROOKED * (noise or 0.0) / DEVIATIONS, LEAST_CROOKED)
    if is_crooked or line.slope * (missed.value - held.value) <= 0:  # or noise bends it the other way: two are left
        line = _line([held, missed])
    elif not low <= line.load(bound) <= high:
        line, is_crooked = _line([held, missed]), True
    load = min(max(line.load(bound), low), high)
    if is_crooked or len(near) == 2:  # noqa: PLR2004 (two readings show no curve between them)
        return Crossing(load=load, interval=None if noise is None else Interval(low=low, high=high))
    return Crossing(load=load, interval=_interval(load, line, near, bound, (low, high)))


def queue_crossing(
    readings: Sequence[Reading], held: Reading, missed: Reading, bound: float, *, limit: float, each: float
) -> Crossing:
    """Find where a latency reaches its bound if requests only wait beyond a limit below `missed`.

    Its interval is what was measured: from the highest load that is within the bound to the lowest beyond it.

    Args:
        readings: The metric at every measured load, ascending, these two too.
        each: What each request more adds to the latency of all.
    """
    low, high = _doubtless(readings, held, missed, bound)
    load = min(max(missed.load - (missed.value - bound) / each, limit, held.load, low), high)
    return Crossing(load=load, interval=None if _noise(readings) is None else Interval(low=low, high=high))


def _doubtless(near: Sequence[Reading], held: Reading, missed: Reading, bound: float) -> tuple[float, float]:
    """Return the highest load that is within the bound beyond doubt, and the lowest one above that is beyond it.

    Where there is none, `LOOSE` times outside of the loads.
    """
    rises = missed.value > held.value
    sure = [point for point in near if is_sure(point, bound)]
    beyond = [point.load for point in sure if point.load >= missed.load and (point.value > bound) == rises]
    high = min(beyond, default=LOOSE * max(point.load for point in near))
    within = [point.load for point in sure if point.load < high and (point.value > bound) != rises]
    return max(within, default=min(point.load for point in near) / LOOSE), high


def is_sure(point: Reading, bound: float) -> bool:
    """Return whether a reading's interval leaves no doubt on which side of a bound it is."""
    bounds = point.interval
    return bounds is None or bounds.low is None or bounds.high is None or not bounds.low <= bound <= bounds.high


def _line(readings: Sequence[Reading]) -> _Line:
    points = [(math.log(point.load), math.log(point.value)) for point in readings]
    mean_x = math.fsum(x for x, _ in points) / len(points)
    mean_y = math.fsum(y for _, y in points) / len(points)
    spread = math.fsum((x - mean_x) ** 2 for x, _ in points)
    slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    squares = math.fsum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
    off = math.sqrt(squares / (len(points) - 2)) if len(points) > 2 else 0.0  # noqa: PLR2004 (a line has two unknowns)
    return _Line(len(points), mean_x, mean_y, slope, spread, off)


def _noise(readings: Sequence[Reading]) -> float | None:
    """Return half the 95 % interval of a reading's logarithm, the median of those that have one; None without any."""
    bounds = [one.interval for one in readings if one.interval is not None]
    halves = [math.log(one.high / one.low) / 2 for one in bounds if one.low and one.high is not None]
    return median(halves) if halves else None


def _interval(
    load: float, line: _Line, near: Sequence[Reading], bound: float, doubtless: tuple[float, float]
) -> Interval | None:
    """Return the 95 % interval of a crossing: Fieller's of a line, whose readings vary within their own intervals.

    It is between the loads that leave no doubt, and all of that where the slope may as well be none. (Draper and
    Smith, Applied Regression Analysis, 3rd edition, 3.2.)
    """
    noise = _noise(near)
    if noise is None:
        return None
    (least, most), doubt = doubtless, (noise / line.slope) ** 2 / line.spread
    if doubt >= 1:
        return Interval(low=min(least, load), high=max(most, load))
    away = (math.log(bound) - line.y) / line.slope
    half = noise / abs(line.slope) * math.sqrt((1 - doubt) / line.count + away**2 / line.spread) / (1 - doubt)
    low, high = (line.x + away / (1 - doubt) + one for one in (-half, half))
    return Interval(
        low=min(math.exp(max(low, math.log(least))), load), high=max(math.exp(min(high, math.log(most))), load)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """The load that saturates an endpoint.

    Attributes:
        load: Requests in flight per copy; at most the highest measured load, and where throughput falls.
        at_most: What it may grow to when more load is measured: `FILLED` times N* where throughput has stopped growing,
            else times the highest N* that the intervals of the throughputs leave open.
        settled: Whether more load would bring no more throughput.
        filling: N*, the requests in flight that would fill the endpoint if none waited.
        lowest: The throughput at the lowest load.
        highest: The highest throughput of the fit, at the load where it was measured highest.
        falls_from: The load from which throughput is below 90 % of the highest; None where it doesn't fall.
        falls_between: The measured loads around it; None likewise.
        interval: 95 % interval of the load; None without intervals of throughput.
    """

    load: float
    at_most: float
    settled: bool
    filling: float
    lowest: Reading
    highest: Reading
    falls_from: float | None
    falls_between: tuple[float, float] | None
    interval: Interval | None

    def planned(self, gate: float, utilization: float) -> float:
        """Return the load that copies are planned for; at most that share of the load from which throughput falls."""
        return gate if self.falls_from is None else min(gate, utilization * self.falls_from)


@dataclass(frozen=True, slots=True)
class _Fit:
    """R = a + bN up to `full` requests in flight, beyond which throughput stays.

    Attributes:
        alone: a, in seconds per token of one stream.
        each: b, the same for each request in flight.
        full: Requests in flight.
        squares: What it leaves: the sum of squared relative distances.
        looseness: How far b may be off, for each unit that throughputs may be off as shares; 0 where it is set to 0.
    """

    alone: float
    each: float
    full: float
    squares: float
    looseness: float

    @property
    def highest(self) -> float:
        """The throughput from `full` on."""
        return self.throughput(self.full)

    @property
    def unloaded(self) -> float:
        """R_0, the latency of a request that is alone."""
        return self.alone + self.each

    def throughput(self, load: float) -> float:
        """Return the throughput at a load."""
        running = min(load, self.full)
        return running / (self.alone + self.each * running)

    def asymptote(self, noise: float) -> float:
        """Return N* if throughput went on to grow as it does, at most: b alone bounds it then.

        Args:
            noise: Half the 95 % interval of a throughput, as a share of it.
        """
        each = self.each - noise * self.looseness
        return self.unloaded / each if each > 0 else math.inf


def saturation(throughputs: Sequence[Reading]) -> Saturation | None:
    """Find the load that saturates an endpoint; None without any throughput.

    X_max and R_0 are those of one fit through every level (least squares of relative distances), so that one level's
    noise hardly moves them: R = a + bN while throughput rises (an iteration's time grows with its batch in that way),
    N / X_max beyond. Levels past a fall don't count.

    Args:
        throughputs: Throughput by load, ascending, each load once.
    """
    positive = [point for point in throughputs if point.value > 0]
    if not positive:
        return None
    lowest, highest = positive[0], max(positive, key=attrgetter("value"))
    kept = positive[: 1 + max(at for at, point in enumerate(positive) if not _is_below(point, highest))]
    below = positive[len(kept)] if len(kept) < len(positive) else None
    fit = _fitted(kept)
    falls_from = None
    if below is not None:
        bound = min(max(KEPT * fit.highest, below.value), kept[-1].value)
        falls_from = crossing(positive[len(kept) - 1 :], kept[-1], below, bound).load
    filling = fit.unloaded * fit.highest
    most = kept[-1].load if falls_from is None else falls_from
    load = min(FILLED * filling, most)
    settled = _has_settled(positive, fit)
    highest_filling = filling if settled else fit.asymptote(half_interval(kept))
    at_most = max(load, min(FILLED * highest_filling, math.inf if falls_from is None else falls_from))
    return Saturation(
        load=load,
        at_most=at_most,
        settled=settled,
        filling=filling,
        lowest=lowest,
        highest=replace(highest, value=fit.highest),
        falls_from=falls_from,
        falls_between=None if below is None else (kept[-1].load, below.load),
        interval=_saturation_interval(load, lowest, highest, most),
    )


def half_interval(throughputs: Sequence[Reading]) -> float:
    """Return half the 95 % interval of a throughput as a share of it, the median of those that have one; 0 without."""
    known = [(point.value, point.interval) for point in throughputs if point.interval is not None]
    halves = [
        (bounds.high - bounds.low) / 2 / value
        for value, bounds in known
        if bounds.low is not None and bounds.high is not None
    ]
    return median(halves) if halves else 0.0


def _has_settled(throughputs: Sequence[Reading], fit: _Fit) -> bool:
    """Return whether more load would bring no more throughput.

    It has fallen; or twice the load brought less than 10 % more, by the fit through every level, too; or four times the
    load no more than the intervals of both levels leave open. Where intervals are wide, twice the load proves nothing.
    """
    last = throughputs[-1]
    half, quarter = (
        max((point for point in throughputs if point.load <= last.load / part), key=attrgetter("value"), default=None)
        for part in (2, 4)
    )
    fallen = any(_is_below(last, point) for point in throughputs)
    flat = half is not None and last.value < GROWN * half.value and half_interval(throughputs) <= WIDE
    flat = flat and fit.throughput(last.load) < GROWN * fit.throughput(last.load / 2)
    return fallen or flat or (quarter is not None and _overlap(quarter, last))


def _is_below(point: Reading, highest: Reading) -> bool:
    """Return whether a throughput is below 90 % of the highest, and not for the noise of the two."""
    return point.load > highest.load and point.value < KEPT * highest.value and not _overlap(highest, point)


def _overlap(one: Reading, other: Reading) -> bool:
    if one.interval is None or other.interval is None:
        return False
    (low, high), (other_low, other_high) = ((own.low, own.high) for own in (one.interval, other.interval))
    if low is None or high is None or other_low is None or other_high is None:
        return False
    return low <= other_high and other_low <= high


def _fitted(throughputs: Sequence[Reading]) -> _Fit:
    """Return the nearest fit; of equally near ones that with the highest `full`, which is the least bold.

    For each `full`, (a + b min(N, full)) max(1, N / full) X / N = 1 is linear in a and b. Its sums are those of the
    levels up to `full` and of those beyond.
    """
    loads = [point.load for point in throughputs]
    sums = _sums(throughputs)
    full, best = loads[0], _fit_at(loads[0], bisect_right(loads, loads[0]), sums)
    while full < loads[-1]:
        full = min(full * FULL_STEP, loads[-1])
        fit = _fit_at(full, bisect_right(loads, full), sums)
        best = fit if fit.squares <= best.squares + SAME else best
    return best


class _Sums(NamedTuple):
    """Weighted sums over the first levels, by their number: of throughput X, of its pace X / N, of their products."""

    weights: Sequence[float]
    paces: Sequence[float]
    values: Sequence[float]
    paces_squared: Sequence[float]
    paces_by_values: Sequence[float]
    values_squared: Sequence[float]


def _sums(throughputs: Sequence[Reading]) -> _Sums:
    ones, values = [1.0] * len(throughputs), [point.value for point in throughputs]
    paces = [point.value / point.load for point in throughputs]
    weights = _weights([point.load for point in throughputs])
    columns = ((ones, ones), (paces, ones), (values, ones), (paces, paces), (paces, values), (values, values))
    products = ([w * x * y for w, x, y in zip(weights, one, other, strict=True)] for one, other in columns)
    return _Sums(*(list(accumulate(column, initial=0.0)) for column in products))


def _weights(loads: Sequence[float]) -> list[float]:
    """Return half of the distance between a load's neighbours, as logarithms: loads that are close count as one.

    None counts for more than a doubling of the load.
    """
    if len(loads) == 1:
        return [1.0]
    places = [math.log(load) for load in loads]
    before, after = 2 * places[0] - places[1], 2 * places[-1] - places[-2]
    around = [before, *places, after]
    return [min((above - below) / 2, DOUBLING) for below, above in zip(around, around[2:], strict=False)]


def _fit_at(full: float, rising: int, sums: _Sums) -> _Fit:
    """Return the least squares of the fit that is full at a load, which `rising` levels don't exceed."""
    a = sums.paces[rising] + (sums.values[-1] - sums.values[rising]) / full
    beyond = sums.values_squared[-1] - sums.values_squared[rising]
    aa, ab = sums.paces_squared[rising] + beyond / full**2, sums.paces_by_values[rising] + beyond / full
    b, bb = sums.values[-1], sums.values_squared[-1]
    alone, each, looseness = a / aa, 0.0, 0.0  # where latency doesn't rise, or falls for its noise
    determinant = aa * bb - ab * ab
    if determinant > SAME * aa * bb and b * aa > a * ab and a * bb > b * ab:
        alone, each = (a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant
        mean_weight = sums.weights[-1] / (len(sums.weights) - 1)
        looseness = math.sqrt(aa / determinant * mean_weight)
    return _Fit(alone, each, full, sums.weights[-1] - alone * a - each * b, looseness)


def _saturation_interval(load: float, lowest: Reading, highest: Reading, most: float) -> Interval | None:
    low, high = lowest.interval, highest.interval
    if low is None or high is None or not low.low or low.high is None or high.low is None or high.high is None:
        return None
    least = load * (high.low / highest.value) * (lowest.value / low.high)
    greatest = load * (high.high / highest.value) * (lowest.value / low.low)
    return Interval(low=min(least, load), high=min(max(greatest, load), most))
