"""CloudWatch as far as a trial reads it: SageMaker's metrics of the endpoint under trial, and the states of alarms.

Facts (AWS documentation, "Amazon SageMaker AI metrics in Amazon CloudWatch"; the CloudWatch API's reference): namespace
`AWS/SageMaker`, by `InferenceComponentName` or by `EndpointName` and `VariantName`; latencies in microseconds.
`DescribeAlarms` returns metric alarms only, unless other types are requested, and 50 of them unless more are.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from seatrial_load.documents.result import ServiceOverhead, UsersLoad

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.type_defs import DimensionTypeDef, MetricDataQueryTypeDef, MetricTypeDef

    from seatrial_load.documents.request import TrialTarget


PERIOD_S = 60
LATE_S = 70.0
_METRICS = {"model": "ModelLatency", "overhead": "OverheadLatency"}

METRIC = "ConcurrentRequestsPerCopy"
USERS_PERIOD_S = 10
# Seconds before the trial's first request.
WINDOW_S = 300

NAMESPACE = "AWS/SageMaker"
MICROSECONDS_PER_MS = 1000
Dimensions: TypeAlias = "list[DimensionTypeDef]"


def component_dimensions(target: TrialTarget, variant_name: str | None = None) -> Dimensions | None:
    """Return the dimensions of SageMaker's metrics of an endpoint; None where its variant is unknown."""
    if target.inference_component is not None:
        return [{"Name": "InferenceComponentName", "Value": target.inference_component}]
    variant = target.target_variant or variant_name
    if variant is None:
        return None
    return [{"Name": "EndpointName", "Value": target.endpoint_name}, {"Name": "VariantName", "Value": variant}]


def metric_query(
    query_id: str, metric: str, stat: str, dimensions: Dimensions, *, period_s: int, namespace: str = NAMESPACE
) -> MetricDataQueryTypeDef:
    """Return the query of one metric of SageMaker.

    Args:
        stat: CloudWatch's statistic (`Sum`, `Average`, `p95`).
    """
    named: MetricTypeDef = {"Namespace": namespace, "MetricName": metric, "Dimensions": dimensions}
    return {"Id": query_id, "MetricStat": {"Metric": named, "Period": period_s, "Stat": stat}}


def cloudwatch_client(region: str) -> CloudWatchClient:
    """Return boto3's client of CloudWatch."""
    import boto3  # noqa: PLC0415 (costs more than a second; once a trial)

    return boto3.client("cloudwatch", region_name=region)


def cloudwatch_errors() -> tuple[type[Exception], ...]:
    """Return what CloudWatch's client raises where it fails; a `ValueError` is a wrong configuration."""
    from botocore import exceptions  # noqa: PLC0415 (half a second; once a trial)

    return exceptions.BotoCoreError, exceptions.ClientError, OSError, ValueError


def users_load(target: TrialTarget, *, until: datetime, cloudwatch: CloudWatchClient | None = None) -> UsersLoad:
    """Read the highest number of concurrent requests per copy of the last minutes.

    Args:
        target: The endpoint; users' load is known of an inference component only.
        until: The time of day before the trial's first request, in UTC.

    Returns:
        The load; an unknown one, with the reason, where there is no datapoint or CloudWatch can't be read.
    """
    if target.kind != "sagemaker" or target.inference_component is None:
        return _unknown("the endpoint has no inference component that CloudWatch counts requests of")
    dimensions = component_dimensions(target) or []
    query = metric_query("users", METRIC, "Maximum", dimensions, period_s=USERS_PERIOD_S)
    try:
        client = cloudwatch_client(target.region) if cloudwatch is None else cloudwatch
        answer = client.get_metric_data(
            MetricDataQueries=[query], StartTime=until - timedelta(seconds=WINDOW_S), EndTime=until
        )
    except cloudwatch_errors() as refused:
        return _unknown(f"CloudWatch did not respond: {refused}")
    values = [value for result in answer["MetricDataResults"] for value in result["Values"]]
    window = f"the {WINDOW_S} s before the trial"
    if not values:
        return _unknown(f"CloudWatch has no {METRIC} datapoint of {window}")
    highest = max(values)
    return UsersLoad(
        concurrency_per_copy=highest,
        because=f"CloudWatch {METRIC}: at most {highest:g} per copy in {window}",
    )


def unknown_overhead() -> UsersLoad:
    """Return an unknown load: CloudWatch is not read."""
    return _unknown("CloudWatch is not read")


def _unknown(because: str) -> UsersLoad:
    return UsersLoad(concurrency_per_copy=None, because=f"the users' load is unknown: {because}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The client's measurements, to be compared with CloudWatch.

    Attributes:
        start: When the first measured request was sent, in UTC.
        end: When the last one ended.
        requests: Requests that were answered in that time.
        mean_ms: Their mean end-to-end latency; None when none was answered.
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
    cloudwatch: CloudWatchClient | None = None,
    now: Callable[[], datetime] = lambda: datetime.fromtimestamp(time.time(), UTC),
    sleep: Callable[[float], None] = time.sleep,
) -> ServiceOverhead:
    """Read CloudWatch once, as late as `patience_s` allows; what is missing is None, with the reason.

    Args:
        patience_s: Longest wait for datapoints, which come about a minute late.
    """
    dimensions = component_dimensions(target, variant_name)
    if target.kind != "sagemaker":
        return _missing(measured, "this server does not report to CloudWatch")
    if dimensions is None:
        return _missing(measured, "the endpoint has no inference component, and the name of its variant is unknown")
    late_s = (measured.end + timedelta(seconds=LATE_S) - now()).total_seconds()
    sleep(max(0.0, min(late_s, patience_s)))
    try:
        # one page is enough: it holds far more datapoints than a trial has minutes
        answer = (cloudwatch_client(target.region) if cloudwatch is None else cloudwatch).get_metric_data(
            MetricDataQueries=[
                metric_query(f"{name}_{kind}", metric, stat, dimensions, period_s=PERIOD_S)
                for name, metric in _METRICS.items()
                for kind, stat in (("sum", "Sum"), ("count", "SampleCount"))
            ],
            StartTime=measured.start.replace(second=0, microsecond=0),
            EndTime=measured.end.replace(second=0, microsecond=0) + timedelta(seconds=PERIOD_S),
        )
        results = {result["Id"]: result["Values"] for result in answer["MetricDataResults"]}
    except cloudwatch_errors() as refused:
        return _missing(measured, f"CloudWatch did not respond: {refused}")
    return overhead_of(measured, results)


def overhead_of(measured: Measured, results: Mapping[str, Sequence[float]]) -> ServiceOverhead:
    """Compute the means from the sums and counts of the minutes that the measurement touches.

    Formulas: mean = Σ sums / Σ counts / 1000 (µs to ms); overhead = the client's mean - that of `ModelLatency`.

    Args:
        results: By `model_sum`, `model_count`, `overhead_sum` and `overhead_count`: one value a minute.
    """
    count = math.fsum(results.get("model_count", ()))
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
    count = math.fsum(results.get(f"{name}_count", ()))
    return math.fsum(results.get(f"{name}_sum", ())) / count / MICROSECONDS_PER_MS if count else None


def _missing(measured: Measured, because: str) -> ServiceOverhead:
    return ServiceOverhead(
        client_mean_ms=measured.mean_ms,
        model_latency_mean_ms=None,
        overhead_latency_mean_ms=None,
        overhead_ms=None,
        because=because,
    )
