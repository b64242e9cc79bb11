"""How an answer gets to CloudFormation."""

from __future__ import annotations

import json
import time
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from seatrial_base.printable import printable
from seatrial_base.secrets import redacted
from seatrial_cdk.trials.runtime.order import Answer, physical_id
from seatrial_cdk.trials.runtime.store import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_cdk.trials.runtime.order import CustomResourceEvent


MAX_REASON_CHARACTERS = 900  # consoles show 1 KB of a reason; the answer as a whole may have 4 KB


PAUSES_S = (1.0, 2.0, 4.0, 8.0)


TIMEOUT_S = 10.0


class Respond(Protocol):
    """Gives CloudFormation an answer."""

    def __call__(self, url: str, body: bytes) -> None:
        """Put the answer to a response URL.

        Raises:
            UnavailableError: It was not taken.
        """


def send_answer(event: CustomResourceEvent, answer: Answer, respond: Respond, *, bucket: str) -> None:
    """Give an answer.

    Raises:
        UnavailableError: CloudFormation did not take it.
    """
    body: dict[str, object] = {
        "Status": "SUCCESS" if answer.failed_because is None else "FAILED",
        "PhysicalResourceId": physical_id(event),
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
    }
    if answer.failed_because is not None:
        body["Reason"] = shortened_reason(answer.failed_because)
    if answer.data is not None:
        body["Data"] = {**answer.data, "ResultsBucket": bucket}
    respond(event["ResponseURL"], json.dumps(body).encode())


def shortened_reason(reason: str) -> str:
    """Return a reason that consoles show to its end: of a longer one the middle goes, not the result behind it."""
    reason = printable(redacted(reason))
    if len(reason) <= MAX_REASON_CHARACTERS:
        return reason
    why, _, where = reason.rpartition(" (")
    return f"{why[: MAX_REASON_CHARACTERS - len(where) - 3]}… ({where}"


def put_answer(url: str, body: bytes, *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Put an answer to a presigned URL, again and again for a while when it is not taken.

    Raises:
        UnavailableError: It was not taken.
    """
    for pause_s in (*PAUSES_S, None):
        try:
            status = _put(url, body)
        except (OSError, HTTPException) as failed:
            why = f"{failed!r}"
        else:
            if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
                return
            why = f"HTTP {status}"
        if pause_s is None:
            raise UnavailableError(f"answering CloudFormation: {why}")
        sleep(pause_s)


def _put(url: str, body: bytes) -> int:
    """Put once; the URL's signature is of a request without a content type."""
    parts = urlsplit(url)
    connect = HTTPConnection if parts.scheme == "http" else HTTPSConnection  # http: the embedded AWS on the loopback
    connection = connect(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    try:
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request("PUT", target, body, {"Content-Type": "", "Content-Length": f"{len(body)}"})
        return connection.getresponse().status
    finally:
        connection.close()
