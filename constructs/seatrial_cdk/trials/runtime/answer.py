"""The answer to CloudFormation: what a trial's document says of the deployment, and how it gets there.

An answer is written down before it is given, so that the same request never gets two different ones: Lambda calls the
function again for a request that failed, and may deliver any request more than once.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import asdict
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from seatrial_base.errors import BenchError
from seatrial_base.secrets import redacted
from seatrial_base.text import printable
from seatrial_cdk.trials.runtime.attributes import NOT_TRIED, UNKNOWN, copies_attributes, measured_attributes
from seatrial_cdk.trials.runtime.custom_resource import not_made
from seatrial_cdk.trials.runtime.order import Answer, latest_key, passed_key, physical_id, read_copies, trial_key
from seatrial_cdk.trials.runtime.outcome import UNTRIED
from seatrial_cdk.trials.runtime.store import UnavailableError, run_key
from seatrial_load.documents.result import TrialResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_cdk.trials.runtime.context import Respond
    from seatrial_cdk.trials.runtime.order import Attributes, CustomResourceEvent, Order
    from seatrial_cdk.trials.runtime.properties import TrialProperties
    from seatrial_cdk.trials.runtime.store import TrialStore


ANSWERED: Final = "answered"
SENT: Final = "sent"
MAX_REASON_CHARACTERS = 900  # consoles show 1 KB of a reason; the answer as a whole may have 4 KB
PAUSES_S = (1.0, 2.0, 4.0, 8.0)
TIMEOUT_S = 10.0


def answer_of(order: Order, store: TrialStore) -> Answer:
    """Return what a trial's document says of the deployment.

    In mode `rollback` a deployment fails when its trial was not passed or not made; mode `report` only reports.
    """
    properties, key = order.properties, trial_key(order.properties, order.request_id)
    text, uri, copies = store.read(key), store.uri(key), _carried_copies(order, store)
    if text is None:
        return not_made(properties, "it ended without a result", uri=UNKNOWN, copies=copies)
    document = json.loads(text)
    if "error" in document:
        return not_made(properties, f"{document['error']}", uri=uri, copies=copies)
    if document == UNTRIED:
        return Answer(data=copies_attributes(copies, NOT_TRIED))
    try:
        result = TrialResult.from_json(text)
    except BenchError as unreadable:
        message = f"its result is from another release: {unreadable}"
        return not_made(properties, message, uri=uri, copies=copies)
    return _judged(order, store, result, uri)


def final_answer(order: Order, store: TrialStore) -> Answer:
    """Return what CloudFormation is answered: a component's update never carries copies that were not read for it.

    Where the answer would let it go on with the number of an earlier request, copies that came since would be taken
    away: it fails, in mode `report` too.
    """
    given, properties = answer_of(order, store), order.properties
    if given.failed_because is not None or properties.phase != "candidate":
        return given
    carried = read_copies(store, properties.endpoint_name)
    if carried is not None and carried.request_id == order.request_id:
        return given
    uri = store.uri(trial_key(properties, order.request_id))
    why = "the live copies could not be read"
    return Answer(failed_because=f"The update of {properties.endpoint_name} was stopped: {why} (result: {uri})")


def allows_deployment(order: Order, store: TrialStore) -> bool:
    """Tell whether the answer lets the deployment go on."""
    return answer_of(order, store).failed_because is None


def _carried_copies(order: Order, store: TrialStore) -> int:
    carried = read_copies(store, order.properties.endpoint_name)
    return order.properties.copy_count if carried is None else carried.copies


def _judged(order: Order, store: TrialStore, result: TrialResult, uri: str) -> Answer:
    properties = order.properties
    if properties.mode == "rollback" and not may_stay(result):
        outcome = "failed" if result.verdict.status == "fail" else "was inconclusive"
        why = f"The sea trial of {properties.endpoint_name} {outcome}: {result.verdict.because}"
        kept = "; what serves was not changed" if order.manner == "candidate" else ""
        return Answer(failed_because=f"{why}{kept} (result: {uri})")
    if properties.phase == "candidate":
        return Answer(data=copies_attributes(_carried_copies(order, store), result.verdict.status, uri))
    if order.manner == "verify" and (measured := _measured(properties, store)) is not None:
        return Answer(data=measured)
    return Answer(data=measured_attributes(result, uri))


def _measured(properties: TrialProperties, store: TrialStore) -> Attributes | None:
    """Return the attributes of what was measured of a configuration before it was verified; `None` without it."""
    for key in (passed_key(properties), latest_key(properties)):
        text = store.read(key)
        if text is not None:
            with suppress(BenchError):
                return measured_attributes(TrialResult.from_json(text), store.uri(key))
    return None


def may_stay(result: TrialResult) -> bool:
    """Tell whether mode `rollback` lets this verdict stay: a pass, or one that proves nothing where that is allowed."""
    status = result.verdict.status
    return status == "pass" or (status == "inconclusive" and result.request.gate.on_inconclusive == "pass")


def respond_once(
    event: CustomResourceEvent, endpoint_name: str, answer: Answer, store: TrialStore, respond: Respond, *, bucket: str
) -> None:
    """Give the answer to a request, or the one that was written down already; one that was taken is not given again.

    Raises:
        UnavailableError: It is not known whether one was given, or CloudFormation did not take it.
    """
    given = unsent_answer(store, endpoint_name, event["RequestId"], answer)
    if given is not None:
        send_answer(event, given, respond, bucket=bucket)
        note_sent(store, endpoint_name, event["RequestId"])


def unsent_answer(store: TrialStore, endpoint_name: str, request_id: str, answer: Answer) -> Answer | None:
    """Write an answer down and return it, or the one that was before; `None` when one was taken."""
    if is_sent(store, endpoint_name, request_id):
        return None
    # Of two deliveries at once one writes; the other gives what that one wrote, whatever it found out itself.
    if store.create(run_key(endpoint_name, request_id, ANSWERED), json.dumps(asdict(answer))):
        return answer
    return given_before(store, endpoint_name, request_id) or answer


def given_before(store: TrialStore, endpoint_name: str, request_id: str) -> Answer | None:
    """Return the answer to a request that was written down; `None` when there is none."""
    text = store.read(run_key(endpoint_name, request_id, ANSWERED))
    return None if text is None else Answer(**json.loads(text))


def note_sent(store: TrialStore, endpoint_name: str, request_id: str) -> None:
    """Note that the response to a request was taken; without the note it is given again."""
    with suppress(UnavailableError):
        store.create(run_key(endpoint_name, request_id, SENT), "{}")


def is_sent(store: TrialStore, endpoint_name: str, request_id: str) -> bool:
    """Tell whether a request was answered."""
    return store.read(run_key(endpoint_name, request_id, SENT)) is not None


def send_answer(event: CustomResourceEvent, answer: Answer, respond: Respond, *, bucket: str) -> None:
    """Give an answer."""
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
    """Put an answer to a presigned URL, again and again for a while when it is not taken."""
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
