"""Access control in front of everything: the embedded AWS serves its user and its own functions, and no web page.

Refused with 403, in the form in which the called service writes its errors: a request with an `Origin` (each one that a
page of another origin sends has it), a request for another host (a page whose name was rebound to this machine), a
request that isn't signed with a key of this start, and every WebSocket. Nothing here invites a page: no response has
`Access-Control-*` headers.

One address needs no signature, as on AWS: the response URL of a custom resource, a random capability for one use.

An endpoint's OpenAI path takes a bearer token in place of the signature: decoded, and the call that it presigns checked
as a signature. OpenAI's own paths are refused with 501: no mock of a model answers here, and SageMaker's runtime has no
such path.

Every request needs an `Allow` of its sender's policies, a user's or a role's. The key of this start is the account's
root and may do everything. Sessions of roles are those of functions, of the roles that the CDK CLI deploys with, and of
whoever calls `sts:AssumeRole`. MiniStack evaluates requests to its services (`seatrial_laptop.aws.rights`); here are
SageMaker, Application Auto Scaling, Service Catalog, and the roles that any request passes to a service.
"""

from __future__ import annotations

import binascii
import json
import re
import time
from base64 import b64decode
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, quote
from xml.sax.saxutils import escape

from ministack.core import iam_actions, iam_evaluator
from ministack.core.router import detect_service
from ministack.services.cloudformation import custom_resource

from seatrial_laptop.aws.gateway.asgi import (
    BodyTooLargeError,
    begin_response,
    body_of,
    chunk,
    headers_of,
    openai_route,
    reply_openai_error,
)
from seatrial_laptop.aws.gateway.signature import (
    EXPIRED,
    Claim,
    Received,
    Refusal,
    access_denied,
    read_claim,
    too_large,
)
from seatrial_laptop.aws.rights import (
    COMPONENT_HEADER,
    CONTROL_PLANES,
    Right,
    bearer_right,
    denial,
    invocation_rights,
    json_object,
    passed_role,
    pin_parameters,
    query_rights,
    request_parameters,
)
from seatrial_laptop.aws.service_catalog import root_arn
from seatrial_laptop.environment import own_account
from seatrial_laptop.loopback import foreign_request_reason
from seatrial_laptop.state import REGION
from seatrial_load.aws.container_metrics import PATH as QUERY_PATH
from seatrial_load.aws.container_metrics import SERVICE as METRICS_SERVICE
from seatrial_load.aws.sigv4 import ACTION, HOST, LONGEST_S, PREFIX, SERVICE, VERSION
from seatrial_load.decode.response import NO_MODEL_HEADER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial_laptop.aws.gateway.asgi import App, Message, Receive, Scope, Send
    from seatrial_laptop.aws.rights import TagsOf
    from seatrial_laptop.state import LocalAws

RESPONSE_PATH: Final = "/_ministack/cfn-response/"
CONTROL_PATHS: Final = ("/_", "/health")
"""Paths of the embedded AWS itself, which are no service of AWS: for the key of its start alone."""
LONGEST_UNPROVEN_BYTES: Final = 80 * 2**20
"""Of a body without which a signature can't be checked. Lambda's zip has up to 50 MiB, and a third more in Base64 (AWS
Lambda quotas); nothing else that is sent without its hash is as long."""
QUERY_SERVICES: Final = frozenset(
    {"autoscaling", "cloudformation", "cloudwatch", "ec2", "elasticache", "elasticloadbalancing", "iam", "monitoring"}
    | {"rds", "redshift", "route53", "ses", "sns", "sts"}
)
"""Services that write errors as XML of the query protocol."""
POLICY_VIOLATION: Final = 1008
OPENAI_PATH: Final = re.compile(
    r"/+(?:openai/+)?v1/+(?:chat/+completions|completions|responses|embeddings|models)(?:/.*)?"
)
NO_MODEL: Final = (
    "no OpenAI route: an endpoint's is /endpoints/NAME/openai/v1, or /endpoints/NAME/inference-components/COMPONENT/"
    "openai/v1, with a bearer token, as on SageMaker (seatrial token makes one)"
)


SCHEME: Final = "bearer "
LONGEST_TOKEN: Final = 16_384
"""Characters: a session token has up to 2,048 (AWS STS API reference), encoded twice here."""
NO_TOKEN: Final = "The OpenAI path takes a bearer token alone: Authorization: Bearer sagemaker-api-key-…"  # noqa: S105 (a message)
NOT_READ: Final = "The bearer token is not one of SageMaker's."


@dataclass(frozen=True, slots=True)
class AccessControl:
    """The ASGI app in front of the embedded AWS.

    Attributes:
        aws_date_s: AWS's date, by which functions sign what they load with; all others sign by the real one.
    """

    process: LocalAws
    tags_of: TagsOf
    behind: App
    aws_date_s: Callable[[], float] = time.time

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or let what is behind answer it."""
        if scope["type"] == "lifespan":
            await self.behind(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        received = received_of(scope)
        if why := foreign_request_reason(received.headers, self.process.port):
            await _refuse(received, access_denied(why), send)
            return
        if OPENAI_PATH.fullmatch(received.path):
            await _refuse_model(send)
            return
        if openai_route(received.path):
            await self._answer_bearer(received, scope, receive, send)
            return
        if is_awaited_response(received):
            await self.behind(scope, receive, without_cors(send))
            return
        claim = claim_of_either(received, self.process, self._dates())
        body = claim if isinstance(claim, Refusal) else await _body_of_claim(claim, receive)
        refused = body if isinstance(body, Refusal) else self._denial(received, claim, body)
        if isinstance(body, bytes) and refused is None:
            await self.behind(over_tls(scope), replayed(body, receive), without_cors(send))
        elif refused:
            await _refuse(received, refused, send)

    async def _answer_bearer(self, received: Received, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request whose bearer may not send it, or let what is behind answer it; its body proves nothing."""
        claim = claim_of_either(received, self.process, self._dates(), read_bearer)
        if refused := claim if isinstance(claim, Refusal) else self._denial(received, claim, b""):
            await reply_openai_error(send, refused.status, refused.json, refused.message, {"connection": "close"})
        else:
            await self.behind(over_tls(scope), receive, without_cors(send))

    def _dates(self) -> tuple[datetime, datetime]:
        return datetime.now(UTC), datetime.fromtimestamp(self.aws_date_s(), UTC)

    def _denial(self, received: Received, claim: Claim | Refusal, body: bytes) -> Refusal | None:
        """Return why the sender may not do this."""
        if isinstance(claim, Refusal):
            return claim
        signature = claim.signature
        if received.path.startswith(CONTROL_PATHS) and signature.access_key_id != self.process.access_key_id:
            return access_denied(f"{received.path} is for the access key of this start alone.")
        return refusal_of_caller(received, signature.access_key_id, signature.service, body, self.tags_of)


async def _body_of_claim(claim: Claim, receive: Receive) -> bytes | Refusal:
    """Return the body that was signed, or why the request isn't what its sender signed."""
    if refused := claim.refusal_of_head():
        return refused
    most_bytes = None if claim.is_independent_of_body else LONGEST_UNPROVEN_BYTES
    try:
        body = await body_of(receive, most_bytes)
    except BodyTooLargeError:
        return too_large(LONGEST_UNPROVEN_BYTES)
    return claim.refusal(body) or body


def claim_of_either(
    received: Received,
    process: LocalAws,
    dates: tuple[datetime, datetime],
    read: Callable[[Received, LocalAws, datetime], Claim | Refusal] = read_claim,
) -> Claim | Refusal:
    """Read a request's proof, which may be of either date: of the real one or of AWS's."""
    claim = read(received, process, dates[0])
    is_late = isinstance(claim, Refusal) and claim.query == EXPIRED
    return read(received, process, dates[1]) if is_late else claim


def received_of(scope: Scope) -> Received:
    """Return the head of a request."""
    raw_path, query = scope.get("raw_path"), scope.get("query_string", b"")
    path = raw_path.decode("latin-1") if isinstance(raw_path, bytes) else quote(str(scope["path"]))
    text = query.decode("latin-1") if isinstance(query, bytes) else ""
    parameters = parse_qs(text, keep_blank_values=True)
    return Received(str(scope["method"]), str(scope["path"]), path, parameters, headers_of(scope))


def is_awaited_response(received: Received) -> bool:
    """Return whether a function answers the custom resource that waits for it."""
    token = received.raw_path.removeprefix(RESPONSE_PATH)
    return received.method == "PUT" and token != received.raw_path and token in custom_resource._pending  # noqa: SLF001 (the contract)


def over_tls(scope: Scope) -> Scope:
    """Return a request as one that came by TLS, which AWS's endpoints speak: a policy may refuse others."""
    headers = scope["headers"]
    if not isinstance(headers, list | tuple):
        raise TypeError(f"not headers: {headers!r}")
    return {**scope, "headers": [*headers, (b"x-forwarded-proto", b"https")]}


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return the channel of a request whose body was read already."""
    delivered = False

    async def again() -> Message:
        nonlocal delivered
        if delivered:
            return await receive()
        delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def without_cors(send: Send) -> Send:
    """Return a channel for answers that invites no page of another origin."""

    async def stripped(message: Message) -> None:
        pairs = message.get("headers")
        if isinstance(pairs, list | tuple):
            kept = [(name, value) for name, value in pairs if not name.lower().startswith(b"access-control-")]
            message = {**message, "headers": kept}
        await send(message)

    return stripped


async def _refuse(received: Received, refused: Refusal, send: Send) -> None:
    kind, body = aws_error_document(received, refused)
    await begin_response(
        send,
        refused.status,
        {
            "content-type": kind,
            "content-length": str(len(body)),
            "x-amzn-errortype": refused.json,
            # What follows may be a body that is never read.
            "connection": "close",
        },
    )
    await chunk(send, b"" if received.method == "HEAD" else body, more=False)


async def _refuse_model(send: Send) -> None:
    document = {"error": {"message": NO_MODEL, "type": "not_implemented", "code": HTTPStatus.NOT_IMPLEMENTED.value}}
    body = json.dumps(document).encode()
    head = {"content-type": "application/json", "content-length": str(len(body)), NO_MODEL_HEADER: "openai"}
    await begin_response(send, HTTPStatus.NOT_IMPLEMENTED, {**head, "connection": "close"})
    await chunk(send, body, more=False)


def aws_error_document(received: Received, refused: Refusal) -> tuple[str, bytes]:
    """Return the content type and the body of a refusal, in the form of the service that is called."""
    query = {name: list(values) for name, values in received.query.items()}
    service = detect_service(received.method, received.raw_path, dict(received.headers), query)
    message = escape(refused.message)
    if service in QUERY_SERVICES and "x-amz-target" not in received.headers:
        error = f"<Error><Type>Sender</Type><Code>{refused.query}</Code><Message>{message}</Message></Error>"
        return "text/xml", f"<ErrorResponse>{error}</ErrorResponse>".encode()
    if service == "s3" and not received.raw_path.startswith(("/endpoints/", "/_")):
        return "application/xml", f"<Error><Code>{refused.s3}</Code><Message>{message}</Message></Error>".encode()
    document = {"__type": refused.json, "message": refused.message}
    return "application/x-amz-json-1.1", json.dumps(document).encode()


def read_bearer(received: Received, process: LocalAws, now: datetime) -> Claim | Refusal:
    """Return whose token a request brings: its signature is right and of this Region, and it has not expired.

    A signature of the request itself is refused, as on AWS.
    """
    given = received.headers.get("authorization", "")
    if not given.lower().startswith(SCHEME):
        return access_denied(NO_TOKEN)
    call = _presigned_call(given[len(SCHEME) :].strip())
    if call is None:
        return access_denied(NOT_READ)
    claim = read_claim(call, process, now)
    if isinstance(claim, Refusal):
        return claim
    scope = claim.signature
    if (scope.service, scope.region) != (SERVICE, REGION):
        return access_denied(f"The bearer token is for {scope.service} in {scope.region}.")
    return claim.refusal(b"") or claim


def _presigned_call(token: str) -> Received | None:
    """Return the call that a token presigns, or `None` when it is none of SageMaker's tokens."""
    if not token.startswith(PREFIX) or len(token) > LONGEST_TOKEN:
        return None
    try:
        decoded = b64decode(token.removeprefix(PREFIX), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return None
    head = f"{HOST}/?"
    if not decoded.startswith(head) or not decoded.endswith(VERSION):
        return None
    query = parse_qs(decoded[len(head) : -len(VERSION)], keep_blank_values=True)
    expires = query.get("X-Amz-Expires", [""])[0]
    is_too_long = len(expires) > len(f"{LONGEST_S}") or (expires.isdigit() and int(expires) > LONGEST_S)
    if query.get("Action") != [ACTION] or is_too_long:
        return None
    return Received("POST", "/", "/", query, {"host": HOST})


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
    """Return why a caller may not make a request; `None` when it may, or when it is the root."""
    if (principal := _principal(access_key_id)) is None:
        return None
    parameters = request_parameters(received.query, body, received.headers.get("content-type", ""))
    pin_parameters(parameters)
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
    document = request_parameters(received.query, body, received.headers.get("content-type", ""))
    action = f"{service}:{operation}" if service in CONTROL_PLANES else _action(received, body)
    try:
        if service in CONTROL_PLANES:
            yield from CONTROL_PLANES[service](operation, json_object(body), tags_of)
        if passed := passed_role(action, document):
            yield passed
    except TypeError:  # a parameter of a wrong type: the service refuses it to those who may call it at all
        yield Right(action, "*")


def _action(received: Received, body: bytes) -> str:
    """Return the action of a request to a service of MiniStack; empty when that isn't known."""
    query = {name: list(values) for name, values in received.query.items()}
    headers, method, path = dict(received.headers), received.method, received.path
    detected = detect_service(method, path, headers, query)
    return str(iam_actions.extract_iam_action(detected, method, path, headers, body, query) or "")
