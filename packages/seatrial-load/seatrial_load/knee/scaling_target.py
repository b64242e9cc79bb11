"""The scaling target by the levels, and the cost of a million tokens there."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from seatrial_base.units import BLENDED_TOKENS_PER_OUTPUT_TOKEN, S_PER_HOUR, as_exported, whole_or_tenths
from seatrial_load.documents.distribution import Interval
from seatrial_load.knee.detectors import ascending
from seatrial_load.knee.leading import leading_knee
from seatrial_load.measure.crossing import Reading
from seatrial_load.slo.evaluate import reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.request import Metric, Statistic, TrialRequest
    from seatrial_load.documents.result import Detector, Knee, LevelResult


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPoint:
    """The metrics of an endpoint at one load; None where no level measured one.

    Attributes:
        concurrency: Requests in flight per copy.
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
        concurrency: Requests in flight per copy.
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


TOKENS_PER_MILLION = 1_000_000


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
        return fallback_target(request, leads.because)
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


def fallback_target(request: TrialRequest, reason: str) -> ScalingTarget:
    """Return the request's fallback, for a reason."""
    fallback = as_exported(request.fallback_target_concurrency)
    return ScalingTarget(fallback, None, None, f"fallback {fallback:g} per copy: {reason}")


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
