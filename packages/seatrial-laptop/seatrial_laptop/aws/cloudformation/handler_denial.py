"""The refusal of a right that who deploys lacks, as the event of a resource tells it (reported messages)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

import botocore.session
from ministack.core import iam_evaluator
from ministack.services import iam

from seatrial_laptop.aws.api import ApiError, service_model
from seatrial_laptop.aws.rights.role_rights import denial, role_denial
from seatrial_laptop.environment import own_account

if TYPE_CHECKING:
    from seatrial_laptop.aws.cloudformation.deployer import Deployer
    from seatrial_laptop.aws.rights.role_rights import Right

CLIENTS: Final = {"states": "stepfunctions"}
"""The name of a service's model where it is not the prefix of its actions."""
FORBIDDEN, BAD_REQUEST = 403, 400


def check_right(by: Deployer, right: Right) -> None:
    """Refuse what who deploys may not do.

    Raises:
        ApiError: AccessDenied, in CloudFormation's words.
    """
    if denied := _denial(by, right):
        raise ApiError("AccessDenied", _of_handler(right, denied))


def _denial(by: Deployer, right: Right) -> str | None:
    if by.session_name:
        return role_denial(by.arn, right, by.session_name)
    name, account = by.arn.rpartition("/")[2], own_account()
    user = iam_evaluator.PrincipalInfo(
        arn=by.arn,
        type="User",
        account=account,
        policies=iam_evaluator._gather_user_policies(name, account),  # noqa: SLF001 (the contract)
        limits=iam_evaluator._permissions_boundary(iam._users, name, account),  # noqa: SLF001 (the contract)
    )
    return denial(user, right)


def _of_handler(right: Right, denied: str) -> str:
    """Return IAM's refusal as a handler passes it on; IAM's own service calls a role by its name."""
    service = right.action.partition(":")[0]
    if service == "iam" and right.action != "iam:PassRole" and ":role/" in right.resource:
        denied = denied.replace(right.resource, f"role {right.resource.rpartition('/')[2]}")
    called, status = _client(CLIENTS.get(service, service))
    answered = f"(Service: {called}, Status Code: {status}, Request ID: {uuid.uuid4()}) (SDK Attempt Count: 1)"
    handled = f"(RequestToken: {uuid.uuid4()}, HandlerErrorCode: AccessDenied)"
    return f'Resource handler returned message: "{denied} {answered}" {handled}'


def _client(service: str) -> tuple[str, int]:
    """Return how the SDK for Java calls a service, and the status of its refusal: 400 of the JSON protocol."""
    if service not in botocore.session.get_session().get_available_services():
        return service, FORBIDDEN
    model = service_model(service)
    words = f"{model.service_id}".split()
    called = "".join(word.capitalize() if word.isupper() and not word.isdigit() else word for word in words)
    return called, BAD_REQUEST if model.metadata["protocol"] == "json" else FORBIDDEN
