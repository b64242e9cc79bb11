"""The OpenAI path: a request goes to `/v1/chat/completions` of a copy as it is, and its answer comes back as it is.

Streams are passed on part by part, as server-sent events or as whatever else the container writes, with no event
stream of AWS around them. Assumed, since no document tells: an error of the container has the container's status (500
where it gave none), and a stream that breaks ends without its last chunk.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.gateway.asgi import begin_response, body_of, chunk, headers_of
from seatrial_laptop.aws.gateway.openai_route import (
    CONTAINER_PATH,
    MODEL_ERROR,
    OpenAiRoute,
    reply_openai,
    reply_openai_error,
)
from seatrial_laptop.aws.rights.request_rights import COMPONENT_HEADER, json_object
from seatrial_laptop.aws.runtime.container_call import ContainerAnswer, forwarded_headers, measured_call
from seatrial_laptop.aws.runtime.invocation import (
    INVOCATION_S,
    LARGEST_BODY_BYTES,
    STREAM_S,
    capture,
    common_head,
    mirror,
    model_error_text,
    reserved,
    while_connected,
)
from seatrial_laptop.aws.runtime.routing import Route, route_request
from seatrial_laptop.aws.runtime.telemetry import Invocation
from seatrial_laptop.loopback import TOKEN_HEADER, Response, exchange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.gateway.asgi import Receive, Scope, Send


@dataclass(frozen=True, slots=True)
class _Call:
    """One request on its way: who answers, what is asked, and when it came."""

    cloud: Cloud
    found: Route
    headers: Mapping[str, str]
    body: bytes
    send: Send
    arrived_s: float


async def answer_openai(cloud: Cloud, route: OpenAiRoute, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request; when the client goes away, the copy's slot is freed."""
    body, headers = await body_of(receive), headers_of(scope)
    await while_connected(_answer(cloud, route, headers, body, send), receive)


async def _answer(cloud: Cloud, route: OpenAiRoute, headers: Mapping[str, str], body: bytes, send: Send) -> None:
    arrived_s = time.monotonic()
    try:
        _check(route, headers)
        routed = {**headers, **({COMPONENT_HEADER: route.component} if route.component else {})}
        found = route_request(cloud, route.endpoint, routed, body)
    except ApiError as error:
        await reply_openai(send, error)
        return
    with reserved(found.copy):
        if len(body) > LARGEST_BODY_BYTES:
            message = f"HTTP content length exceeded {LARGEST_BODY_BYTES} bytes."
            await reply_openai_error(send, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "ValidationError", message)
            return
        mirror(cloud, route.endpoint, headers, body, CONTAINER_PATH)
        call = _Call(cloud, found, headers, body, send, arrived_s)
        await (_stream(call) if json_object(body).get("stream") is True else _whole(call))


def _check(route: OpenAiRoute, headers: Mapping[str, str]) -> None:
    """Refuse what is refused before a copy is looked for.

    Raises:
        ApiError: UnknownOperationException, or ValidationError of a component that a header names: the path does.
    """
    if not route.is_routed:
        message = f"/openai/v1/{route.operation} is not routed: chat/completions alone is."
        raise ApiError("UnknownOperationException", message, HTTPStatus.NOT_FOUND)
    if COMPONENT_HEADER in headers:
        raise ApiError("ValidationError", "The OpenAI path names the inference component; its header is not taken.")


async def _whole(call: _Call) -> None:
    forwarded = forwarded_headers(call.headers)
    answer, told = await measured_call(
        call.found.copy, forwarded, call.body, INVOCATION_S, arrived_s=call.arrived_s, path=CONTAINER_PATH
    )
    capture(call.cloud, call.found, call.headers, call.body, answer)
    if answer.is_good:
        head = {**common_head(call.found.variant, answer.engine), "content-type": answer.content_type}
        await begin_response(call.send, answer.status, head)
        await chunk(call.send, answer.body, more=False)
    else:
        await _model_error(call, answer.status, answer.body)
    call.cloud.telemetry.saw(call.found.place, told)


async def _stream(call: _Call) -> None:
    in_flight, asked_s = call.found.copy.outstanding, time.monotonic()
    told = await _passed_on(call)
    seen = Invocation(
        status=told.status,
        model_s=time.monotonic() - asked_s,
        overhead_s=asked_s - call.arrived_s,
        in_flight=in_flight,
        first_chunk_s=None if told.first_chunk_at_s is None else told.first_chunk_at_s - asked_s,
    )
    call.cloud.telemetry.saw(call.found.place, seen)


async def _passed_on(call: _Call) -> ContainerAnswer:
    """Pass a stream on; one that breaks after its head has no last chunk, by which the client sees it."""
    begun, first_s = False, None
    headers = {**forwarded_headers(call.headers), TOKEN_HEADER: call.found.copy.token}
    try:
        async with (
            asyncio.timeout(STREAM_S),
            exchange(call.found.copy.port, "POST", CONTAINER_PATH, body=call.body, headers=headers) as response,
        ):
            if response.status >= HTTPStatus.BAD_REQUEST:
                return await _model_error(call, response.status, await response.read())
            begun = True
            await begin_response(call.send, response.status, _head(call, response))
            async for data in response.chunks():
                first_s = time.monotonic() if first_s is None else first_s
                await chunk(call.send, data)
        await chunk(call.send, b"", more=False)
    except OSError as broken:  # a timeout too
        why = f"The container's stream broke, or had no end after {STREAM_S:g} s: {broken}"
        return ContainerAnswer(0) if begun else await _model_error(call, 0, why.encode())
    return ContainerAnswer(response.status, first_chunk_at_s=first_s)


def _head(call: _Call, response: Response) -> dict[str, str]:
    kind = response.headers.get("content-type", "application/octet-stream")
    return {**common_head(call.found.variant, response.headers.get("x-seatrial-engine", "")), "content-type": kind}


async def _model_error(call: _Call, status: int, said: bytes) -> ContainerAnswer:
    message = model_error_text(call.found, status, said.decode(errors="replace"))
    await reply_openai_error(call.send, status or HTTPStatus.INTERNAL_SERVER_ERROR, MODEL_ERROR, message)
    return ContainerAnswer(status)
