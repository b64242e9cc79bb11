"""The knees of measured levels, beyond which more load doesn't pay, and the scaling target and costs that follow."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from seatrial_base.units import BLENDED_TOKENS_PER_OUTPUT_TOKEN, S_PER_HOUR, as_exported, tenths, whole_or_tenths
from seatrial_load.documents.distribution import Interval
from seatrial_load.documents.result import Knee
from seatrial_load.measure.curves import FILLED, KEPT, Reading, crossing, is_sure, queue_crossing, saturation
from seatrial_load.slo.evaluate import is_met, reading, reading_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial_load.documents.request import Metric, Objective, Prior, Statistic, TargetKnee, TrialRequest
    from seatrial_load.documents.result import Detector, LevelResult
    from seatrial_load.measure.curves import Crossing, Saturation

ONE_RATE = "one rate shows none"
LATENCY_RATIO = 2.0
MIN_LEVELS = 2
KNEEDLE_MIN_LEVELS = 3
SENSITIVITY = 1.0
TWO_SEGMENT_MIN_LEVELS = 4
STRAIGHT = 0.05  # of the range of throughputs: what a level's throughput may be off by itself (an assumption)
FLATTER = 0.5  # of the first slope: else the second line still pays
_WAITS: tuple[Metric, ...] = ("ttft_ms", "e2e_latency_ms")  # latencies with the wait for a place in them
_TAKEN: tuple[Detector, ...] = ("slo", "saturation", "gate")
TOKENS_PER_MILLION = 1_000_000
QUEUES = 0.9  # of the load: what is in service, where the rest waits for a free place
MOSTLY = 0.5  # of the requests in flight, and of the time of one, that wait for a place
JUMP = 2.0  # times the growth of the load, by which the time to first token grows where requests begin to wait
APART = 1.25  # of two loads: nearer ones have as much in service by themselves
STAYS = 0.1  # power of the load, by which what is in service and throughput grow at most where more only waits
NOISE = 1.03  # factor by which a level's throughput may be off


def ascending(levels: Sequence[LevelResult]) -> list[LevelResult]:
    """Return the levels that measure the endpoint, by the load that they offered: concurrency, or a rate.

    Requests that are refused at once are hardly in flight, however many are offered.
    """
    return sorted((level for level in levels if level.valid), key=attrgetter("offered_load"))


def throughputs(levels: Sequence[LevelResult]) -> list[Reading]:
    """Return the throughput of every valid level that has one; of one concurrency the highest.

    Levels of an open loop are rates: several may have the same number in flight.
    """
    highest: dict[float, Reading] = {}
    for level in ascending(levels):
        throughput = reading(level, "output_tok_s", "value")
        if throughput is not None and (
            throughput.load not in highest or throughput.value > highest[throughput.load].value
        ):
            highest[throughput.load] = throughput
    return sorted(highest.values(), key=attrgetter("load"))


def half_latency_knee(levels: Sequence[LevelResult]) -> Knee:
    """Find the highest level whose mean latency is at most twice the lowest level's, with every level below it."""
    known = [(level.load, level.e2e_latency_ms.mean) for level in ascending(levels) if level.e2e_latency_ms]
    if len(known) < MIN_LEVELS:
        because = f"{len(known)} levels with a latency; {MIN_LEVELS} are needed"
        return Knee(detector="half_latency", concurrency=None, because=because)
    (lowest, unloaded_ms), (highest, _) = known[0], known[-1]
    within = [concurrency for concurrency, _ in takewhile(lambda point: point[1] <= LATENCY_RATIO * unloaded_ms, known)]
    twice = f"twice the {tenths(unloaded_ms)} ms at {whole_or_tenths(lowest)} per copy"
    if len(within) == len(known):
        because = f"mean latency is at most {twice} up to {whole_or_tenths(highest)} per copy, the highest level"
        return Knee(detector="half_latency", concurrency=None, because=because)
    above, above_ms = known[len(within)]
    because = f"mean latency at {whole_or_tenths(above)} per copy is {tenths(above_ms)} ms, above {twice}"
    return Knee(detector="half_latency", concurrency=within[-1], because=because)


def kneedle_knee(levels: Sequence[LevelResult]) -> Knee:
    """Find the level at which throughput bends."""
    points = throughputs(levels)
    if len(points) < KNEEDLE_MIN_LEVELS:
        because = f"{len(points)} levels with a throughput; {KNEEDLE_MIN_LEVELS} are needed"
        return Knee(detector="kneedle", concurrency=None, because=because)
    knee = bend(points)
    if knee is None:
        because = f"throughput does not bend between {points[0].load:g} and {points[-1].load:g} per copy"
        return Knee(detector="kneedle", concurrency=None, because=because)
    because = f"throughput bends at {whole_or_tenths(knee.load)} per copy, {tenths(knee.value)} tok/s"
    return Knee(detector="kneedle", concurrency=knee.load, because=because)


def bend(points: Sequence[Reading]) -> Reading | None:
    """Return the knee of a curve, ascending; None when there is none or there are too few points."""
    if len(points) < KNEEDLE_MIN_LEVELS:
        return None
    loads, values = _scaled([float(point.load) for point in points]), _scaled([point.value for point in points])
    index = _first_knee([value - load for load, value in zip(loads, values, strict=True)])
    return None if index is None else points[index]


def _scaled(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 0.0 for value in values]


def _first_knee(differences: Sequence[float]) -> int | None:
    mean_step = 1 / (len(differences) - 1)
    candidate: int | None = None
    for index in range(1, len(differences)):
        before, here = differences[index - 1], differences[index]
        after = differences[index + 1] if index + 1 < len(differences) else here
        if candidate is not None and here < differences[candidate] - SENSITIVITY * mean_step:
            return candidate
        if before < here and after < here:
            candidate = index
    return None


def saturation_of(levels: Sequence[LevelResult]) -> Saturation | None:
    """Return the saturation by the levels without a failed request (`measure.curves`); None without any.

    An endpoint can't keep the throughput that it has while it refuses.
    """
    return saturation(throughputs([level for level in levels if level.succeeded == level.requests]))


@dataclass(frozen=True, slots=True)
class _Served:
    """A level, and how many of its requests per copy are in service on average: the others wait for a place."""

    level: LevelResult
    in_service: float
    first_ms: float
    typical_ms: float

    @property
    def queues(self) -> bool:
        return self.in_service < QUEUES * self.level.load

    @property
    def mostly_waits(self) -> bool:
        # By the median, too: one pause of the server makes a few requests wait, and raises the mean alone.
        return self.in_service <= MOSTLY * self.level.load and self.first_ms >= MOSTLY * self.typical_ms


def service_limit(levels: Sequence[LevelResult]) -> float | None:
    """Return how many requests per copy are in service at most, where measured levels show that more only wait.

    By Little's law the waiting share of those in flight is that of their time: what the time to first token exceeds
    that of the lowest level by. A limit, of sequences or of cache, shows in one of three ways: twice as much load has
    no more in service and no more throughput; the time to first token jumps from one level to the next; or above a
    level where none waits comes one where most do. Work that is shared among more requests makes it grow with the load
    at most, and no request wait most of its time before it gets some of it.
    """
    known = [
        (level, level.ttft_ms, level.e2e_latency_ms)
        for level in ascending(levels)
        if level.succeeded == level.requests and level.ttft_ms is not None and level.e2e_latency_ms is not None
    ]
    if not known:
        return None
    unloaded_ms = known[0][1].mean
    served = [
        _Served(level, level.load * (1 - max(ttft.mean - unloaded_ms, 0.0) / e2e.mean), ttft.p50, e2e.p50)
        for level, ttft, e2e in known
    ]
    for above in (one for one in served if one.queues):
        lower = [one for one in served if one.level.load < above.level.load]
        apart = [one for one in lower if one.level.load * APART <= above.level.load]
        if apart and _is_full(apart[-1], above):
            return min(apart[-1].in_service, above.in_service)
        if lower and _begins_to_queue(lower[-1], above):
            return above.in_service
    return None


def _is_full(below: _Served, above: _Served) -> bool:
    least: float = (above.level.load / below.level.load) ** STAYS
    ratio = above.in_service / below.in_service
    grown = (above.level.output_tok_s or 0.0) / (below.level.output_tok_s or math.inf)
    return 1 / least <= ratio <= least and grown <= NOISE * least


def _begins_to_queue(below: _Served, above: _Served) -> bool:
    grown = above.level.load / below.level.load
    jumps = above.first_ms > JUMP * grown * below.first_ms
    keeps = not below.queues and above.in_service >= QUEUES * below.in_service
    return keeps and (jumps or above.mostly_waits)


def saturation_knee(levels: Sequence[LevelResult], batch_limit: int | None = None) -> Knee:
    """Find the load from which more load buys little throughput, at most what is in service at once: more only queues.

    Args:
        batch_limit: Sequences that one copy batches at once, by the plan; None is unknown.
    """
    if [level.is_open for level in ascending(levels)] == [True]:  # its queue may grow for as long as it lasts
        return Knee(detector="saturation", concurrency=None, because=ONE_RATE)
    full = saturation_of(levels)
    if full is None:
        because = "no level without an error has a throughput" if levels else "no level was measured"
        return Knee(detector="saturation", concurrency=None, because=because)
    if batch_limit is not None and batch_limit < full.load:
        because = f"batch limit of one copy, {batch_limit}; {_saturation_words(full)}"
        return Knee(detector="saturation", concurrency=float(batch_limit), because=because)
    limit = service_limit(levels)
    if limit is not None and limit < full.load:
        because = f"{whole_or_tenths(limit)} requests per copy are in service at most, more only wait"
        return Knee(detector="saturation", concurrency=limit, because=f"{because}; {_saturation_words(full)}")
    interval = full.interval
    is_growing = full.falls_from != full.load < FILLED * full.filling
    if interval is not None and is_growing and full.load >= ascending(levels)[-1].load:
        interval = Interval(low=interval.low, high=None)  # no higher level was measured
    return Knee(detector="saturation", concurrency=full.load, because=_saturation_words(full), interval=interval)


def _saturation_words(full: Saturation) -> str:
    at, filling = whole_or_tenths(full.load), whole_or_tenths(full.filling)
    if full.falls_from == full.load:
        return f"throughput falls below {KEPT:.0%} of its highest from {at} per copy"
    if full.load < FILLED * full.filling:
        return f"throughput grows with the load up to {at} per copy, the highest level without an error"
    highest = f"{tenths(full.highest.value)} tok/s, measured at {whole_or_tenths(full.highest.load)} per copy"
    return f"{FILLED:g} x {filling} per copy, which give the highest throughput ({highest}) at unloaded latency"


def gate_knee(levels: Sequence[LevelResult], gate: int, utilization: float = 1.0) -> Knee:
    """Return the load that copies are planned for; less where throughput falls below it.

    Args:
        utilization: Target utilization: the share of the load from which throughput falls.
    """
    full = saturation_of(levels)
    if full is None:
        return Knee(detector="gate", concurrency=None, because="no level without an error has a throughput")
    planned = full.planned(gate, utilization)
    if full.falls_from is None or planned >= gate:
        return Knee(detector="gate", concurrency=float(gate), because=f"copies are planned for {gate} each")
    falls = f"throughput falls below {KEPT:.0%} of its highest from {whole_or_tenths(full.falls_from)} per copy"
    share = "" if utilization == 1.0 else f"{utilization:.0%} of it are "
    because = f"{falls}; {share}less than the gate of {gate}"
    return Knee(detector="gate", concurrency=planned, because=because)


class SloBracket(NamedTuple):
    """The highest level that meets the SLO, and the lowest above it that misses; None where there is none."""

    held: LevelResult | None
    missed: LevelResult | None


def slo_bracket(levels: Sequence[LevelResult]) -> SloBracket:
    """Return the levels between which the SLO begins to be missed.

    Levels that miss below the first one that meets don't count: less load per copy, which is all that scaling can do,
    doesn't improve them. Where no level meets the SLO, the lowest one is the missed one. Void levels don't count.
    """
    held: LevelResult | None = None
    lowest_missed: LevelResult | None = None
    for level in ascending(levels):
        if level.meets_slo:
            held = level
        elif held is not None:
            return SloBracket(held, level)
        else:
            lowest_missed = lowest_missed or level
    return SloBracket(held, None) if held is not None else SloBracket(None, lowest_missed)


def slo_knee(levels: Sequence[LevelResult], objectives: Sequence[Objective] = ()) -> Knee:
    """Find the load at which the SLO begins to be missed, between the highest level that meets it and the next miss.

    It is the lowest load at which the metric of a missed objective reaches its bound (`measure.curves`): beyond what is
    in service at once (`service_limit`) by the time that each request more makes all wait. Where a miss can't be
    placed, as where no request succeeded, it is the highest level that meets the SLO. Where no level above misses, it
    is that level, too, and its interval has no upper end.

    Args:
        objectives: The SLO; without it the knee is a measured level.
    """
    held, missed = slo_bracket(levels)
    if held is None:
        if missed is not None:
            because = f"no level meets the SLO; the lowest: {'; '.join(missed.misses)}"
        else:
            because = "no level is valid: the client was the limit" if levels else "no level was measured"
        return Knee(detector="slo", concurrency=None, because=because)
    at = whole_or_tenths(held.load)
    if missed is None:
        because = f"every level meets the SLO, up to {at} per copy"
        return _knee(held.load, Interval(low=held.load, high=None), because)
    misses = "; ".join(missed.misses)
    first = min(_crossings(levels, objectives, held, missed), key=attrgetter("load"), default=None)
    if first is None:
        return _knee(held.load, None, misses)
    between = f"{at} and {whole_or_tenths(missed.load)} per copy"
    because = f"{misses}; interpolated between {between}: {whole_or_tenths(first.load)} per copy"
    return _knee(first.load, first.interval, because)


def _crossings(
    levels: Sequence[LevelResult], objectives: Sequence[Objective], held: LevelResult, missed: LevelResult
) -> Iterator[Crossing]:
    if missed.load <= held.load:  # two rates of an open loop with the same number in flight
        return
    limit = service_limit(levels) or math.inf
    for objective in objectives:
        known = [point for level in ascending(levels) if (point := reading_of(level, objective)) is not None]
        within, beyond = reading_of(held, objective), reading_of(missed, objective)
        if within is None or beyond is None or not missed.succeeded:
            continue
        if not is_met(within.value, objective) or is_met(beyond.value, objective):
            continue
        took = missed.e2e_latency_ms
        if objective.metric not in _WAITS or took is None or limit >= missed.load:
            yield crossing(known, within, beyond, objective.bound)
        elif held.load * APART < missed.load:
            each = took.mean / missed.load  # by Little's law
            yield queue_crossing(known, within, beyond, objective.bound, limit=limit, each=each)
        else:  # near each other, loads on one side of the limit place it more steadily than one of the two alone
            waiting = [point for point in known if point.load >= min(limit, held.load)]
            yield crossing(waiting, within, beyond, objective.bound)


def _knee(load: float, interval: Interval | None, because: str) -> Knee:
    return Knee(detector="slo", concurrency=load, because=because, interval=interval)


def theory_knee(prior: Prior) -> Knee:
    """Return the lesser of the batch limit and the knee of the predicted curve; predicted, not measured."""
    bent = bend([Reading(load=float(level.concurrency), value=level.output_tok_s) for level in prior.levels])
    limit = prior.batch_limit
    if limit is not None and (bent is None or limit <= bent.load):
        because = f"batch limit of one copy: {limit} sequences; predicted, not measured"
        return Knee(detector="theory", concurrency=limit, because=because)
    if bent is not None:
        because = f"predicted throughput bends at {whole_or_tenths(bent.load)} per copy; not measured"
        return Knee(detector="theory", concurrency=bent.load, because=because)
    because = "predicted throughput does not bend" if prior.levels else "the plan has no prediction"
    return Knee(detector="theory", concurrency=None, because=because)


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
    if len(points) < TWO_SEGMENT_MIN_LEVELS:
        return _no_bend(f"{len(points)} levels with a throughput; {TWO_SEGMENT_MIN_LEVELS} are needed")
    span = f"between {points[0].load:g} and {points[-1].load:g} per copy"
    ys = [point.value for point in points]
    off = math.sqrt(fitted_line(points).squares / len(points))
    if off <= STRAIGHT * (max(ys) - min(ys)):
        return _no_bend(f"one line fits the throughput {span}, mean error {off:.1f} tok/s")
    best = best_bend(points)
    if best.second_slope > FLATTER * best.first_slope:
        return _no_bend(f"throughput growth does not slow {span}")
    slopes = f"from {best.first_slope:.1f} to {best.second_slope:.1f} tok/s per further concurrent request"
    because = f"two lines fit the throughput and meet at {best.concurrency:.1f} per copy: {slopes}"
    return Knee(detector="two_segment", concurrency=best.concurrency, because=because)


def _no_bend(because: str) -> Knee:
    return Knee(detector="two_segment", concurrency=None, because=because)


def best_bend(points: Sequence[Reading]) -> Bend:
    """Return the two lines that are nearest to four points or more, ascending."""
    return min((*_between_levels(points), *_on_levels(points)), key=attrgetter("squares"))


def fitted_line(points: Sequence[Reading]) -> Line:
    """Return the least-squares line of two points or more."""
    mean_x = math.fsum(point.load for point in points) / len(points)
    mean_y = math.fsum(point.value for point in points) / len(points)
    spread = math.fsum((point.load - mean_x) ** 2 for point in points)
    slope = math.fsum((point.load - mean_x) * (point.value - mean_y) for point in points) / spread
    squares = math.fsum((point.value - mean_y - slope * (point.load - mean_x)) ** 2 for point in points)
    return Line(mean_x, mean_y, slope, squares)


def _between_levels(points: Sequence[Reading]) -> Iterator[Bend]:
    for above in range(2, len(points) - 1):
        first, second = fitted_line(points[:above]), fitted_line(points[above:])
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
        slopes = [
            math.fsum(u * (y - height) for u, y in side) / math.fsum(u * u for u, _ in side) for side in (below, above)
        ]
        squares = math.fsum(
            (y - height - slope * u) ** 2 for slope, side in zip(slopes, (below, above), strict=True) for u, y in side
        )
        yield Bend(float(points[knot].load), slopes[0], slopes[1], squares)


def _height(*sides: Sequence[tuple[float, float]]) -> float:
    """Return the value at the breakpoint: the normal equations, with both slopes eliminated."""
    weight, total = 0.0, 0.0
    for side in sides:
        u, uu = math.fsum(u for u, _ in side), math.fsum(u * u for u, _ in side)
        weight += len(side) - u * u / uu
        total += math.fsum(y for _, y in side) - u / uu * math.fsum(u * y for u, y in side)
    return total / weight


def knees_of(request: TrialRequest, levels: Sequence[LevelResult]) -> tuple[Knee, ...]:
    """Return the knee of every detector: first those that scaling takes, then those that are only shown.

    Args:
        levels: The measured levels, in any order; those that the client limited don't count.
    """
    prior = request.prior
    taken = (
        slo_knee(levels, request.level_bounds),
        saturation_knee(levels, prior.batch_limit),
        gate_knee(levels, request.gate_concurrency, request.target_utilization),
    )
    shown = (kneedle_knee(levels), two_segment_knee(levels), half_latency_knee(levels), theory_knee(prior))
    return (*taken, *shown)


@dataclass(frozen=True, slots=True)
class LeadingKnee:
    """The knee that scaling takes.

    Attributes:
        target: Requests in flight per copy that scaling shall track; 0 without a knee.
    """

    knee: Knee | None
    target: float
    because: str


def leading_knee(knees: Sequence[Knee], *, has_slo: bool, target_knee: TargetKnee, utilization: float) -> LeadingKnee:
    """Choose the knee that scaling takes: where the SLO begins to be missed, or where more load stops paying.

    A knee gives its share of target utilization. More load stops paying at the knee of `saturation`; it gives at least
    the gate, as it is: that many requests are planned for each copy, and the SLO decides whether they are too many. The
    lower one leads. An SLO that no measured load misses is no lower than the loads that meet it. Neither takes a slope
    of throughput, which is mostly noise.

    Args:
        knees: Those of `slo`, `saturation` and `gate`, measured or predicted; others don't count.
        target_knee: `slo` takes the SLO's knee alone.
    """
    slo, saturation, gate = (_given(detector, knees, utilization) for detector in _TAKEN)
    known = [knee for knee in (saturation, gate) if knee.knee is not None]
    pays = max(known, key=attrgetter("target"), default=saturation)
    reasons = [saturation.because] if saturation.knee is not None and pays is not saturation else []
    if not has_slo:
        return _leading(pays, [*reasons, "no SLO is set"])
    if slo.knee is None or target_knee == "slo":
        return _leading(slo, ["trial.target is slo"])
    # The SLO is met up to a load and missed nowhere where its knee has an interval without an upper end.
    if pays.knee is not None and (
        slo.knee.interval is not None
        and slo.knee.interval.high is None
        and (slo.knee.concurrency or 0.0) >= pays.target
    ):
        return _leading(pays, [*reasons, f"the SLO is met at {whole_or_tenths(pays.target)}"])
    if pays.knee is None or slo.target <= pays.target:
        return _leading(slo, [pays.because])
    return _leading(pays, [*reasons, slo.because])


def _leading(given: LeadingKnee, others: Sequence[str]) -> LeadingKnee:
    if given.knee is None:
        return given
    return LeadingKnee(given.knee, given.target, "; ".join(others))


def _given(detector: Detector, knees: Sequence[Knee], utilization: float) -> LeadingKnee:
    own = next((knee for knee in knees if knee.detector == detector), None)
    if own is None or own.concurrency is None:
        because = "not evaluated" if own is None else own.because
        return LeadingKnee(None, 0.0, f"no {detector} knee: {because}")
    target = own.concurrency * (1.0 if detector == "gate" else utilization)
    return LeadingKnee(own, target, f"{detector} would give {whole_or_tenths(target)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPoint:
    """The metrics of an endpoint at one load; None where no level measured one.

    Attributes:
        throughput: Output tokens per second, all copies together.
        errors: Share of requests that failed, 0 to 1.
    """

    concurrency: float
    throughput: Reading | None
    ttft_p50_ms: Reading | None
    ttft_p95_ms: Reading | None
    tpot_p95_ms: Reading | None
    e2e_p95_ms: Reading | None
    errors: Reading | None

    @property
    def output_tok_s(self) -> float | None:
        """Output tokens per second, all copies together."""
        return None if self.throughput is None else self.throughput.value


def at_load(levels: Sequence[LevelResult], concurrency: float) -> LoadPoint | None:
    """Return the metrics at a load, measured or between the nearest levels; None without a valid level.

    Between two levels a metric follows the straight line, logarithm over logarithm (without logarithms where it is 0),
    and so do the ends of its interval. Below the lowest and above the highest level it is that level's.

    Args:
        levels: In any order; those that the client limited don't count.
    """
    valid = [level for level in ascending(levels) if level.succeeded]
    if not valid:
        return None

    def metric_at(metric: Metric, statistic: Statistic) -> Reading | None:
        known = [point for level in valid if (point := reading(level, metric, statistic)) is not None]
        return interpolated(known, concurrency)

    return LoadPoint(
        concurrency=concurrency,
        throughput=metric_at("output_tok_s", "value"),
        ttft_p50_ms=metric_at("ttft_ms", "p50"),
        ttft_p95_ms=metric_at("ttft_ms", "p95"),
        tpot_p95_ms=metric_at("tpot_ms", "p95"),
        e2e_p95_ms=metric_at("e2e_latency_ms", "p95"),
        errors=metric_at("error_rate", "value"),
    )


def interpolated(readings: Sequence[Reading], load: float) -> Reading | None:
    """Return a metric at a load, of readings at ascending loads; None of none."""
    exact = next((point for point in readings if point.load == load), None)
    below = max((point for point in readings if point.load < load), key=attrgetter("load"), default=None)
    above = min((point for point in readings if point.load > load), key=attrgetter("load"), default=None)
    if exact is not None or below is None or above is None:
        return exact or below or above
    share = math.log(load / below.load) / math.log(above.load / below.load)
    value = _between(below.value, above.value, share)
    return Reading(load=load, value=value, interval=_between_intervals(below.interval, above.interval, share))


def _between(low: float, high: float, share: float) -> float:
    if min(low, high) > 0:
        return float(low * (high / low) ** share)
    return low + share * (high - low)


def _between_intervals(below: Interval | None, above: Interval | None, share: float) -> Interval | None:
    if below is None or above is None:
        return None
    low, high = (
        None if one is None or other is None else _between(one, other, share)
        for one, other in ((below.low, above.low), (below.high, above.high))
    )
    return Interval(low=low, high=high)


class Yield(Protocol):
    """A load with a throughput: a measured level, or a point between two."""

    @property
    def output_tok_s(self) -> float | None:
        """Output tokens per second, all copies together; None when unknown."""


@dataclass(frozen=True, slots=True)
class ScalingTarget:
    """The scaling target.

    Attributes:
        concurrency_per_copy: Requests in flight per copy, rounded as the attribute is that scaling reads.
        knee: The knee that it comes from; None for the fallback.
    """

    concurrency_per_copy: float
    knee: Knee | None
    at: LoadPoint | None
    because: str

    @property
    def detector(self) -> Detector | None:
        """The detector of the knee."""
        return None if self.knee is None else self.knee.detector


def scaling_target(request: TrialRequest, levels: Sequence[LevelResult], knees: Sequence[Knee]) -> ScalingTarget:
    """Choose the scaling target: the knee that leads times the target utilization."""
    leads = leading_knee(
        knees,
        has_slo=bool(request.objectives),
        target_knee=request.target_knee,
        utilization=request.target_utilization,
    )
    knee = leads.knee
    if knee is None or knee.concurrency is None:
        return fallback_target(request, leads.because, levels)
    at = f"{whole_or_tenths(knee.concurrency)} per copy{_offered_at(levels, knee.concurrency)}"
    source = f"knee ({knee.detector}) {at}{_bounded(knee)} x target utilization {request.target_utilization:g}"
    if knee.detector == "gate":
        is_whole = knee.concurrency >= request.gate_concurrency
        source = f"the gate, {at}, which copies are planned for" if is_whole else f"{at}: {knee.because}"
    return ScalingTarget(
        as_exported(leads.target), knee, at_load(levels, knee.concurrency), f"{source}; {leads.because}"
    )


def _offered_at(levels: Sequence[LevelResult], concurrency: float) -> str:
    """Return the rate that an open loop offers at a concurrency, in words; empty in a closed loop."""
    known = [Reading(load=level.load, value=level.offered_load) for level in ascending(levels) if level.is_open]
    rate = interpolated(known, concurrency)
    return "" if rate is None else f" ({rate.value:.3g} requests/s of all copies)"


def fallback_target(request: TrialRequest, reason: str, levels: Sequence[LevelResult]) -> ScalingTarget:
    """Return the request's fallback, for a reason; the lowest load that surely misses the SLO where that is less."""
    fallback = as_exported(request.fallback_target_concurrency)
    missed = sure_miss(levels, request.level_bounds)
    # At a rate whose requests are refused hardly one is in flight, but no scaling serves less than one.
    at = fallback if missed is None else as_exported(max(1.0, missed.load))
    if at >= fallback:
        return ScalingTarget(fallback, None, None, f"fallback {fallback:g} per copy: {reason}")
    because = f"{at:g} per copy, the lowest load that misses the SLO, less than the fallback of {fallback:g}: {reason}"
    return ScalingTarget(at, None, None, because)


def sure_miss(levels: Sequence[LevelResult], objectives: Sequence[Objective]) -> LevelResult | None:
    """Return the lowest level beyond those that meet the SLO that misses it beyond doubt; None without one.

    Too little throughput doesn't count: less load gives no more.
    """
    missed = slo_bracket(levels).missed
    beyond = [level for level in ascending(levels) if missed and level.offered_load >= missed.offered_load]
    bounds = [objective for objective in objectives if objective.sense == "at_most"]
    return next((level for level in beyond if any(_is_sure_miss(level, objective) for objective in bounds)), None)


def _is_sure_miss(level: LevelResult, objective: Objective) -> bool:
    point = reading_of(level, objective)
    if point is None:
        return not level.succeeded
    return not is_met(point.value, objective) and is_sure(point, objective.bound)


def _bounded(knee: Knee) -> str:
    bounds = knee.interval
    if bounds is None or bounds.low is None:
        return ""
    low = whole_or_tenths(bounds.low)
    if bounds.high is None:
        return " (at least: no higher level was measured)"
    return f" ({low} to {whole_or_tenths(bounds.high)} with 95 % confidence)"


def cost_at(request: TrialRequest, level: Yield | None) -> float | None:
    """Cost of output, USD per million tokens: price per hour and copy / (3600 x tokens/s per copy) x 10^6.

    None without a level to take it from, without its throughput, or without a price.
    """
    if level is None or not level.output_tok_s or request.usd_per_hour_per_copy is None:
        return None
    tokens_per_hour_per_copy = S_PER_HOUR * level.output_tok_s / request.copy_count
    return request.usd_per_hour_per_copy / tokens_per_hour_per_copy * TOKENS_PER_MILLION


def without_price(request: TrialRequest) -> TrialRequest:
    """Return the request without its price: a local engine's speed on a CPU doesn't show a GPU's cost."""
    return replace(request, usd_per_hour_per_copy=None)


def blended_cost_at(request: TrialRequest, level: Yield | None) -> float | None:
    """Blended cost, USD per million tokens at three input tokens to one output token, by the articles' formula.

    Price per hour x (1 - discount) / (output tokens per hour in millions) / 4: a price per copy has its discount in it.
    None where `cost_at` is.
    """
    cost = cost_at(request, level)
    return None if cost is None else cost / BLENDED_TOKENS_PER_OUTPUT_TOKEN
