"""The view of a search: the request, the measured levels, the forecast of the others, and the range that is left.

The forecast is the plan's curve, bent through the measured levels. Between two measured levels the ratio of measured to
predicted is interpolated, logarithm over logarithm; outside it stays what it is at the nearest one. So a prediction
that is wrong by a factor is right after one level. Without a plan the curve is flat, which makes it a power law from
one measured level to the next. Beyond its ends the plan's curve goes on as an endpoint does: below, latency stays;
above, throughput stays.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from seatrial_base.units import MS_PER_S
from seatrial_load.knee import slo_bracket
from seatrial_load.slo.evaluate import reading_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial_load.documents.request import Objective, PredictedLevel, TrialRequest
    from seatrial_load.documents.result import LevelResult

    Curve = Callable[[float], float]
    Points = Sequence[tuple[float, float]]

STEP = 1.02  # of the concurrencies at which a crossing is sought
WELL_APART = math.sqrt(2)  # two levels nearer to each other differ by noise as much as by load
STEEPEST = 1.0  # latency of a full endpoint grows with the load, not faster


@dataclass(frozen=True, slots=True)
class Forecast:
    """The expected metrics, by requests in flight per copy.

    Attributes:
        latency_ms: Mean end-to-end latency; None when nothing is known.
        tok_s: Output tokens per second, all copies; None when nothing is known.
        burdens: Each objective on latency: its measure over its bound, so that above 1 it is missed.
        rounds: Duration of a level, as a multiple of a request's.
    """

    predicted: bool
    latency_ms: Curve | None
    tok_s: Curve | None
    burdens: tuple[Curve, ...]
    rounds: float

    def duration_s(self, concurrency: int) -> float | None:
        """Return how long a level takes; None when nothing is known."""
        return None if self.latency_ms is None else self.rounds * self.latency_ms(concurrency) / MS_PER_S

    def misses(self, concurrency: float, share: float = 1.0) -> bool:
        """Return whether an objective on latency is expected to be missed, or a share of its bound to be passed."""
        return any(burden(concurrency) > share for burden in self.burdens)

    def first_miss(self, low: int, high: int, share: float = 1.0) -> float | None:
        """Return the lowest concurrency of a range that is expected to miss; None when none is."""
        at = float(low)
        while at <= high:
            if self.misses(at, share):
                return at
            at *= STEP
        return None

    def last_hold(self, low: int, high: int) -> float:
        """Return the highest concurrency of a range that is expected to hold; the lowest of all when none is."""
        at = float(high)
        while at > low and self.misses(at):
            at /= STEP
        return max(at, float(low))

    def full(self, low: int, high: int, share: float) -> float | None:
        """Return where throughput is expected to reach a share of a range's highest; None when nothing is known."""
        if self.tok_s is None:
            return None
        at, most = float(low), max(self.tok_s(low), self.tok_s(high))
        while at < high and self.tok_s(at) < share * most:
            at *= STEP
        return at


def forecast(request: TrialRequest, levels: Sequence[LevelResult]) -> Forecast:
    """Bend the plan's curve through the valid levels."""
    prior = request.prior.levels
    known = sorted((level for level in levels if level.valid and level.succeeded), key=lambda level: level.concurrency)
    latencies = [(float(level.concurrency), level.e2e_latency_ms.mean) for level in known if level.e2e_latency_ms]
    throughputs = [(float(level.concurrency), level.output_tok_s) for level in known if level.output_tok_s]
    burdens = [_burden(objective, prior, known) for objective in request.objectives]
    planned_tok_s = _power_law([(float(level.concurrency), level.output_tok_s) for level in prior], below=1.0)
    rounds = request.load.ramp_per_concurrency + request.load.requests_per_concurrency
    seen = (
        level.duration_s * MS_PER_S / level.e2e_latency_ms.mean
        for level in known
        if level.duration_s and level.e2e_latency_ms
    )
    return Forecast(
        predicted=bool(prior),
        latency_ms=_bent(_latency(prior), latencies, beyond=1.0),
        tok_s=_bent(planned_tok_s, throughputs),
        burdens=tuple(burden for burden in burdens if burden is not None),
        rounds=max(seen, default=float(rounds)),
    )


def _burden(objective: Objective, prior: Sequence[PredictedLevel], known: Sequence[LevelResult]) -> Curve | None:
    """Return an objective's measure over its bound; None of one that isn't on latency."""
    if objective.metric in {"error_rate", "output_tok_s"}:
        return None
    if objective.metric == "ttft_ms":
        shape = _power_law([(float(level.concurrency), level.ttft_p95_ms) for level in prior], beyond=1.0)
    elif objective.metric == "tpot_ms":
        # The time between two tokens of one stream, by Little's law: requests in flight over throughput.
        shape = _power_law([(float(level.concurrency), level.concurrency / level.output_tok_s) for level in prior])
    else:
        shape = _latency(prior)
    readings = (reading_of(level, objective) for level in known)
    measured = [(point.load, point.value) for point in readings if point is not None and point.value]
    curve = _bent(shape, measured)
    return None if curve is None else lambda concurrency: curve(concurrency) / objective.bound


def _latency(prior: Sequence[PredictedLevel]) -> Curve | None:
    return _power_law([(float(level.concurrency), level.e2e_mean_ms) for level in prior], beyond=1.0)


def _bent(shape: Curve | None, measured: Points, *, beyond: float = 0.0) -> Curve | None:
    """Bend a curve through measured points; without a curve, `beyond` is its slope above the highest of them."""
    if not measured:
        return shape
    if shape is None:
        return _power_law(measured, below=_trend(measured[::-1]), beyond=beyond or _trend(measured))
    ratios = [(at, value / shape(at)) for at, value in measured]
    correction = _power_law(ratios, below=_trend(ratios[::-1]), beyond=_trend(ratios))
    return None if correction is None else lambda at: shape(at) * correction(at)


def _trend(points: Points) -> float:
    """Return the slope at the last point, logarithm over logarithm: from the nearest one that is well apart."""
    at, value = points[-1]
    for other, before in reversed(points):
        if max(at / other, other / at) >= WELL_APART and value > 0 and before > 0:
            slope = math.log(value / before) / math.log(at / other)
            return min(max(slope, -STEEPEST), STEEPEST)
    return 0.0


def _power_law(points: Points, *, below: float = 0.0, beyond: float = 0.0) -> Curve | None:
    """Return the curve of straight lines between points, logarithm over logarithm; its slopes outside are given."""
    usable = [(math.log(at), math.log(value)) for at, value in points if value > 0]
    if not usable:
        return None
    xs, ys = [x for x, _ in usable], [y for _, y in usable]

    def curve(concurrency: float) -> float:
        x = math.log(concurrency)
        index = bisect_left(xs, x)
        if index == 0:
            return math.exp(ys[0] + below * (x - xs[0]))
        if index == len(xs):
            return math.exp(ys[-1] + beyond * (x - xs[-1]))
        share = (x - xs[index - 1]) / (xs[index] - xs[index - 1])
        return math.exp(ys[index - 1] + share * (ys[index] - ys[index - 1]))

    return curve


NARROW = 0.9  # of a bound: what is above holds, but not by much
APART = 2.0  # as a factor: a wider range without a level is worth one
VOID_MARGIN = 1.25  # a client that was the limit at C gets no more than C / 1.25


class Unsure(NamedTuple):
    """A range of loads over which the SLO may be missed, although it holds at its upper end.

    Attributes:
        high: Its end, at a measured level.
        middle: The load halfway, as factors go, strictly between the measured levels around the range.
    """

    low: float
    high: int
    middle: int


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The view of a search.

    Attributes:
        valid: The levels that measure the endpoint, ascending.
        void: Those that the client limited, ascending.
    """

    request: TrialRequest
    valid: tuple[LevelResult, ...]
    void: tuple[LevelResult, ...]
    bottom: int
    top: int
    forecast: Forecast

    @property
    def measured(self) -> frozenset[int]:
        """Every concurrency that was measured, void levels too."""
        return frozenset(level.concurrency for level in (*self.valid, *self.void))

    @property
    def dead(self) -> tuple[LevelResult, ...]:
        """The levels at which no request succeeded."""
        return tuple(level for level in self.valid if not level.succeeded)

    @property
    def held(self) -> int | None:
        """The highest level that meets the SLO below the level that misses it."""
        held = slo_bracket(self.valid).held
        return None if held is None else held.concurrency

    @property
    def missed(self) -> int | None:
        """The lowest level above it that misses the SLO; where none meets it, the lowest level."""
        missed = slo_bracket(self.valid).missed
        return None if missed is None else missed.concurrency

    @property
    def unsure(self) -> Unsure | None:
        """The lowest wide range without a level, below one that holds, over which it is expected to hold narrowly.

        Latency need not rise with load everywhere: a step of the batch may miss the SLO where more load meets it.
        """
        held = self.held or 0
        holding = [level.concurrency for level in self.valid if level.concurrency <= held]
        for low, high in pairwise([self.bottom, *holding]):
            narrow = self.forecast.first_miss(low, high, NARROW)
            if narrow is not None and high > narrow * APART and high > low + 1:
                middle = math.floor(math.sqrt(narrow * high))
                return Unsure(narrow, high, min(max(middle, low + 1), high - 1))
        return None

    @property
    def crossing(self) -> float | None:
        """The load at which the SLO is expected to be missed first, given the measured levels; None where nowhere."""
        held, missed = self.held, self.missed
        if held is not None:
            return self.forecast.first_miss(held, self.top if missed is None else missed)
        if missed is not None:
            return self.forecast.last_hold(self.bottom, missed) if self.forecast.burdens else None
        return self.forecast.first_miss(self.bottom, self.top)


def search_view(request: TrialRequest, levels: Sequence[LevelResult]) -> View:
    """Sort the measured levels; a client's own limit lowers the highest concurrency."""
    ordered = sorted(levels, key=attrgetter("concurrency"))
    void = tuple(level for level in ordered if not level.valid)
    bottom, top = request.load.concurrency_levels[0], request.load.concurrency_levels[-1]
    if void:
        top = min(top, int(void[0].concurrency / VOID_MARGIN))
    return View(
        request=request,
        valid=tuple(level for level in ordered if level.valid),
        void=void,
        bottom=bottom,
        top=max(bottom, top),
        forecast=forecast(request, levels),
    )
