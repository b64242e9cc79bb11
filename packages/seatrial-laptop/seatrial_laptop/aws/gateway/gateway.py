"""One ASGI app: our services in front, MiniStack behind; `gate` lets in what is signed.

The credential scope of the signature names the service; the path separates the runtime from the control plane.

Requests that are throttled by a fault, whatever service they are for.
"""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from ministack.core.sigv4 import HeaderSignature, parse_header_signature

from seatrial_base.text import json_document
from seatrial_laptop.aws.api import ApiError, absent
from seatrial_laptop.aws.autoscaling.scalable_targets import Scaling, call_autoscaling
from seatrial_laptop.aws.control_plane.records import Kind, arn_of
from seatrial_laptop.aws.control_plane.sagemaker import call_sagemaker
from seatrial_laptop.aws.gateway.access_control import aws_error_document, principal_of, received_of, replayed
from seatrial_laptop.aws.gateway.asgi import PATH as OPENAI_PATH
from seatrial_laptop.aws.gateway.asgi import (
    begin_response,
    body_of,
    chunk,
    headers_of,
    openai_route,
    reply,
    reply_error,
    reply_openai,
    reply_openai_error,
)
from seatrial_laptop.aws.gateway.signature import Refusal
from seatrial_laptop.aws.json_document import Document, text_member
from seatrial_laptop.aws.runtime.async_invocation import invoke_async
from seatrial_laptop.aws.runtime.container_history import BadQueryError, answer_range
from seatrial_laptop.aws.runtime.invocation import answer_invocation, answer_openai
from seatrial_laptop.aws.runtime.running_copies import CopyPlace
from seatrial_laptop.aws.service_catalog import call_service_catalog
from seatrial_laptop.environment import own_account
from seatrial_laptop.running import CONTROL_PATH, STATUS_PATH
from seatrial_load.aws.container_metrics import PATH as QUERY_PATH
from seatrial_load.aws.container_metrics import SERVICE as METRICS_SERVICE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.records import Record
    from seatrial_laptop.aws.faults import Faults
    from seatrial_laptop.aws.gateway.asgi import App, Receive, Scope, Send
    from seatrial_laptop.aws.service_catalog import Catalog

ASYNC_PATH: Final = re.compile(r"/endpoints/([^/]+)/async-invocations")
RUNTIME_PATH: Final = re.compile(r"/endpoints/([^/]+)/invocations(-response-stream)?")


@dataclass(frozen=True, slots=True)
class Gateway:
    """The ASGI app of the embedded AWS."""

    cloud: Cloud
    scaling: Scaling
    catalog: Catalog
    behind: App

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let MiniStack answer it."""
        if scope["type"] != "http":
            await self.behind(scope, receive, send)
            return
        path, headers = str(scope["path"]), headers_of(scope)
        signature = parse_header_signature(headers)
        key_id, service = (
            (signature.access_key_id, signature.service) if isinstance(signature, HeaderSignature) else ("", "")
        )
        if path == STATUS_PATH:
            await reply(send, HTTPStatus.OK, running_document(self.cloud), {"content-type": "application/json"})
        elif path == CONTROL_PATH:
            await _set_control(self.cloud, str(scope["method"]), receive, send)
        elif path.startswith("/endpoints/") and (answer := self._runtime(path)):
            await answer(scope, receive, send)
        elif path == QUERY_PATH and service == METRICS_SERVICE:
            await _answer_query(self.cloud, receive, send)
        elif plane := self._control_plane(service, key_id):
            await _control(self.cloud, plane, headers, receive, send)
        elif service.startswith("bedrock"):
            await reply_error(send, absent("Amazon Bedrock is not supported: no model runs here"))
        else:
            await self.behind(scope, receive, send)

    def _runtime(self, path: str) -> App | None:
        """Return what answers an invocation of an endpoint; `None` for another path."""
        if runtime := RUNTIME_PATH.fullmatch(path):
            streamed = runtime[2] is not None
            operation = f"InvokeEndpoint{'WithResponseStream' if streamed else ''}"
            answer: App = partial(answer_invocation, self.cloud, runtime[1], streamed=streamed)
            return _unless_denied(self.cloud, operation, runtime[1], answer)
        if route := openai_route(path):
            answer = partial(answer_openai, self.cloud, route)
            return _unless_denied(self.cloud, "InvokeEndpoint", route.endpoint, answer, reply_openai)
        if asynchronous := ASYNC_PATH.fullmatch(path):
            answer = partial(invoke_async, self.cloud, asynchronous[1])
            return _unless_denied(self.cloud, "InvokeEndpointAsync", asynchronous[1], answer)
        return None

    def _control_plane(self, service: str, key_id: str) -> Callable[[str, Document], Document] | None:
        """Return what answers the operations of a service; `None` for one that is not ours."""
        if service == "sagemaker":
            return lambda name, ask: call_sagemaker(self.cloud, name, ask)
        if service == "application-autoscaling":
            return lambda name, ask: call_autoscaling(self.scaling, name, ask)
        if service == "servicecatalog":
            principal = principal_of(key_id)
            return lambda name, ask: call_service_catalog(self.catalog, name, ask, principal)
        return None


def _unless_denied(
    cloud: Cloud,
    operation: str,
    endpoint_name: str,
    answer: App,
    refuse: Callable[[Send, ApiError], Awaitable[None]] = reply_error,
) -> App:
    """Return what refuses an invocation where a fault denies it, else answers it."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if denied := denial(cloud, operation, {"EndpointName": endpoint_name}):
            await refuse(send, denied)
        else:
            await answer(scope, receive, send)

    return app


def running_document(cloud: Cloud) -> Document:
    """Return what the embedded AWS runs: its endpoints and components, with their copies' ports."""
    return {
        "pid": os.getpid(),
        "endpoints": [
            {"name": record.name, "status": record.status, "ports": _ports_of_variants(cloud, record.name)}
            for record in cloud.store.all(Kind.ENDPOINT)
        ],
        "inference_components": [
            {
                "name": record.name,
                "endpoint": text_member(record.request, "EndpointName"),
                "status": record.status,
                "ports": [copy.port for copy in cloud.running.copies(CopyPlace(record.name))],
            }
            for record in cloud.store.all(Kind.INFERENCE_COMPONENT)
        ],
    }


def _ports_of_variants(cloud: Cloud, endpoint_name: str) -> list[int]:
    places = [place for place in cloud.running.places() if place.variant and place.owner == endpoint_name]
    return [copy.port for place in places for copy in cloud.running.copies(place)]


def denial(cloud: Cloud, operation: str, request: Document) -> ApiError | None:
    """Return the refusal that a fault makes of a request, or None; a request of CloudFormation is never denied."""
    named = [cloud.store.find(kind, name) for kind in Kind if (name := str(request.get(f"{kind}Name") or ""))]
    arns = {str(request.get("ResourceArn") or "")}
    tagged = [record for kind in Kind for record in cloud.store.all(kind) if record.arn in arns]
    born_s = [record.born_s for record in (*named, *tagged, _scaled(cloud, request)) if record]
    if not cloud.faults.denies(operation, born_s):
        return denial_of_absent(cloud, operation, request)
    message = f"User is not authorized to perform: {operation} because no identity-based policy allows the action"
    return ApiError("AccessDeniedException", message)


def _scaled(cloud: Cloud, request: Document) -> Record | None:
    """Return what a request to Application Auto Scaling names, or None."""
    kind, name, *_ = [*str(request.get("ResourceId") or "").split("/"), ""]
    return cloud.store.find(Kind.ENDPOINT if kind == "endpoint" else Kind.INFERENCE_COMPONENT, name)


async def _answer_query(cloud: Cloud, receive: Receive, send: Send) -> None:
    """Answer a query of PromQL, in Prometheus' form."""
    parameters = parse_qs((await body_of(receive)).decode(errors="replace"))
    status = HTTPStatus.OK
    try:
        document = answer_range(cloud.containers, parameters)
    except BadQueryError as bad:
        status, document = HTTPStatus.BAD_REQUEST, {"status": "error", "errorType": "bad_data", "error": f"{bad}"}
    await reply(send, status, document, {"content-type": "application/json"})


async def _set_control(cloud: Cloud, method: str, receive: Receive, send: Send) -> None:
    """Answer the control interface: GET reads the settings, PUT changes those given, DELETE returns to the defaults."""
    body = await body_of(receive)
    if method not in ("GET", "PUT", "DELETE"):
        problem = f"{CONTROL_PATH} takes GET, PUT and DELETE, not {method}."
        await reply_error(send, ApiError("ValidationException", problem))
        return
    try:
        if method == "DELETE":
            cloud.faults.reset()
        elif method == "PUT":
            cloud.faults.change(_object(body))
    except ApiError as error:
        await reply_error(send, error)
        return
    settings = cloud.faults.settings().model_dump(mode="json")
    await reply(send, HTTPStatus.OK, settings, {"content-type": "application/json"})


def _object(body: bytes, code: str = "ValidationException") -> Document:
    try:
        document = json_document(body)
    except ValueError as error:
        raise ApiError(code, f"the body is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise ApiError(code, "the body is no JSON object")
    return document


async def _control(
    cloud: Cloud, call: Callable[[str, Document], Document], headers: dict[str, str], receive: Receive, send: Send
) -> None:
    operation = headers.get("x-amz-target", "").rpartition(".")[2]
    body = await body_of(receive)
    try:
        request = _object(body or b"{}", "SerializationException")
        if denied := denial(cloud, operation, request):
            raise denied
        answer = await asyncio.to_thread(call, operation, request)
    except ApiError as error:
        await reply_error(send, error)
    else:
        await reply(send, HTTPStatus.OK, answer)


def denial_of_absent(cloud: Cloud, operation: str, request: Document) -> ApiError | None:
    """Return the refusal of a request that names what is not there; None unless `absent_is_denied` is set.

    What a request creates or invokes is not looked for.
    """
    if not cloud.faults.settings().absent_is_denied or operation.startswith(("Create", "Invoke")):
        return None
    named = [(kind, str(request[f"{kind}Name"])) for kind in Kind if request.get(f"{kind}Name")]
    absent = next(((kind, name) for kind, name in named if cloud.store.find(kind, name) is None), None)
    if absent is None:
        return None
    message = (
        f"User: arn:aws:sts::{own_account()}:assumed-role/embedded-aws/session is not authorized to perform: "
        f"sagemaker:{operation} on resource: {arn_of(*absent)} because no identity-based policy allows the "
        f"sagemaker:{operation} action"
    )
    return ApiError("AccessDeniedException", message, HTTPStatus.BAD_REQUEST)


BAD_REQUEST: Final = 400
CLOUDWATCH: Final = "GraniteService"
"""How the target of CloudWatch begins: it sends the code of the query protocol, which it once spoke, too."""
RPC_PATH: Final = re.compile(r"/service/[^/]+/operation/(\w+)")
REST_PATHS: Final = (
    (re.compile(r"/endpoints/[^/]+/invocations"), "InvokeEndpoint"),
    (re.compile(r"/endpoints/[^/]+/invocations-response-stream"), "InvokeEndpointWithResponseStream"),
    (re.compile(r"/endpoints/[^/]+/async-invocations"), "InvokeEndpointAsync"),
    (OPENAI_PATH, "InvokeEndpoint"),
    (re.compile(r"/2015-03-31/functions/[^/]+/invocations"), "Invoke"),
)
"""Operations that follow from the path of a request alone."""


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
    """Return the operation of a request; empty when neither headers, path nor body name it."""
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
    """Answer as AWS does: Throttling in the query protocol, as does CloudWatch; all others ThrottlingException."""
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
