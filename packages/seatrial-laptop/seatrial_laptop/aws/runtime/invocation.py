"""An invocation from the client to a copy and back: whole, as AWS's event stream, or on the OpenAI path.

On the OpenAI path a request goes to `/v1/chat/completions` of a copy as it is, and its answer comes back as it is.
Streams are passed on part by part, as server-sent events or as whatever else the container writes, with no event
stream of AWS around them. Assumed, since no document tells: an error of the container has the container's status (500
where it gave none), and a stream that breaks ends without its last chunk.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from seatrial_base.units import MIB
from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.control_plane.live_variants import data_capture_config
from seatrial_laptop.aws.control_plane.records import Kind
from seatrial_laptop.aws.gateway.asgi import (
    begin_response,
    body_of,
    chunk,
    disconnected,
    headers_of,
    reply,
    reply_error,
)
from seatrial_laptop.aws.gateway.openai_route import (
    CONTAINER_PATH,
    MODEL_ERROR,
    OpenAiRoute,
    reply_openai,
    reply_openai_error,
)
from seatrial_laptop.aws.rights.role_rights import COMPONENT_HEADER, json_object
from seatrial_laptop.aws.runtime.data_capture import CapturedExchange, sampling_share
from seatrial_laptop.aws.runtime.routing import Route, route_request, shadow_route
from seatrial_laptop.aws.runtime.running_copies import CopyPlace
from seatrial_laptop.aws.runtime.telemetry import Invocation, log_group, log_group_arn
from seatrial_laptop.environment import REGION, own_account
from seatrial_laptop.loopback import TOKEN_HEADER, exchange
from seatrial_load.decode.event_stream import encode_frame

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.gateway.asgi import Receive, Scope, Send
    from seatrial_laptop.aws.runtime.running_copies import CopyProcess


INVOCATIONS: Final = "/invocations"


def payload_part(data: bytes) -> bytes:
    """Write one PayloadPart event."""
    kind = {":event-type": "PayloadPart", ":content-type": "application/octet-stream", ":message-type": "event"}
    return encode_frame(kind, data)


def model_stream_error(code: str, message: str) -> bytes:
    """Write the exception that ends a broken stream; `code` is ModelInvocationTimeExceeded or StreamBroken."""
    kind = {
        ":exception-type": "ModelStreamError",
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return encode_frame(kind, json.dumps({"Message": message, "ErrorCode": code}).encode())


INVOCATION_S: Final = 60.0
"""InvokeEndpoint: the model must have answered by then."""
STREAM_S: Final = 480.0
"""InvokeEndpointWithResponseStream: the stream must have ended by then."""
MODEL_ERROR_STATUS: Final = HTTPStatus.FAILED_DEPENDENCY
LARGEST_BODY_BYTES: Final = 25 * MIB


async def answer_invocation(
    cloud: Cloud, endpoint_name: str, scope: Scope, receive: Receive, send: Send, *, streamed: bool
) -> None:
    """Answer one invocation; when the client goes away, the copy's slot is freed."""
    body, headers = await body_of(receive), headers_of(scope)
    await while_connected(_answer(cloud, endpoint_name, headers, body, send, streamed=streamed), receive)


async def while_connected(answer: Coroutine[None, None, None], receive: Receive) -> None:
    """Run what answers a request; when the client goes away it is cancelled."""
    work = asyncio.create_task(answer)
    gone = asyncio.create_task(disconnected(receive))
    await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
    gone.cancel()
    if not work.done():
        work.cancel()
    await asyncio.wait((work, gone))
    if not work.cancelled():
        work.result()


async def _answer(
    cloud: Cloud, endpoint_name: str, headers: Mapping[str, str], body: bytes, send: Send, *, streamed: bool
) -> None:
    arrived_s = time.monotonic()
    try:
        route = route_request(cloud, endpoint_name, headers, body)
    except ApiError as error:
        await reply_error(send, error)
        return
    with reserved(route.copy):
        if len(body) > LARGEST_BODY_BYTES:
            message = f"HTTP content length exceeded {LARGEST_BODY_BYTES} bytes."
            await begin_response(send, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"content-type": "text/plain"})
            await chunk(send, message.encode(), more=False)
            return
        mirror(cloud, endpoint_name, headers, body)
        if streamed:
            await _answer_stream(cloud, route, headers, body, send, arrived_s=arrived_s)
        else:
            await _answer_whole(cloud, route, headers, body, send, arrived_s=arrived_s)


async def _answer_whole(
    cloud: Cloud, route: Route, headers: Mapping[str, str], body: bytes, send: Send, *, arrived_s: float
) -> None:
    forwarded = forwarded_headers(headers)
    answer, measured = await measured_call(route.copy, forwarded, body, INVOCATION_S, arrived_s=arrived_s)
    capture(cloud, route, headers, body, answer)
    if answer.is_good:
        head = {**common_head(route.variant, answer.engine), "content-type": answer.content_type}
        await begin_response(send, HTTPStatus.OK, head)
        await chunk(send, answer.body, more=False)
    else:
        await _model_error(send, route, answer.status, answer.body.decode(errors="replace"))
    cloud.telemetry.saw(route.place, measured)


async def _answer_stream(
    cloud: Cloud, route: Route, headers: Mapping[str, str], body: bytes, send: Send, *, arrived_s: float
) -> None:
    forwarded = {**forwarded_headers(headers), TOKEN_HEADER: route.copy.token}
    in_flight, sent_s = route.copy.outstanding, time.monotonic()
    response = await _stream(route, forwarded, body, send)
    seen = Invocation(
        status=response.status,
        model_s=time.monotonic() - sent_s,
        overhead_s=sent_s - arrived_s,
        in_flight=in_flight,
        first_chunk_s=None if response.first_chunk_at_s is None else response.first_chunk_at_s - sent_s,
    )
    cloud.telemetry.saw(route.place, seen)


_mirrored: Final[set[asyncio.Task[None]]] = set()


def mirror(cloud: Cloud, endpoint_name: str, headers: Mapping[str, str], body: bytes, path: str = INVOCATIONS) -> None:
    """Send a copy of a sampled request to the shadow variant; nobody waits for its answer."""
    shadow = shadow_route(cloud, endpoint_name)
    if shadow is None:
        return

    async def ask() -> None:
        with reserved(shadow.copy):
            forwarded = forwarded_headers(headers)
            arrived_s = time.monotonic()
            _, measured = await measured_call(
                shadow.copy, forwarded, body, INVOCATION_S, arrived_s=arrived_s, path=path
            )
            cloud.telemetry.saw(shadow.place, measured)

    task = asyncio.create_task(ask())
    # The event loop holds tasks weakly: one that nobody else holds may be collected before it ends.
    _mirrored.add(task)
    task.add_done_callback(_mirrored.discard)


def capture(cloud: Cloud, route: Route, headers: Mapping[str, str], body: bytes, answer: ContainerAnswer) -> None:
    """Keep a sampled request and its good answer, when the endpoint's configuration captures data."""
    endpoint = cloud.store.find(Kind.ENDPOINT, route.endpoint)
    config = data_capture_config(cloud.store, endpoint) if endpoint else {}
    share = sampling_share(config)
    if not answer.is_good or not share or not cloud.traffic.samples(route.endpoint, "capture", share):
        return
    kind, inference_id = headers.get("content-type", ""), headers.get("x-amzn-sagemaker-inference-id", "")
    kept = CapturedExchange(kind, body, answer.content_type, answer.body, inference_id)
    cloud.capture.saw(config, CopyPlace(route.endpoint, route.variant), kept)


@contextmanager
def reserved(copy: CopyProcess) -> Iterator[None]:
    """Give back the slot of the copy that `route` took."""
    try:
        yield
    finally:
        copy.outstanding -= 1


async def _stream(route: Route, headers: Mapping[str, str], body: bytes, send: Send) -> ContainerAnswer:
    """Pass on a stream."""
    begun, first_s = False, None
    try:
        async with asyncio.timeout(STREAM_S):
            async with exchange(route.copy.port, "POST", INVOCATIONS, body=body, headers=headers) as response:
                if response.status >= HTTPStatus.BAD_REQUEST:
                    message = (await response.read()).decode(errors="replace")
                    return await _model_error(send, route, response.status, message)
                begun = True
                kind = {"content-type": "application/vnd.amazon.eventstream"}
                await begin_response(
                    send,
                    HTTPStatus.OK,
                    {
                        **common_head(route.variant, response.headers.get("x-seatrial-engine", "")),
                        **kind,
                        "x-amzn-sagemaker-content-type": response.headers.get(
                            "content-type", "application/octet-stream"
                        ),
                    },
                )
                async for data in response.chunks():
                    first_s = time.monotonic() if first_s is None else first_s
                    await chunk(send, payload_part(data))
        await chunk(send, b"", more=False)
    except TimeoutError:
        return await _break(send, route, "ModelInvocationTimeExceeded", f"No end after {STREAM_S:g} s.", begun=begun)
    except OSError as broken:
        return await _break(send, route, "StreamBroken", f"The container broke the connection: {broken}", begun=begun)
    return ContainerAnswer(response.status, first_chunk_at_s=first_s)


async def _break(send: Send, route: Route, code: str, message: str, *, begun: bool) -> ContainerAnswer:
    if not begun:
        return await _model_error(send, route, 0, message)
    await chunk(send, model_stream_error(code, message), more=False)
    return ContainerAnswer(0)


async def _model_error(send: Send, route: Route, status: int, message: str) -> ContainerAnswer:
    document = {
        "Message": model_error_text(route, status, message),
        "OriginalStatusCode": status,
        "OriginalMessage": message,
        "LogStreamArn": log_group_arn(route.place),
    }
    await reply(
        send, MODEL_ERROR_STATUS, document, {"content-type": "application/json", "x-amzn-errortype": "ModelError"}
    )
    return ContainerAnswer(status)


def model_error_text(route: Route, status: int, message: str) -> str:
    """Return how the runtime tells of a container's error."""
    console = f"https://{REGION}.console.aws.amazon.com/cloudwatch/home?region={REGION}#logEventViewer:group="
    return (
        f'Received {_blame(status)} error ({status}) from primary with message "{message}". See '
        f"{console}{log_group(route.place)} in account {own_account()} for more information."
    )


def _blame(status: int) -> str:
    return "client" if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR else "server"


def common_head(variant: str, engine: str) -> dict[str, str]:
    """Return the headers of every good answer."""
    return {"x-amzn-invoked-production-variant": variant, "x-seatrial-engine": engine}


@dataclass(frozen=True, slots=True)
class ContainerAnswer:
    """What a container answered.

    Attributes:
        status: Its status; 0 without a whole answer.
        body: The answer, or why there is none.
        engine: What the local engine calls itself.
        first_chunk_at_s: When the first chunk of a stream came; None without one.
    """

    status: int
    body: bytes = b""
    content_type: str = "application/octet-stream"
    engine: str = ""
    first_chunk_at_s: float | None = None

    @property
    def is_good(self) -> bool:
        """Whether the container answered without an error."""
        return HTTPStatus.OK <= self.status < HTTPStatus.BAD_REQUEST


def forwarded_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of an invocation that reach the container."""
    return {
        name: value
        for name, value in headers.items()
        if name in ("content-type", "accept") or name.startswith("x-amzn-sagemaker-")
    }


async def ask_container(
    copy: CopyProcess, headers: Mapping[str, str], body: bytes, limit_s: float, path: str = INVOCATIONS
) -> ContainerAnswer:
    """Return the whole answer of a copy, or why there is none after so many seconds."""
    allowed = {**headers, TOKEN_HEADER: copy.token}
    try:
        async with asyncio.timeout(limit_s):
            async with exchange(copy.port, "POST", path, body=body, headers=allowed) as response:
                answer = await response.read()
    except TimeoutError:
        return ContainerAnswer(0, f"Your invocation timed out after {limit_s:g} s.".encode())
    except OSError as broken:
        return ContainerAnswer(0, f"The container broke the connection: {broken}".encode())
    kind = response.headers.get("content-type", "application/octet-stream")
    return ContainerAnswer(response.status, answer, kind, response.headers.get("x-seatrial-engine", ""))


async def measured_call(
    copy: CopyProcess,
    headers: Mapping[str, str],
    body: bytes,
    limit_s: float,
    *,
    arrived_s: float,
    path: str = INVOCATIONS,
) -> tuple[ContainerAnswer, Invocation]:
    """Return the answer of a copy and what it tells the metrics; `arrived_s` is when the request came."""
    in_flight, sent_s = copy.outstanding, time.monotonic()
    answer = await ask_container(copy, headers, body, limit_s, path)
    measured = Invocation(
        status=answer.status,
        model_s=time.monotonic() - sent_s,
        overhead_s=sent_s - arrived_s,
        in_flight=in_flight,
    )
    return answer, measured


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
    await while_connected(_openai_response(cloud, route, headers, body, send), receive)


async def _openai_response(
    cloud: Cloud, route: OpenAiRoute, headers: Mapping[str, str], body: bytes, send: Send
) -> None:
    arrived_s = time.monotonic()
    try:
        _check(route, headers)
        routed = {**headers, **({COMPONENT_HEADER: route.component} if route.component else {})}
        chosen = route_request(cloud, route.endpoint, routed, body)
    except ApiError as error:
        await reply_openai(send, error)
        return
    with reserved(chosen.copy):
        if len(body) > LARGEST_BODY_BYTES:
            message = f"HTTP content length exceeded {LARGEST_BODY_BYTES} bytes."
            await reply_openai_error(send, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "ValidationError", message)
            return
        mirror(cloud, route.endpoint, headers, body, CONTAINER_PATH)
        call = _Call(cloud, chosen, headers, body, send, arrived_s)
        await (_openai_stream(call) if json_object(body).get("stream") is True else _whole(call))


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
    answer, measured = await measured_call(
        call.found.copy, forwarded, call.body, INVOCATION_S, arrived_s=call.arrived_s, path=CONTAINER_PATH
    )
    capture(call.cloud, call.found, call.headers, call.body, answer)
    if answer.is_good:
        head = {**common_head(call.found.variant, answer.engine), "content-type": answer.content_type}
        await begin_response(call.send, answer.status, head)
        await chunk(call.send, answer.body, more=False)
    else:
        await _openai_model_error(call, answer.status, answer.body)
    call.cloud.telemetry.saw(call.found.place, measured)


async def _openai_stream(call: _Call) -> None:
    in_flight, sent_s = call.found.copy.outstanding, time.monotonic()
    response = await _passed_on(call)
    seen = Invocation(
        status=response.status,
        model_s=time.monotonic() - sent_s,
        overhead_s=sent_s - call.arrived_s,
        in_flight=in_flight,
        first_chunk_s=None if response.first_chunk_at_s is None else response.first_chunk_at_s - sent_s,
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
                return await _openai_model_error(call, response.status, await response.read())
            begun = True
            kind = response.headers.get("content-type", "application/octet-stream")
            await begin_response(
                call.send,
                response.status,
                {
                    **common_head(call.found.variant, response.headers.get("x-seatrial-engine", "")),
                    "content-type": kind,
                },
            )
            async for data in response.chunks():
                first_s = time.monotonic() if first_s is None else first_s
                await chunk(call.send, data)
        await chunk(call.send, b"", more=False)
    except OSError as broken:
        # A timeout too.
        why = f"The container's stream broke, or had no end after {STREAM_S:g} s: {broken}"
        return ContainerAnswer(0) if begun else await _openai_model_error(call, 0, why.encode())
    return ContainerAnswer(response.status, first_chunk_at_s=first_s)


async def _openai_model_error(call: _Call, status: int, body: bytes) -> ContainerAnswer:
    message = model_error_text(call.found, status, body.decode(errors="replace"))
    await reply_openai_error(call.send, status or HTTPStatus.INTERNAL_SERVER_ERROR, MODEL_ERROR, message)
    return ContainerAnswer(status)
