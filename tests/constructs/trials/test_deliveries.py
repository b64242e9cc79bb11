"""Lambda calls the function again for a request that failed, twice, and may deliver any request more than once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial_base.bounds import LONGEST_ORDER_S, LOST_AFTER_S
from seatrial_base.units import S_PER_HOUR
from seatrial_cdk.trials.runtime.handler import dispatch
from seatrial_cdk.trials.runtime.order import CarriedCopies, write_copies
from seatrial_cdk.trials.runtime.store import UnavailableError
from seatrial_cdk.trials.runtime.sweep import note_request
from tests.constructs.conftest import SPECIFICATION, component
from tests.constructs.trials.conftest import COMPONENT, RUN, refuse

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.order import CustomResourceEvent
    from tests.constructs.trials.conftest import World


@pytest.fixture
def carried(update: CustomResourceEvent) -> CustomResourceEvent:
    """Return a request that is answered with the live copies at once."""
    update["ResourceProperties"] = {**update["ResourceProperties"], "Phase": "candidate"}
    return update


@pytest.fixture
def going_back(world: World) -> World:
    world.components.found[COMPONENT] = component(current_copies=3, desired_copies=3)
    write_copies(world.store, "dev-chat", CarriedCopies(copies=2, is_new=False, previous=2))
    world.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    return world


def test_a_request_is_noted_before_anything_is_asked_of_aws(
    world: World, carried: CustomResourceEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[bool] = []

    def describe(_: str) -> None:
        noted.append({f"{RUN}/seen.json", f"{RUN}/noted.json"} <= world.store.texts.keys())

    monkeypatch.setattr(world.components, "describe", describe)
    world.ask(carried)
    assert noted
    assert all(noted)


@pytest.mark.parametrize("deliveries", [2, 3])
def test_a_trial_is_started_once(world: World, create: CustomResourceEvent, deliveries: int) -> None:
    for _ in range(deliveries):
        assert world.ask(create) is None
        world.clock.wait(60.0)
    assert world.workflow.started == [("dev-chat", "request-1")]
    world.machine().execute()
    assert world.ask(create) is None
    assert (len(world.workflow.started), len(world.responses)) == (1, 1)


def test_a_trial_that_was_noted_and_not_started_is_started_by_the_next_delivery(
    world: World, create: CustomResourceEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = world.workflow.start

    def die(*_: object) -> None:
        raise SystemExit

    monkeypatch.setattr(world.workflow, "start", die)
    with pytest.raises(SystemExit):
        world.ask(create)
    monkeypatch.setattr(world.workflow, "start", start)
    assert world.ask(create) is None
    assert world.workflow.started == [("dev-chat", "request-1")]


@pytest.fixture
def lost(world: World, create: CustomResourceEvent, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a world in which every function that took a request died before it owned the endpoint."""

    def die(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(world.components, "describe", die)
        patched.setattr(world.store, "replace", die)
        patched.setattr(world.workflow, "start", die)
        for _ in range(3):
            with pytest.raises(SystemExit):
                world.ask(create)
    return world


def test_a_request_of_which_every_delivery_died_is_taken_again_by_the_sweep(lost: World) -> None:
    """CloudFormation has waited for longer than the trial may take: it gets an answer, and no trial."""
    lost.clock.wait(LOST_AFTER_S)
    dispatch({"Sweep": True}, lost.context)
    assert lost.workflow.started == [("dev-chat", "request-1")]
    lost.machine().execute()
    (answer,) = lost.responses
    assert answer["Status"] == "FAILED"
    assert "the budget of 600 s ended before the trial started" in str(answer["Reason"])
    dispatch({"Sweep": True}, lost.context)
    assert (len(lost.workflow.started), len(lost.responses)) == (1, 1)


def test_a_request_that_can_be_answered_at_once_is_answered_by_the_sweep(
    world: World, create: CustomResourceEvent
) -> None:
    create["RequestType"] = "Delete"
    note_request(world.store, create, world.clock.now_s)
    world.clock.wait(LOST_AFTER_S)
    dispatch({"Sweep": True}, world.context)
    assert [(response["Status"], response["RequestId"]) for response in world.responses] == [("SUCCESS", "request-1")]


def test_the_budget_begins_with_the_note(world: World, create: CustomResourceEvent) -> None:
    """Who noted it died at once: CloudFormation has waited since, and a whole trial would come too late."""
    note_request(world.store, create, world.clock.now_s)
    world.clock.wait(LOST_AFTER_S)
    dispatch({"Sweep": True}, world.context)
    world.machine().execute()
    (answer,) = world.responses
    assert "the budget of 600 s ended before the trial started" in str(answer["Reason"])


def test_a_lost_request_behind_a_thousand_documents_is_taken_again(
    lost: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request leaves several documents for a year, of which the sweep lists those of the last hours alone."""
    answered = {f"runs/dev-a/request-{n}/{name}.json": "{}" for n in range(600) for name in ("noted", "sent")}
    lost.store.texts = answered | lost.store.texts
    lost.clock.wait(LOST_AFTER_S)
    listed: list[str] = []
    keys = lost.store.keys

    def counted(prefix: str) -> list[str]:
        listed.extend(found := keys(prefix))
        return found

    monkeypatch.setattr(lost.store, "keys", counted)
    dispatch({"Sweep": True}, lost.context)
    assert lost.workflow.started == [("dev-chat", "request-1")]
    assert len(listed) < 5


@pytest.mark.parametrize("age_s", [LOST_AFTER_S, LONGEST_ORDER_S - 2.0])
@pytest.mark.parametrize("before_midnight_s", [1.0, 1800.0])
def test_a_lost_request_of_yesterday_is_taken_again(
    world: World, create: CustomResourceEvent, age_s: float, before_midnight_s: float
) -> None:
    world.clock.wait(-world.clock.now_s % (24 * S_PER_HOUR) - before_midnight_s)
    for _ in range(2):  # a second delivery, in the next hour, is the same request
        note_request(world.store, create, world.clock.now_s)
        world.clock.wait(age_s / 2)
    dispatch({"Sweep": True}, world.context)
    assert world.workflow.started == [("dev-chat", "request-1")]


@pytest.mark.parametrize("age_s", [LOST_AFTER_S - 1.0, LONGEST_ORDER_S])
def test_a_request_that_a_function_may_be_at_work_for_or_that_nobody_waits_for_is_left(
    lost: World, age_s: float
) -> None:
    lost.clock.wait(age_s)
    dispatch({"Sweep": True}, lost.context)
    assert (lost.workflow.started, lost.responses) == ([], [])


def test_a_lost_request_that_cannot_be_answered_keeps_no_other_waiting(
    world: World, create: CustomResourceEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    create["RequestType"] = "Delete"
    for number in (1, 2):
        note_request(world.store, {**create, "RequestId": f"request-{number}"}, world.clock.now_s)
    respond = world.respond

    def refuse_first(url: str, body: bytes) -> None:
        if json.loads(body)["RequestId"] == "request-1":
            raise UnavailableError("HTTP 503")
        respond(url, body)

    monkeypatch.setattr(world, "respond", refuse_first)
    world.clock.wait(LOST_AFTER_S)
    dispatch({"Sweep": True}, world.context)
    assert [response["RequestId"] for response in world.responses] == ["request-2"]


def test_what_a_trial_is_ordered_to_do_stays(world: World, carried: CustomResourceEvent) -> None:
    """A delivery while the trial runs finds another world, as the pass of its own candidate."""
    assert world.ask(carried) is None
    ordered = world.store.texts[f"{RUN}/request.json"]
    world.store.write("passed/dev-chat/b/config-2/model-2.json", "{}")
    world.components.found[COMPONENT] = component(specification=SPECIFICATION, current_copies=3, desired_copies=3)
    assert world.ask(carried) is None
    assert world.store.texts[f"{RUN}/request.json"] == ordered


def test_an_answer_is_given_once(going_back: World, carried: CustomResourceEvent) -> None:
    first = going_back.ask(carried)
    assert first is not None
    going_back.components.found[COMPONENT] = component(current_copies=5, desired_copies=5)
    assert going_back.ask(carried) is None
    assert going_back.responses == [first]


def test_an_answer_that_was_not_taken_is_given_again_as_it_was(
    going_back: World, carried: CustomResourceEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[dict[str, object]] = []

    def refused(_: str, body: bytes) -> None:
        sent.append(json.loads(body))
        raise UnavailableError("answering CloudFormation: HTTP 503")

    monkeypatch.setattr(going_back, "respond", refused)
    with pytest.raises(UnavailableError):
        going_back.ask(carried)
    monkeypatch.undo()
    going_back.components.found[COMPONENT] = component(current_copies=5, desired_copies=5)
    assert going_back.ask(carried) == sent[0]


def test_a_deletion_that_comes_again_touches_nothing_of_what_was_made_since(
    world: World, create: CustomResourceEvent
) -> None:
    deletion: CustomResourceEvent = {**create, "RequestType": "Delete", "RequestId": "delete"}
    assert world.ask(deletion) is not None
    world.store.write("passed/dev-chat/b/config-2/model-2.json", "{}")
    world.status = "ROLLBACK_IN_PROGRESS"
    assert world.ask(deletion) is None
    assert "passed/dev-chat/b/config-2/model-2.json" in world.store.texts


def test_an_answer_that_cannot_be_noted_is_given_all_the_same(
    going_back: World, carried: CustomResourceEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(going_back.store, "create", refuse)
    assert going_back.ask(carried) is not None
