"""What every kind of scaling is made of: a scalable target, target tracking, and a step from zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aws_cdk import Annotations
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch

from seatrial_base.units import S_PER_MINUTE
from seatrial_cdk.observability.endpoint_alarms import NAMESPACE
from seatrial_cdk.value_checks import NumberBounds, check_number, check_values

if TYPE_CHECKING:
    from constructs import Construct

    from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint
    from seatrial_cdk.scaling.scaling_limits import ScalingLimits, ScheduledCapacity

COPIES = "sagemaker:inference-component:DesiredCopyCount"
INSTANCES = "sagemaker:variant:DesiredInstanceCount"
LEAST_TARGET = NumberBounds(0.01)  # requests; the API takes any number, and 0 or fewer can never be held


@dataclass(frozen=True, slots=True, kw_only=True)
class FromZero:
    """The alarm that starts the first copy or instance.

    Attributes:
        metric_name: Counts what waits for one.
        statistic: Of a minute.
        dimensions: Names and values.
        evaluation_periods: Minutes at 1 or above until the alarm is raised.
        missing_data: How a minute without data is taken.
        aggregation: How the policy takes several data points.
        cooldown_s: Time until the next one is started, in seconds.
    """

    metric_name: str
    statistic: Literal["Average", "Sum"]
    dimensions: tuple[tuple[str, str], ...]
    evaluation_periods: int
    missing_data: Literal["missing", "notBreaching"]
    aggregation: Literal["Average", "Maximum"]
    cooldown_s: int


def define_target(
    scope: Construct, endpoint: ILlmEndpoint, limits: ScalingLimits, *, dimension: str, resource_id: str
) -> autoscaling.CfnScalableTarget:
    """Define what is scaled, with its schedules; it waits for what serves.

    Args:
        scope: What it belongs to.
        endpoint: The endpoint.
        limits: Fewest and most.
        dimension: `COPIES` or `INSTANCES`.
        resource_id: As Application Auto Scaling has it.
    """
    check_values(scope, {"limits": limits})
    limits.annotate(scope)
    target = autoscaling.CfnScalableTarget(
        scope,
        "Resource",
        service_namespace="sagemaker",
        scalable_dimension=dimension,
        resource_id=resource_id,
        min_capacity=limits.min_capacity,
        max_capacity=limits.max_capacity,
        scheduled_actions=[_action(each) for each in limits.schedules] or None,
    )
    if endpoint.serving_resource is not None:
        target.add_resource_dependency(endpoint.serving_resource)
    return target


def define_tracking(
    scope: Construct,
    target: autoscaling.CfnScalableTarget,
    limits: ScalingLimits,
    *,
    name: str,
    value: float,
    metric: str | autoscaling.CfnScalingPolicy.CustomizedMetricSpecificationProperty,
) -> autoscaling.CfnScalingPolicy:
    """Define target tracking. Both cooldowns are written out: inference components have no documented default.

    Args:
        scope: What it belongs to.
        target: What is scaled.
        limits: Cooldowns and protection.
        name: The policy's name.
        value: The value to hold; a number, or a token that resolves to one.
        metric: A predefined metric by its name, or any other.
    """
    check_number(scope, "the target", value, LEAST_TARGET)
    policy = autoscaling.CfnScalingPolicy
    predefined = (
        policy.PredefinedMetricSpecificationProperty(predefined_metric_type=metric) if isinstance(metric, str) else None
    )
    tracking = policy(
        scope,
        "Policy",
        policy_name=name,
        policy_type="TargetTrackingScaling",
        scaling_target_id=target.ref,
        target_tracking_scaling_policy_configuration=policy.TargetTrackingScalingPolicyConfigurationProperty(
            predefined_metric_specification=predefined,
            customized_metric_specification=None if isinstance(metric, str) else metric,
            target_value=value,
            scale_out_cooldown=limits.scale_out_cooldown_s,
            scale_in_cooldown=limits.scale_in_cooldown_s,
            disable_scale_in=limits.scale_in_protection or None,
        ),
    )
    tracking.add_resource_dependency(target)
    return tracking


def define_start_from_zero(
    scope: Construct, target: autoscaling.CfnScalableTarget, start: FromZero
) -> autoscaling.CfnScalingPolicy:
    """Define the step policy that starts the first copy or instance, and its alarm.

    Target tracking multiplies what there is, and nothing times anything is nothing.

    Args:
        scope: What they belong to.
        target: What is scaled.
        start: When.
    """
    policy = autoscaling.CfnScalingPolicy
    step = policy(
        scope,
        "FromZero",
        policy_name="from-zero",
        policy_type="StepScaling",
        scaling_target_id=target.ref,
        step_scaling_policy_configuration=policy.StepScalingPolicyConfigurationProperty(
            adjustment_type="ChangeInCapacity",
            metric_aggregation_type=start.aggregation,
            cooldown=start.cooldown_s,
            step_adjustments=[policy.StepAdjustmentProperty(metric_interval_lower_bound=0, scaling_adjustment=1)],
        ),
    )
    step.add_resource_dependency(target)
    cloudwatch.CfnAlarm(
        scope,
        "FromZeroAlarm",
        alarm_description="Starts the first copy or instance: Application Auto Scaling acts on it, people need not",
        namespace=NAMESPACE,
        metric_name=start.metric_name,
        statistic=start.statistic,
        dimensions=[cloudwatch.CfnAlarm.DimensionProperty(name=name, value=value) for name, value in start.dimensions],
        period=S_PER_MINUTE,
        threshold=1,
        comparison_operator="GreaterThanOrEqualToThreshold",
        evaluation_periods=start.evaluation_periods,
        datapoints_to_alarm=start.evaluation_periods,
        treat_missing_data=start.missing_data,
        alarm_actions=[step.ref],
    )
    return step


def refuse_kind(scope: Construct, endpoint: ILlmEndpoint, scaling: str) -> bool:
    """Report scaling that does not match the kind of its endpoint as an error of the CDK: SEA442.

    Args:
        scope: The scaling.
        endpoint: The endpoint.
        scaling: Name of its class.

    Returns:
        Whether it does not match.
    """
    kind, matching = _kind(endpoint)
    if scaling == matching:
        return False
    message = f"SEA442: {scaling} does not match an endpoint whose {kind}. Use {matching}."
    Annotations.of(scope).add_error(message)
    return True


def _kind(endpoint: ILlmEndpoint) -> tuple[str, str]:
    if endpoint.inference_component_name is not None:
        return "model is an inference component", "CopyScaling"
    if endpoint.is_asynchronous:
        return "inference is asynchronous", "BacklogScaling"
    return "model is in its production variant", "VariantScaling"


def _action(each: ScheduledCapacity) -> autoscaling.CfnScalableTarget.ScheduledActionProperty:
    target = autoscaling.CfnScalableTarget
    return target.ScheduledActionProperty(
        scheduled_action_name=each.name,
        schedule=each.schedule,
        timezone=each.timezone,
        scalable_target_action=target.ScalableTargetActionProperty(
            min_capacity=each.min_capacity, max_capacity=each.max_capacity
        ),
    )
