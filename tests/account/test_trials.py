"""A trial as whoever watches it sees it, while the service's own functions make it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial.account.trials import LiveTrial, follow, look
from seatrial.deployment.document import service_stack
from seatrial_base.bounds import LONGEST_ORDER_S
from seatrial_cdk.trials.runtime.outcome import UNTRIED
from seatrial_cdk.trials.runtime.ownership import take_ownership
from seatrial_cdk.trials.trial_service import service_name
from seatrial_load.search import NextLevel
from tests.constructs.conftest import DictComponents, DictScaling, DictStore
from tests.constructs.trials.conftest import ORDERED_S, World
from tests.constructs.trials.written_course import ALL_MEASURED, NEXT

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_cdk.trials.runtime.order import CustomResourceEvent

ENDPOINT = "dev-chat"


@pytest.fixture
def world() -> World:
    return World(DictStore(), DictScaling(), DictComponents())


def event_of(properties: dict[str, str]) -> CustomResourceEvent:
    return {
        "RequestType": "Create",
        "RequestId": "request-1",
        "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/seatrial-dev-chat/1",
        "LogicalResourceId": "TrialResource",
        "ResponseURL": "https://cloudformation.example/answer?signature=x",
        "ResourceProperties": properties,
    }


@pytest.fixture
def properties() -> dict[str, str]:
    from tests.constructs.conftest import request_of_dev  # noqa: PLC0415 (only here)

    template = json.loads(request_of_dev().to_json())
    del template["target"], template["expected"]
    return {
        "EndpointName": ENDPOINT,
        "InferenceComponentName": "dev-chat-model",
        "EndpointConfigName": "config-2",
        "ModelName": "model-2",
        "PlanDigest": "b",
        "Request": json.dumps(template),
        "Mode": "rollback",
        "BudgetSeconds": "600",
        "FallbackTarget": "9.6",
    }


def test_before_the_first_request_there_is_nothing(world: World) -> None:
    assert look(world.store, ENDPOINT, now_s=0.0) == LiveTrial()


def test_a_deployment_that_needs_no_trial_is_told_as_such(world: World) -> None:
    take_ownership(world.store, ENDPOINT, "request-1", document="", now_s=0.0)
    seen = look(world.store, ENDPOINT, now_s=0.0)
    assert (seen.request_id, seen.is_due, seen.has_ended) == ("request-1", False, False)


def test_a_trial_whose_document_has_expired_is_not_waited_for(world: World) -> None:
    take_ownership(world.store, ENDPOINT, "request-1", document="trials/x.json", now_s=0.0)
    assert look(world.store, ENDPOINT, now_s=LONGEST_ORDER_S - 1).is_due
    assert not look(world.store, ENDPOINT, now_s=LONGEST_ORDER_S).is_due


def test_a_trial_that_an_older_release_began_is_seen(world: World) -> None:
    take_ownership(world.store, ENDPOINT, "request-1", document="trials/x.json", now_s=0.0)
    world.store.texts["runs/dev-chat/owner.json"] = world.store.texts.pop("state/dev-chat/owner.json")
    assert look(world.store, ENDPOINT, now_s=0.0).request_id == "request-1"


def test_an_update_that_carries_its_copies_alone_is_no_trial(world: World) -> None:
    take_ownership(world.store, ENDPOINT, "request-1", document="trials/x.json", now_s=0.0)
    world.store.write("trials/x.json", json.dumps(UNTRIED))
    seen = look(world.store, ENDPOINT, now_s=0.0)
    assert (seen.request_id, seen.is_due) == ("request-1", False)


def test_a_trial_is_seen_level_by_level_to_its_verdict(world: World, properties: dict[str, str]) -> None:
    world.ask(event_of(properties))
    world.course.steps = [NextLevel(concurrency=8, because="first"), NEXT, ALL_MEASURED]
    seen: list[tuple[list[int], int | None, float]] = []

    def glance(_: object) -> None:
        world.clock.wait(10.0)
        live = look(world.store, ENDPOINT, now_s=world.clock.now_s)
        seen.append(([level.concurrency for level in live.levels], live.loading, live.left_s))

    world.load.acting = glance
    world.machine().execute()
    assert seen == [([], 8, 590.0), ([8], 16, 580.0)]
    live = look(world.store, ENDPOINT, now_s=world.clock.now_s)
    assert live.result is not None
    assert (live.result.verdict.status, live.loading, live.has_ended) == ("pass", None, True)


def test_a_trial_that_could_not_be_made_says_why(world: World, properties: dict[str, str]) -> None:
    def failing(_: object) -> None:
        raise ValueError("no credentials")

    world.ask(event_of(properties))
    world.course.beginning = failing
    world.machine().execute()
    assert look(world.store, ENDPOINT, now_s=ORDERED_S).error == "no credentials"


def test_who_follows_gets_each_change_once_and_no_more_after_the_end(world: World, properties: dict[str, str]) -> None:
    moments: list[Callable[[], object]] = [
        lambda: None,
        lambda: world.ask(event_of(properties)),
        lambda: None,
        lambda: world.machine().execute(),
    ]

    def sleep(_: float) -> None:
        moments.pop(0)()

    seen = list(follow(world.store, ENDPOINT, now_s=world.clock, sleep=sleep))
    assert [(each.is_due, each.has_ended) for each in seen] == [(False, False), (True, False), (True, True)]


def test_the_service_has_one_name() -> None:
    assert service_stack("dev") == service_name("dev")
