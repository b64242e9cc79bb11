"""What boto3 raises for one request, as a failure; what is wrong with the caller, like credentials, stays as it is."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import urllib3.exceptions
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

from seatrial.bench.failure import Failure, failure_of_response, failure_of_type, shorten
from seatrial.client.error import InvocationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.failure import ErrorClass

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
        raise InvocationError.because(failure_of(error), where=where) from error


def failure_of(error: Exception) -> Failure:
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
    said = response if isinstance(response, dict) else {}
    told = said.get("Error")
    error = told if isinstance(told, dict) else {}
    words = [str(word) for word in (said.get("ErrorCode"), error.get("Message")) if word]
    return failure_of_type(str(error.get("Code") or "exception"), ": ".join(words) or "no message")


def _failure_of_answer(response: object) -> Failure:
    said = response if isinstance(response, dict) else {}
    error, metadata = said.get("Error") or {}, said.get("ResponseMetadata") or {}
    keys = ("OriginalStatusCode", "OriginalMessage")
    body = {"message": error.get("Message"), **{key: said[key] for key in keys if key in said}}
    headers = {"x-amzn-errortype": str(error.get("Code", ""))}
    return failure_of_response(int(metadata.get("HTTPStatusCode", 0)), headers, json.dumps(body).encode())
