"""What an endpoint does at a load that lies between two measured levels: interpolated, with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from seatrial.bench.knee.points import ascending
from seatrial.bench.statistic import reading
from seatrial.measure.crossing import Reading
from seatrial.measure.distribution import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.request import Metric, Statistic
    from seatrial.bench.result import LevelResult

Asked: TypeAlias = "tuple[Metric, Statistic]"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPoint:
    """What an endpoint does at one load; each is None where no level measured it.

    Attributes:
        concurrency: Requests in flight per copy.
        throughput: Output tokens per second, all copies together.
        ttft_p50_ms: Median time to first token.
        ttft_p95_ms: Its 95th percentile.
        tpot_p95_ms: 95th percentile of the time per output token.
        e2e_p95_ms: 95th percentile of the end-to-end latency.
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
    """Return what was measured at a load, or what lies between the nearest levels; None without a valid level.

    Between two levels a metric follows the straight line, logarithm over logarithm (without logarithms where it is 0),
    and so do the ends of its interval. Below the lowest and above the highest level it is that level's.

    Args:
        levels: What was measured, in any order; those that the client limited don't count.
        concurrency: Requests in flight per copy.
    """
    valid = [level for level in ascending(levels) if level.succeeded]
    if not valid:
        return None

    def found(metric: Metric, statistic: Statistic) -> Reading | None:
        known = [one for one in (reading(level, metric, statistic) for level in valid) if one is not None]
        return interpolated(known, concurrency)

    return LoadPoint(
        concurrency=concurrency,
        throughput=found("output_tok_s", "value"),
        ttft_p50_ms=found("ttft_ms", "p50"),
        ttft_p95_ms=found("ttft_ms", "p95"),
        tpot_p95_ms=found("tpot_ms", "p95"),
        e2e_p95_ms=found("e2e_latency_ms", "p95"),
        errors=found("error_rate", "value"),
    )


def interpolated(readings: Sequence[Reading], load: float) -> Reading | None:
    """Return a metric at a load, of readings at ascending loads; None of none."""
    exact = next((one for one in readings if one.load == load), None)
    below = max((one for one in readings if one.load < load), key=_load, default=None)
    above = min((one for one in readings if one.load > load), key=_load, default=None)
    if exact is not None or below is None or above is None:
        return exact or below or above
    share = math.log(load / below.load) / math.log(above.load / below.load)
    value = _between(below.value, above.value, share)
    return Reading(load=load, value=value, interval=_between_intervals(below.interval, above.interval, share))


def _load(one: Reading) -> float:
    return one.load


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
