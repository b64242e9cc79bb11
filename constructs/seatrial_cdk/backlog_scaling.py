"""Scales the instances of an asynchronous endpoint by the requests that wait, to zero and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_applicationautoscaling as autoscaling
from constructs import Construct

from seatrial_cdk.scaling_policies import (
    INSTANCES,
    FromZero,
    define_start_from_zero,
    define_target,
    define_tracking,
    refuse_kind,
)

if TYPE_CHECKING:
    from seatrial_cdk.llm_endpoint_interface import ILlmEndpoint
    from seatrial_cdk.scaling_limits import ScalingLimits

METRIC = "ApproximateBacklogSizePerInstance"
COOLDOWN_FROM_ZERO_S = 300  # "Autoscale an asynchronous endpoint", SageMaker AI developer guide
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
        metric_name=METRIC,
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
        cooldown_s=COOLDOWN_FROM_ZERO_S,
    )
