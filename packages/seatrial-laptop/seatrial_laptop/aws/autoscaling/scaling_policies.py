"""The policies: steps of a step scaling policy, and the two alarms of a target-tracking policy in our CloudWatch."""

from __future__ import annotations

import itertools
import math
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast

from seatrial_base.autoscaling import HIGH_PERIODS, LOW_SHARE, LOW_WINDOW_S, PREDEFINED
from seatrial_laptop.aws.alarms import own_cloudwatch
from seatrial_laptop.aws.api import invalid
from seatrial_laptop.aws.json_document import Document, child, children, number, text_member, whole
from seatrial_laptop.environment import own_account
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_cloudwatch.literals import StatisticType
    from mypy_boto3_cloudwatch.type_defs import DimensionTypeDef


LOWER: Final = "MetricIntervalLowerBound"
UPPER: Final = "MetricIntervalUpperBound"
HIGH: Final = "AlarmHigh"
LOW: Final = "AlarmLow"


@dataclass(frozen=True, slots=True)
class Breach:
    """An alarm in ALARM.

    Attributes:
        delta: The metric less the threshold.
        is_above: Whether the alarm goes off above its threshold.
    """

    alarm: str
    delta: float
    is_above: bool


def check_steps(configuration: Document) -> None:
    """Refuse a step scaling policy without a change, or with two contradicting ones."""
    steps = children(configuration, "StepAdjustments")
    if not steps or "AdjustmentType" not in configuration:
        raise invalid("StepScalingPolicyConfiguration must have AdjustmentType and StepAdjustments.")
    bounds = sorted((_bound(step, LOWER, -math.inf), _bound(step, UPPER, math.inf)) for step in steps)
    if any(low >= high for low, high in bounds):
        raise invalid("MetricIntervalLowerBound must be less than MetricIntervalUpperBound.")
    for (_, high), (low, _) in itertools.pairwise(bounds):
        if low < high:
            raise invalid("StepAdjustment intervals must not overlap.")
        if low > high:
            raise invalid("StepAdjustment intervals must not have a gap between them.")
    if "MinAdjustmentMagnitude" in configuration and not _is_percent(configuration):
        raise invalid("MinAdjustmentMagnitude needs AdjustmentType PercentChangeInCapacity.")


def stepped_capacity(configuration: Document, current: int, breach: Breach) -> int:
    """Return the capacity that a policy wants; the current one when no step fits the breach."""
    for step in children(configuration, "StepAdjustments"):
        low, high = _bound(step, LOWER, -math.inf), _bound(step, UPPER, math.inf)
        # Above a threshold the lower bound belongs to a step, below one the upper.
        if (low <= breach.delta < high) if breach.is_above else (low < breach.delta <= high):
            break
    else:
        return current
    adjustment = whole(step, "ScalingAdjustment")
    if text_member(configuration, "AdjustmentType") == "ExactCapacity":
        return adjustment
    if not _is_percent(configuration):
        return current + adjustment
    # In percent: a change by less than one copy counts as one, more is cut to whole copies.
    change = current * adjustment / 100
    least = whole(configuration, "MinAdjustmentMagnitude") if adjustment else 0
    size = max(math.floor(abs(change)), 1 if change else 0, least)
    return current + (size if adjustment > 0 else -size)


def _is_percent(configuration: Document) -> bool:
    return text_member(configuration, "AdjustmentType") == "PercentChangeInCapacity"


def _bound(step: Document, key: str, default: float) -> float:
    return number(step, key) if key in step else default


@dataclass(frozen=True, slots=True)
class Metric:
    """A CloudWatch metric that a policy tracks; `period_s` is how often it's evaluated."""

    namespace: str
    name: str
    statistic: str
    period_s: int
    dimensions: Sequence[Document]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two alarms; `periods` of `period_s` in a row have to breach."""

    name: str
    comparison: Literal["GreaterThanThreshold", "LessThanThreshold"]
    threshold: float
    period_s: int
    periods: int


def put_alarms(policy: Document, configuration: Document) -> list[Document]:
    """Make the alarm that scales out (above the target) and the one that scales in (10 % below it).

    Raises:
        ApiError: ValidationException, the metric doesn't fit the policy's dimension.
    """
    metric = _metric(policy, configuration)
    target = number(configuration, "TargetValue")
    sides = (
        Side(HIGH, "GreaterThanThreshold", target, metric.period_s, HIGH_PERIODS),
        Side(LOW, "LessThanThreshold", target * LOW_SHARE, metric.period_s, LOW_WINDOW_S // metric.period_s),
    )
    return [_put_alarm(policy, metric, side) for side in sides]


def delete_alarms(policy: Document) -> None:
    """Delete the alarms of a policy."""
    names = [text_member(alarm, "AlarmName") for alarm in children(policy, "Alarms")]
    if names:
        own_cloudwatch().delete_alarms(AlarmNames=names)


def _put_alarm(policy: Document, metric: Metric, side: Side) -> Document:
    name = f"TargetTracking-{text_member(policy, 'ResourceId')}-{side.name}-{uuid.uuid4()}"
    # A customized metric has the words of its request: CloudWatch refuses those that it does not know.
    own_cloudwatch().put_metric_alarm(
        AlarmName=name,
        AlarmDescription=f"DO NOT EDIT OR DELETE. For TargetTrackingScaling policy {text_member(policy, 'PolicyARN')}.",
        AlarmActions=[text_member(policy, "PolicyARN")],
        Namespace=metric.namespace,
        MetricName=metric.name,
        Statistic=cast("StatisticType", metric.statistic),
        Dimensions=cast("list[DimensionTypeDef]", list(metric.dimensions)),
        Period=side.period_s,
        EvaluationPeriods=side.periods,
        Threshold=side.threshold,
        ComparisonOperator=side.comparison,
    )
    return {"AlarmName": name, "AlarmARN": f"arn:aws:cloudwatch:{REGION}:{own_account()}:alarm:{name}"}


def _metric(policy: Document, configuration: Document) -> Metric:
    predefined = text_member(child(configuration, "PredefinedMetricSpecification"), "PredefinedMetricType")
    dimension = text_member(policy, "ScalableDimension")
    if predefined:
        fits, name, statistic, period_s = PREDEFINED.get(predefined, ("", "", "", 0))
        if fits != dimension:
            raise invalid(f"Predefined metric {predefined} does not fit scalable dimension {dimension}.")
        kind, resource, *rest = text_member(policy, "ResourceId").split("/")
        dimensions: list[Document] = [{"Name": "InferenceComponentName", "Value": resource}]
        if kind != "inference-component":
            dimensions = [{"Name": "EndpointName", "Value": resource}, {"Name": "VariantName", "Value": rest[1]}]
        return Metric("AWS/SageMaker", name, statistic, period_s, dimensions)
    custom = child(configuration, "CustomizedMetricSpecification")
    if "MetricName" not in custom:
        raise invalid("The embedded AWS tracks a predefined metric, or a customized one with a MetricName.")
    namespace, name, statistic = (text_member(custom, member) for member in ("Namespace", "MetricName", "Statistic"))
    return Metric(namespace, name, statistic, 60, children(custom, "Dimensions"))
