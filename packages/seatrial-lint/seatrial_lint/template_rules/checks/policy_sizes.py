"""Sizes of IAM policies: what a document has at least, without white space, against the quota of its kind.

A reference counts with the shortest text that it can be, so that a policy that is refused here is refused by AWS.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from seatrial_lint.cloudformation.intrinsic import is_function, is_no_value, replace_references
from seatrial_lint.template_rules.hosting import finding_at, listed_names, rule
from seatrial_lint.template_rules.policy_documents import (
    BUCKET_POLICY,
    GROUP,
    MANAGED_POLICY,
    ROLE,
    USER,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from seatrial_base.findings import Finding
    from seatrial_lint.cloudformation.intrinsic import Reference
    from seatrial_lint.cloudformation.template import TemplateResource
    from seatrial_lint.template_rules.hosting import Hosting
    from seatrial_lint.template_rules.policy_documents import PolicyDocument

MANAGED_CHARACTERS: Final = 6_144
TRUST_CHARACTERS: Final = 2_048
INLINE_CHARACTERS: Final[Mapping[str, int]] = {ROLE: 10_240, USER: 2_048, GROUP: 5_120}
"""Of all inline policies of one holder together."""
RESOURCE_CHARACTERS: Final[Mapping[str, int]] = {
    BUCKET_POLICY: 20 * 1024,
    "AWS::KMS::Key": 32 * 1024,
    "AWS::KMS::ReplicaKey": 32 * 1024,
}
SHORTEST: Final[Mapping[str, int]] = {
    "AWS::AccountId": 12,
    "AWS::Region": len("us-east-1"),
    "AWS::Partition": len("aws"),
    "AWS::URLSuffix": len("amazonaws.com"),
}
"""The shortest text of a pseudo parameter."""
SHORTEST_ARN: Final = len("arn:aws:s3:::abc")


@rule("SEA784")
def policy_sizes(hosting: Hosting) -> Iterator[Finding]:
    """A managed policy, a trust policy or a policy of a resource that is too large."""
    for policy in hosting.policies:
        most, kind = _limit(policy)
        size = least_characters(policy.value.raw)
        if most and size > most:
            message = f"{kind} has at least {size:,} characters, more than {most:,}"
            hint = "split it, or name resources by a common prefix with a wildcard"
            yield finding_at(policy.resource, policy.value, "SEA784", message, hint)


@rule("SEA784")
def inline_sizes(hosting: Hosting) -> Iterator[Finding]:
    """Inline policies of a role, user or group that are too large together."""
    # One may have many holders.
    least = {id(policy): least_characters(policy.value.raw) for policy in hosting.policies}
    for holder_type, most in INLINE_CHARACTERS.items():
        for holder in hosting.resources.of(holder_type):
            sizes = {_name(policy, holder): least[id(policy)] for policy in hosting.inline_policies(holder)}
            if sum(sizes.values()) > most:
                parts = listed_names([f"{name} {size:,}" for name, size in sizes.items()])
                message = f"the inline policies have at least {sum(sizes.values()):,} characters, more than {most:,}"
                hint = f"move statements into a managed policy ({parts})"
                yield finding_at(holder, holder.at("Policies"), "SEA784", message, hint)


def _name(policy: PolicyDocument, holder: TemplateResource) -> str:
    is_own = policy.resource.key == holder.key
    return policy.value.path.removeprefix("Properties.") if is_own else policy.resource.logical_id


def _limit(policy: PolicyDocument) -> tuple[int, str]:
    """Return the most characters of a policy, and what it is called; 0 where it counts with others or none is known."""
    if policy.kind == "trust":
        return TRUST_CHARACTERS, "the trust policy"
    if policy.resource.resource_type == MANAGED_POLICY:
        return MANAGED_CHARACTERS, "the managed policy"
    return RESOURCE_CHARACTERS.get(policy.resource.resource_type, 0), "the policy"


def least_characters(value: JsonValue) -> int:
    """Return how many characters a document has at least when CloudFormation has evaluated it, without white space."""
    text = replace_references(value, _shortest)
    if text is not None:
        return len("".join(json.dumps(text, ensure_ascii=False).split()))
    if is_function(value):
        match value:
            case {"Fn::If": [_, first, second]}:
                return min(0 if is_no_value(one) else least_characters(one) for one in (first, second))
        return 0
    if isinstance(value, dict):
        sizes = [least_characters(name) + 1 + least_characters(below) for name, below in value.items()]
    elif isinstance(value, list):
        sizes = [least_characters(below) for below in value if not is_no_value(below)]
    else:
        return len(json.dumps(value))
    return sum(sizes) + max(len(sizes) - 1, 0) + len("{}")


def _shortest(reference: Reference) -> str:
    is_arn = reference.attribute.endswith("Arn")
    return "x" * (SHORTEST_ARN if is_arn else SHORTEST.get(reference.logical_id, 1))
