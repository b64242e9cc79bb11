"""InvokeEndpoint and InvokeEndpointWithResponseStream: from the client to a copy, and back as AWS answers."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from seatrial.bench.decode.event_stream import encode_frame
from seatrial.local.aws.api import ApiError
from seatrial.local.aws.gateway.asgi import begin, body_of, chunk, disconnected, headers_of, reply, reply_error
from seatrial.local.aws.runtime.routing import Route, route
from seatrial.local.aws.runtime.telemetry import Invocation, log_group, log_group_arn
from seatrial.local.environment import REGION, own_account
from seatrial.local.loopback import TOKEN_HEADER, Response, exchange
from seatrial.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.local.aws.control_plane.cloud import Cloud
    from seatrial.local.aws.gateway.asgi import Receive, Scope, Send
    from seatrial.local.aws.runtime.copy_process import CopyProcess


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


async def invoke(
    cloud: Cloud, endpoint_name: str, scope: Scope, receive: Receive, send: Send, *, streamed: bool
) -> None:
    """Answer one invocation; when the client goes away, the copy's slot is freed."""
    body, headers = await body_of(receive), headers_of(scope)
    work = asyncio.create_task(_answer(cloud, endpoint_name, headers, body, send, streamed=streamed))
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
        found = route(cloud, endpoint_name, headers)
    except ApiError as error:
        await reply_error(send, error)
        return
    with _reserved(found.copy):
        if len(body) > LARGEST_BODY_BYTES:
            await _too_large(send)
            return
        answered = await _forward(found, headers, body, send, streamed=streamed, arrived_s=arrived_s)
        cloud.telemetry.saw(found.place, answered)


async def _forward(
    found: Route, headers: Mapping[str, str], body: bytes, send: Send, *, streamed: bool, arrived_s: float
) -> Invocation:
    forwarded = {
        name: value
        for name, value in headers.items()
        if name in ("content-type", "accept") or name.startswith("x-amzn-sagemaker-")
    }
    forwarded[TOKEN_HEADER] = found.copy.token
    in_flight, asked_s = found.copy.outstanding, time.monotonic()
    told = await (_stream if streamed else _whole)(found, forwarded, body, send)
    return Invocation(
        status=told.status,
        model_s=time.monotonic() - asked_s,
        overhead_s=asked_s - arrived_s,
        in_flight=in_flight,
        first_chunk_s=None if told.first_chunk_at_s is None else told.first_chunk_at_s - asked_s,
    )


async def _too_large(send: Send) -> None:
    """Refuse a body as the service does, before any container sees it."""
    message = f"HTTP content length exceeded {LARGEST_BODY_BYTES} bytes."
    await begin(send, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"content-type": "text/plain"})
    await chunk(send, message.encode(), more=False)


@contextmanager
def _reserved(copy: CopyProcess) -> Iterator[None]:
    """Give back the slot of the copy that `route` took."""
    try:
        yield
    finally:
        copy.outstanding -= 1


@dataclass(frozen=True, slots=True)
class ContainerAnswer:
    """What a container answered: its status, 0 without a whole answer, and when the first chunk of a stream came."""

    status: int
    first_chunk_at_s: float | None = None


async def _whole(found: Route, headers: Mapping[str, str], body: bytes, send: Send) -> ContainerAnswer:
    """Pass on a whole answer."""
    try:
        async with asyncio.timeout(INVOCATION_S):
            async with exchange(found.copy.port, "POST", "/invocations", body=body, headers=headers) as response:
                answer = await response.read()
    except TimeoutError:
        return await _model_error(send, found, 0, f"Your invocation timed out after {INVOCATION_S:g} s.")
    except OSError as broken:
        return await _model_error(send, found, 0, f"The container broke the connection: {broken}")
    if response.status >= HTTPStatus.BAD_REQUEST:
        return await _model_error(send, found, response.status, answer.decode(errors="replace"))
    await begin(send, HTTPStatus.OK, {**_common(found.variant, response), "content-type": _content_type(response)})
    await chunk(send, answer, more=False)
    return ContainerAnswer(response.status)


async def _stream(found: Route, headers: Mapping[str, str], body: bytes, send: Send) -> ContainerAnswer:
    """Pass on a stream."""
    begun, first_s = False, None
    try:
        async with asyncio.timeout(STREAM_S):
            async with exchange(found.copy.port, "POST", "/invocations", body=body, headers=headers) as response:
                if response.status >= HTTPStatus.BAD_REQUEST:
                    message = (await response.read()).decode(errors="replace")
                    return await _model_error(send, found, response.status, message)
                begun = True
                await begin(send, HTTPStatus.OK, _stream_head(found.variant, response))
                async for data in response.chunks():
                    first_s = time.monotonic() if first_s is None else first_s
                    await chunk(send, payload_part(data))
        await chunk(send, b"", more=False)
    except TimeoutError:
        return await _break(send, found, "ModelInvocationTimeExceeded", f"No end after {STREAM_S:g} s.", begun=begun)
    except OSError as broken:
        return await _break(send, found, "StreamBroken", f"The container broke the connection: {broken}", begun=begun)
    return ContainerAnswer(response.status, first_s)


async def _break(send: Send, found: Route, code: str, message: str, *, begun: bool) -> ContainerAnswer:
    if not begun:
        return await _model_error(send, found, 0, message)
    await chunk(send, model_stream_error(code, message), more=False)
    return ContainerAnswer(0)


async def _model_error(send: Send, found: Route, status: int, message: str) -> ContainerAnswer:
    console = f"https://{REGION}.console.aws.amazon.com/cloudwatch/home?region={REGION}#logEventViewer:group="
    said = (
        f'Received {_blame(status)} error ({status}) from primary with message "{message}". See '
        f"{console}{log_group(found.place)} in account {own_account()} for more information."
    )
    document = {
        "Message": said,
        "OriginalStatusCode": status,
        "OriginalMessage": message,
        "LogStreamArn": log_group_arn(found.place),
    }
    await reply(send, MODEL_ERROR, document, {"content-type": "application/json", "x-amzn-errortype": "ModelError"})
    return ContainerAnswer(status)


def _blame(status: int) -> str:
    return "client" if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR else "server"


def _stream_head(variant: str, response: Response) -> dict[str, str]:
    kind = {"content-type": "application/vnd.amazon.eventstream"}
    return {**_common(variant, response), **kind, "x-amzn-sagemaker-content-type": _content_type(response)}


def _common(variant: str, response: Response) -> dict[str, str]:
    return {
        "x-amzn-invoked-production-variant": variant,
        "x-seatrial-engine": response.headers.get("x-seatrial-engine", ""),
    }


def _content_type(response: Response) -> str:
    return response.headers.get("content-type", "application/octet-stream")
