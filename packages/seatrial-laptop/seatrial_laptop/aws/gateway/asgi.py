"""The few ASGI types and calls that the gateway needs, and SageMaker's OpenAI path with the errors of its front door.

Facts of that path: SageMaker developer guide, "Invoke endpoints with OpenAI-compatible APIs"; the form of errors was
measured on an endpoint by stdapi-ai (`tests/test_aws_sagemaker.py`, 2026-08-27) for `validation_error` and
`model_error`. Other codes are named in the same way here, unmeasured.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from seatrial_laptop.aws.api import ApiError

REQUEST_ID: Final = "x-amzn-requestid"
Message = MutableMapping[str, object]
Scope = Mapping[str, object]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers of a request, names in lower case, values of repeated ones joined by commas."""
    pairs = scope["headers"]
    if not isinstance(pairs, list | tuple):
        raise TypeError(f"not headers: {pairs!r}")
    headers: dict[str, str] = {}
    for raw_name, raw_value in pairs:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers


class BodyTooLargeError(ValueError):
    """A body has more bytes than are read."""


async def body_of(receive: Receive, most_bytes: int | None = None) -> bytes:
    """Return the whole body of a request.

    Raises:
        BodyTooLargeError: It has more than `most_bytes`; the rest is left unread.
    """
    parts: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        parts.append(part if isinstance(part, bytes) else b"")
        length += len(parts[-1])
        if most_bytes is not None and length > most_bytes:
            raise BodyTooLargeError(f"more than {most_bytes:,} bytes")
        if not message.get("more_body"):
            return b"".join(parts)


async def disconnected(receive: Receive) -> None:
    """Return when the client has gone; call it after the body was read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def begin_response(send: Send, status: int, headers: Mapping[str, str]) -> None:
    """Send the head of a response, with an ID of the request, as every service of AWS does."""
    named = {REQUEST_ID: str(uuid.uuid4()), **headers}
    pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in named.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


async def chunk(send: Send, data: bytes, *, more: bool = True) -> None:
    """Send a part of a response's body."""
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def reply(send: Send, status: int, document: object, headers: Mapping[str, str] | None = None) -> None:
    """Send a whole JSON response."""
    await begin_response(send, status, {"content-type": "application/x-amz-json-1.1", **(headers or {})})
    await chunk(send, json.dumps(document).encode(), more=False)


async def reply_error(send: Send, error: ApiError) -> None:
    """Send an error as botocore and the JavaScript SDK read it."""
    document = {"__type": error.code, "message": error.message}
    await reply(send, error.status, document, {"x-amzn-errortype": error.code})


CHAT_COMPLETIONS: Final = "chat/completions"
"""The one operation that SageMaker routes."""
CONTAINER_PATH: Final = f"/v1/{CHAT_COMPLETIONS}"
PATH: Final = re.compile(r"/endpoints/([^/]+)(?:/inference-components/([^/]+))?/openai/v1/(.+)")
MODEL_ERROR: Final = "ModelError"


@dataclass(frozen=True, slots=True)
class OpenAiRoute:
    """What the path of a request names: an endpoint, one of its components or none, and the operation."""

    endpoint: str
    component: str
    operation: str

    @property
    def is_routed(self) -> bool:
        """Whether SageMaker routes the operation."""
        return self.operation == CHAT_COMPLETIONS


def openai_route(path: str) -> OpenAiRoute | None:
    """Return what a path names, or `None` when it is none of the OpenAI path."""
    match = PATH.fullmatch(path)
    return OpenAiRoute(match[1], match[2] or "", match[3]) if match else None


async def reply_openai(send: Send, error: ApiError) -> None:
    """Send a refusal as an OpenAI client reads it."""
    await reply_openai_error(send, error.status, error.code, error.message)


async def reply_openai_error(
    send: Send, status: int, error: str, message: str, headers: Mapping[str, str] | None = None
) -> None:
    """Send an error as an OpenAI client reads it."""
    is_ours = error == MODEL_ERROR or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    kind = "server_error" if is_ours else "invalid_request_error"
    code = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", error).lower()
    body = json.dumps({"error": {"message": message, "type": kind, "code": code}}).encode()
    head = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    await begin_response(send, status, head)
    await chunk(send, body, more=False)
