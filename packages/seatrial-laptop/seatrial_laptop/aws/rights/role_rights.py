"""What a role may do: its identity policies and permissions boundary, evaluated by MiniStack with every condition.

One evaluation for everyone who acts with a role: functions and workflows that sign with its session, CloudFormation
that deploys with it, SageMaker that downloads and reads alarms with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ministack.core import iam_evaluator
from ministack.services import iam

from seatrial_base.catalog.service_authorization import action_facts
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ministack.core.iam_evaluator import EvalContext, PrincipalInfo


DENY: Final = "Deny"
ALLOW: Final = "Allow"


@dataclass(frozen=True, slots=True)
class Right:
    """A right that a call needs.

    Attributes:
        action: The action, as `sagemaker:CreateEndpoint`.
        resource: The ARN, or `*` where the action has no resource level.
        context: Condition keys of the request in lower case, with their values; a key that is not there is absent.
    """

    action: str
    resource: str
    context: Mapping[str, str | list[str]] = field(default_factory=dict)


def role_allows(role_arn: str, right: Right) -> bool:
    """Tell whether the policies and the boundary of a role allow a right; a role that isn't there may nothing.

    Args:
        role_arn: ARN of the role.
        right: What the call needs.
    """
    return role_denial(role_arn, right) is None


def role_denial(role_arn: str, right: Right, session_name: str = "SageMaker") -> str | None:
    """Return why a role may not do something, in IAM's words; `None` when it may.

    Args:
        role_arn: ARN of the role.
        right: What the call needs.
        session_name: The name of the session, which the message tells.
    """
    name, account = role_arn.rpartition("/")[2], own_account()
    principal = iam_evaluator.PrincipalInfo(
        arn=f"arn:aws:sts::{account}:assumed-role/{name}/{session_name}",
        type="AssumedRole",
        account=account,
        policies=iam_evaluator._gather_role_policies(name, account),  # noqa: SLF001 (the contract)
        limits=iam_evaluator._permissions_boundary(iam._roles, name, account),  # noqa: SLF001 (the contract)
    )
    return denial(principal, right)


def denial(principal: PrincipalInfo, right: Right) -> str | None:
    """Return why a principal may not do something, in IAM's words; `None` when it may.

    The order is IAM's (user guide, "Policy evaluation logic"): an explicit deny anywhere, then the identity's own
    policies, then its permissions boundary and the policies of its session. Wording: IAM user guide, "Troubleshoot
    access denied error messages".

    Args:
        principal: Who calls; one without policies is the account's root, who may everything.
        right: What the call needs.
    """
    if principal.policies is None:
        return None
    context = _context(principal, right)
    result = iam_evaluator.evaluate(context, principal.policies, *principal.limits)
    service = right.action.partition(":")[0]
    if found := iam_evaluator._resource_policy(service, right.resource):  # noqa: SLF001 (the contract)
        key = service == "kms"  # a key's own policy must allow it too
        result = iam_evaluator.combine_resource_policy(
            result, context, *found, required=key, limits=tuple(principal.limits)
        )
    if result.decision == ALLOW:
        return None
    head = f"User: {principal.arn} is not authorized to perform: {right.action} on resource: {right.resource}"
    if result.resource_policy_arn:
        return f"{head} with an explicit deny in a resource-based policy"
    if result.decision == DENY:
        return f"{head} with an explicit deny in {_denying_policy(context, principal)}"
    return f"{head} because no {_silent_policy(context, principal)} allows the {right.action} action"


def _context(principal: PrincipalInfo, right: Right) -> EvalContext:
    return iam_evaluator.EvalContext(
        principal_arn=principal.arn,
        principal_type=principal.type,
        principal_account=principal.account,
        action=right.action,
        resource_arn=right.resource,
        region=REGION,
        secure_transport=True,
        service_context={"aws:tagkeys": None, **_carried(right)},
        principal_keys=principal.keys,
    )


def _carried(right: Right) -> Mapping[str, str | list[str]]:
    """Return the condition keys that the action carries on this resource: a policy sees no others, as on AWS."""
    facts = action_facts(right.action)
    if facts is None:
        return right.context
    return {key: value for key, value in right.context.items() if facts.carries(key, right.resource)}


def _denying_policy(context: EvalContext, principal: PrincipalInfo) -> str:
    if iam_evaluator.evaluate(context, principal.policies or []).decision == DENY:
        return "an identity-based policy"
    return "a permissions boundary" if _has_boundary(principal) else "a session policy"


def _silent_policy(context: EvalContext, principal: PrincipalInfo) -> str:
    if iam_evaluator.evaluate(context, principal.policies or []).decision != ALLOW:
        return "identity-based policy"
    first = iam_evaluator.evaluate(context, principal.limits[0]).decision
    return "permissions boundary" if first != ALLOW and _has_boundary(principal) else "session policy"


def _has_boundary(principal: PrincipalInfo) -> bool:
    """Tell whether the first limit of a principal is its permissions boundary."""
    name = principal.arn.split("/")[1] if "/" in principal.arn else ""
    kept = iam._roles if principal.type == "AssumedRole" else iam._users  # noqa: SLF001 (the contract)
    return bool((kept.get_scoped(principal.account, None, name) or {}).get("PermissionsBoundary"))
