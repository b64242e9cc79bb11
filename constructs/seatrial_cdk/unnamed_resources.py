"""The IAM actions that take no resource, each with the reason: the only ones that Seatrial grants on `*`."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from aws_cdk import aws_iam as iam

from seatrial_cdk.policy import Statement, allow

if TYPE_CHECKING:
    from collections.abc import Mapping

UNNAMED_RESOURCE_ACTIONS: Mapping[str, str] = MappingProxyType(
    {
        "application-autoscaling:DescribeScalableTargets": "describe actions of this service have no resource level",
        "application-autoscaling:DescribeScalingPolicies": "describe actions of this service have no resource level",
        "cloudformation:GetTemplateSummary": "names a template, not a stack",
        "cloudformation:ValidateTemplate": "names a template, not a stack",
        "cloudwatch:GetMetricData": "has no resource level: numbers alone, of any metric of the account",
        "cloudwatch:PutMetricData": "has no resource level; bound by its namespace instead",
        "ec2:DescribeDhcpOptions": "describe actions of EC2 have no resource level",
        "ec2:DescribeNetworkInterfaces": "describe actions of EC2 have no resource level",
        "ec2:DescribeSecurityGroups": "describe actions of EC2 have no resource level",
        "ec2:DescribeSubnets": "describe actions of EC2 have no resource level",
        "ec2:DescribeVpcs": "describe actions of EC2 have no resource level",
        "sagemaker:ListInferenceComponents": "has no resource level: names and states alone",
        "ssm:DescribeParameters": "has no resource level: names and types alone",
        "ecr:GetAuthorizationToken": "has no resource level: the token is the registry's, the pull is granted by name",
    }
)


def unnamed_statement(*actions: str, conditions: Mapping[str, object] | None = None) -> Statement:
    """Allow actions on `*`; an action that the table does not know is a KeyError, on purpose."""
    known = [action for action in actions if UNNAMED_RESOURCE_ACTIONS[action]]
    return allow(known, ["*"], conditions)


def allow_unnamed(*actions: str, conditions: Mapping[str, object] | None = None) -> iam.PolicyStatement:
    """Return `unnamed_statement` as an object of the CDK."""
    return iam.PolicyStatement.from_json(unnamed_statement(*actions, conditions=conditions))
