"""Statements of IAM policies as documents, and deliberate findings of rule packs, each with its reason.

A policy is one crossing to Node, not one for each statement.

An acknowledgement is metadata of the construct (`aws_cdk.Validations`): the template does not change, cdk-nag is not
needed, and its report of AwsSolutions has the reason beside each finding.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_iam as iam

from seatrial_cdk.place import TOKEN_MARKER
from seatrial_lint.cloudformation.intrinsic import TemplateScope, evaluate, replace_references

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from constructs import IConstruct
    from pydantic import JsonValue

    from seatrial_lint.cloudformation.intrinsic import Reference


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
        **{
            f"ssmmessages:{name}": "has no resource level: a channel of the agent to Session Manager"
            for name in ("CreateControlChannel", "CreateDataChannel", "OpenControlChannel", "OpenDataChannel")
        },
        "ecr:GetAuthorizationToken": "has no resource level: the token is the registry's, the pull is granted by name",
    }
)

PACK = "AwsSolutions"
_PSEUDO = re.compile(r"\$\{Token\[AWS\.(\w+)\.\d+\]\}")


def allow(
    actions: Sequence[str], resources: Sequence[str], conditions: Mapping[str, object] | None = None
) -> Statement:
    """Return a statement that allows actions on resources."""
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


def acknowledge(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Acknowledge rules of the AwsSolutions pack for a construct and everything below it.

    Args:
        reasons: One sentence for each rule, by its ID without the pack's name, as `S1`.
    """
    rules = [Acknowledgment(id=f"{PACK}::{PACK}-{rule}", reason=reason) for rule, reason in reasons.items()]
    Validations.of(construct).acknowledge(*rules)


def acknowledge_wildcards(construct: IConstruct, resources: Iterable[str], reason: str) -> None:
    """Acknowledge the resources of a policy that end in a wildcard; the pack names each of them in its rule's ID.

    Args:
        resources: The resources of its policy; those without a wildcard are left out.
        reason: Why no statement can name the resource whole; one sentence.
    """
    if named := sorted({resource for resource in resources if "*" in resource}):
        acknowledge(construct, {f"IAM5[Resource::{text}]": reason for text in _flat(construct, named)})


def _flat(construct: IConstruct, texts: list[str]) -> list[str]:
    """Return texts as the pack writes them: a reference is its name in angle brackets."""
    known = [_PSEUDO.sub(r"<AWS::\1>", text) for text in texts]
    if not any(TOKEN_MARKER in text for text in known):
        return known
    resolved: list[JsonValue] = Stack.of(construct).resolve(texts)

    def named(reference: Reference) -> str:
        return f"<{'.'.join(part for part in (reference.logical_id, reference.attribute) if part)}>"

    flat = [(value, replace_references(evaluate(value, TemplateScope()), named)) for value in resolved]
    return [f"{value}" if text is None else text.replace("${", "<").replace("}", ">") for value, text in flat]
