"""A deletion stops the load first, and removes what no later deployment may be answered from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial_cdk.trials.runtime.ownership import read_owner
from seatrial_cdk.trials.runtime.scaling import HeldScaling
from seatrial_cdk.trials.runtime.store import UnavailableError
from tests.constructs.conftest import component
from tests.constructs.trials.conftest import BEFORE, COMPONENT, HELD, ORDERED_S, TRIAL, UNREADABLE

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling.type_defs import SuspendedStateTypeDef

    from seatrial_cdk.trials.runtime.order import CustomResourceEvent
    from tests.constructs.trials.conftest import World


@pytest.fixture
def deletion(create: CustomResourceEvent) -> CustomResourceEvent:
    return {
        **create,
        "RequestType": "Delete",
        "RequestId": "delete-1",
        "PhysicalResourceId": "smoke-benchmark-dev-chat",
    }


@pytest.fixture
def running(ordered: World) -> World:
    """Return a world whose trial runs, and has suspended the scaling of copies."""
    held = HeldScaling(
        endpoint_name="dev-chat", component=COMPONENT, request_id="request-1", stack_id="s", copies=1, before=BEFORE
    )
    ordered.store.write(HELD, held.to_json())
    ordered.scaling.states[COMPONENT] = {"DynamicScalingInSuspended": True}
    ordered.clock.wait(100.0)
    ordered.status = "DELETE_IN_PROGRESS"
    return ordered


def end_after(world: World, seconds: float) -> None:
    """Let the trial's own workflow write its document after a while."""
    due_s = world.clock.now_s + seconds

    def act() -> None:
        if world.clock.now_s >= due_s and TRIAL not in world.store.texts:
            world.store.write(TRIAL, json.dumps({"error": "stopped"}))

    world.clock.acts.append(act)


def test_a_running_trial_loses_its_endpoint_and_is_waited_for(running: World, deletion: CustomResourceEvent) -> None:
    end_after(running, 12.0)
    response = running.ask(deletion)
    assert response is not None
    assert (response["Status"], running.clock.now_s) == ("SUCCESS", ORDERED_S + 100.0 + 12.0)
    owner = read_owner(running.store, "dev-chat")
    assert owner is not None
    assert (owner.request_id, owner.document) == ("delete-1", "")
    assert running.scaling.states == {COMPONENT: BEFORE}
    assert running.workflow.stopped == []


def test_a_trial_that_has_ended_is_not_waited_for(running: World, deletion: CustomResourceEvent) -> None:
    running.store.write(TRIAL, "{}")
    running.ask(deletion)
    assert running.clock.now_s == ORDERED_S + 100.0


def test_a_trial_that_does_not_stop_is_waited_for_a_minute_and_its_workflow_is_stopped(
    running: World, deletion: CustomResourceEvent
) -> None:
    response = running.ask(deletion)
    assert response is not None
    assert (response["Status"], running.clock.now_s) == ("SUCCESS", ORDERED_S + 160.0)
    assert running.workflow.stopped == ["request-1"]
    assert running.scaling.states == {COMPONENT: BEFORE}


def test_what_a_rolled_back_creation_leaves_is_its_evidence_alone(
    running: World, deletion: CustomResourceEvent
) -> None:
    running.status = "ROLLBACK_IN_PROGRESS"
    end_after(running, 2.0)
    running.ask(deletion)
    answer = {f"runs/dev-chat/delete-1/{name}.json" for name in ("answered", "sent")}
    assert set(running.store.texts) == {TRIAL, *answer}
    assert running.scaling.states == {COMPONENT: BEFORE}


@pytest.mark.parametrize(
    ("status", "kept"),
    [
        ("ROLLBACK_IN_PROGRESS", False),
        ("UPDATE_ROLLBACK_IN_PROGRESS", False),
        ("DELETE_IN_PROGRESS", True),
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", True),
        (UNREADABLE, True),
    ],
)
def test_only_of_what_was_rolled_back_nothing_is_known_later(
    world: World, deletion: CustomResourceEvent, status: str, *, kept: bool
) -> None:
    for name in ("dev-chat", "other"):
        world.store.write(f"passed/{name}/b/config-2/model-2.json", "{}")
    world.status = status
    world.ask(deletion)
    assert (world.store.read("passed/dev-chat/b/config-2/model-2.json") is not None) is kept
    assert world.store.read("passed/other/b/config-2/model-2.json") is not None


def test_scaling_that_cannot_be_restored_never_fails_a_deletion(
    running: World, deletion: CustomResourceEvent, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise UnavailableError("the target is gone")

    monkeypatch.setattr(running.scaling, "suspend", refuse)
    running.store.write(TRIAL, "{}")
    response = running.ask(deletion)
    assert response is not None
    assert response["Status"] == "SUCCESS"
    assert "the sweep restores the scaling of dev-chat: the target is gone" in capsys.readouterr().out


@pytest.mark.parametrize(
    "status", ["UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"]
)
def test_the_old_name_of_a_renamed_endpoint_stops_and_clears_nothing_of_the_new_one(
    running: World, deletion: CustomResourceEvent, status: str
) -> None:
    running.store.write("passed/dev-chat/b/config-2/model-2.json", "{}")
    before = dict(running.store.texts)
    running.status = status
    deletion["ResourceProperties"] = {**deletion["ResourceProperties"], "EndpointName": "dev-chat-old"}
    running.ask(deletion)
    assert {key: text for key, text in running.store.texts.items() if "/dev-chat/" in key} == before


def test_a_late_delivery_of_a_deletion_stops_nothing_of_the_endpoint_that_was_made_since(
    world: World, create: CustomResourceEvent, deletion: CustomResourceEvent
) -> None:
    world.ask(deletion)
    world.clock.wait(60.0)
    assert world.ask(create) is None
    before = dict(world.store.texts)
    assert world.ask(deletion) is None, "it was answered"
    assert world.store.texts == before


def test_a_deletion_that_is_carried_out_after_a_later_creation_leaves_its_trial_alone(
    world: World, create: CustomResourceEvent, deletion: CustomResourceEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function that took the deletion died; Lambda delivers it again while the new endpoint is tried."""

    def die(*_: object, **__: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(world.store, "replace", die)
        patched.setattr(world.store, "read_versioned", die)
        with pytest.raises(SystemExit):
            world.ask(deletion)
    world.clock.wait(60.0)
    assert world.ask(create) is None
    candidate = "dev-chat-candidate-00000000"
    suspended: dict[str, SuspendedStateTypeDef] = {COMPONENT: {"DynamicScalingInSuspended": True}}
    held = HeldScaling(
        endpoint_name="dev-chat", component=COMPONENT, request_id="request-1", stack_id="s", copies=1, before=BEFORE
    )
    world.store.write(HELD, held.to_json())
    world.scaling.states |= suspended
    world.components.found[candidate] = component(candidate)
    world.status = "ROLLBACK_IN_PROGRESS"
    before = dict(world.store.texts)
    response = world.ask(deletion)
    assert response is not None
    assert response["Status"] == "SUCCESS"
    assert world.workflow.stopped == world.components.deleted == []
    assert world.scaling.states == suspended
    assert {key: world.store.read(key) for key in before} == before
    owner = read_owner(world.store, "dev-chat")
    assert owner is not None
    assert owner.request_id == "request-1"


@pytest.mark.parametrize(
    ("phase", "seconds", "gone", "waited_s"),
    [
        pytest.param("candidate", "300", ("dev-chat",), 300.0, id="grants or interfaces are left"),
        pytest.param("candidate", "2000", ("dev-chat",), 870.0, id="longer than a function has, but for its answer"),
        pytest.param("candidate", "0", ("dev-chat",), 0.0, id="neither key nor network"),
        pytest.param("candidate", "300", (), 0.0, id="the endpoint stays: its trials are turned off"),
        pytest.param("deployed", "300", ("dev-chat",), 0.0, id="the endpoint goes later"),
    ],
)
@pytest.mark.parametrize("status", ["DELETE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"])
def test_the_roles_stay_until_aws_has_released_what_a_deleted_endpoint_leaves(
    world: World,
    deletion: CustomResourceEvent,
    phase: str,
    seconds: str,
    gone: tuple[str, ...],
    waited_s: float,
    status: str,
) -> None:
    world.status, world.components.gone = status, gone
    deletion["ResourceProperties"] = {**deletion["ResourceProperties"], "Phase": phase, "ReleaseSeconds": seconds}
    response = world.ask(deletion)
    assert response is not None
    assert (response["Status"], world.clock.now_s - ORDERED_S) == ("SUCCESS", waited_s)
