"""What a level proves about an objective: the one-sided interval of its value, and how many requests that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.bench.request import PER_REQUEST_METRICS
from seatrial.bench.sample import PERCENTS, percentile_bounds
from seatrial.bench.statistic import latency_of
from seatrial.measure.interval import (
    fewest_bounded_from_above,
    one_sided,
    one_sided_rate,
    share_interval,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.request import Objective
    from seatrial.bench.result import LevelResult
    from seatrial.measure.distribution import Interval


def bounds_of(level: LevelResult, objective: Objective, confidence: float) -> Interval | None:
    """Bound what an objective is about, each bound at a confidence of its own.

    A percentile by order statistics, a mean by Student's t, a share by Wilson's score, throughput from its interval
    (`throughput.output_tok_s_interval`); see `interval`, also for what they assume.

    Returns:
        The bounds; None where the level doesn't hold what they are made of.
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
    """Tell whether an objective is held against the measured value, whatever the confidence.

    That is an error rate of which nothing failed: to prove a bound of 1 % takes hundreds of requests, and one of 0 no
    number of them does. One failure is enough to ask for proof.
    """
    return objective.metric == "error_rate" and (level.succeeded == level.requests or objective.bound <= 0)


def requests_needed(objectives: Sequence[Objective], confidence: float) -> int:
    """Return the fewest measured requests of a level with which every objective can be proven met at a confidence.

    A value close to its bound takes more. 1 at confidence 0, where measured values are taken as they are.
    """
    if confidence <= 0:
        return 1
    return max((fewest_provable(objective, confidence) for objective in objectives), default=1)


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
