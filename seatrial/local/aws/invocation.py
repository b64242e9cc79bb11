"""InvokeEndpoint and InvokeEndpointWithResponseStream: from the client to a copy, and back as AWS answers."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from seatrial.local.aws.api_error import ApiError
from seatrial.local.aws.asgi import begin, body_of, chunk, disconnected, headers_of, reply, reply_error
from seatrial.local.aws.event_stream import model_stream_error, payload_part
from seatrial.local.aws.routing import route
from seatrial.local.loopback import TOKEN_HEADER, Response, exchange

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.local.aws.asgi import Receive, Scope, Send
    from seatrial.local.aws.cloud import Cloud
    from seatrial.local.aws.copies import Copy

INVOCATION_S: Final = 60.0
"""InvokeEndpoint: the model must have answered by then."""
STREAM_S: Final = 480.0
"""InvokeEndpointWithResponseStream: the stream must have ended by then."""
MODEL_ERROR: Final = HTTPStatus.FAILED_DEPENDENCY


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
    try:
        copy, variant = route(cloud, endpoint_name, headers)
    except ApiError as error:
        await reply_error(send, error)
        return
    forwarded = {
        name: value
        for name, value in headers.items()
        if name in ("content-type", "accept") or name.startswith("x-amzn-sagemaker-")
    }
    forwarded[TOKEN_HEADER] = copy.token
    with _outstanding(copy):
        if streamed:
            await _stream(copy, variant, forwarded, body, send)
        else:
            await _whole(copy, variant, forwarded, body, send)


@contextmanager
def _outstanding(copy: Copy) -> Iterator[None]:
    copy.outstanding += 1
    try:
        yield
    finally:
        copy.outstanding -= 1


async def _whole(copy: Copy, variant: str, headers: Mapping[str, str], body: bytes, send: Send) -> None:
    try:
        async with asyncio.timeout(INVOCATION_S):
            async with exchange(copy.port, "POST", "/invocations", body=body, headers=headers) as response:
                answer = await response.read()
    except TimeoutError:
        await _model_error(send, 0, f"Your invocation timed out after {INVOCATION_S:g} s.")
        return
    except OSError as broken:
        await _model_error(send, 0, f"The container broke the connection: {broken}")
        return
    if response.status >= HTTPStatus.BAD_REQUEST:
        await _model_error(send, response.status, answer.decode(errors="replace"))
        return
    await begin(send, HTTPStatus.OK, {**_common(variant, response), "content-type": _content_type(response)})
    await chunk(send, answer, more=False)


async def _stream(copy: Copy, variant: str, headers: Mapping[str, str], body: bytes, send: Send) -> None:
    begun = False
    try:
        async with asyncio.timeout(STREAM_S):
            async with exchange(copy.port, "POST", "/invocations", body=body, headers=headers) as response:
                if response.status >= HTTPStatus.BAD_REQUEST:
                    await _model_error(send, response.status, (await response.read()).decode(errors="replace"))
                    return
                begun = True
                await begin(send, HTTPStatus.OK, _stream_head(variant, response))
                async for data in response.chunks():
                    await chunk(send, payload_part(data))
        await chunk(send, b"", more=False)
    except TimeoutError:
        await _break(send, "ModelInvocationTimeExceeded", f"No end after {STREAM_S:g} s.", begun=begun)
    except OSError as broken:
        await _break(send, "StreamBroken", f"The container broke the connection: {broken}", begun=begun)


async def _break(send: Send, code: str, message: str, *, begun: bool) -> None:
    if begun:
        await chunk(send, model_stream_error(code, message), more=False)
    else:
        await _model_error(send, 0, message)


async def _model_error(send: Send, status: int, message: str) -> None:
    said = f'Received {_blame(status)} error ({status}) from primary with message "{message}".'
    document = {"Message": said, "OriginalStatusCode": status, "OriginalMessage": message}
    await reply(send, MODEL_ERROR, document, {"content-type": "application/json", "x-amzn-errortype": "ModelError"})


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
