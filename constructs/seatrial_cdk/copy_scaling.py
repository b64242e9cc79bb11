"""Scales the copies of an inference component so that each is loaded as far as the knee allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_applicationautoscaling as autoscaling
from constructs import Construct

if TYPE_CHECKING:
    from seatrial.spec.endpoint import ScalingSpec
    from seatrial_cdk.llm_endpoint import LlmEndpoint

METRIC = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"


class CopyScaling(Construct):
    """Target tracking on concurrent requests per copy.

    The metric counts every 10 s, so copies are added within a minute; they are removed as slowly as always. Both
    cooldowns are written out, because inference components have no documented default.

    Args:
        endpoint: Whose component is scaled.
        scaling: Bounds and cooldowns.
        target_concurrency_per_copy: Requests in flight per copy to hold; a number, or a token that resolves to one.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: LlmEndpoint,
        scaling: ScalingSpec,
        target_concurrency_per_copy: float,
    ) -> None:
        super().__init__(scope, construct_id)
        self.target = autoscaling.CfnScalableTarget(
            self,
            "Resource",
            service_namespace="sagemaker",
            scalable_dimension="sagemaker:inference-component:DesiredCopyCount",
            resource_id=f"inference-component/{endpoint.component_name}",
            min_capacity=scaling.min_copies,
            max_capacity=scaling.max_copies,
        )
        self.target.add_resource_dependency(endpoint.component)
        self.policy = autoscaling.CfnScalingPolicy(
            self,
            "Policy",
            policy_name="concurrency-per-copy",
            policy_type="TargetTrackingScaling",
            scaling_target_id=self.target.ref,
            target_tracking_scaling_policy_configuration=_tracking(scaling, target_concurrency_per_copy),
        )
        self.policy.add_resource_dependency(self.target)


def _tracking(
    scaling: ScalingSpec, target: float
) -> autoscaling.CfnScalingPolicy.TargetTrackingScalingPolicyConfigurationProperty:
    return autoscaling.CfnScalingPolicy.TargetTrackingScalingPolicyConfigurationProperty(
        predefined_metric_specification=autoscaling.CfnScalingPolicy.PredefinedMetricSpecificationProperty(
            predefined_metric_type=METRIC
        ),
        target_value=target,
        scale_out_cooldown=scaling.scale_out_cooldown_s,
        scale_in_cooldown=scaling.scale_in_cooldown_s,
    )
