"""What serves is recorded once for each change, signed, with its trial; what can't be recorded does not go live."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from seatrial.deployment.evidence import verifies
from seatrial_cdk.trials.runtime.handler import dispatch
from seatrial_cdk.trials.runtime.served_record import RECORD_TYPE
from seatrial_cdk.trials.runtime.store import UnavailableError
from seatrial_load.documents.served_record import ServedModel
from tests.constructs.conftest import DictStore
from tests.constructs.trials.conftest import TRIAL, URI

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.order import CustomResourceEvent
    from tests.constructs.trials.conftest import World

MODEL = ServedModel(**dict.fromkeys(ServedModel.__slots__, "x") | {"endpoint": "chat", "environment": "dev"})
CHANGE_SET = "arn:aws:cloudformation:us-east-1:123456789012:changeSet/ci--4f2b--17--ada/1"
KEY = "dev-chat/chat/request-1.json"


def asked(create: CustomResourceEvent, kind: str = "Create", request_id: str = "request-1") -> CustomResourceEvent:
    changed: Any = {
        "ResourceType": RECORD_TYPE,
        "RequestType": kind,
        "RequestId": request_id,
        "ResourceProperties": {
            "EndpointName": "dev-chat",
            "InferenceComponentName": "dev-chat-model",
            "Served": json.dumps(asdict(MODEL)),
            "Verdict": "pass",
            "ResultUri": URI,
        },
    }
    return {**create, **changed}


def recorded(world: World, event: CustomResourceEvent, records: DictStore) -> None:
    dispatch(event, replace(world.context, records=records, change_set=lambda _: CHANGE_SET))


def test_a_deployment_is_recorded_once_with_its_trial_and_a_signature(
    world: World, create: CustomResourceEvent
) -> None:
    records = DictStore()
    result = world.key.seal('{"verdict": "pass"}', "request-0")
    world.store.write(TRIAL, result)
    recorded(world, asked(create), records)
    (text,) = [records.texts[KEY]]
    record = json.loads(text)
    assert record["served"] == asdict(MODEL)
    assert (record["change"], record["at"], record["change_set"]) == ("create", "1970-01-01T00:16:40+00:00", CHANGE_SET)
    assert record["result_digest"] == sha256(result.encode()).hexdigest()
    assert record["result_signature"] == json.loads(result)["seal"]["signature"]
    assert verifies(world.key.public, text, record["seal"]["signature"])
    world.clock.now_s += 60.0
    recorded(world, asked(create), records)
    assert records.texts == {KEY: text}
    assert [each["Status"] for each in world.responses] == ["SUCCESS", "SUCCESS"]


@pytest.mark.parametrize(
    ("kind", "status", "change"),
    [
        ("Update", "UPDATE_IN_PROGRESS", "update"),
        ("Update", "UPDATE_ROLLBACK_IN_PROGRESS", "rollback"),
        ("Delete", "DELETE_IN_PROGRESS", "delete"),
    ],
)
def test_a_record_says_what_changed_and_only_what_goes_live_waits_for_it(
    world: World, create: CustomResourceEvent, kind: str, status: str, change: str
) -> None:
    records, world.status = DictStore(), status
    recorded(world, asked(create, kind), records)
    assert json.loads(records.texts[KEY])["change"] == change

    def refuse(*_: object) -> bool:
        raise UnavailableError("creating the record: SlowDown")

    records.create = refuse  # type: ignore[method-assign, assignment] # S3 does not answer
    recorded(world, asked(create, kind, "request-2"), records)
    assert world.responses[-1]["Status"] == ("FAILED" if change == "update" else "SUCCESS")
