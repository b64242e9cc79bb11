"""One objective compared with one level, in a sentence: by the measured value, or by what its interval proves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_base.units import fine_percent, tenths
from seatrial_load.documents.request import PER_REQUEST_METRICS
from seatrial_load.documents.result import Check
from seatrial_load.measure.curves import Reading
from seatrial_load.measure.interval import (
    fewest_bounded_from_above,
    one_sided,
    one_sided_rate,
    share_interval,
)
from seatrial_load.metrics.histogram import PERCENTS, percentile_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.distribution import Distribution, Interval
    from seatrial_load.documents.request import Metric, Objective, Statistic
    from seatrial_load.documents.result import LevelResult


def latency_of(level: LevelResult, metric: Metric) -> Distribution | None:
    """Return the distribution of a metric on latency; None where it is none, or none was measured."""
    match metric:
        case "ttft_ms":
            return level.ttft_ms
        case "tpot_ms":
            return level.tpot_ms
        case "e2e_latency_ms":
            return level.e2e_latency_ms
    return None


def reading(level: LevelResult, metric: Metric, statistic: Statistic) -> Reading | None:
    """Return a metric of a level with its 95 % interval; None where it was not measured."""
    load = level.load
    match metric:
        case "error_rate":
            return Reading(load=load, value=level.error_rate, interval=level.error_rate_interval)
        case "output_tok_s":
            if level.output_tok_s is None:
                return None
            return Reading(load=load, value=level.output_tok_s, interval=level.output_tok_s_interval)
    values = latency_of(level, metric)
    value = statistic_of(values, statistic)
    if values is None or value is None:
        return None
    return Reading(load=load, value=value, interval=values.intervals.get(statistic))


def statistic_of(values: Distribution | None, statistic: Statistic) -> float | None:
    """Return one statistic of a distribution; None when there is none."""
    if values is None:
        return None
    by_name = {"mean": values.mean, "p50": values.p50, "p90": values.p90, "p95": values.p95, "p99": values.p99}
    return by_name[statistic]


def reading_of(level: LevelResult, objective: Objective) -> Reading | None:
    """Return a level's reading of an objective's metric; None where it was not measured."""
    return reading(level, objective.metric, objective.statistic)


def bounds_of(level: LevelResult, objective: Objective, confidence: float) -> Interval | None:
    """Bound the metric of an objective, each bound at a confidence of its own.

    A percentile by order statistics, a mean by Student's t, a share by Wilson's score, throughput from its interval
    (`aggregate.output_tok_s_interval`); see `interval`, also for their assumptions.

    Returns:
        The bounds; None where the level lacks their data.
    """
    tail = 1 - confidence
    if objective.metric == "error_rate":
        return share_interval(level.requests - level.succeeded, level.requests, tail=tail)
    if objective.metric == "output_tok_s":
        interval, measured = level.output_tok_s_interval, level.output_tok_s
        if interval is None or measured is None:
            return None
        return one_sided_rate(measured, interval, tail=tail)
    values = latency_of(level, objective.metric)
    if values is None:
        return None
    if objective.statistic in PERCENTS:
        return percentile_bounds(values, PERCENTS[objective.statistic], tail=tail)
    interval = values.intervals.get("mean")
    return None if interval is None else one_sided(values.mean, interval, count=values.count, tail=tail)


def is_taken_as_measured(level: LevelResult, objective: Objective) -> bool:
    """Return whether an objective is compared with the measured value, whatever the confidence.

    That is an error rate of which nothing failed: to prove a bound of 1 % takes hundreds of requests, and one of 0 no
    number of them does. One failure is enough to need proof.
    """
    return objective.metric == "error_rate" and (level.succeeded == level.requests or objective.bound <= 0)


def requests_needed(objectives: Sequence[Objective], confidence: float) -> int:
    """Return the fewest measured requests of a level with which every objective can be proven met at a confidence.

    A value close to its bound takes more. 1 at confidence 0, where measured values are taken as they are.
    """
    if confidence <= 0:
        return 1
    return max((fewest_provable(objective, confidence) for objective in objectives), default=1)


def requests_at_gate(objectives: Sequence[Objective], confidence: float) -> int:
    """Return the fewest measured requests at the gate: they prove the objectives, and show what fails one time in ten.

    Without a bound on latency nothing else needs more than a trial's few per stream, and three requests that
    succeeded would let a deployment pass that fails every third. 1 at confidence 0.
    """
    needed = requests_needed(objectives, confidence)
    return max(needed, fewest_bounded_from_above(90, tail=1 - confidence)) if confidence > 0 else needed


def fewest_provable(objective: Objective, confidence: float) -> int:
    """Return the fewest requests with which an objective can be proven met.

    A percentile must be bounded at all; a mean takes two. Throughput has its slices, and an error rate without a
    failure is taken as measured.
    """
    if objective.metric in PER_REQUEST_METRICS:
        return fewest_bounded(objective, tail=1 - confidence, above=objective.sense == "at_most")
    return 1


def fewest_bounded(objective: Objective, *, tail: float, above: bool) -> int:
    """Return from how many requests on an objective's value, a percentile or a mean, has a bound on one side."""
    if objective.statistic not in PERCENTS:
        return 2  # one measurement has no deviation
    percent = PERCENTS[objective.statistic]
    return fewest_bounded_from_above(percent if above else 100 - percent, tail=tail)


MOST_TIMES = 100.0  # a level is never repeated with more than this many times its requests


def checks_of(level: LevelResult, objectives: Sequence[Objective], confidence: float = 0.0) -> tuple[Check, ...]:
    """Compare every objective with a level.

    Args:
        confidence: An objective is met or missed only when its one-sided interval of this confidence proves it; 0
            takes the measured value as it is.
    """
    return tuple(_check(level, objective, confidence) for objective in objectives)


def _check(level: LevelResult, objective: Objective, confidence: float) -> Check:
    point, place = reading_of(level, objective), f"at {level.place}"
    measured = None if point is None else point.value
    if measured is None:
        sentence = f"{_name(objective)} was not measured {place}: no request has a value"
        return Check(objective=objective, measured=None, met=None, sentence=sentence)
    if confidence > 0 and not is_taken_as_measured(level, objective):
        return _proven(level, objective, measured, confidence)
    met = is_met(measured, objective)
    sentence = f"{_compared(objective, measured)} {place}"
    # How high an error rate may truly be without a failure.
    if confidence > 0 and objective.bound > 0 and (bounds := bounds_of(level, objective, confidence)) is not None:
        sentence += f" ({_end(bounds, objective, worse=True)} {_sure(confidence)})"
    return Check(objective=objective, measured=measured, met=met, sentence=sentence)


def _sure(confidence: float) -> str:
    return f"with {confidence * 100:g} % confidence"


def _proven(level: LevelResult, objective: Objective, measured: float, confidence: float) -> Check:
    """Compare an interval with the objective: met when its worse end is within the bound, missed when no end is."""
    place, sure = f"at {level.place}", _sure(confidence)
    bounds = bounds_of(level, objective, confidence)
    if bounds is None:
        sentence = f"{_unproven(objective, measured)} {place}: it has no interval"
        return Check(objective=objective, measured=measured, met=None, sentence=sentence)
    worse, better = (bounds.high, bounds.low) if objective.sense == "at_most" else (bounds.low, bounds.high)
    met = False if better is not None and not is_met(better, objective) else None
    if worse is not None and is_met(worse, objective):
        met = True
    if met is None:
        doubt = _doubt(_Doubt(level, objective, measured, bounds), confidence, sure)
        sentence = f"{_unproven(objective, measured)} {place}: {doubt}"
    else:
        end = _end(bounds, objective, worse=met)
        sentence = f"{_compared(objective, measured)} {place}, {end} {sure}"
    return Check(
        objective=objective, measured=measured, met=met, sentence=sentence, bound_low=bounds.low, bound_high=bounds.high
    )


def _compared(objective: Objective, measured: float) -> str:
    missed = "exceeds" if objective.sense == "at_most" else "is below"
    relation = "is within" if is_met(measured, objective) else missed
    value, bound = _pair(measured, objective)
    return f"{_name(objective)} {value} {relation} {bound}"


def _unproven(objective: Objective, measured: float) -> str:
    missed = "to exceed" if objective.sense == "at_most" else "to be below"
    relation = "to be within" if is_met(measured, objective) else missed
    value, bound = _written(measured, objective), _written(objective.bound, objective)
    return f"{_name(objective)} {value} is not proven {relation} {bound}"


def _end(bounds: Interval, objective: Objective, *, worse: bool) -> str:
    upper = worse == (objective.sense == "at_most")
    end = bounds.high if upper else bounds.low
    return f"{'at most' if upper else 'at least'} {_written(end or 0.0, objective)}"


@dataclass(frozen=True, slots=True)
class _Doubt:
    """An interval that reaches over its bound."""

    level: LevelResult
    objective: Objective
    measured: float
    bounds: Interval

    @property
    def looks_up(self) -> bool:
        """Whether the bound is above the value, so that the upper end of the interval decides."""
        return (self.objective.sense == "at_most") == is_met(self.measured, self.objective)

    @property
    def count(self) -> int:
        """Number of requests that the value comes from."""
        values = latency_of(self.level, self.objective.metric)
        return self.level.requests if values is None else values.count


def _doubt(doubt: _Doubt, confidence: float, sure: str) -> str:
    objective, bounds = doubt.objective, doubt.bounds
    if (bounds.high if doubt.looks_up else bounds.low) is None:
        side = "above" if doubt.looks_up else "below"
        needed = fewest_bounded(objective, tail=1 - confidence, above=doubt.looks_up)
        return f"a bound from {side} on {objective.statistic} needs {needed} requests; {doubt.count} were measured"
    low = "nothing" if bounds.low is None else _written(bounds.low, objective)
    high = "no end" if bounds.high is None else _written(bounds.high, objective)
    return f"{low} to {high} {sure}{_remedy(doubt)}"


def _remedy(doubt: _Doubt) -> str:
    # An interval shrinks with the square root of the number of requests.
    objective, end = doubt.objective, doubt.bounds.high if doubt.looks_up else doubt.bounds.low
    distance, reach = abs(objective.bound - doubt.measured), abs((end or 0.0) - doubt.measured)
    if reach * reach > MOST_TIMES * distance * distance:
        return ", too close to the bound to decide"
    times = (reach / distance) ** 2
    if objective.metric == "output_tok_s":
        return f"; a window {times:.1f} times as long is needed to decide"
    return f"; about {math.ceil(doubt.count * times)} requests are needed to decide"


def _name(objective: Objective) -> str:
    return objective.metric if objective.statistic == "value" else f"{objective.metric} {objective.statistic}"


def _pair(measured: float, objective: Objective) -> tuple[str, str]:
    # Where rounding would make value and bound equal, both are written with the digits that differ.
    value, bound = _written(measured, objective), _written(objective.bound, objective)
    if value != bound or measured == objective.bound:
        return value, bound
    factor, unit = (100, "%") if objective.metric == "error_rate" else (1, bound.rpartition(" ")[2])
    return f"{measured * factor:.12g} {unit}", f"{objective.bound * factor:.12g} {unit}"


def _written(value: float, objective: Objective) -> str:
    match objective.metric:
        case "error_rate":
            return fine_percent(value)
        case "output_tok_s":
            return f"{tenths(value)} tok/s"
    return f"{tenths(value)} ms"


def is_met(value: float, objective: Objective) -> bool:
    """Return whether a value is within an objective's bound; the bound itself is."""
    return value <= objective.bound if objective.sense == "at_most" else value >= objective.bound
