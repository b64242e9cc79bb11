"""A trial on schedule: what is live is tried beside itself, and nothing that serves or deploys is disturbed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from seatrial_base.tags import candidate_name, candidate_tags
from seatrial_cdk.trials.runtime.handler import dispatch
from seatrial_cdk.trials.runtime.ownership import read_owner, take_ownership
from seatrial_cdk.trials.runtime.scaling import read_held
from seatrial_cdk.trials.runtime.scheduled import ScheduledCall, start_scheduled
from seatrial_cdk.trials.runtime.store import UnavailableError
from seatrial_cdk.trials.runtime.sweep import sweep
from seatrial_load.documents.result import Comparison, Verdict
from tests.constructs.conftest import SPECIFICATION, component, passing_result
from tests.constructs.trials.conftest import COMPONENT, LATEST, PASSED, RELEASED, World

STARTUP = {"ContainerStartupHealthCheckTimeoutInSeconds": 900, "ModelDataDownloadTimeoutInSeconds": 600}
LIVE = {**SPECIFICATION, "StartupParameters": STARTUP, "Container": {"DeployedImage": {"ResolvedImage": "x"}}}
TOPICS = ["arn:aws:sns:us-east-1:123456789012:search", "arn:aws:sns:us-east-1:123456789012:chat"]
CALL: ScheduledCall = {
    "EndpointName": "dev-chat",
    "InferenceComponentName": COMPONENT,
    "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/seatrial-dev-chat/1",
    "Id": "7",
    "Topics": ",".join(TOPICS),
}
REQUEST = "scheduled-7"
CANDIDATE = candidate_name("dev-chat", REQUEST)
FOLDER = "trials/dev-chat/scheduled"
PASSED_ON_SCHEDULE = "state/dev-chat/scheduled-passed.json"
PASSED_HERE = "passed/dev-chat/b/config-of-dev-chat/model-2.json"


@pytest.fixture
def live(world: World) -> World:
    """Return a world at rest: the live model has passed a trial, and three copies of it serve."""
    world.status = "UPDATE_COMPLETE"
    world.components.found[COMPONENT] = component(specification=LIVE, current_copies=3, desired_copies=3)
    world.scaling.states[COMPONENT] = {}
    for key in (PASSED_HERE, RELEASED):
        world.store.write(key, passing_result().to_json())
    return world


def run(world: World) -> list[str]:
    assert start_scheduled(CALL, world.context) == {"Started": True, "RequestId": REQUEST, "Because": ""}
    machine = world.machine()
    machine.execute(request_id=REQUEST)
    return machine.entered


def test_one_more_copy_of_what_is_live_is_loaded_and_deleted(live: World) -> None:
    kept = {key: live.store.texts[key] for key in (PASSED_HERE, RELEASED)}
    entered = run(live)
    assert entered[-1] == "Answer"
    asked = {name: LIVE[name] for name in ("ModelName", "ComputeResourceRequirements", "StartupParameters")}
    assert live.components.created == [(CANDIDATE, asked, candidate_tags("dev", "dev-chat", REQUEST))]
    assert CANDIDATE not in live.components.found
    request = live.course.begun[0].request
    assert (request.copy_count, request.target.inference_component) == (1, CANDIDATE)
    assert request.expected is not None
    assert (request.expected.endpoint_config_name, request.expected.model_name) == ("config-of-dev-chat", "model-2")
    assert {key: live.store.texts[key] for key in kept} == kept, "what deployments are answered from"
    assert LATEST not in live.store.texts
    assert PASSED not in live.store.texts
    assert live.responses == [], "no deployment waits"
    assert live.scaling.calls == [], "scale-in goes on"
    assert read_held(live.store, "dev-chat") is None


def test_its_result_lies_beside_and_is_announced_as_scheduled(live: World) -> None:
    run(live)
    for key in (f"{FOLDER}/{REQUEST}.json", f"{FOLDER}/latest.json", PASSED_ON_SCHEDULE):
        assert live.document(key)["verdict"]["status"] == "pass"  # type: ignore[index]
        assert key.replace(".json", ".md") in live.store.texts
    (detail,) = live.events.details
    assert (detail["trigger"], detail["verdict"]) == ("schedule", "pass")
    assert detail["resultUri"] == f"s3://results/{FOLDER}/{REQUEST}.json"
    assert live.told.findings == []


def test_a_failed_one_is_told_and_is_no_baseline(live: World) -> None:
    slow = Verdict(status="fail", because="too slow", checks=())
    live.course.result = replace(passing_result(), verdict=slow)
    run(live)
    (found,) = live.told.findings
    assert found[0] == "Seatrial: the scheduled trial of dev-chat failed"
    assert "verdict: fail: too slow" in found[1]
    assert PASSED_ON_SCHEDULE not in live.store.texts
    assert live.told.further_topics == TOPICS
    assert f"{FOLDER}/latest.json" in live.store.texts
    assert CANDIDATE not in live.components.found


def test_a_regression_is_told_though_the_slo_holds(live: World) -> None:
    live.course.result = replace(passing_result(), comparison=Comparison(status="worse", because="ttft_ms rose"))
    run(live)
    assert [subject for subject, _ in live.told.findings] == ["Seatrial: the scheduled trial of dev-chat got worse"]
    assert PASSED_ON_SCHEDULE not in live.store.texts


@pytest.mark.parametrize("key", [PASSED_ON_SCHEDULE, f"{FOLDER}/passed.json"], ids=["", "of an older release"])
def test_it_is_compared_with_the_last_scheduled_one(live: World, key: str) -> None:
    before = replace(passing_result(), started_at="2026-11-14T06:00:00+00:00")
    live.store.write(key, before.to_json())
    run(live)
    assert live.course.baselines == [(before, f"s3://results/{key}")]


@pytest.mark.parametrize(
    "status", ["UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_FAILED", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"]
)
def test_nothing_starts_while_the_stack_is_not_at_rest(live: World, status: str) -> None:
    live.status = status
    assert start_scheduled(CALL, live.context)["Because"] == f"its stack is {status}"
    assert (live.workflow.started, read_owner(live.store, "dev-chat")) == ([], None)


def test_nothing_starts_while_a_deployments_trial_is_at_work(live: World) -> None:
    take_ownership(live.store, "dev-chat", "request-1", document="trials/x.json", now_s=live.clock())
    assert start_scheduled(CALL, live.context)["Because"] == "the trial request-1 is at work"
    live.store.write("trials/x.json", json.dumps({"untried": True}))
    assert start_scheduled(CALL, live.context)["Started"]


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        ({"status": "Updating"}, "dev-chat-model is Updating"),
        ({"endpoint_name": "dev-other"}, "there is no component dev-chat-model on it"),
        ({"specification": {"ModelName": "model-9"}}, "no trial of what is live (config-of-dev-chat, model-9) is kept"),
    ],
)
def test_what_can_not_be_tried_says_why(live: World, changes: dict[str, object], because: str) -> None:
    live.components.found[COMPONENT] = component(COMPONENT, **{"specification": LIVE, **changes})
    answer = start_scheduled(CALL, live.context)
    assert (answer["Started"], answer["Because"].startswith(because)) == (False, True)


def test_endpoints_of_other_environments_are_not_tried(live: World) -> None:
    answer = start_scheduled({**CALL, "EndpointName": "prod-chat"}, live.context)
    assert answer["Because"] == "it is no endpoint of dev"


def test_a_repeated_call_starts_nothing_new(live: World) -> None:
    for _ in range(2):
        told = dispatch({"Scheduled": CALL}, live.context)
        assert told == {"Started": True, "RequestId": REQUEST, "Because": ""}
    assert live.workflow.started == [("dev-chat", REQUEST)]


def test_a_deployment_takes_the_endpoint_over_and_the_candidate_goes(live: World) -> None:
    assert start_scheduled(CALL, live.context)["Started"]
    taken: list[str] = []

    def deploy(state: str) -> None:
        if state == "Choose" and not taken:
            # It was seen before the schedule began, and is carried out after: it comes first all the same.
            live.store.write("runs/dev-chat/request-1/seen.json", json.dumps({"at_s": live.clock() - 60}))
            taken.append(
                take_ownership(live.store, "dev-chat", "request-1", document="d", now_s=live.clock()).request_id
            )

    machine = live.machine(deploy)
    machine.execute(request_id=REQUEST)
    assert taken == ["request-1"]
    assert CANDIDATE not in live.components.found
    assert (live.events.details, live.told.findings) == ([], [])
    assert f"{FOLDER}/latest.json" not in live.store.texts
    owner = read_owner(live.store, "dev-chat")
    assert owner is not None
    assert owner.request_id == "request-1"


def test_no_room_is_told_as_a_trial_that_could_not_be_made(live: World) -> None:
    live.components.born = {"status": "Failed", "failure_reason": "InsufficientInstanceCapacity"}
    run(live)
    (found,) = live.told.findings
    assert found[0] == "Seatrial: the scheduled trial of dev-chat could not be made"
    assert "no room for a candidate" in found[1]
    assert "no room" in f"{live.document(f'{FOLDER}/latest.json')['error']}"
    assert "state/dev-chat/no-room.json" not in live.store.texts, "that is for deployments"
    assert CANDIDATE not in live.components.found


@pytest.mark.parametrize("again", ["7", "8"])
def test_a_workflow_that_can_not_be_started_leaves_the_endpoint_free(live: World, again: str) -> None:
    def refuse(endpoint_name: str, request_id: str) -> None:
        raise UnavailableError(f"starting {endpoint_name} {request_id}: throttled")

    live.workflow.start = refuse  # type: ignore[method-assign]
    with pytest.raises(UnavailableError, match="throttled"):
        start_scheduled(CALL, live.context)
    del live.workflow.start
    assert start_scheduled({**CALL, "Id": again}, live.context)["Started"]
    candidate = candidate_name("dev-chat", f"scheduled-{again}")
    live.components.found[candidate] = component(candidate)
    live.components.tagged[candidate] = candidate_tags("dev", "dev-chat", f"scheduled-{again}")
    sweep(live.context)
    assert candidate in live.components.found, "it is in use"
    assert not start_scheduled({**CALL, "Id": "9"}, live.context)["Started"]


def test_a_retry_of_a_schedule_is_the_same_trial(live: World) -> None:
    """Each attempt has an execution ID of its own; Step Functions' names have no colons, and are of all endpoints."""
    call: ScheduledCall = {**CALL, "Id": "2026-11-27T13:00:00Z"}
    first = start_scheduled(call, live.context)
    live.clock.wait(60.0)
    assert start_scheduled(call, live.context) == first
    assert first["RequestId"].startswith("scheduled-2026-11-27T130000Z-")
    assert {request for _, request in live.workflow.started} == {first["RequestId"]}
    other = start_scheduled({**call, "EndpointName": "dev-talk"}, live.context)
    assert other["RequestId"] != first["RequestId"]


def test_what_dead_functions_left_the_sweep_removes(live: World) -> None:
    assert start_scheduled(CALL, live.context)["Started"]
    live.components.found[CANDIDATE] = component(CANDIDATE)
    sweep(live.context)
    assert CANDIDATE in live.components.found, "it is in use"
    told = json.dumps({"EndpointName": "dev-chat", "RequestId": REQUEST})
    live.workflow.died = [{"status": "TIMED_OUT", "input": told, "cause": "too long"}]
    sweep(live.context)
    assert CANDIDATE not in live.components.found
    assert [subject for subject, _ in live.told.findings] == [
        "Seatrial: the scheduled trial of dev-chat could not be made"
    ]
    sweep(live.context)
    assert len(live.told.findings) == 1
    assert live.responses == []
