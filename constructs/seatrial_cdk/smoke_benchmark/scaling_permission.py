"""The right to suspend the scaling of an endpoint's copies while a trial measures, and to resume it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_iam as iam

from seatrial_cdk.unnamed_resources import allow_unnamed

if TYPE_CHECKING:
    from seatrial_cdk.llm_endpoint import LlmEndpoint


def grant_describe_scaling(grantee: iam.IGrantable) -> None:
    """Allow asking whether copies are scaled, and what of it is suspended."""
    grantee.grant_principal.add_to_principal_policy(allow_unnamed("application-autoscaling:DescribeScalableTargets"))


def grant_suspend_scaling(endpoint: LlmEndpoint, grantee: iam.IGrantable) -> None:
    """Allow suspending and resuming the scaling of copies.

    A target's ARN ends with an ID that nobody knows beforehand, so the conditions leave the targets of copies alone.
    Registering a target of SageMaker asks for the right to scale by hand too (Application Auto Scaling user guide,
    identity-based policy examples): here it is that of this component.
    """
    stack = Stack.of(endpoint)
    targets = f"arn:{stack.partition}:application-autoscaling:{stack.region}:{stack.account}:scalable-target/*"
    copies = {
        "application-autoscaling:service-namespace": "sagemaker",
        "application-autoscaling:scalable-dimension": "sagemaker:inference-component:DesiredCopyCount",
    }
    iam.Grant.add_to_principal(
        grantee=grantee,
        actions=["application-autoscaling:RegisterScalableTarget"],
        resource_arns=[targets],
        conditions={"StringEquals": copies},
    )
    iam.Grant.add_to_principal(
        grantee=grantee,
        actions=["sagemaker:DescribeInferenceComponent", "sagemaker:UpdateInferenceComponentRuntimeConfig"],
        resource_arns=[endpoint.component.ref],
    )
