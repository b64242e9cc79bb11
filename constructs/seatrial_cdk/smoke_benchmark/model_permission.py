"""The right to read which image the deployment's model has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_iam as iam

if TYPE_CHECKING:
    from seatrial_cdk.llm_endpoint import LlmEndpoint


def grant_describe_model(endpoint: LlmEndpoint, grantee: iam.IGrantable) -> None:
    """Allow describing the endpoint's own model; an update's new model comes with a new right."""
    iam.Grant.add_to_principal(grantee=grantee, actions=["sagemaker:DescribeModel"], resource_arns=[endpoint.model.ref])
