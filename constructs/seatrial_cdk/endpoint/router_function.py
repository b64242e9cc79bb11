"""Sends each request of the function's URL to one component of the endpoint, by weight."""

from __future__ import annotations

import base64
import binascii
import json
import os
import random
from typing import TYPE_CHECKING, TypedDict

from botocore.exceptions import BotoCoreError, ClientError

from seatrial.deployment.traffic import choose_traffic, fraction_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient

SESSION_HEADER = "x-seatrial-session"
COMPONENT_HEADER = "x-seatrial-component"
_BAD_GATEWAY, _BAD_REQUEST, _LONGEST_STATUS = 502, 400, 599
# Of InvokeEndpoint: the container's own status, and what the service answers by itself.
_STATUS_OF = {
    "ThrottlingException": 429,
    "ValidationError": 400,
    "ServiceUnavailable": 503,
    "AccessDeniedException": 502,
}
Answer = dict[str, object]


class UrlEvent(TypedDict, total=False):
    """The event of a function URL, payload format 2.0, as far as it is read."""

    headers: dict[str, str]
    body: str
    isBase64Encoded: bool


def handler(event: UrlEvent, _context: object) -> Answer:
    """Answer a request of the function's URL.

    `ENDPOINT_NAME` names the endpoint; `WEIGHTS` has each component's weight, as JSON.
    """
    import boto3  # noqa: PLC0415 (a test brings a client of its own)
    from botocore.config import Config  # noqa: PLC0415

    limits = Config(read_timeout=65, connect_timeout=5, retries={"total_max_attempts": 1})
    client = boto3.client("sagemaker-runtime", config=limits)
    return route(event, client, os.environ["ENDPOINT_NAME"], json.loads(os.environ["WEIGHTS"]))


def route(
    event: UrlEvent,
    client: SageMakerRuntimeClient,
    endpoint_name: str,
    weights: Mapping[str, float],
    fraction: Callable[[], float] = random.random,
) -> Answer:
    """Send a request to a component and return its answer, or the status and message of its error.

    Args:
        event: The request; header `x-seatrial-session` keeps a session at one component.
    """
    headers = {name.lower(): value for name, value in event.get("headers", {}).items()}
    session = headers.get(SESSION_HEADER)
    component = choose_traffic(weights, fraction_of(session) if session else fraction())
    try:
        text = event.get("body", "")
        body = base64.b64decode(text, validate=True) if event.get("isBase64Encoded") else text.encode()
    except (ValueError, binascii.Error):
        return _answer(_BAD_REQUEST, b'{"error": "the body is not base64"}', component)
    try:
        answer = client.invoke_endpoint(
            EndpointName=endpoint_name,
            InferenceComponentName=component,
            ContentType=headers.get("content-type", "application/json"),
            Accept=headers.get("accept", "application/json"),
            Body=body,
        )
        content = answer["Body"].read()
    except ClientError as error:
        return _answer(_status(error), json.dumps({"error": str(error)}).encode(), component)
    except BotoCoreError as error:
        return _answer(_BAD_GATEWAY, json.dumps({"error": type(error).__name__}).encode(), component)
    return _answer(200, content, component, answer.get("ContentType", "application/json"))


def _status(error: ClientError) -> int:
    code = error.response.get("Error", {}).get("Code", "")
    own = error.response.get("OriginalStatusCode")
    if code == "ModelError" and isinstance(own, int) and _BAD_REQUEST <= own <= _LONGEST_STATUS:
        return own
    return _STATUS_OF.get(code, _BAD_GATEWAY)


def _answer(status: int, content: bytes, component: str, content_type: str = "application/json") -> Answer:
    return {
        "statusCode": status,
        "headers": {"content-type": content_type, COMPONENT_HEADER: component},
        "body": base64.b64encode(content).decode(),
        "isBase64Encoded": True,
    }
