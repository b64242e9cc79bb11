"""What a level says of one metric: its value by statistic, with its 95 % interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.measure.crossing import Reading

if TYPE_CHECKING:
    from seatrial.bench.request import Metric, Objective, Statistic
    from seatrial.bench.result import LevelResult
    from seatrial.measure.distribution import Distribution


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
    load = float(level.concurrency)
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
    """Return what a level says of an objective's metric; None where it was not measured."""
    return reading(level, objective.metric, objective.statistic)
