"""Scales copies by the knee, variants likewise, and asynchronous endpoints by what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Annotations
from aws_cdk import aws_applicationautoscaling as autoscaling
from constructs import Construct

from seatrial_cdk.scaling.scaling_policies import (
    COPIES,
    INSTANCES,
    FromZero,
    define_start_from_zero,
    define_target,
    define_tracking,
    refuse_kind,
)

if TYPE_CHECKING:
    from seatrial_cdk.endpoint.endpoint_interface import ILlmEndpoint
    from seatrial_cdk.scaling.scaling_limits import ScalingLimits


COPIES_METRIC = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
COPIES_COOLDOWN_FROM_ZERO_S = 60  # "Scale an endpoint to zero instances", SageMaker AI developer guide


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
        refuse_kind(self, endpoint, type(self).__name__)
        component = endpoint.inference_component_name or ""
        self.target = define_target(
            self, endpoint, limits, dimension=COPIES, resource_id=f"inference-component/{component}"
        )
        self.policy = define_tracking(
            self,
            self.target,
            limits,
            name="concurrency-per-copy",
            value=target_concurrency_per_copy,
            metric=COPIES_METRIC,
        )
        if limits.goes_to_zero:
            self.from_zero = define_start_from_zero(self, self.target, _refused(component))
            _check_to_zero(self, endpoint)


def _refused(component: str) -> FromZero:
    """Return the alarm on refused requests: one is enough, and minutes without one count as good."""
    return FromZero(
        metric_name="NoCapacityInvocationFailures",
        statistic="Sum",
        dimensions=(("InferenceComponentName", component),),
        evaluation_periods=1,
        missing_data="notBreaching",
        aggregation="Maximum",
        cooldown_s=COPIES_COOLDOWN_FROM_ZERO_S,
    )


def _check_to_zero(scope: Construct, endpoint: ILlmEndpoint) -> None:
    """Warn of instances that stay when the copies go (SEA443)."""
    fewest = endpoint.fewest_instances
    if fewest:
        message = (
            f"SEA443: without copies the endpoint still keeps {fewest} instances. Set min_count=0 of its instances."
        )
        Annotations.of(scope).add_warning_v2("seatrial:SEA443", message)


INSTANCES_METRIC = "SageMakerVariantConcurrentRequestsPerModelHighResolution"


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
        refuse_kind(self, endpoint, type(self).__name__)
        if limits.goes_to_zero:
            message = "SEA443: a variant with the model keeps at least one instance. Set min_capacity to 1, or host "
            message += "the model as an inference component or behind an asynchronous endpoint."
            Annotations.of(self).add_error(message)
        endpoint.keep_instance_counts()
        name = variant_name or endpoint.variant_name
        self.target = define_target(
            self,
            endpoint,
            limits,
            dimension=INSTANCES,
            resource_id=f"endpoint/{endpoint.endpoint_name}/variant/{name}",
        )
        self.policy = define_tracking(
            self,
            self.target,
            limits,
            name="concurrency-per-instance",
            value=target_concurrency_per_instance,
            metric=INSTANCES_METRIC,
        )


BACKLOG_METRIC = "ApproximateBacklogSizePerInstance"
BACKLOG_COOLDOWN_FROM_ZERO_S = 300  # "Autoscale an asynchronous endpoint", SageMaker AI developer guide
PERIODS_FROM_ZERO = 2  # the same page


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
        refuse_kind(self, endpoint, type(self).__name__)
        endpoint.keep_instance_counts()
        name = endpoint.endpoint_name
        self.target = define_target(
            self,
            endpoint,
            limits,
            dimension=INSTANCES,
            resource_id=f"endpoint/{name}/variant/{endpoint.variant_name}",
        )
        self.policy = define_tracking(
            self,
            self.target,
            limits,
            name="backlog-per-instance",
            value=target_backlog_per_instance,
            metric=_backlog(name),
        )
        if limits.goes_to_zero:
            self.from_zero = define_start_from_zero(self, self.target, _waiting(name))


def _backlog(endpoint_name: str) -> autoscaling.CfnScalingPolicy.CustomizedMetricSpecificationProperty:
    """Return the metric, which has no dimension for the variant."""
    policy = autoscaling.CfnScalingPolicy
    return policy.CustomizedMetricSpecificationProperty(
        metric_name=BACKLOG_METRIC,
        namespace="AWS/SageMaker",
        statistic="Average",
        dimensions=[policy.MetricDimensionProperty(name="EndpointName", value=endpoint_name)],
    )


def _waiting(endpoint_name: str) -> FromZero:
    return FromZero(
        metric_name="HasBacklogWithoutCapacity",
        statistic="Average",
        dimensions=(("EndpointName", endpoint_name),),
        evaluation_periods=PERIODS_FROM_ZERO,
        missing_data="missing",
        aggregation="Average",
        cooldown_s=BACKLOG_COOLDOWN_FROM_ZERO_S,
    )
