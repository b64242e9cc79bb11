"""Authorization: every request needs an `Allow` of its sender's policies, a user's or a role's.

The key of this start is the account's root and may do everything. Sessions of roles are those of functions, of the
roles that the CDK CLI deploys with, and of whoever calls `sts:AssumeRole`. MiniStack evaluates what its services are
asked for (`seatrial_laptop.aws.rights.sessions`); here are SageMaker, Application Auto Scaling, Service Catalog, and
the roles that any request passes to a service.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ministack.core import iam_actions, iam_evaluator
from ministack.core.router import detect_service

from seatrial_laptop.aws.gateway.openai_route import openai_route
from seatrial_laptop.aws.gateway.signature import Refusal, access_denied
from seatrial_laptop.aws.rights import sessions
from seatrial_laptop.aws.rights.role_rights import (
    COMPONENT_HEADER,
    CONTROL_PLANES,
    Right,
    bearer_right,
    denial,
    invocation_rights,
    json_object,
    passed_role,
    query_rights,
)
from seatrial_laptop.aws.service_catalog.catalog import root_arn
from seatrial_laptop.environment import own_account
from seatrial_load.aws.container_metrics import PATH as QUERY_PATH
from seatrial_load.aws.container_metrics import SERVICE as METRICS_SERVICE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_laptop.aws.gateway.signature import Received
    from seatrial_laptop.aws.rights.role_rights import TagsOf

RUNTIME_PATH: Final = re.compile(r"/endpoints/([^/]+)/(invocations|invocations-response-stream|async-invocations)")
RUNTIME_OPERATIONS: Final = {
    "invocations": "InvokeEndpoint",
    "invocations-response-stream": "InvokeEndpointWithResponseStream",
    "async-invocations": "InvokeEndpointAsync",
}


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


def refusal_of_caller(
    received: Received, access_key_id: str, service: str, body: bytes, tags_of: TagsOf
) -> Refusal | None:
    """Return why a caller may not do what a request asks; `None` when it may, or when the root asks."""
    if (principal := _principal(access_key_id)) is None:
        return None
    parameters = sessions.request_parameters(received.query, body, received.headers.get("content-type", ""))
    sessions.pin_parameters(parameters)
    refused = (why for right in _rights(received, service, body, tags_of) if (why := denial(principal, right)))
    message = next(refused, None)
    return access_denied(message) if message else None


def _principal(access_key_id: str) -> iam_evaluator.PrincipalInfo | None:
    """Return the user or role behind an access key; `None` for the root and for what is unknown."""
    principal = iam_evaluator.resolve_principal(access_key_id, own_account())
    return principal if isinstance(principal, iam_evaluator.PrincipalInfo) and principal.policies is not None else None


def _rights(received: Received, service: str, body: bytes, tags_of: TagsOf) -> Iterator[Right]:
    """Return what a request to our services needs, and the role that a request to any service passes."""
    operation = received.headers.get("x-amz-target", "").rpartition(".")[2]
    if runtime := RUNTIME_PATH.fullmatch(received.path):
        yield from invocation_rights(RUNTIME_OPERATIONS[runtime[2]], runtime[1], received.headers, tags_of)
        return
    if route := openai_route(received.path):
        named = {COMPONENT_HEADER: route.component} if route.component else {}
        yield bearer_right()
        yield from invocation_rights("InvokeEndpoint", route.endpoint, named, tags_of)
        return
    if received.path == QUERY_PATH and service == METRICS_SERVICE:
        yield from query_rights()
        return
    document = sessions.request_parameters(received.query, body, received.headers.get("content-type", ""))
    action = f"{service}:{operation}" if service in CONTROL_PLANES else _action(received, body)
    try:
        if service in CONTROL_PLANES:
            yield from CONTROL_PLANES[service](operation, json_object(body), tags_of)
        if passed := passed_role(action, document):
            yield passed
    except TypeError:  # a parameter of a wrong type: the service refuses it to those who may call it at all
        yield Right(action, "*")


def _action(received: Received, body: bytes) -> str:
    """Return the action that a request to a service of MiniStack asks for; empty when that isn't known."""
    query = {name: list(values) for name, values in received.query.items()}
    headers, method, path = dict(received.headers), received.method, received.path
    detected = detect_service(method, path, headers, query)
    return str(iam_actions.extract_iam_action(detected, method, path, headers, body, query) or "")
