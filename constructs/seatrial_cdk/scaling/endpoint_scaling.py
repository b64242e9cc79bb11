"""Scales copies by the knee, variants likewise, and asynchronous endpoints by what waits; as a deployment has it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias
from zoneinfo import available_timezones

from aws_cdk import Annotations, Token
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from seatrial.specs.scaling import expression_error
from seatrial_base.autoscaling import COPIES, COPIES_COOLDOWN_FROM_ZERO_S, INSTANCES
from seatrial_base.bounds import INSTANCE_START_S
from seatrial_base.field_facts import made_of
from seatrial_base.units import S_PER_MINUTE
from seatrial_cdk.observability.endpoint_alarms import NAMESPACE
from seatrial_cdk.place import TOKEN_MARKER
from seatrial_cdk.value_checks import NumberBounds, check_number, check_values, in_unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aws_cdk import Duration

    from seatrial.deployment.document import Deployment
    from seatrial.specs.scaling import ScalingSpec
    from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint
    from seatrial_cdk.trials.endpoint_trial import SmokeBenchmark


DEFAULT_SCALE_OUT_COOLDOWN_S, DEFAULT_SCALE_IN_COOLDOWN_S = 60, 300
LEAST_TARGET = NumberBounds(0.01)  # requests; the API takes any number, and 0 or fewer can never be held
COPIES_METRIC = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
INSTANCES_METRIC = "SageMakerVariantConcurrentRequestsPerModelHighResolution"
BACKLOG_METRIC = "ApproximateBacklogSizePerInstance"
BACKLOG_COOLDOWN_FROM_ZERO_S = 300  # "Autoscale an asynchronous endpoint", SageMaker AI developer guide
PERIODS_FROM_ZERO = 2  # the same page
EndpointScaling: TypeAlias = "CopyScaling | VariantScaling | BacklogScaling"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledCapacity:
    """Other limits from some time on: a scheduled action of Application Auto Scaling.

    Attributes:
        name: Unique within the scaling.
        schedule: As `cron(0 20 * * ? *)`, `rate(1 day)` or `at(2027-01-01T00:00:00)`.
        timezone: IANA name, as `Europe/Berlin`; default: UTC.
        min_capacity: Fewest copies or instances from then on; default: as before.
        max_capacity: Most of them; default: as before.
    """

    name: str
    schedule: str
    timezone: str | None = None
    min_capacity: int | None = None
    max_capacity: int | None = None

    def errors(self) -> Iterator[str]:
        """Yield what Application Auto Scaling would refuse of the time."""
        if TOKEN_MARKER not in self.schedule and (wrong := expression_error(self.schedule)) is not None:
            yield f"schedule {self.name}: {self.schedule} {wrong}."
        known = available_timezones()
        if self.timezone is not None and known and self.timezone not in known and TOKEN_MARKER not in self.timezone:
            yield f"schedule {self.name}: the time zone {self.timezone} is unknown. Give a name as Europe/Berlin."


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingLimits:
    """How many copies or instances there may be, and how fast their number changes.

    Attributes:
        min_capacity: Fewest of them; 0 where the kind of endpoint can scale to zero.
        max_capacity: Most of them.
        scale_out_cooldown_s: Time after a scale-out until the next one, in seconds.
        scale_in_cooldown_s: Time after a scale-in until the next one, in seconds.
        schedules: Other limits from some time on.
        scale_in_protection: Target tracking adds and never removes; only schedules, or its owner, remove.
    """

    min_capacity: int = 1
    max_capacity: int = 1
    scale_out_cooldown_s: int | Duration = DEFAULT_SCALE_OUT_COOLDOWN_S
    scale_in_cooldown_s: int | Duration = DEFAULT_SCALE_IN_COOLDOWN_S
    schedules: tuple[ScheduledCapacity, ...] = ()
    scale_in_protection: bool = False

    @property
    def goes_to_zero(self) -> bool:
        """Whether there may be none at some time."""
        return 0 in (self.min_capacity, *(each.min_capacity for each in self.schedules))

    def annotate(self, scope: Construct) -> None:
        """Report every contradiction as an error of the CDK: SEA444."""
        for error in self._errors():
            Annotations.of(scope).add_error(f"SEA444: {error}")

    def _errors(self) -> Iterator[str]:
        yield from _reversed("the limits", self.min_capacity, self.max_capacity)
        names = [each.name for each in self.schedules]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"two schedules are called {name}. Give each a name of its own."
        for each in self.schedules:
            if each.min_capacity is None and each.max_capacity is None:
                yield f"schedule {each.name} changes nothing. Give it min_capacity or max_capacity."
            yield from each.errors()
            low = self.min_capacity if each.min_capacity is None else each.min_capacity
            high = self.max_capacity if each.max_capacity is None else each.max_capacity
            yield from _reversed(f"schedule {each.name}", low, high)


def _reversed(what: str, low: int, high: int) -> Iterator[str]:
    """Yield limits in the wrong order; tokens are not known yet."""
    if low >= 0 and high >= 1 and low <= high:
        return
    if Token.is_unresolved(low) or Token.is_unresolved(high):
        return
    if low < 0 or high < 1:
        yield f"{what}: {low} to {high}. The lowest is at least 0, the highest at least 1."
    else:
        yield f"{what}: the lowest, {low}, exceeds the highest, {high}."


class CopyScaling(Construct):
    """Target tracking on concurrent requests per copy.

    The metric counts every 10 s, so copies are added within a minute; they are removed as slowly as always. Both
    cooldowns are written out, because inference components have no documented default.

    With 0 as a lowest limit, the first copy is started once a request was refused for lack of one. Until it serves,
    every request is refused. The endpoint keeps its instances unless their `min_count` is 0 too.

    Args:
        endpoint: Whose component is scaled; SEA442 is reported for an endpoint of another kind.
        limits: Fewest and most copies, cooldowns, schedules.
        target_concurrency_per_copy: Requests in flight per copy to hold; a number, or a token that resolves to one.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: ILlmEndpoint,
        limits: ScalingLimits,
        target_concurrency_per_copy: float,
    ) -> None:
        super().__init__(scope, construct_id)
        component = endpoint.inference_component_name or ""
        self.target = _define_target(
            self, endpoint, limits, dimension=COPIES, resource_id=f"inference-component/{component}"
        )
        self.policy = _define_tracking(
            self,
            self.target,
            limits,
            name="concurrency-per-copy",
            value=target_concurrency_per_copy,
            metric=COPIES_METRIC,
        )
        if limits.goes_to_zero:
            # One refused request is enough, and minutes without one count as good.
            self.from_zero = _define_start_from_zero(
                self,
                self.target,
                metric_name="NoCapacityInvocationFailures",
                statistic="Sum",
                dimension=("InferenceComponentName", component),
                periods=1,
                missing_data="notBreaching",
                aggregation="Maximum",
                cooldown_s=COPIES_COOLDOWN_FROM_ZERO_S,
            )
            if fewest := endpoint.fewest_instances:
                message = f"SEA443: without copies the endpoint still keeps {fewest} instances."
                message += " Set min_count=0 of its instances."
                Annotations.of(self).add_warning_v2("seatrial:SEA443", message)


class VariantScaling(Construct):
    """Target tracking on concurrent requests per instance of a variant.

    The metric counts every 10 s. A variant with the model keeps at least one instance: only inference components and
    asynchronous endpoints scale to zero. SageMaker refuses another instance type while a variant is scaled: give such
    a change another endpoint name.

    Args:
        endpoint: Whose variant is scaled; SEA442 is reported for an endpoint of another kind.
        limits: Fewest and most instances, cooldowns, schedules; SEA443 is reported for fewer than one.
        target_concurrency_per_instance: Requests in flight per instance to hold; a number, or a token of one.
        variant_name: The variant; default: that of the endpoint.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: ILlmEndpoint,
        limits: ScalingLimits,
        target_concurrency_per_instance: float,
        variant_name: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        if limits.goes_to_zero:
            message = "SEA443: a variant with the model keeps at least one instance. Set min_capacity to 1, or host "
            message += "the model as an inference component or behind an asynchronous endpoint."
            Annotations.of(self).add_error(message)
        endpoint.keep_instance_counts()
        name = variant_name or endpoint.variant_name
        self.target = _define_target(
            self,
            endpoint,
            limits,
            dimension=INSTANCES,
            resource_id=f"endpoint/{endpoint.endpoint_name}/variant/{name}",
        )
        self.policy = _define_tracking(
            self,
            self.target,
            limits,
            name="concurrency-per-instance",
            value=target_concurrency_per_instance,
            metric=INSTANCES_METRIC,
        )


class BacklogScaling(Construct):
    """Target tracking on the requests that wait per instance.

    With 0 as a lowest limit, the first instance is started two minutes after a request came that none could take. No
    request is lost meanwhile: it waits in the queue, at most as long as its `InvocationTimeoutSeconds` and
    `RequestTTLSeconds` say.

    Args:
        endpoint: Whose variant is scaled; SEA442 is reported for an endpoint of another kind.
        limits: Fewest and most instances, cooldowns, schedules.
        target_backlog_per_instance: Requests that wait per instance to hold; a number, or a token of one.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: ILlmEndpoint,
        limits: ScalingLimits,
        target_backlog_per_instance: float,
    ) -> None:
        super().__init__(scope, construct_id)
        endpoint.keep_instance_counts()
        name, policy = endpoint.endpoint_name, autoscaling.CfnScalingPolicy
        self.target = _define_target(
            self,
            endpoint,
            limits,
            dimension=INSTANCES,
            resource_id=f"endpoint/{name}/variant/{endpoint.variant_name}",
        )
        self.policy = _define_tracking(
            self,
            self.target,
            limits,
            name="backlog-per-instance",
            value=target_backlog_per_instance,
            # It has no dimension for the variant.
            metric=policy.CustomizedMetricSpecificationProperty(
                metric_name=BACKLOG_METRIC,
                namespace=NAMESPACE,
                statistic="Average",
                dimensions=[policy.MetricDimensionProperty(name="EndpointName", value=name)],
            ),
        )
        if limits.goes_to_zero:
            self.from_zero = _define_start_from_zero(
                self,
                self.target,
                metric_name="HasBacklogWithoutCapacity",
                statistic="Average",
                dimension=("EndpointName", name),
                periods=PERIODS_FROM_ZERO,
                missing_data="missing",
                aggregation="Average",
                cooldown_s=BACKLOG_COOLDOWN_FROM_ZERO_S,
            )


def _define_target(
    scope: Construct, endpoint: ILlmEndpoint, limits: ScalingLimits, *, dimension: str, resource_id: str
) -> autoscaling.CfnScalableTarget:
    """Define what is scaled, with its schedules; it waits for what serves.

    Args:
        scope: The scaling; SEA442 is reported where it is of another kind than the endpoint.
    """
    if endpoint.inference_component_name is not None:
        kind, matching = "model is an inference component", "CopyScaling"
    elif endpoint.is_asynchronous:
        kind, matching = "inference is asynchronous", "BacklogScaling"
    else:
        kind, matching = "model is in its production variant", "VariantScaling"
    if type(scope).__name__ != matching:
        message = f"SEA442: {type(scope).__name__} does not match an endpoint whose {kind}. Use {matching}."
        Annotations.of(scope).add_error(message)
    check_values(scope, {"limits": limits})
    limits.annotate(scope)
    target = autoscaling.CfnScalableTarget
    scaled = target(
        scope,
        "Resource",
        service_namespace="sagemaker",
        scalable_dimension=dimension,
        resource_id=resource_id,
        min_capacity=limits.min_capacity,
        max_capacity=limits.max_capacity,
        scheduled_actions=[
            target.ScheduledActionProperty(
                scheduled_action_name=each.name,
                schedule=each.schedule,
                timezone=each.timezone,
                scalable_target_action=target.ScalableTargetActionProperty(
                    min_capacity=each.min_capacity, max_capacity=each.max_capacity
                ),
            )
            for each in limits.schedules
        ]
        or None,
    )
    if endpoint.serving_resource is not None:
        scaled.add_resource_dependency(endpoint.serving_resource)
    return scaled


def _define_tracking(
    scope: Construct,
    target: autoscaling.CfnScalableTarget,
    limits: ScalingLimits,
    *,
    name: str,
    value: float,
    metric: str | autoscaling.CfnScalingPolicy.CustomizedMetricSpecificationProperty,
) -> autoscaling.CfnScalingPolicy:
    """Define target tracking. Both cooldowns are written out: inference components have no documented default."""
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
            scale_out_cooldown=in_unit(limits.scale_out_cooldown_s, "s"),
            scale_in_cooldown=in_unit(limits.scale_in_cooldown_s, "s"),
            # Left out where it is off: `false` would update each policy that is deployed without it.
            disable_scale_in=limits.scale_in_protection or None,
        ),
    )
    tracking.add_resource_dependency(target)
    return tracking


def _define_start_from_zero(
    scope: Construct,
    target: autoscaling.CfnScalableTarget,
    *,
    metric_name: str,
    statistic: Literal["Average", "Sum"],
    dimension: tuple[str, str],
    periods: int,
    missing_data: Literal["missing", "notBreaching"],
    aggregation: Literal["Average", "Maximum"],
    cooldown_s: int,
) -> autoscaling.CfnScalingPolicy:
    """Define the step policy that starts the first copy or instance, and its alarm.

    Target tracking multiplies what there is, and nothing times anything is nothing.

    Args:
        metric_name: Counts what waits for one.
        periods: Minutes at 1 or above until the alarm is raised.
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
            metric_aggregation_type=aggregation,
            cooldown=cooldown_s,
            step_adjustments=[policy.StepAdjustmentProperty(metric_interval_lower_bound=0, scaling_adjustment=1)],
        ),
    )
    step.add_resource_dependency(target)
    name, value = dimension
    cloudwatch.CfnAlarm(
        scope,
        "FromZeroAlarm",
        alarm_description="Starts the first copy or instance: Application Auto Scaling acts on it, people need not",
        namespace=NAMESPACE,
        metric_name=metric_name,
        statistic=statistic,
        dimensions=[cloudwatch.CfnAlarm.DimensionProperty(name=name, value=value)],
        period=S_PER_MINUTE,
        threshold=1,
        comparison_operator="GreaterThanOrEqualToThreshold",
        evaluation_periods=periods,
        datapoints_to_alarm=periods,
        treat_missing_data=missing_data,
        alarm_actions=[step.ref],
    )
    return step


def scaling_limits(scaling: ScalingSpec) -> ScalingLimits:
    """Return the limits of a spec's scaling."""
    schedules = tuple(
        made_of(ScheduledCapacity, each, min_capacity=each.min_copies, max_capacity=each.max_copies)
        for each in scaling.schedules
    )
    return made_of(
        ScalingLimits,
        scaling,
        min_capacity=scaling.min_copies,
        max_capacity=scaling.max_copies,
        schedules=schedules,
    )


def define_scaling(
    scope: Construct, construct_id: str, endpoint: ILlmEndpoint, deployment: Deployment, trial: SmokeBenchmark | None
) -> EndpointScaling | None:
    """Define the scaling that matches the kind of a deployed endpoint; `None` when the number of copies is fixed.

    Each variant is scaled between the same limits; a queue by what waits for its first variant.

    Args:
        construct_id: Its construct ID; the variant's name is added from the second variant on.
        trial: Its response attributes have the target; `None` without trials.
    """
    scaling, planned = deployment.endpoint.scaling, deployment.plan.target_concurrency_per_copy.value
    if scaling.is_fixed:
        return None
    limits = scaling_limits(scaling)
    if endpoint.inference_component_name is not None:
        target = planned if trial is None else Token.as_number(trial.attribute("TargetConcurrencyPerCopy"))
        return CopyScaling(scope, construct_id, endpoint=endpoint, limits=limits, target_concurrency_per_copy=target)
    if endpoint.is_asynchronous:
        return BacklogScaling(
            scope, construct_id, endpoint=endpoint, limits=limits, target_backlog_per_instance=planned
        )
    names = [each.name for each in deployment.endpoint.hosting.variants or ()] or [endpoint.variant_name]
    made = [
        VariantScaling(
            scope,
            construct_id if name == names[0] else f"{construct_id}{name}",
            endpoint=endpoint,
            limits=limits,
            target_concurrency_per_instance=planned,
            variant_name=name,
        )
        for name in names
    ]
    return made[0]


def start_minutes(deployment: Deployment) -> int:
    """Return how many minutes refused requests are normal for: as long as a start from zero may take, else one."""
    if not deployment.endpoint.scaling.goes_to_zero:
        return 1
    plan = deployment.plan
    return math.ceil((INSTANCE_START_S + plan.download_timeout_s.value + plan.startup_timeout_s.value) / S_PER_MINUTE)
