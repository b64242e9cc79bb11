"""CloudWatch as far as a trial asks it: SageMaker's metrics of the endpoint under trial, and the states of alarms.

Facts (AWS documentation, "Amazon SageMaker AI metrics in Amazon CloudWatch"; the CloudWatch API's reference): namespace
`AWS/SageMaker`, by `InferenceComponentName` or by `EndpointName` and `VariantName`; latencies in microseconds.
`DescribeAlarms` returns metric alarms only, unless other types are asked for, and 50 of them unless more are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from seatrial_load.model.request import TrialTarget


NAMESPACE = "AWS/SageMaker"
MICROSECONDS_PER_MS = 1000
Dimensions: TypeAlias = "list[dict[str, str]]"
MetricQuery: TypeAlias = "Mapping[str, object]"


class MetricDataResult(TypedDict):
    """One query's answer: a value for each period that has datapoints."""

    Id: str
    Values: list[float]
    StatusCode: NotRequired[str]


class MetricData(TypedDict):
    """What `GetMetricData` answers, as far as it is read here."""

    MetricDataResults: list[MetricDataResult]


class CloudWatch(Protocol):
    """The part of CloudWatch's client that metrics are asked with."""

    def get_metric_data(
        self,
        *,
        MetricDataQueries: Sequence[Mapping[str, object]],  # noqa: N803 (boto3's names)
        StartTime: datetime,  # noqa: N803 (likewise)
        EndTime: datetime,  # noqa: N803 (likewise)
    ) -> MetricData:
        """Return the datapoints of some metrics."""


class AlarmState(TypedDict):
    """One alarm: OK, ALARM or INSUFFICIENT_DATA."""

    AlarmName: str
    StateValue: str


class AlarmStates(TypedDict):
    """What `DescribeAlarms` answers, as far as it is read here."""

    MetricAlarms: NotRequired[list[AlarmState]]
    CompositeAlarms: NotRequired[list[AlarmState]]


class CloudWatchAlarms(Protocol):
    """The part of CloudWatch's client that alarms are asked with."""

    def describe_alarms(
        self,
        *,
        AlarmNames: Sequence[str],  # noqa: N803 (boto3's names)
        AlarmTypes: Sequence[str],  # noqa: N803 (likewise)
        MaxRecords: int,  # noqa: N803 (likewise)
    ) -> AlarmStates:
        """Return the states of some alarms."""


def dimensions_of(target: TrialTarget, variant_name: str | None = None) -> Dimensions | None:
    """Return what SageMaker's metrics of an endpoint are told apart by; None where its variant is unknown."""
    if target.inference_component is not None:
        return [{"Name": "InferenceComponentName", "Value": target.inference_component}]
    variant = target.target_variant or variant_name
    if variant is None:
        return None
    return [{"Name": "EndpointName", "Value": target.endpoint_name}, {"Name": "VariantName", "Value": variant}]


def metric_query(query_id: str, metric: str, stat: str, dimensions: Dimensions, *, period_s: int) -> MetricQuery:
    """Return the query of one metric of SageMaker.

    Args:
        query_id: Tells its answer from the others'.
        metric: The metric's name.
        stat: CloudWatch's statistic (`Sum`, `Average`, `p95`).
        dimensions: As `dimensions_of` returns them.
        period_s: Length of a datapoint.
    """
    named = {"Namespace": NAMESPACE, "MetricName": metric, "Dimensions": dimensions}
    return {"Id": query_id, "MetricStat": {"Metric": named, "Period": period_s, "Stat": stat}}


def cloudwatch_client(region: str) -> CloudWatch:
    """Return boto3's client of CloudWatch, for metrics."""
    import boto3  # noqa: PLC0415 (costs more than a second; once a trial)

    client: CloudWatch = boto3.client("cloudwatch", region_name=region)
    return client


def alarms_client(region: str) -> CloudWatchAlarms:
    """Return boto3's client of CloudWatch, for alarms."""
    import boto3  # noqa: PLC0415 (likewise)

    client: CloudWatchAlarms = boto3.client("cloudwatch", region_name=region)
    return client


def cloudwatch_errors() -> tuple[type[Exception], ...]:
    """Return what CloudWatch's client raises where it can't be asked; a `ValueError` is a wrong configuration."""
    from botocore import exceptions  # noqa: PLC0415 (half a second; once a trial)

    return exceptions.BotoCoreError, exceptions.ClientError, OSError, ValueError
