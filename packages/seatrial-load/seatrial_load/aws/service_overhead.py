"""What SageMaker adds to the container's time: the client's latency beside CloudWatch's `ModelLatency`.

Facts (AWS documentation, "Amazon SageMaker AI metrics in Amazon CloudWatch"): namespace `AWS/SageMaker`, `ModelLatency`
and `OverheadLatency` in microseconds, a datapoint a minute, by `InferenceComponentName` or by `EndpointName` and
`VariantName`. `ModelLatency` is the container's time to answer, the way to it included; of a stream, AWS doesn't say
whether it ends with the first or the last part.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from seatrial_load.aws.cloudwatch import (
    MICROSECONDS_PER_MS,
    cloudwatch_client,
    cloudwatch_errors,
    dimensions_of,
    metric_query,
)
from seatrial_load.model.result import ServiceOverhead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seatrial_load.aws.cloudwatch import CloudWatch, Dimensions, MetricQuery
    from seatrial_load.model.request import TrialTarget


PERIOD_S = 60
LATE_S = 70.0
_METRICS = {"model": "ModelLatency", "overhead": "OverheadLatency"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the client measured, to be held against CloudWatch.

    Attributes:
        start: When the first measured request was sent, in UTC.
        end: When the last one ended.
        requests: Requests that were answered in that time.
        mean_ms: Their mean end-to-end latency; None when none was answered.
        streamed: Whether the answers streamed.
    """

    start: datetime
    end: datetime
    requests: int
    mean_ms: float | None
    streamed: bool


def service_overhead(
    target: TrialTarget,
    measured: Measured,
    *,
    variant_name: str | None = None,
    patience_s: float = LATE_S,
    cloudwatch: CloudWatch | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Callable[[float], None] = time.sleep,
) -> ServiceOverhead:
    """Ask CloudWatch once, as late as `patience_s` allows; what is missing is missing, with the reason.

    Args:
        target: The endpoint.
        measured: What the client measured.
        variant_name: The variant, of an endpoint without inference components.
        patience_s: Longest wait for datapoints, which come about a minute late.
        cloudwatch: CloudWatch's client; made by boto3 for the target's region when not given.
        now: The time of day in UTC.
        sleep: Waits.
    """
    dimensions = dimensions_of(target, variant_name)
    if target.kind != "sagemaker":
        return _missing(measured, "this server does not report to CloudWatch")
    if dimensions is None:
        return _missing(measured, "the endpoint has no inference component, and the name of its variant is unknown")
    late_s = (measured.end + timedelta(seconds=LATE_S) - now()).total_seconds()
    sleep(max(0.0, min(late_s, patience_s)))
    try:
        results = _asked(cloudwatch_client(target.region) if cloudwatch is None else cloudwatch, dimensions, measured)
    except cloudwatch_errors() as refused:
        return _missing(measured, f"CloudWatch did not answer: {refused}")
    return overhead_of(measured, results)


def overhead_of(measured: Measured, results: Mapping[str, Sequence[float]]) -> ServiceOverhead:
    """Compute the means from the sums and counts of the minutes that the measurement touches.

    Formulas: mean = Σ sums / Σ counts / 1000 (µs to ms); overhead = the client's mean - that of `ModelLatency`.

    Args:
        measured: What the client measured.
        results: By `model_sum`, `model_count`, `overhead_sum` and `overhead_count`: one value a minute.
    """
    count = sum(results.get("model_count", ()))
    model_ms = _mean_ms(results, "model")
    if model_ms is None:
        return _missing(measured, "CloudWatch has no ModelLatency datapoint for that time yet")
    notes = [f"CloudWatch means over the minutes of the measurement, {count:.0f} invocations"]
    if count != measured.requests:
        others = "they include warm-up, failed or other clients' requests, or the last minute is missing"
        notes.append(f"the trial sent {measured.requests}: {others}")
    if measured.streamed:
        notes.append("AWS does not document whether ModelLatency of a stream ends with its first or last part")
    return ServiceOverhead(
        client_mean_ms=measured.mean_ms,
        model_latency_mean_ms=model_ms,
        overhead_latency_mean_ms=_mean_ms(results, "overhead"),
        overhead_ms=None if measured.mean_ms is None else measured.mean_ms - model_ms,
        because="; ".join(notes),
    )


def _mean_ms(results: Mapping[str, Sequence[float]], name: str) -> float | None:
    count = sum(results.get(f"{name}_count", ()))
    return sum(results.get(f"{name}_sum", ())) / count / MICROSECONDS_PER_MS if count else None


def _asked(cloudwatch: CloudWatch, dimensions: Dimensions, measured: Measured) -> Mapping[str, Sequence[float]]:
    """Ask for every sum and count of whole minutes; a page holds far more datapoints than a trial has minutes."""
    answer = cloudwatch.get_metric_data(
        MetricDataQueries=[query for name in _METRICS for query in _queries(name, dimensions)],
        StartTime=measured.start.replace(second=0, microsecond=0),
        EndTime=measured.end.replace(second=0, microsecond=0) + timedelta(seconds=PERIOD_S),
    )
    return {result["Id"]: result["Values"] for result in answer["MetricDataResults"]}


def _queries(name: str, dimensions: Dimensions) -> Iterator[MetricQuery]:
    for kind, stat in (("sum", "Sum"), ("count", "SampleCount")):
        yield metric_query(f"{name}_{kind}", _METRICS[name], stat, dimensions, period_s=PERIOD_S)


def _missing(measured: Measured, because: str) -> ServiceOverhead:
    return ServiceOverhead(
        client_mean_ms=measured.mean_ms,
        model_latency_mean_ms=None,
        overhead_latency_mean_ms=None,
        overhead_ms=None,
        because=because,
    )
