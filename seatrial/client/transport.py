"""Requests by boto3: what it raises for one becomes a failure, faults of the caller (credentials) stay as they are.

Bearer tokens for OpenAI's own client, renewed while they are used.

alias = Alias(boto3.client("ssm"), "dev", "chat", Schema.OPENAI_CHAT)
client = OpenAI(base_url=alias.openai_base_url(), api_key=token_source("eu-west-1"))
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self, TypedDict

import urllib3.exceptions
from botocore.config import Config
from botocore.eventstream import ParserError
from botocore.exceptions import (
    ClientError,
    ConnectionError,  # noqa: A004 (botocore's)
    ConnectTimeoutError,
    EventStreamError,
    HTTPClientError,
    IncompleteReadError,
    ReadTimeoutError,
)

from seatrial_base.errors import SeatrialError
from seatrial_base.units import MIB
from seatrial_load.aws.credentials import credential_source
from seatrial_load.aws.sigv4 import RenewedToken
from seatrial_load.decode.failure import Failure, failure_of_response, failure_of_type, shorten
from seatrial_load.payload.json_text import REQUEST_RULE, RequestError
from seatrial_load.payload.request import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial_load.decode.failure import ErrorClass
    from seatrial_load.payload.answer import Completion
    from seatrial_load.payload.schema import Schema

INVOCATION_RULE = "SEA372"
UNKNOWN_END_RULE = "SEA373"
MAX_ANSWER_BYTES = 32 * MIB
"""More than SageMaker lets a model answer; an answer that has more is given up."""
_HINTS: Mapping[ErrorClass, str] = {
    "throttled": "send fewer requests at once, or scale out",
    "not_ready": "wait until a copy is in service; scaling from zero takes minutes",
}


class InvocationError(SeatrialError):
    """The endpoint did not answer, or answered with an error; `failure` has its class and the words."""

    failure: Failure

    @classmethod
    def because(cls, failure: Failure, *, where: str) -> Self:
        """Return the error for a failure."""
        message = f"{failure.error}: {failure.detail}"
        error = cls.of(INVOCATION_RULE, message, where=where, hint=_HINTS.get(failure.error, ""))
        error.failure = failure
        return error


def check_size(size_bytes: int, where: str) -> None:
    """Refuse an answer that would fill the memory.

    Raises:
        InvocationError: SEA372, it has more than 32 MiB.
    """
    if size_bytes > MAX_ANSWER_BYTES:
        endless = Failure("answer_too_large", f"the answer is larger than {MAX_ANSWER_BYTES // MIB} MiB")
        raise InvocationError.because(endless, where=where)


def checked(completion: Completion, where: str) -> Completion:
    """Return the completion if it is whole and free of errors.

    Raises:
        InvocationError: SEA372, it isn't.
    """
    failure = completion.failure
    if failure is not None:
        raise InvocationError.because(failure_of_type(failure.kind, failure.message, code=failure.code), where=where)
    if not completion.finished:
        broken = Failure("protocol", f"the answer ended early, after {len(completion.text)} characters")
        raise InvocationError.because(broken, where=where)
    return completion


_BROKEN = (ConnectionError, HTTPClientError, IncompleteReadError, urllib3.exceptions.HTTPError)
_TIMEOUTS = (ConnectTimeoutError, ReadTimeoutError, urllib3.exceptions.TimeoutError)


@contextmanager
def failures_of(where: str) -> Iterator[None]:
    """Turn what boto3 raises within for a failed request into an `InvocationError`.

    Raises:
        InvocationError: SEA372, the request failed.
    """
    try:
        yield
    except (ClientError, ParserError, *_BROKEN) as error:
        raise InvocationError.because(transport_failure(error), where=where) from error


def transport_failure(error: Exception) -> Failure:
    """Classify what boto3 raised for one request."""
    if isinstance(error, EventStreamError):
        return failure_of_event(error.response)
    if isinstance(error, ClientError):
        return _failure_of_answer(error.response)
    if isinstance(error, ParserError):
        return Failure("protocol", shorten(f"{type(error).__name__}: {error}"))
    kind: ErrorClass = "timeout" if isinstance(error, _TIMEOUTS) else "connection"
    return Failure(kind, shorten(f"{type(error).__name__}: {error}"))


def failure_of_event(response: object) -> Failure:
    """Classify an exception event: `ModelStreamError` (with its `ErrorCode`) or `InternalStreamFailure`."""
    document = response if isinstance(response, dict) else {}
    detail = document.get("Error")
    error = detail if isinstance(detail, dict) else {}
    words = [str(word) for word in (document.get("ErrorCode"), error.get("Message")) if word]
    return failure_of_type(str(error.get("Code") or "exception"), ": ".join(words) or "no message")


def _failure_of_answer(response: object) -> Failure:
    document = response if isinstance(response, dict) else {}
    error, metadata = document.get("Error") or {}, document.get("ResponseMetadata") or {}
    keys = ("OriginalStatusCode", "OriginalMessage")
    body = {"message": error.get("Message"), **{key: document[key] for key in keys if key in document}}
    headers = {"x-amzn-errortype": str(error.get("Code", ""))}
    return failure_of_response(int(metadata.get("HTTPStatusCode", 0)), headers, json.dumps(body).encode())


NEW_SESSION = "NEW_SESSION"


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint, or a part of it.

    Attributes:
        schema: The schema to speak; the container behind the endpoint decides which ones it understands.
        inference_component: The component (or adapter component) that shall answer; needed where the endpoint has
            components.
        target_variant: The production variant that shall answer; None leaves the choice to the weights.
        session_id: The stateful session that the request belongs to.
    """

    endpoint_name: str
    schema: Schema
    inference_component: str | None = None
    target_variant: str | None = None
    session_id: str | None = None

    @property
    def where(self) -> str:
        """The target's name, for errors."""
        return "/".join(filter(None, (self.endpoint_name, self.inference_component, self.target_variant)))


class InvocationArguments(TypedDict, total=False):
    """The arguments that `invoke_endpoint` and `invoke_endpoint_with_response_stream` share."""

    EndpointName: str
    Body: bytes
    ContentType: str
    InferenceComponentName: str
    TargetVariant: str
    SessionId: str


def invocation_arguments(target: Target, body: bytes, *, stream: bool) -> InvocationArguments:
    """Return boto3's arguments for a request.

    Raises:
        RequestError: SEA370, a new session is requested in a stream, whose response has no place to name it.
    """
    if stream and target.session_id == NEW_SESSION:
        problem = "a stream can't open a session: open it without streaming"
        raise RequestError.of(REQUEST_RULE, problem, where=target.where, field="session_id")
    arguments = InvocationArguments(EndpointName=target.endpoint_name, Body=body, ContentType=CONTENT_TYPE)
    if target.inference_component:
        arguments["InferenceComponentName"] = target.inference_component
    if target.target_variant:
        arguments["TargetVariant"] = target.target_variant
    if target.session_id:
        arguments["SessionId"] = target.session_id
    return arguments


TOTAL_ATTEMPTS = 20
CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 70.0


def client_config(*, concurrency: int = 10, read_timeout_s: float = READ_TIMEOUT_S) -> Config:
    """Return a configuration for `boto3.client("sagemaker-runtime", config=…)`.

    Retries are botocore's standard mode with 20 attempts in all, as AWS's articles on LLM endpoints have it. That mode
    repeats throttling, 5xx answers, timeouts and broken connections, with growing random pauses, and only while the
    client's quota of retries lasts. A container that is full answers `ModelError` (424), which it doesn't repeat.

    Args:
        concurrency: Requests in flight at the same time: as many connections are kept open (botocore's default: 10).
        read_timeout_s: The longest silence. SageMaker gives a model 60 s for a whole answer (so stay above that), and
            a stream 8 minutes in all.
    """
    return Config(
        retries={"mode": "standard", "total_max_attempts": TOTAL_ATTEMPTS},
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=read_timeout_s,
        max_pool_connections=concurrency,
        tcp_keepalive=True,
    )


TOKEN_S = 900


def token_source(region: str, *, expires_s: int = TOKEN_S) -> RenewedToken:
    """Return a function that returns a token, which OpenAI's client takes as its `api_key` and calls for each request.

    No call of AWS is made. A token is used for half of its life; it has the authority of the credentials of this
    process, and ends with them.

    Args:
        expires_s: Seconds that a token holds: 1 to 43,200.

    Raises:
        BenchError: SEA503, there are no credentials.
    """
    return RenewedToken(credential_source(), region, lambda: datetime.now(UTC), expires_s)
