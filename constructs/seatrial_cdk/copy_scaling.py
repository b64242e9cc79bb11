"""Scales the copies of an inference component so that each is loaded as far as the knee allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Annotations
from constructs import Construct

from seatrial_cdk.scaling_policies import (
    COPIES,
    FromZero,
    define_start_from_zero,
    define_target,
    define_tracking,
    refuse_kind,
)

if TYPE_CHECKING:
    from seatrial_cdk.llm_endpoint_interface import ILlmEndpoint
    from seatrial_cdk.scaling_limits import ScalingLimits

METRIC = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
COOLDOWN_FROM_ZERO_S = 60  # "Scale an endpoint to zero instances", SageMaker AI developer guide


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
            self, self.target, limits, name="concurrency-per-copy", value=target_concurrency_per_copy, metric=METRIC
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
        cooldown_s=COOLDOWN_FROM_ZERO_S,
    )


def _check_to_zero(scope: Construct, endpoint: ILlmEndpoint) -> None:
    """Warn of instances that stay when the copies go (SEA443)."""
    fewest = endpoint.fewest_instances
    if fewest:
        message = (
            f"SEA443: without copies the endpoint still keeps {fewest} instances. Set min_count=0 of its instances."
        )
        Annotations.of(scope).add_warning_v2("seatrial:SEA443", message)
