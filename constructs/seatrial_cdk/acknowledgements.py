"""Deliberate findings of rule packs such as cdk-nag's AwsSolutions in our constructs, each with its reason.

An acknowledgement is metadata of the construct (`aws_cdk.Validations`): the template does not change, cdk-nag is not
needed, and its report has the reason beside each finding.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Stack, Validations

from seatrial_cdk.place import TOKEN_MARKER
from seatrial_lint.cloudformation.intrinsic import TemplateScope, evaluate, replace_references

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from constructs import IConstruct
    from pydantic import JsonValue

    from seatrial_lint.cloudformation.intrinsic import Reference

PACK = "AwsSolutions"
_PSEUDO = re.compile(r"\$\{Token\[AWS\.(\w+)\.\d+\]\}")


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
