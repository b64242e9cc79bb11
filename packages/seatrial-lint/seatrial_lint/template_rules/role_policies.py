"""The policies of roles, users and groups in templates, wherever they are attached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_lint.template_rules.policy_documents import MANAGED_POLICY, several

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_lint.cloudformation.template import TemplateResource
    from seatrial_lint.template_rules.hosting import Hosting
    from seatrial_lint.template_rules.policy_documents import PolicyDocument, PolicyStatement


def inline_policies(hosting: Hosting, holder: TemplateResource) -> Iterator[PolicyDocument]:
    """Yield the inline policies of a role, user or group."""
    held = hosting.held.get(holder.key, ())
    return (policy for policy in held if policy.resource.resource_type != MANAGED_POLICY)


def role_statements(hosting: Hosting, role: TemplateResource) -> tuple[PolicyStatement, ...] | None:
    """Return the statements of a role's policies; `None` when one of them is not in the templates."""
    named = several(role.at("ManagedPolicyArns"))
    managed = [hosting.resources.referred(role.template, each) for each in named]
    if None in managed or not (role.at("Policies").is_known or role.at("Policies").is_absent):
        return None
    keys = dict.fromkeys((role.key, *(each.key for each in managed if each)))
    policies = (policy for key in keys for policy in hosting.held.get(key, ()))
    return tuple(statement for policy in policies for statement in policy.statements)
