"""AWS::Budgets::Budget, which MiniStack's CloudFormation lacks, by MiniStack's own API of AWS Budgets.

The physical ID is the budget's name, as on AWS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import boto3
from botocore.exceptions import ClientError

from seatrial_laptop.aws.api import coerced, input_shape
from seatrial_laptop.aws.json_document import Document, child, children, text
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_laptop.aws.json_document import Handlers

BUDGET: Final = "AWS::Budgets::Budget"
SERVICE: Final = "budgets"
Created = tuple[str, Document]
"""A physical ID and the attributes for Fn::GetAtt."""


def budget_type() -> Handlers:
    """Return MiniStack's table of the type."""
    return {"create": _create, "update": _update, "delete": _delete}


def _create(logical_id: str, properties: Document, stack: str) -> Created:
    """Create the budget with its notifications; one without a name is called by stack and logical ID."""
    budget = {"BudgetName": f"{stack}-{logical_id}", **child(properties, "Budget")}
    notifications = children(properties, "NotificationsWithSubscribers")
    _call("CreateBudget", {"Budget": budget, "NotificationsWithSubscribers": notifications})
    return text(budget, "BudgetName"), {}


def _update(physical_id: str, old: Document, new: Document, stack: str) -> Created:
    """Make the budget anew: its notifications can't be changed as a whole."""
    name = text(child(new, "Budget"), "BudgetName", physical_id)
    if name == physical_id:
        _delete(physical_id, old)
    return _create("", {**new, "Budget": {**child(new, "Budget"), "BudgetName": name}}, stack)


def _delete(physical_id: str, _properties: Document) -> None:
    """Delete the budget; one that is gone already is fine."""
    try:
        _call("DeleteBudget", {"BudgetName": physical_id})
    except ClientError as error:
        if error.response["Error"]["Code"] != "NotFoundException":
            raise


def _call(operation: str, request: Document) -> None:
    """Call AWS Budgets of this same process; use it off the event loop only."""
    written = coerced(input_shape(SERVICE, operation), {"AccountId": own_account(), **request})
    if not isinstance(written, dict):
        raise TypeError(f"not a request: {written!r}")
    client = cast("Callable[..., object]", boto3.session.Session().client)(SERVICE, region_name=REGION)
    method = "create_budget" if operation == "CreateBudget" else "delete_budget"
    cast("Callable[..., object]", getattr(client, method))(**written)
