"""The custom resource of an audited environment that records what serves, each time that it changes.

It comes after the trial and before the alias, and goes before the endpoint does. What can't be recorded does not go
live: its deployment fails. What goes back or goes away is not held up.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from seatrial_cdk.trials.runtime.answer import send_answer
from seatrial_cdk.trials.runtime.log_groups import log
from seatrial_cdk.trials.runtime.order import Answer, endpoint_of
from seatrial_cdk.trials.runtime.outcome import sealed_text
from seatrial_cdk.trials.runtime.store import UnavailableError
from seatrial_load.documents.served_record import UNKNOWN, ServedModel, ServedRecord
from seatrial_load.documents.strict_json import read_document, write_document

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.context import TrialContext
    from seatrial_cdk.trials.runtime.order import CustomResourceEvent
    from seatrial_load.documents.served_record import Change

RECORD_TYPE: Final = "Custom::ServedRecord"


def record_served(event: CustomResourceEvent, context: TrialContext) -> None:
    """Record what serves after a request of CloudFormation, and answer it.

    Raises:
        UnavailableError: CloudFormation did not take the answer; Lambda then calls again.
    """
    status, answer = "", Answer()
    try:
        with suppress(UnavailableError):  # an unknown direction is an update's: no record says what it can't know
            status = context.stack_status(event["StackId"])
        _keep(event, status, context)
    except Exception as error:  # noqa: BLE001 (the Lambda's boundary: CloudFormation must learn of any failure)
        log(f"no record of {endpoint_of(event)}: {error!r}")
        if event["RequestType"] != "Delete" and "ROLLBACK" not in status:
            answer = Answer(failed_because=f"What serves as {endpoint_of(event)} could not be recorded: {error}")
    send_answer(event, answer, context.respond, bucket=context.bucket)


def _change(event: CustomResourceEvent, status: str) -> Change:
    if event["RequestType"] == "Delete":
        return "delete"
    if "ROLLBACK" in status:
        return "rollback"
    return "create" if event["RequestType"] == "Create" else "update"


def _keep(event: CustomResourceEvent, status: str, context: TrialContext) -> None:
    """Write a record once, however often its request is delivered; nothing is ever written over one."""
    if context.records is None:
        raise UnavailableError("the trial service has no bucket of records: deploy it with `audit` first")
    properties, store = event["ResourceProperties"], context.store
    uri, change_set = properties.get("ResultUri", UNKNOWN), ""
    text = store.read(uri.removeprefix(store.uri(""))) if uri.startswith(store.uri("")) else None
    with suppress(UnavailableError):
        change_set = context.change_set(event["StackId"])
    record = ServedRecord(
        change=_change(event, status),
        at=datetime.fromtimestamp(context.now_s(), UTC).isoformat(),
        endpoint_name=endpoint_of(event),
        component=properties["InferenceComponentName"],
        served=read_document(ServedModel, properties["Served"], where="the property Served"),
        verdict=properties.get("Verdict", "not tried"),
        result_uri=uri,
        result_digest=UNKNOWN if text is None else sha256(text.encode()).hexdigest(),
        result_signature="" if text is None else (json.loads(text).get("seal") or {}).get("signature", ""),
        stack_id=event["StackId"],
        request_id=event["RequestId"],
        change_set=change_set or UNKNOWN,
    )
    document, unsigned = sealed_text(write_document(record), context.seal, record.request_id)
    if unsigned:
        log(unsigned)
    context.records.create(f"{record.endpoint_name}/{record.served.endpoint}/{record.request_id}.json", document)
