"""What an IAM user may do: every request that is signed with a user's access key needs an `Allow` of its policies.

The policies are evaluated by MiniStack. The key of this start is the root's and may do everything, as may the functions
and the sessions of roles: those are what the CDK CLI deploys with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ministack.core import iam_actions, iam_evaluator
from ministack.core.router import detect_service

from seatrial_laptop.aws.gateway.signature import Refusal, access_denied
from seatrial_laptop.aws.service_catalog.catalog import root_arn
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from seatrial_laptop.aws.gateway.signature import Received

USER_KEY: Final = "AKIA"
"""How the ID of a user's access key begins; that of a session of a role begins otherwise."""
ASYNC_END: Final = "/async-invocations"
"""How the path of an asynchronous invocation ends; it needs a right of its own."""
ALWAYS: Final = frozenset({"sts:GetCallerIdentity", "sts:GetSessionToken"})
"""What needs no right (IAM user guide, policy evaluation logic)."""


def principal_of(access_key_id: str) -> str:
    """Return the ARN of the user or role behind an access key, or the root's."""
    principal = _principal(access_key_id)
    if principal is None:
        return root_arn()
    arn = str(principal.arn)
    if ":assumed-role/" not in arn:
        return arn
    role = arn.partition(":assumed-role/")[2].partition("/")[0]
    return f"arn:aws:iam::{own_account()}:role/{role}"


def refusal_of_user(
    received: Received, access_key_id: str, own_key_id: str, service: str, body: bytes
) -> Refusal | None:
    """Return why a user may not do what a request asks; `None` when it may, or when no user asks.

    Args:
        received: The head of the request.
        access_key_id: The key that it is signed with.
        own_key_id: The key of this start.
        service: The service in the scope of the signature.
        body: The body.
    """
    if access_key_id == own_key_id or not access_key_id.startswith(USER_KEY):
        return None
    principal = _principal(access_key_id)
    if principal is None:
        return None
    action, resource = _asked(received, service, body)
    if action in ALWAYS:
        return None
    context = iam_evaluator.EvalContext(
        principal_arn=principal.arn,
        principal_type=principal.type,
        principal_account=principal.account,
        action=action,
        resource_arn=resource,
        region=REGION,
        principal_keys=principal.keys,
    )
    decision = iam_evaluator.evaluate(context, principal.policies, *principal.limits).decision
    if decision == "Allow":
        return None
    return access_denied(f"User: {principal.arn} is not authorized to perform: {action} on resource: {resource}")


def _principal(access_key_id: str) -> iam_evaluator.PrincipalInfo | None:
    """Return the user or role behind an access key; `None` for the root and for what is unknown."""
    found = iam_evaluator.resolve_principal(access_key_id, own_account())
    return found if isinstance(found, iam_evaluator.PrincipalInfo) and found.policies is not None else None


def _asked(received: Received, service: str, body: bytes) -> tuple[str, str]:
    """Return the action and the ARN that a request names; an ARN that isn't known is `*`."""
    target = received.headers.get("x-amz-target", "").rpartition(".")[2]
    if service in ("sagemaker", "servicecatalog", "application-autoscaling"):
        invoked = "InvokeEndpointAsync" if received.raw_path.endswith(ASYNC_END) else "InvokeEndpoint"
        return f"{service}:{target or invoked}", "*"
    query = {name: list(values) for name, values in received.query.items()}
    headers, method, path = dict(received.headers), received.method, received.raw_path
    detected = detect_service(method, path, headers, query)
    action = iam_actions.extract_iam_action(detected, method, path, headers, body, query)
    resource = iam_actions.extract_resource_arn(detected, method, path, headers, body, query, REGION, own_account())
    return str(action or f"{service}:{target}"), str(resource)
