"""An invocation from the client to a copy and back: whole, as AWS's event stream, or on the OpenAI path.

On the OpenAI path a request goes to `/v1/chat/completions` of a copy as it is, and its answer comes back as it is.
Streams are passed on part by part, as server-sent events or as whatever else the container writes, with no event
stream of AWS around them. Assumed, since no document describes it: an error of the container has the container's status
(500 where it gave none), and a stream that breaks ends without its last chunk.
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
from seatrial_laptop.aws.control_plane.records import Kind, data_capture_config
from seatrial_laptop.aws.gateway.asgi import (
    CONTAINER_PATH,
    MODEL_ERROR,
    OpenAiRoute,
    begin_response,
    body_of,
    chunk,
    disconnected,
    headers_of,
    reply,
    reply_error,
    reply_openai,
    reply_openai_error,
)
from seatrial_laptop.aws.rights import COMPONENT_HEADER, json_object
from seatrial_laptop.aws.runtime.data_capture import CapturedExchange, sampling_share
from seatrial_laptop.aws.runtime.routing import Route, route_request, shadow_route
from seatrial_laptop.aws.runtime.running_copies import CopyPlace
from seatrial_laptop.aws.runtime.telemetry import Invocation, log_group, log_group_arn
from seatrial_laptop.environment import own_account
from seatrial_laptop.loopback import TOKEN_HEADER, exchange
from seatrial_laptop.state import REGION
from seatrial_load.decode.event_stream import encode_frame

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.gateway.asgi import Receive, Scope, Send
    from seatrial_laptop.aws.runtime.running_copies import CopyProcess


INVOCATIONS: Final = "/invocations"
EVENT_STREAM: Final = {"content-type": "application/vnd.amazon.eventstream"}
CONTENT_TYPE: Final = "x-amzn-sagemaker-content-type"


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
        call = _Call(cloud, route, headers, body, send, arrived_s, INVOCATIONS)
        await (call.stream() if streamed else call.whole())


@dataclass(frozen=True, slots=True)
class _Call:
    """One request that has its copy: of the runtime's own API, or of the OpenAI path by the path of the container."""

    cloud: Cloud
    route: Route
    headers: Mapping[str, str]
    body: bytes
    send: Send
    arrived_s: float
    path: str

    @property
    def is_openai(self) -> bool:
        return self.path == CONTAINER_PATH

    async def whole(self) -> None:
        forwarded = forwarded_headers(self.headers)
        answer, measured = await measured_call(
            self.route.copy, forwarded, self.body, INVOCATION_S, arrived_s=self.arrived_s, path=self.path
        )
        capture(self.cloud, self.route, self.headers, self.body, answer)
        if answer.is_good:
            head = {**common_head(self.route.variant, answer.engine), "content-type": answer.content_type}
            await begin_response(self.send, answer.status if self.is_openai else HTTPStatus.OK, head)
            await chunk(self.send, answer.body, more=False)
        else:
            await self._refuse(answer.status, answer.body.decode(errors="replace"))
        self.cloud.telemetry.saw(self.route.place, measured)

    async def stream(self) -> None:
        in_flight, sent_s = self.route.copy.outstanding, time.monotonic()
        response = await self._passed_on()
        seen = Invocation(
            status=response.status,
            model_s=time.monotonic() - sent_s,
            overhead_s=sent_s - self.arrived_s,
            in_flight=in_flight,
            first_chunk_s=None if response.first_chunk_at_s is None else response.first_chunk_at_s - sent_s,
        )
        self.cloud.telemetry.saw(self.route.place, seen)

    async def _passed_on(self) -> ContainerAnswer:
        begun, first_s = False, None
        headers = {**forwarded_headers(self.headers), TOKEN_HEADER: self.route.copy.token}
        try:
            async with (
                asyncio.timeout(STREAM_S),
                exchange(self.route.copy.port, "POST", self.path, body=self.body, headers=headers) as response,
            ):
                if response.status >= HTTPStatus.BAD_REQUEST:
                    return await self._refuse(response.status, (await response.read()).decode(errors="replace"))
                begun = True
                kind = response.headers.get("content-type", "application/octet-stream")
                own = {"content-type": kind} if self.is_openai else {**EVENT_STREAM, CONTENT_TYPE: kind}
                head = {**common_head(self.route.variant, response.headers.get("x-seatrial-engine", "")), **own}
                await begin_response(self.send, response.status if self.is_openai else HTTPStatus.OK, head)
                async for data in response.chunks():
                    first_s = time.monotonic() if first_s is None else first_s
                    await chunk(self.send, data if self.is_openai else payload_part(data))
            await chunk(self.send, b"", more=False)
        except OSError as broken:
            return await self._break(broken, begun=begun)
        return ContainerAnswer(response.status, first_chunk_at_s=first_s)

    async def _break(self, broken: OSError, *, begun: bool) -> ContainerAnswer:
        code, message = "StreamBroken", f"The container broke the connection: {broken}"
        if isinstance(broken, TimeoutError):
            code, message = "ModelInvocationTimeExceeded", f"No end after {STREAM_S:g} s."
        if self.is_openai:
            message = f"The container's stream broke, or had no end after {STREAM_S:g} s: {broken}"
        if not begun:
            return await self._refuse(0, message)
        # On the OpenAI path a stream that breaks after its head has no last chunk, by which the client sees it.
        if not self.is_openai:
            await chunk(self.send, model_stream_error(code, message), more=False)
        return ContainerAnswer(0)

    async def _refuse(self, status: int, message: str) -> ContainerAnswer:
        text = model_error_text(self.route, status, message)
        if self.is_openai:
            await reply_openai_error(self.send, status or HTTPStatus.INTERNAL_SERVER_ERROR, MODEL_ERROR, text)
            return ContainerAnswer(status)
        document = {
            "Message": text,
            "OriginalStatusCode": status,
            "OriginalMessage": message,
            "LogStreamArn": log_group_arn(self.route.place),
        }
        head = {"content-type": "application/json", "x-amzn-errortype": "ModelError"}
        await reply(self.send, MODEL_ERROR_STATUS, document, head)
        return ContainerAnswer(status)


_mirrored: Final[set[asyncio.Task[None]]] = set()


def mirror(cloud: Cloud, endpoint_name: str, headers: Mapping[str, str], body: bytes, path: str = INVOCATIONS) -> None:
    """Send a copy of a sampled request to the shadow variant; its response is not waited for."""
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
    # The event loop holds tasks weakly: one that nothing else holds may be collected before it ends.
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


def model_error_text(route: Route, status: int, message: str) -> str:
    """Return the runtime's message about a container's error."""
    console = f"https://{REGION}.console.aws.amazon.com/cloudwatch/home?region={REGION}#logEventViewer:group="
    where = f"{console}{log_group(route.place)} in account {own_account()}"
    return f"{received_error(status, message)}. See {where} for more information."


def received_error(status: int, message: str) -> str:
    """Return how the runtime names the error of a container."""
    side = "client" if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR else "server"
    return f'Received {side} error ({status}) from primary with message "{message}"'


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
    """Return the whole answer of a copy, or why there is none after `limit_s` seconds."""
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
    """Return the response of a copy and its measurement; `arrived_s` is when the request came."""
    in_flight, sent_s = copy.outstanding, time.monotonic()
    answer = await ask_container(copy, headers, body, limit_s, path)
    measured = Invocation(
        status=answer.status,
        model_s=time.monotonic() - sent_s,
        overhead_s=sent_s - arrived_s,
        in_flight=in_flight,
    )
    return answer, measured


async def answer_openai(cloud: Cloud, route: OpenAiRoute, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request; when the client goes away, the copy's slot is freed."""
    body, headers = await body_of(receive), headers_of(scope)
    await while_connected(_openai_response(cloud, route, headers, body, send), receive)


async def _openai_response(
    cloud: Cloud, route: OpenAiRoute, headers: Mapping[str, str], body: bytes, send: Send
) -> None:
    arrived_s = time.monotonic()
    # Both are refused before a copy is looked for.
    if not route.is_routed:
        message = f"/openai/v1/{route.operation} is not routed: chat/completions alone is."
        await reply_openai(send, ApiError("UnknownOperationException", message, HTTPStatus.NOT_FOUND))
        return
    if COMPONENT_HEADER in headers:
        message = "The OpenAI path names the inference component; its header is not taken."
        await reply_openai(send, ApiError("ValidationError", message))
        return
    try:
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
        call = _Call(cloud, chosen, headers, body, send, arrived_s, CONTAINER_PATH)
        await (call.stream() if json_object(body).get("stream") is True else call.whole())
