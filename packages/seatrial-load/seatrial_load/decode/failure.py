"""Failures of requests: a class to count and a detail to read. Always data, never an exception."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial_base.secrets import redacted
from seatrial_base.text import printable
from seatrial_load.decode.http1 import ProtocolError, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


ErrorClass: TypeAlias = Literal[
    "throttled",
    "not_ready",
    "model_error",
    "validation",
    "auth",
    "timeout",
    "stalled",
    "connection",
    "protocol",
    "truncated",
    "no_text",
    "aborted",
    "filtered",
    "answer_too_large",
    "server",
    "unanswered",
]
MAX_DETAIL_CHARACTERS = 300
# Shorter keys are what servers without a key are given (`EMPTY`): words that a message may well hold.
LEAST_SECRET = 8
MASK = "[hidden]"
# The word after these is masked, whatever it looks like: an endpoint repeats here what this client has sent.
_PROOFS = re.compile(r"""(bearer\s+|x-amz-security-token\s*[:=]\s*)[^\s"',;}]+""", re.IGNORECASE)
_REFUSALS = range(HTTPStatus.BAD_REQUEST, HTTPStatus.INTERNAL_SERVER_ERROR)
_STATUS_CLASSES: Mapping[int, ErrorClass] = {
    HTTPStatus.UNAUTHORIZED: "auth",
    HTTPStatus.FORBIDDEN: "auth",
    HTTPStatus.TOO_MANY_REQUESTS: "throttled",
    HTTPStatus.SERVICE_UNAVAILABLE: "throttled",
    HTTPStatus.FAILED_DEPENDENCY: "model_error",
}
_TYPE_CLASSES: Mapping[str, ErrorClass] = {
    "throttlingexception": "throttled",
    "throttling": "throttled",
    "toomanyrequestsexception": "throttled",
    "overloaded": "throttled",
    "modelnotreadyexception": "not_ready",
    "modelerror": "model_error",
    "modelstreamerror": "model_error",
    "generation": "model_error",
    "incomplete_generation": "model_error",
    "validationerror": "validation",
    "validationexception": "validation",
    "validation": "validation",
    "accessdenied": "auth",
    "accessdeniedexception": "auth",
    "expiredtoken": "auth",
    "expiredtokenexception": "auth",
    "incompletesignature": "auth",
    "incompletesignatureexception": "auth",
    "invalidclienttokenid": "auth",
    "invalidsignatureexception": "auth",
    "missingauthenticationtoken": "auth",
    "missingauthenticationtokenexception": "auth",
    "optinrequired": "auth",
    "requestexpired": "auth",
    "requesttimetooskewed": "auth",
    "signaturedoesnotmatch": "auth",
    "unrecognizedclient": "auth",
    "unrecognizedclientexception": "auth",
    "serviceunavailable": "server",
    "internalfailure": "server",
    "internalserverexception": "server",
    "internaldependencyexception": "server",
    "internalstreamfailure": "server",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with one request.

    Attributes:
        error: `throttled` (the service or the container refused for load), `not_ready` (no copy is up yet),
            `model_error` (the container answered with an error), `validation` (the request was refused as wrong),
            `auth` (who sent it was refused: credentials expired, unknown or not allowed, a wrong signature, a wrong
            clock, a wrong key), `timeout` (ours: no complete answer in time), `stalled` (ours: a stream that had begun
            was silent for too long), `connection` (refused or broken), `protocol` (malformed bytes, or an
            impossible answer to the request), `truncated` (the engine reports the limit on tokens as reached, far
            below the requested number), `no_text` (four tokens or more are counted, and none came), `aborted` (the
            engine broke the generation off), `filtered` (it withheld content), `answer_too_large` (ours: an answer was
            cut that passed a limit of the client's memory), `server` (the service's own failure), `unanswered` (ours:
            in flight when its level was cut).
        detail: The message of the service or of the container, shortened.
    """

    error: ErrorClass
    detail: str


def failure_of_malformed(malformed: ProtocolError) -> Failure:
    """Classify bytes that no parser takes, or too many of them."""
    return Failure("answer_too_large" if isinstance(malformed, TooLargeError) else "protocol", shorten(str(malformed)))


def failure_of_response(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """Classify an HTTP response that isn't 200.

    A `ModelError` passes on the container's response: its `OriginalStatusCode` 429 or 503 is the container's full
    queue, 400 to 422 its refusal of the request. A validation error that speaks of capacity is an inference component
    at zero copies. Facts: the runtime API's error shapes and the errors common to all AWS services; container codes of
    LMI (503) and TGI (422, 424, 429); the `error` object of OpenAI-compatible servers, and of SageMaker's OpenAI path,
    which marks a container's error by its `code`.
    """
    try:
        document = _object(json.loads(body))
    except (ValueError, RecursionError):
        document = {}
    openai_error = _object(document.get("error"))
    types = (
        headers.get("x-amzn-errortype"), document.get("__type"), document.get("error_type"), openai_error.get("type")
    )  # fmt: skip
    name = next((name for name in types if isinstance(name, str) and name), "").partition(":")[0].rpartition("#")[2]
    messages = [document.get(key) for key in ("OriginalMessage", "Message", "message", "error")]
    message = next((text for text in (*messages, openai_error.get("message")) if isinstance(text, str) and text), "")
    message = message or body[: 2 * MAX_DETAIL_CHARACTERS].decode(errors="replace") or "empty answer"
    error = _TYPE_CLASSES.get(name.lower()) or class_of_status(status)
    if error == "model_error":
        error = class_of_container_status(document.get("OriginalStatusCode"))
    if openai_error.get("code") == "model_error":
        error = class_of_container_status(status)
    if error == "validation" and "capacity" in message.lower():
        error = "not_ready"
    return Failure(error, shorten(f"HTTP {status} {name}: {message}" if name else f"HTTP {status}: {message}"))


_UNSENT = frozenset({"messages", "prompt", "model", "stream"})  # what no request can do without
_OF_A_VALUE = re.compile(r"too large|too long|less than|greater than|at least|at most|exceed", re.IGNORECASE)


def refused_fields(body: bytes, sent: Sequence[str]) -> tuple[str, ...]:
    """Return the fields of a request that a refusal names, in their order; a limit of tokens only where it is unknown.

    It is an `error` of OpenAI's form with message and `param`, a list of pydantic's problems (its `input`, which may be
    the whole request, left out), or a text.
    """
    try:
        document = _object(json.loads(body))
    except (ValueError, RecursionError):
        document = {}
    detail = document.get("detail")
    problems = detail if isinstance(detail, list) else [_object(document.get("error")) or document]
    texts = [{key: value for key, value in _object(each).items() if key != "input"} for each in problems]
    text = json.dumps(texts) if document else body.decode(errors="replace")
    named = [name for name in sent if name not in _UNSENT and re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text)]
    return tuple(name for name in named if "max_" not in name or not _OF_A_VALUE.search(text))


def listed_models(body: bytes) -> tuple[str, ...]:
    """Return the models of an answer to `GET /models`; empty of any other body."""
    try:
        models = _object(json.loads(body)).get("data")
    except (ValueError, RecursionError):
        return ()
    names = [_object(each).get("id") for each in models] if isinstance(models, list) else []
    return tuple(printable(name) for name in names if isinstance(name, str) and name)


def failure_of_type(name: str, message: str, *, code: object = None) -> Failure:
    """Classify an error that came inside a stream: an exception frame's type, or a line's `error_type` or `code`."""
    error = _TYPE_CLASSES.get(name.lower()) or class_of_container_status(code)
    return Failure(error, shorten(f"{name}: {message}" if name else message))


def class_of_status(status: int) -> ErrorClass:
    """Classify a status code of a container, or of a service that named no error type."""
    if status in _STATUS_CLASSES:
        return _STATUS_CLASSES[status]
    return "validation" if status in _REFUSALS else "server"


def class_of_container_status(status: object) -> ErrorClass:
    """Classify the status of a container's response; one that failed inside (5xx but 503) is a model error."""
    if isinstance(status, int) and status in _REFUSALS:
        return class_of_status(status)
    return "throttled" if status == HTTPStatus.SERVICE_UNAVAILABLE else "model_error"


def shorten(text: str) -> str:
    """Cut a message to one line that a report can show, its credentials masked and its control characters replaced."""
    line = redacted(" ".join(text.encode(errors="replace").decode().split())[: 2 * MAX_DETAIL_CHARACTERS])
    line = printable(line)
    return line if len(line) <= MAX_DETAIL_CHARACTERS else f"{line[: MAX_DETAIL_CHARACTERS - 1]}…"


def masked(text: str, secret: str) -> str:
    """Hide what proves who sent a request, where a service repeats it in a message: reports show it to others.

    Other credentials in a message are masked as everywhere (`seatrial_base.secrets`).

    Args:
        secret: The key that was sent; empty for none.
    """
    shown = redacted(_PROOFS.sub(lambda match: match[1] + MASK, text))
    if len(secret) < LEAST_SECRET:
        return shown
    shown = shown.replace(secret, MASK)
    cut = shown.removesuffix("…")
    ends = (length for length in range(len(secret), LEAST_SECRET - 1, -1) if cut.endswith(secret[:length]))
    length = next(ends, 0)
    return f"{cut[:-length]}{MASK}…" if length else shown


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
