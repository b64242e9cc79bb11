"""Whether a model's execution role may download an object at this moment, by the policies of the embedded IAM.

Inline and attached policies of the role are read. Conditions are not evaluated: a statement that allows counts as if
its condition holds, one that denies as if it doesn't. Permissions boundaries, bucket policies, KMS keys: not read.
"""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import unquote

import boto3
from botocore.exceptions import ClientError

from seatrial_laptop.aws.json_document import Document, child, children, text_member, text_members
from seatrial_laptop.environment import REGION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


GET_OBJECT: Final = "s3:GetObject"


class RolesClient(Protocol):
    """The calls of IAM that are made here."""

    def get_role(self, **request: object) -> Document:
        """Return a role."""

    def list_role_policies(self, **request: object) -> Document:
        """Return the names of a role's inline policies."""

    def get_role_policy(self, **request: object) -> Document:
        """Return an inline policy."""

    def list_attached_role_policies(self, **request: object) -> Document:
        """Return the managed policies of a role."""

    def get_policy(self, **request: object) -> Document:
        """Return a managed policy."""

    def get_policy_version(self, **request: object) -> Document:
        """Return a version of a managed policy."""


@functools.cache
def _own_iam() -> RolesClient:
    """Return a client of this same process's IAM; use it off the event loop only."""
    client: RolesClient = boto3.client("iam", region_name=REGION)
    return client


def role_exists(arn: str) -> bool:
    """Return whether a role is in the embedded IAM."""
    try:
        return text_member(child(_own_iam().get_role(RoleName=_name(arn)), "Role"), "Arn") == arn
    except ClientError:
        return False


def refused_download(role_arn: str, url: str) -> str | None:
    """Return why a role may not download an `s3://bucket/key` now, or None when it may."""
    if not role_exists(role_arn):
        return f"AccessDenied: {role_arn} does not exist, so {url} can not be downloaded."
    resource = f"arn:aws:s3:::{url.removeprefix('s3://')}"
    if is_download_allowed(_policies(_name(role_arn)), GET_OBJECT, resource):
        return None
    return f"AccessDenied: {role_arn} is not authorized to perform {GET_OBJECT} on {resource}."


def is_download_allowed(policies: Iterable[Document], action: str, resource: str) -> bool:
    """Return whether policy documents allow an action on a resource: one statement allows it and none denies it."""
    statements = [each for policy in policies for each in _statements(policy)]
    applied = [each for each in statements if _applies(each, action, resource)]
    denied = any(text_member(each, "Effect") == "Deny" and "Condition" not in each for each in applied)
    return not denied and any(text_member(each, "Effect") == "Allow" for each in applied)


def _policies(role: str) -> Iterator[Document]:
    iam = _own_iam()
    for name in text_members(iam.list_role_policies(RoleName=role), "PolicyNames"):
        yield _document(iam.get_role_policy(RoleName=role, PolicyName=name).get("PolicyDocument"))
    for each in children(iam.list_attached_role_policies(RoleName=role), "AttachedPolicies"):
        yield _attached(text_member(each, "PolicyArn"))


def _attached(arn: str) -> Document:
    """Return a managed policy; one that the embedded IAM doesn't have allows nothing."""
    iam = _own_iam()
    try:
        version = text_member(child(iam.get_policy(PolicyArn=arn), "Policy"), "DefaultVersionId")
        found = iam.get_policy_version(PolicyArn=arn, VersionId=version)
    except ClientError:
        return {}
    return _document(child(found, "PolicyVersion").get("Document"))


def _document(written: object) -> Document:
    document = json.loads(unquote(written)) if isinstance(written, str) else written
    return document if isinstance(document, dict) else {}


def _statements(policy: Document) -> list[Document]:
    written = policy.get("Statement", [])
    return [written] if isinstance(written, dict) else children(policy, "Statement")


def _applies(statement: Document, action: str, resource: str) -> bool:
    return _names(statement, "Action", action.lower(), lower=True) and _names(statement, "Resource", resource)


def _names(statement: Document, key: str, value: str, *, lower: bool = False) -> bool:
    """Whether a statement's element names a value; its `Not` form names all others."""
    if f"Not{key}" in statement:
        return not _matches(_listed(statement[f"Not{key}"], lower=lower), value)
    return _matches(_listed(statement.get(key, []), lower=lower), value)


def _listed(written: object, *, lower: bool) -> list[str]:
    several = written if isinstance(written, list) else [written]
    return [str(each).lower() if lower else str(each) for each in several]


def _matches(patterns: Sequence[str], value: str) -> bool:
    return any(_expression(pattern).fullmatch(value) for pattern in patterns)


@functools.cache
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile("".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in pattern), re.DOTALL)


def _name(arn: str) -> str:
    return arn.rpartition("/")[2]
