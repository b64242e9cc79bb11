"""A deletion stops the load first, and removes what the stack could not otherwise let go of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from seatrial_cdk.trial_service.runtime.deletion import begin_deletion, end_deletion
from seatrial_cdk.trial_service.runtime.ownership import read_turn, take_turn
from seatrial_cdk.trial_service.runtime.store import UnavailableError

if TYPE_CHECKING:
    from seatrial_cdk.trial_service.runtime.custom_resource import CustomResourceEvent, Started
    from tests.constructs.conftest import DictScaling, DictStore

NOW_S = 2000.0
DOCUMENT = "trials/dev-chat/b/create-1.json"
RUN = "runs/dev-chat/create-1/run-1.json"
PAUSE = "runs/dev-chat/scaling.json"
BEFORE = {"DynamicScalingInSuspended": False}


@dataclass
class Stack:
    status: str

    def stack_status(self, stack_id: str) -> str:
        assert stack_id.startswith("arn:aws:cloudformation:")
        return self.status


@pytest.fixture
def deletion(create: CustomResourceEvent) -> CustomResourceEvent:
    return {
        **create,
        "RequestType": "Delete",
        "RequestId": "delete-1",
        "PhysicalResourceId": "smoke-benchmark-dev-chat",
    }


@pytest.fixture
def running(store: DictStore) -> DictStore:
    """Return a store of an endpoint whose trial runs, and has suspended the scaling of copies."""
    take_turn(store, "dev-chat", "create-1", document=DOCUMENT, now_s=NOW_S - 100.0)
    store.write(PAUSE, json.dumps({"request_id": "create-1", "before": BEFORE}))
    return store


def begun(deletion: CustomResourceEvent, store: DictStore, status: str = "DELETE_IN_PROGRESS") -> Started:
    return begin_deletion(deletion, store, Stack(status), now_s=NOW_S)


def test_a_running_trial_loses_the_turn_and_is_waited_for(deletion: CustomResourceEvent, running: DictStore) -> None:
    assert begun(deletion, running) == {
        "PhysicalResourceId": "smoke-benchmark-dev-chat",
        "Stopping": DOCUMENT,
        "StoppingRun": RUN,
        "StoppedAt": NOW_S,
        "Clear": False,
    }
    turn = read_turn(running, "dev-chat")
    assert turn is not None
    assert (turn.request_id, turn.document) == ("delete-1", "")


def test_a_trial_that_has_ended_is_not_waited_for(deletion: CustomResourceEvent, running: DictStore) -> None:
    running.write(DOCUMENT, "{}")
    assert begun(deletion, running) == {"PhysicalResourceId": "smoke-benchmark-dev-chat"}


def test_the_documents_of_a_rolled_back_creation_go_after_its_trial_has_stopped(
    deletion: CustomResourceEvent, running: DictStore, scaling: DictScaling
) -> None:
    event: CustomResourceEvent = {**deletion, **begun(deletion, running, "ROLLBACK_IN_PROGRESS")}
    assert event.get("Clear") is True
    assert end_deletion(event, running, scaling, now_s=NOW_S + 5.0) == {"IsComplete": False}
    assert running.read("runs/dev-chat/turn.json") is not None
    running.write(DOCUMENT, json.dumps({"error": "stopped"}))
    assert end_deletion(event, running, scaling, now_s=NOW_S + 10.0) == {"IsComplete": True}
    assert running.texts == {}
    assert scaling.states == {"dev-chat-model": BEFORE}


def test_a_trial_that_does_not_stop_is_waited_for_a_minute(
    deletion: CustomResourceEvent, running: DictStore, scaling: DictScaling
) -> None:
    event: CustomResourceEvent = {**deletion, **begun(deletion, running)}
    assert end_deletion(event, running, scaling, now_s=NOW_S + 60.0) == {"IsComplete": False}
    assert scaling.calls == []
    assert end_deletion(event, running, scaling, now_s=NOW_S + 61.0) == {"IsComplete": True}
    assert scaling.states == {"dev-chat-model": BEFORE}


def test_a_trial_that_was_stopped_between_two_runs_is_not_waited_for(
    deletion: CustomResourceEvent, running: DictStore, scaling: DictScaling
) -> None:
    """There is no function that would write its document."""
    running.write(RUN, json.dumps({"alive_at_s": NOW_S - 1.0, "paused": False}))
    event: CustomResourceEvent = {**deletion, **begun(deletion, running)}
    assert end_deletion(event, running, scaling, now_s=NOW_S + 5.0) == {"IsComplete": False}
    running.write(RUN, json.dumps({"alive_at_s": NOW_S + 6.0, "paused": True}))
    assert end_deletion(event, running, scaling, now_s=NOW_S + 7.0) == {"IsComplete": True}
    assert scaling.states == {"dev-chat-model": BEFORE}


def test_scaling_that_cannot_be_restored_never_fails_a_deletion(
    deletion: CustomResourceEvent, running: DictStore, scaling: DictScaling, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise UnavailableError("the target is gone")

    monkeypatch.setattr(scaling, "suspend", refuse)
    event: CustomResourceEvent = {**deletion, **begun(deletion, running)}
    running.write(DOCUMENT, "{}")
    assert end_deletion(event, running, scaling, now_s=NOW_S + 5.0) == {"IsComplete": False}
    assert end_deletion(event, running, scaling, now_s=NOW_S + 61.0) == {"IsComplete": True}


@pytest.mark.parametrize(
    "status", ["UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"]
)
def test_the_old_name_of_a_renamed_endpoint_stops_and_clears_nothing_of_the_new_one(
    deletion: CustomResourceEvent, running: DictStore, status: str
) -> None:
    running.write("passed/dev-chat/b/config-2/model-2.json", "{}")
    before = dict(running.texts)
    deletion["ResourceProperties"] = {**deletion["ResourceProperties"], "EndpointName": "dev-chat-old"}
    deletion["PhysicalResourceId"] = "smoke-benchmark-dev-chat-old"
    assert begun(deletion, running, status) == {"PhysicalResourceId": "smoke-benchmark-dev-chat-old"}
    assert {key: text for key, text in running.texts.items() if "/dev-chat/" in key} == before


def test_nothing_is_waited_for_where_nothing_was_stopped(
    deletion: CustomResourceEvent, store: DictStore, scaling: DictScaling
) -> None:
    assert end_deletion(deletion, store, scaling, now_s=NOW_S) == {"IsComplete": True}
