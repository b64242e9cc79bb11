"""Scales the instances of a production variant that has the model, for real-time inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Annotations
from constructs import Construct

from seatrial_cdk.scaling_policies import INSTANCES, define_target, define_tracking, refuse_kind

if TYPE_CHECKING:
    from seatrial_cdk.llm_endpoint_interface import ILlmEndpoint
    from seatrial_cdk.scaling_limits import ScalingLimits

METRIC = "SageMakerVariantConcurrentRequestsPerModelHighResolution"


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
            metric=METRIC,
        )
