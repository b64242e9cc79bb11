"""SageMaker's OpenAI path: which endpoint a request is for, and how the front door words its own errors there.

Facts: SageMaker developer guide, "Invoke endpoints with OpenAI-compatible APIs"; the form of errors was measured on an
endpoint by stdapi-ai (`tests/test_aws_sagemaker.py`, 2026-08-27) for `validation_error` and `model_error`. Other codes
are named in the same way here; nobody has measured them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.gateway.asgi import begin_response, chunk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_laptop.aws.api import ApiError
    from seatrial_laptop.aws.gateway.asgi import Send


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
