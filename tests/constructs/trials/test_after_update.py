"""What an update has deployed is verified without load; where no candidate had room it is loaded beside its users."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest

from seatrial_cdk.trials.runtime.custom_resource import LONGEST_DRAIN_S
from seatrial_cdk.trials.runtime.order import CarriedCopies, write_copies
from seatrial_load.documents.result import Unmeasured
from seatrial_load.documents.stop import Stop, StopReason
from tests.constructs.conftest import SPECIFICATION, component
from tests.constructs.trials.conftest import COMPONENT, HELD, LATEST, ORDERED_S, PASSED, RELEASED, TRIAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_cdk.trials.runtime.order import CustomResourceEvent
    from seatrial_load.documents.result import TrialResult
    from tests.constructs.trials.conftest import Response, World

VERIFIED = Unmeasured(occasion="verification", sent=5, succeeded=5, errors={}, first_errors=(), longest_wait_s=None)
NO_LOAD = Stop(reason=StopReason.VERIFIED, because="verified by 5 requests; no load")


@pytest.fixture
def verifying(world: World, passed: TrialResult) -> World:
    """Return a world whose candidate has passed, and whose component has moved with its three copies."""
    world.components.found[COMPONENT] = component(specification=SPECIFICATION, current_copies=3, desired_copies=3)
    world.scaling.states[COMPONENT] = {}
    write_copies(world.store, "dev-chat", CarriedCopies(copies=3, is_new=False, previous=1))
    world.store.write(PASSED, passed.to_json())
    world.store.write(LATEST, passed.to_json())
    world.course.steps = [NO_LOAD]
    world.course.result = replace(
        passed,
        request=replace(passed.request, manner="verify"),
        levels=(),
        knees=(),
        target_concurrency_per_copy=9.6,
        unmeasured=(VERIFIED,),
    )
    return world


def run(world: World, event: CustomResourceEvent) -> Response:
    assert world.ask(event) is None
    world.machine().execute()
    return world.responses[-1]


def test_a_candidates_pass_is_released_once_it_is_live(
    verifying: World, update: CustomResourceEvent, passed: TrialResult, verified: dict[str, str]
) -> None:
    answer = run(verifying, update)
    uri = f"s3://results/{PASSED}"
    measured = {**verified, "ResultUri": uri, "ReportUri": uri.replace(".json", ".md"), "ResultsBucket": "results"}
    assert answer["Data"] == measured, "what autoscaling gets was measured on the candidate"
    assert verifying.store.read(RELEASED) == verifying.store.read(PASSED) == passed.to_json()
    assert verifying.course.begun[0].request.manner == "verify"
    assert verifying.document(TRIAL)["levels"] == []


def test_nobody_is_loaded_and_scale_in_goes_on_once_it_is_proven(verifying: World, update: CustomResourceEvent) -> None:
    seen: list[object] = []
    verifying.course.beginning = lambda _: seen.append(verifying.scaling.states[COMPONENT])
    run(verifying, update)
    assert seen == [{"DynamicScalingInSuspended": True}]
    assert (verifying.scaling.states, verifying.document(HELD)["before"]) == ({COMPONENT: {}}, None)
    assert verifying.components.created == []


def test_what_cannot_be_verified_fails_the_update(
    verifying: World, update: CustomResourceEvent, missed: Callable[[Literal["fail", "inconclusive"]], TrialResult]
) -> None:
    verifying.course.result = missed("fail")
    assert run(verifying, update)["Status"] == "FAILED"
    assert verifying.store.read(RELEASED) is None
    assert verifying.scaling.states == {COMPONENT: {}}


def test_what_was_never_measured_is_verified_and_says_so(verifying: World, update: CustomResourceEvent) -> None:
    del verifying.store.texts[PASSED], verifying.store.texts[LATEST]
    update["ResourceProperties"]["Update"] = "verify_only"
    told = run(verifying, update)["Data"]
    assert isinstance(told, dict)
    assert (told["Verdict"], told["Verified"], told["KneeConcurrencyPerCopy"]) == ("pass", "false", "16")
    assert told["TargetConcurrencyPerCopy"] == "9.6"
    assert verifying.store.read(RELEASED) is None


@pytest.mark.parametrize("other", [{"plan_digest": "a"}, {"model_name": "model-1"}])
def test_that_another_configuration_had_no_room_loads_nobody(
    verifying: World, update: CustomResourceEvent, other: dict[str, str]
) -> None:
    del verifying.store.texts[PASSED], verifying.store.texts[LATEST]
    no_room = {"plan_digest": "b", "model_name": "model-2", **other}
    verifying.store.write("state/dev-chat/no-room.json", json.dumps(no_room))
    run(verifying, update)
    assert verifying.course.begun[0].request.manner == "verify"


def test_what_fails_under_load_in_place_is_rolled_back(
    verifying: World, update: CustomResourceEvent, missed: Callable[[Literal["fail", "inconclusive"]], TrialResult]
) -> None:
    del verifying.store.texts[PASSED], verifying.store.texts[LATEST]
    update["ResourceProperties"]["Update"] = "in_place"
    verifying.course.steps, verifying.course.result = [*type(verifying.course)().steps], missed("fail")
    assert run(verifying, update)["Status"] == "FAILED"
    assert verifying.course.begun[0].request.manner == "in_place"
    assert verifying.store.read(RELEASED) is None


@pytest.mark.parametrize("alarm", [None, Stop(reason=StopReason.ALARM, because="alarm errors is in ALARM")])
def test_in_place_it_is_loaded_under_the_eyes_of_the_alarms(
    verifying: World, update: CustomResourceEvent, alarm: Stop | None
) -> None:
    del verifying.store.texts[PASSED], verifying.store.texts[LATEST]
    update["ResourceProperties"]["Update"] = "in_place"
    verifying.users_stop = alarm
    stops: list[Stop | None] = []
    verifying.course.steps = [*type(verifying.course)().steps]
    verifying.load.acting = lambda share: stops.append(share.should_stop())
    run(verifying, update)
    assert [(request.manner, request.alarms) for request in verifying.watched] == [("in_place", ("errors", "latency"))]
    assert stops == [alarm]


def test_copies_that_do_not_come_back_are_left_to_the_sweep_before_cloudformation_gives_up(
    verifying: World, update: CustomResourceEvent
) -> None:
    """The resource waits for the budget of 600 s and ten minutes more."""
    lost = component(specification=SPECIFICATION, status="Updating", current_copies=1, desired_copies=1)
    verifying.course.beginning = lambda _: verifying.components.found.update({COMPONENT: lost})
    answer = run(verifying, update)
    assert answer["Status"] == "SUCCESS"
    assert 900.0 < verifying.clock.now_s - ORDERED_S < 920.0
    assert verifying.scaling.states == {COMPONENT: {"DynamicScalingInSuspended": True}}, "the sweep restores it"


class TestAnEndpointThatWasReplaced:
    @pytest.fixture
    def cleanup(self, world: World, create: CustomResourceEvent) -> CustomResourceEvent:
        world.aliases["/seatrial/dev/chat/alias"] = "dev-chat-2"
        return {**create, "RequestType": "Delete", "PhysicalResourceId": "smoke-benchmark-dev-chat"}

    def test_goes_a_minute_after_its_last_request(self, world: World, cleanup: CustomResourceEvent) -> None:
        world.status, world.requests = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", [(ORDERED_S + 45.0, 2.0)]
        response = world.ask(cleanup)
        assert response is not None
        assert response["Status"] == "SUCCESS"
        assert world.clock.now_s == ORDERED_S + 110.0

    def test_goes_at_last_though_it_is_still_used(
        self, world: World, cleanup: CustomResourceEvent, capsys: pytest.CaptureFixture[str]
    ) -> None:
        world.status = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
        world.requests = [(ORDERED_S + second, 1.0) for second in range(2000)]
        world.ask(cleanup)
        assert world.clock.now_s == ORDERED_S + LONGEST_DRAIN_S
        assert f"{COMPONENT} is deleted though it still has requests" in capsys.readouterr().out

    def test_whose_load_is_unknown_is_waited_for_a_minute(self, world: World, cleanup: CustomResourceEvent) -> None:
        world.status, world.requests = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", None
        world.ask(cleanup)
        assert world.clock.now_s == ORDERED_S + 60.0

    @pytest.mark.parametrize(
        ("status", "serving"),
        [
            ("DELETE_IN_PROGRESS", "dev-chat"),
            ("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", "dev-chat-2"),
            ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "dev-chat"),
        ],
    )
    def test_a_stack_that_goes_and_a_trial_that_is_switched_off_wait_for_nobody(
        self, world: World, cleanup: CustomResourceEvent, status: str, serving: str
    ) -> None:
        world.status, world.requests = status, [(ORDERED_S, 5.0)]
        world.aliases["/seatrial/dev/chat/alias"] = serving
        world.ask(cleanup)
        assert world.clock.now_s == ORDERED_S

    def test_goes_once_every_candidate_is_gone(self, world: World, cleanup: CustomResourceEvent) -> None:
        gone, stuck = "dev-chat-candidate-00000000", "dev-chat-candidate-00000001"
        world.components.found |= {gone: component(gone), stuck: component(stuck, status="Creating")}
        world.status = "DELETE_IN_PROGRESS"

        def act() -> None:
            if world.clock.now_s >= ORDERED_S + 120.0 and stuck in world.components.found:
                world.components.found[stuck] = component(stuck)

        world.clock.acts.append(act)
        world.ask(cleanup)
        assert world.components.deleted == [gone, stuck]
        assert 180.0 <= world.clock.now_s - ORDERED_S < 185.0, "a quiet minute follows"

    def test_goes_though_a_candidate_is_stuck_for_longer_than_a_function_runs(
        self, world: World, cleanup: CustomResourceEvent, capsys: pytest.CaptureFixture[str]
    ) -> None:
        name = "dev-chat-candidate-00000000"
        world.components.found[name] = component(name, status="Creating")
        world.status = "DELETE_IN_PROGRESS"
        response = world.ask(cleanup)
        assert response is not None
        assert response["Status"] == "SUCCESS"
        assert 870.0 <= world.clock.now_s - ORDERED_S < 875.0, "30 s of 900 s are left for the answer"
        assert f"{name}: not deleted yet; the sweep deletes them" in capsys.readouterr().out

    def test_leaves_no_candidate(self, world: World, cleanup: CustomResourceEvent) -> None:
        name = "dev-chat-candidate-00000000"
        world.components.found[name] = component(name, status="Creating")
        world.status = "DELETE_IN_PROGRESS"

        def act() -> None:
            if world.clock.now_s > ORDERED_S + 120.0 and name in world.components.found:
                world.components.found[name] = component(name)

        world.clock.acts.append(act)
        world.ask(cleanup)
        assert world.components.deleted == [name]


@pytest.mark.parametrize(("update", "manner"), [("in_place", "in_place"), ("verify_only", "verify")])
def test_an_endpoint_that_something_else_made_is_never_loaded_as_if_it_were_new(
    verifying: World, create: CustomResourceEvent, update: str, manner: str
) -> None:
    verifying.store.texts.clear()
    create["ResourceProperties"] |= {"EndpointConfigName": "", "ModelName": "", "Update": update}
    run(verifying, create)
    begun = verifying.course.begun[0].request
    assert (begun.manner, begun.expected) == (manner, None)
    assert verifying.logs.limited == set(), "the logs of others are theirs"
