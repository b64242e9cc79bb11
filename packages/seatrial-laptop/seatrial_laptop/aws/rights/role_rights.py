"""What a role may do: its identity policies and permissions boundary, evaluated by MiniStack with every condition.

One evaluation for everyone who acts with a role: functions and workflows that sign with its session, CloudFormation
that deploys with it, SageMaker that downloads and reads alarms with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ministack.core import iam_evaluator
from ministack.services import iam

from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    name, account = role_arn.rpartition("/")[2], own_account()
    policies = iam_evaluator._gather_role_policies(name, account)  # noqa: SLF001 (the contract)
    limits = iam_evaluator._permissions_boundary(iam._roles, name, account)  # noqa: SLF001 (the contract)
    context = iam_evaluator.EvalContext(
        principal_arn=role_arn,
        principal_type="AssumedRole",
        principal_account=account,
        action=right.action,
        resource_arn=right.resource,
        region=REGION,
        service_context=dict(right.context),
    )
    return bool(iam_evaluator.evaluate(context, policies, *limits).decision == "Allow")
