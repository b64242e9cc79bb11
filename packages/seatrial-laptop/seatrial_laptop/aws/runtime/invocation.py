"""InvokeEndpoint and InvokeEndpointWithResponseStream: from the client to a copy, and back as AWS answers."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import contextmanager
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
from seatrial_laptop.aws.runtime.container_call import (
    INVOCATIONS,
    ContainerAnswer,
    forwarded_headers,
    measured_call,
)
from seatrial_laptop.aws.runtime.data_capture import CapturedExchange, sampling_share
from seatrial_laptop.aws.runtime.routing import Route, route_request, shadow_route
from seatrial_laptop.aws.runtime.running_copies import CopyPlace
from seatrial_laptop.aws.runtime.telemetry import Invocation, log_group, log_group_arn
from seatrial_laptop.environment import REGION, own_account
from seatrial_laptop.loopback import TOKEN_HEADER, Response, exchange
from seatrial_load.decode.event_stream import encode_frame

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.gateway.asgi import Receive, Scope, Send
    from seatrial_laptop.aws.runtime.copy_process import CopyProcess


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
MODEL_ERROR: Final = HTTPStatus.FAILED_DEPENDENCY
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
        found = route_request(cloud, endpoint_name, headers, body)
    except ApiError as error:
        await reply_error(send, error)
        return
    with reserved(found.copy):
        if len(body) > LARGEST_BODY_BYTES:
            await _too_large(send)
            return
        mirror(cloud, endpoint_name, headers, body)
        if streamed:
            await _answer_stream(cloud, found, headers, body, send, arrived_s=arrived_s)
        else:
            await _answer_whole(cloud, found, headers, body, send, arrived_s=arrived_s)


async def _answer_whole(
    cloud: Cloud, found: Route, headers: Mapping[str, str], body: bytes, send: Send, *, arrived_s: float
) -> None:
    forwarded = forwarded_headers(headers)
    answer, told = await measured_call(found.copy, forwarded, body, INVOCATION_S, arrived_s=arrived_s)
    capture(cloud, found, headers, body, answer)
    if answer.is_good:
        head = {**common_head(found.variant, answer.engine), "content-type": answer.content_type}
        await begin_response(send, HTTPStatus.OK, head)
        await chunk(send, answer.body, more=False)
    else:
        await _model_error(send, found, answer.status, answer.body.decode(errors="replace"))
    cloud.telemetry.saw(found.place, told)


async def _answer_stream(
    cloud: Cloud, found: Route, headers: Mapping[str, str], body: bytes, send: Send, *, arrived_s: float
) -> None:
    forwarded = {**forwarded_headers(headers), TOKEN_HEADER: found.copy.token}
    in_flight, asked_s = found.copy.outstanding, time.monotonic()
    told = await _stream(found, forwarded, body, send)
    seen = Invocation(
        status=told.status,
        model_s=time.monotonic() - asked_s,
        overhead_s=asked_s - arrived_s,
        in_flight=in_flight,
        first_chunk_s=None if told.first_chunk_at_s is None else told.first_chunk_at_s - asked_s,
    )
    cloud.telemetry.saw(found.place, seen)


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
            _, told = await measured_call(shadow.copy, forwarded, body, INVOCATION_S, arrived_s=arrived_s, path=path)
            cloud.telemetry.saw(shadow.place, told)

    task = asyncio.create_task(ask())
    _mirrored.add(task)
    task.add_done_callback(_mirrored.discard)


def capture(cloud: Cloud, found: Route, headers: Mapping[str, str], body: bytes, answer: ContainerAnswer) -> None:
    """Keep a sampled request and its good answer, when the endpoint's configuration captures data."""
    endpoint = cloud.store.find(Kind.ENDPOINT, found.endpoint)
    config = data_capture_config(cloud.store, endpoint) if endpoint else {}
    share = sampling_share(config)
    if not answer.is_good or not share or not cloud.traffic.samples(found.endpoint, "capture", share):
        return
    kind, inference_id = headers.get("content-type", ""), headers.get("x-amzn-sagemaker-inference-id", "")
    kept = CapturedExchange(kind, body, answer.content_type, answer.body, inference_id)
    cloud.capture.saw(config, CopyPlace(found.endpoint, found.variant), kept)


async def _too_large(send: Send) -> None:
    """Refuse a body as the service does, before any container sees it."""
    message = f"HTTP content length exceeded {LARGEST_BODY_BYTES} bytes."
    await begin_response(send, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"content-type": "text/plain"})
    await chunk(send, message.encode(), more=False)


@contextmanager
def reserved(copy: CopyProcess) -> Iterator[None]:
    """Give back the slot of the copy that `route` took."""
    try:
        yield
    finally:
        copy.outstanding -= 1


async def _stream(found: Route, headers: Mapping[str, str], body: bytes, send: Send) -> ContainerAnswer:
    """Pass on a stream."""
    begun, first_s = False, None
    try:
        async with asyncio.timeout(STREAM_S):
            async with exchange(found.copy.port, "POST", INVOCATIONS, body=body, headers=headers) as response:
                if response.status >= HTTPStatus.BAD_REQUEST:
                    message = (await response.read()).decode(errors="replace")
                    return await _model_error(send, found, response.status, message)
                begun = True
                await begin_response(send, HTTPStatus.OK, _stream_head(found.variant, response))
                async for data in response.chunks():
                    first_s = time.monotonic() if first_s is None else first_s
                    await chunk(send, payload_part(data))
        await chunk(send, b"", more=False)
    except TimeoutError:
        return await _break(send, found, "ModelInvocationTimeExceeded", f"No end after {STREAM_S:g} s.", begun=begun)
    except OSError as broken:
        return await _break(send, found, "StreamBroken", f"The container broke the connection: {broken}", begun=begun)
    return ContainerAnswer(response.status, first_chunk_at_s=first_s)


async def _break(send: Send, found: Route, code: str, message: str, *, begun: bool) -> ContainerAnswer:
    if not begun:
        return await _model_error(send, found, 0, message)
    await chunk(send, model_stream_error(code, message), more=False)
    return ContainerAnswer(0)


async def _model_error(send: Send, found: Route, status: int, message: str) -> ContainerAnswer:
    document = {
        "Message": model_error_text(found, status, message),
        "OriginalStatusCode": status,
        "OriginalMessage": message,
        "LogStreamArn": log_group_arn(found.place),
    }
    await reply(send, MODEL_ERROR, document, {"content-type": "application/json", "x-amzn-errortype": "ModelError"})
    return ContainerAnswer(status)


def model_error_text(found: Route, status: int, message: str) -> str:
    """Return how the runtime tells of a container's error."""
    console = f"https://{REGION}.console.aws.amazon.com/cloudwatch/home?region={REGION}#logEventViewer:group="
    return (
        f'Received {_blame(status)} error ({status}) from primary with message "{message}". See '
        f"{console}{log_group(found.place)} in account {own_account()} for more information."
    )


def _blame(status: int) -> str:
    return "client" if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR else "server"


def _stream_head(variant: str, response: Response) -> dict[str, str]:
    kind = {"content-type": "application/vnd.amazon.eventstream"}
    return {
        **common_head(variant, response.headers.get("x-seatrial-engine", "")),
        **kind,
        "x-amzn-sagemaker-content-type": _content_type(response),
    }


def common_head(variant: str, engine: str) -> dict[str, str]:
    """Return the headers of every good answer."""
    return {"x-amzn-invoked-production-variant": variant, "x-seatrial-engine": engine}


def _content_type(response: Response) -> str:
    return response.headers.get("content-type", "application/octet-stream")
