"""The policies of roles, users and groups in templates, wherever they are attached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_lint.template_rules.policy_documents import INLINE_POLICY, MANAGED_POLICY, several

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial_lint.cloudformation.template import TemplateResource
    from seatrial_lint.template_rules.hosting import Hosting
    from seatrial_lint.template_rules.policy_documents import PolicyDocument, PolicyStatement

ATTACHED_TO: Mapping[str, tuple[str, ...]] = {
    INLINE_POLICY: ("Roles", "Users", "Groups"),
    MANAGED_POLICY: ("Roles", "Users", "Groups"),
    "AWS::IAM::RolePolicy": ("RoleName",),
    "AWS::IAM::UserPolicy": ("UserName",),
    "AWS::IAM::GroupPolicy": ("GroupName",),
}
"""The properties that name what a policy is attached to."""


def inline_policies(hosting: Hosting, holder: TemplateResource) -> Iterator[PolicyDocument]:
    """Yield the inline policies of a role, user or group."""
    for policy in hosting.policies:
        is_own = policy.resource.key == holder.key and policy.kind == "identity"
        is_managed = policy.resource.resource_type == MANAGED_POLICY
        if is_own or (not is_managed and _is_attached(hosting, policy, holder)):
            yield policy


def role_statements(hosting: Hosting, role: TemplateResource) -> tuple[PolicyStatement, ...] | None:
    """Return the statements of a role's policies; `None` when one of them is not in the templates."""
    named = several(role.at("ManagedPolicyArns"))
    managed = [hosting.resources.referred(role.template, each) for each in named]
    if None in managed or not (role.at("Policies").is_known or role.at("Policies").is_absent):
        return None
    keys = {each.key for each in managed if each}
    of_role = [
        policy
        for policy in hosting.policies
        if policy.resource.resource_type == MANAGED_POLICY
        and (policy.resource.key in keys or _is_attached(hosting, policy, role))
    ]
    policies = (*inline_policies(hosting, role), *of_role)
    return tuple(statement for policy in policies for statement in policy.statements)


def _is_attached(hosting: Hosting, policy: PolicyDocument, holder: TemplateResource) -> bool:
    resource = policy.resource
    places = ATTACHED_TO.get(resource.resource_type, ())
    names = (name for place in places for name in several(resource.at(place)))
    referred = (hosting.resources.referred(resource.template, name) for name in names)
    return any(each is not None and each.key == holder.key for each in referred)
