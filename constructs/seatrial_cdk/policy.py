"""Statements of IAM policies as documents: one crossing to Node for a policy, not one for each statement."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from aws_cdk import aws_iam as iam

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


Statement = dict[str, object]
UNNAMED_RESOURCE_ACTIONS: Mapping[str, str] = MappingProxyType(
    {
        "application-autoscaling:DescribeScalableTargets": "describe actions of this service have no resource level",
        "application-autoscaling:DescribeScalingPolicies": "describe actions of this service have no resource level",
        "application-autoscaling:DescribeScheduledActions": "describe actions of this service have no resource level",
        "cloudformation:DescribeStackResources": "names a resource, not a stack: IDs and states alone",
        "cloudformation:GetTemplateSummary": "names a template, not a stack",
        "cloudformation:ValidateTemplate": "names a template, not a stack",
        "cloudwatch:GetMetricData": "has no resource level: numbers alone, of any metric of the account",
        "cloudwatch:ListMetrics": "has no resource level: names alone, of any metric of the account",
        "cloudwatch:ListTagsForResource": "has no resource level for dashboards: tags alone",
        "cloudwatch:TagResource": "has no resource level for dashboards; bound by the environment's tag instead",
        "cloudwatch:UntagResource": "has no resource level for dashboards; never removes a tag of Seatrial",
        "cloudwatch:PutMetricData": "has no resource level; bound by its namespace instead",
        "ec2:DescribeDhcpOptions": "describe actions of EC2 have no resource level",
        "ec2:DescribeNetworkInterfaces": "describe actions of EC2 have no resource level",
        "ec2:DescribeSecurityGroups": "describe actions of EC2 have no resource level",
        "ec2:DescribeSubnets": "describe actions of EC2 have no resource level",
        "ec2:DescribeVpcs": "describe actions of EC2 have no resource level",
        "sagemaker:CallWithBearerToken": "has no resource level; what is called is allowed by name beside it",
        "sagemaker:ListInferenceComponents": "has no resource level: names and states alone",
        "sns:Unsubscribe": "has no resource level: a subscription is named in the request alone",
        "ssm:DescribeParameters": "has no resource level: names and types alone",
        "ecr:GetAuthorizationToken": "has no resource level: the token is the registry's, the pull is granted by name",
    }
)


def allow(
    actions: Sequence[str], resources: Sequence[str], conditions: Mapping[str, object] | None = None
) -> Statement:
    """Return a statement that allows actions on resources.

    Args:
        actions: As `s3:GetObject`.
        resources: ARNs, or tokens of them.
        conditions: Operators with their keys; default: none.
    """
    statement: Statement = {"Effect": "Allow", "Action": [*actions], "Resource": [*resources]}
    return statement if conditions is None else {**statement, "Condition": {**conditions}}


def policy_document(statements: Iterable[Statement]) -> iam.PolicyDocument:
    """Return a policy of statements."""
    return iam.PolicyDocument.from_json({"Version": "2012-10-17", "Statement": [*statements]})


def resources_of(statements: Iterable[Statement]) -> list[str]:
    """Return the resources of statements."""
    lists = (each["Resource"] for each in statements)
    return [f"{resource}" for each in lists for resource in (each if isinstance(each, list) else [each])]


def unnamed_statement(*actions: str, conditions: Mapping[str, object] | None = None) -> Statement:
    """Allow actions on `*`; an action that the table does not know is a KeyError, on purpose."""
    known = [action for action in actions if UNNAMED_RESOURCE_ACTIONS[action]]
    return allow(known, ["*"], conditions)


def allow_unnamed(*actions: str, conditions: Mapping[str, object] | None = None) -> iam.PolicyStatement:
    """Return `unnamed_statement` as an object of the CDK."""
    return iam.PolicyStatement.from_json(unnamed_statement(*actions, conditions=conditions))
