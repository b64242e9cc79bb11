"""Statements of IAM policies as documents: one crossing to Node for a policy, not one for each statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_iam as iam

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Statement = dict[str, object]


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
