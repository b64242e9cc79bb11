"""Requests that are throttled by a fault, whatever service they are for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from seatrial_laptop.aws.gateway.asgi import begin_response, body_of, chunk, headers_of
from seatrial_laptop.aws.gateway.authentication import aws_error_document, received_of, replayed
from seatrial_laptop.aws.gateway.openai_route import PATH as OPENAI_PATH
from seatrial_laptop.aws.gateway.openai_route import openai_route, reply_openai_error
from seatrial_laptop.aws.gateway.signature import Refusal

if TYPE_CHECKING:
    from seatrial_laptop.aws.faults import Faults
    from seatrial_laptop.aws.gateway.asgi import App, Receive, Scope, Send

BAD_REQUEST: Final = 400
CLOUDWATCH: Final = "GraniteService"
"""How the target of CloudWatch begins: it tells the code of the query protocol, which it once spoke, too."""
RPC_PATH: Final = re.compile(r"/service/[^/]+/operation/(\w+)")
REST_PATHS: Final = (
    (re.compile(r"/endpoints/[^/]+/invocations"), "InvokeEndpoint"),
    (re.compile(r"/endpoints/[^/]+/invocations-response-stream"), "InvokeEndpointWithResponseStream"),
    (re.compile(r"/endpoints/[^/]+/async-invocations"), "InvokeEndpointAsync"),
    (OPENAI_PATH, "InvokeEndpoint"),
    (re.compile(r"/2015-03-31/functions/[^/]+/invocations"), "Invoke"),
)
"""Operations that the path of a request alone tells."""


@dataclass(frozen=True, slots=True)
class Throttling:
    """The ASGI app that refuses what is throttled, in front of the services."""

    faults: Faults
    behind: App

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or let what is behind answer it."""
        if scope["type"] != "http" or not self.faults.settings().throttled:
            await self.behind(scope, receive, send)
            return
        body = await body_of(receive)
        operation = operation_of(headers_of(scope), str(scope["path"]), body)
        if operation and self.faults.throttles(operation):
            await _refuse(scope, send)
        else:
            await self.behind(scope, replayed(body, receive), send)


def operation_of(headers: dict[str, str], path: str, body: bytes) -> str:
    """Return the operation that a request asks for; empty when neither headers, path nor body tell."""
    if target := headers.get("x-amz-target", ""):
        return target.rpartition(".")[2]
    if rpc := RPC_PATH.fullmatch(path):
        return rpc[1]
    if named := next((name for pattern, name in REST_PATHS if pattern.fullmatch(path)), ""):
        return named
    if headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return parse_qs(body.decode("latin-1")).get("Action", [""])[0]
    return ""


async def _refuse(scope: Scope, send: Send) -> None:
    """Answer as AWS does: the query protocol says Throttling, as does CloudWatch; all others ThrottlingException."""
    refused = Refusal(json="ThrottlingException", query="Throttling", s3="SlowDown", message="Rate exceeded")
    if openai_route(str(scope["path"])):
        await reply_openai_error(send, BAD_REQUEST, refused.json, refused.message)
        return
    kind, body = aws_error_document(received_of(scope), refused)
    head = {"content-type": kind, "content-length": str(len(body)), "x-amzn-errortype": refused.json}
    if headers_of(scope).get("x-amz-target", "").startswith(CLOUDWATCH):
        head["x-amzn-query-error"] = f"{refused.query};Sender"
    await begin_response(send, BAD_REQUEST, head)
    await chunk(send, body, more=False)
