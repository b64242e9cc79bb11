"""What CloudFormation asks, and what it is answered at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, cast

import pytest

from seatrial_cdk.trials.runtime.ownership import read_owner
from seatrial_cdk.trials.runtime.store import UnavailableError
from tests.constructs.trials.conftest import ROLLBACKS, STOPPED, UNREADABLE, Response, World, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_cdk.trials.runtime.order import CustomResourceEvent
    from seatrial_load.documents.result import TrialResult


def uris(folder: str) -> dict[str, str]:
    key = f"s3://results/{folder}/dev-chat/b/config-2/model-2"
    return {"ResultUri": f"{key}.json", "ReportUri": f"{key}.md", "ResultsBucket": "results"}


def data(response: Response | None) -> object:
    assert response is not None
    assert response["Status"] == "SUCCESS", response
    return response["Data"]


def reason(response: Response | None) -> object:
    assert response is not None
    assert response["Status"] == "FAILED", response
    return response["Reason"]


@pytest.fixture
def unreadable(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a world whose store is throttled."""
    for name in ("read", "read_versioned", "write", "create", "replace", "clear"):
        monkeypatch.setattr(world.store, name, refuse)
    return world


def test_create_starts_the_workflow_that_answers(world: World, create: CustomResourceEvent) -> None:
    assert world.ask(create) is None
    assert world.workflow.started == [("dev-chat", "request-1")]
    kept = json.loads(world.store.texts["runs/dev-chat/request-1/request.json"])
    assert kept == {"event": create, "started_at_s": world.clock.now_s, "manner": "load", "live_config": ""}


def test_a_changed_plan_starts_a_trial(world: World, update: CustomResourceEvent) -> None:
    assert world.ask(update) is None
    assert world.workflow.started == [("dev-chat", "request-1")]


@pytest.mark.parametrize("name", ["PlanDigest", "EndpointConfigName", "ModelName", "Specification"])
def test_whatever_is_deployed_anew_is_tried(
    world: World, update: CustomResourceEvent, passed: TrialResult, name: str
) -> None:
    update["OldResourceProperties"] = {**update["ResourceProperties"], name: "other"}
    for folder in ("latest", "passed"):
        world.store.write(f"{folder}/dev-chat/b/config-2/model-2.json", passed.to_json())
    assert world.ask(update) is None
    assert len(world.workflow.started) == 1


@pytest.mark.parametrize("name", ["Mode", "BudgetSeconds", "FallbackTarget", "Attributes"])
def test_another_way_to_try_is_no_reason_for_a_trial(world: World, update: CustomResourceEvent, name: str) -> None:
    update["OldResourceProperties"] = {**update["ResourceProperties"], name: "1"}
    assert data(world.ask(update))
    assert world.workflow.started == []


@pytest.mark.parametrize("status", ["UPDATE_IN_PROGRESS", *ROLLBACKS, UNREADABLE])
def test_an_unchanged_plan_is_answered_from_its_last_result(
    world: World,
    update: CustomResourceEvent,
    missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
    verified: dict[str, str],
    status: str,
) -> None:
    update["OldResourceProperties"] = update["ResourceProperties"]
    world.store.write("latest/dev-chat/b/config-2/model-2.json", missed("fail").to_json())
    world.status = status
    response = world.ask(update)
    assert data(response) == {**verified, "Verdict": "fail", "Verified": "false", **uris("latest")}
    assert response is not None
    assert response["PhysicalResourceId"] == "smoke-benchmark-dev-chat"
    assert world.workflow.started == []


@pytest.mark.parametrize("status", ROLLBACKS)
def test_a_rollback_goes_back_to_the_passing_result(
    world: World, update: CustomResourceEvent, passed: TrialResult, verified: dict[str, str], status: str
) -> None:
    world.store.write("passed/dev-chat/b/config-2/model-2.json", passed.to_json())
    world.status = status
    assert data(world.ask(update)) == {**verified, **uris("passed")}
    assert world.workflow.started == []


@pytest.mark.parametrize("status", ROLLBACKS)
def test_a_rollback_without_a_passing_result_goes_back_unverified(
    world: World, update: CustomResourceEvent, passed: TrialResult, unverified: dict[str, str], status: str
) -> None:
    world.store.write("latest/dev-chat/b/config-2/model-2.json", passed.to_json())
    world.status = status
    assert data(world.ask(update)) == {**unverified, "ResultsBucket": "results"}
    assert world.workflow.started == []


def test_a_result_of_another_version_never_blocks_a_rollback(
    world: World, update: CustomResourceEvent, unverified: dict[str, str]
) -> None:
    world.store.write("passed/dev-chat/b/config-2/model-2.json", '{"schema_version": "0"}')
    world.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    uri = "s3://results/passed/dev-chat/b/config-2/model-2.json"
    assert data(world.ask(update)) == {**unverified, "ResultUri": uri, "ResultsBucket": "results"}


@pytest.mark.parametrize("status", ROLLBACKS)
@pytest.mark.parametrize(("digest", "folder"), [("a", "passed"), ("b", "latest")])
def test_an_unreadable_store_never_blocks_a_rollback(
    unreadable: World, update: CustomResourceEvent, unverified: dict[str, str], status: str, digest: str, folder: str
) -> None:
    update["OldResourceProperties"] = {**update["ResourceProperties"], "PlanDigest": digest}
    unreadable.status = status
    uri = f"s3://results/{folder}/dev-chat/b/config-2/model-2.json"
    assert data(unreadable.ask(update)) == {**unverified, "ResultUri": uri, "ResultsBucket": "results"}


def test_going_forward_an_unreadable_result_never_becomes_another_target(
    unreadable: World, update: CustomResourceEvent
) -> None:
    update["OldResourceProperties"] = update["ResourceProperties"]
    assert "SlowDown" in str(reason(unreadable.ask(update)))


def test_without_a_status_a_configuration_that_has_passed_is_answered_without_a_trial(
    world: World, update: CustomResourceEvent, passed: TrialResult, verified: dict[str, str]
) -> None:
    world.store.write("passed/dev-chat/b/config-2/model-2.json", passed.to_json())
    world.status = UNREADABLE
    assert data(world.ask(update)) == {**verified, **uris("passed")}
    assert world.workflow.started == []


@pytest.mark.parametrize("fixture", ["world", "unreadable"])
def test_without_a_status_an_unproven_configuration_never_stays(
    request: pytest.FixtureRequest, update: CustomResourceEvent, fixture: str
) -> None:
    world: World = request.getfixturevalue(fixture)
    world.status = UNREADABLE
    assert reason(world.ask(update)) == (
        "The sea trial's request failed: dev-chat: the stack's state is unknown and no trial of this plan passed "
        "before (reading the stack's status: throttled)"
    )
    assert world.workflow.started == []


def test_without_a_status_a_trial_that_only_reports_is_made(world: World, update: CustomResourceEvent) -> None:
    update["ResourceProperties"]["Mode"] = "report"
    world.status = UNREADABLE
    assert world.ask(update) is None
    assert len(world.workflow.started) == 1


@pytest.mark.parametrize("status", ROLLBACKS)
def test_a_rollback_makes_what_it_goes_back_to_the_baseline_again(
    world: World, update: CustomResourceEvent, passed: TrialResult, status: str
) -> None:
    world.store.write("released/dev-chat/result.json", "of the update that passed before a sibling failed")
    world.store.write("passed/dev-chat/b/config-2/model-2.json", passed.to_json())
    world.status = status
    world.ask(update)
    assert world.store.read("released/dev-chat/result.json") == passed.to_json()


def test_a_rollback_to_what_has_never_passed_leaves_the_baseline(world: World, update: CustomResourceEvent) -> None:
    world.store.write("released/dev-chat/result.json", "{}")
    world.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    world.ask(update)
    assert world.store.read("released/dev-chat/result.json") == "{}"


@pytest.mark.parametrize("status", ROLLBACKS)
def test_the_rollback_of_a_cancelled_update_owns_the_endpoint_and_a_late_delivery_never_takes_it_back(
    world: World, update: CustomResourceEvent, status: str
) -> None:
    world.ask({**update, "RequestId": "forward"})
    world.clock.wait(60.0)
    world.status = status
    assert world.ask({**update, "RequestId": "back"}) is not None
    owner = read_owner(world.store, "dev-chat")
    assert owner is not None
    assert (owner.request_id, owner.document) == ("back", "")
    world.status = "UPDATE_IN_PROGRESS"
    assert STOPPED in str(reason(world.ask({**update, "RequestId": "forward"})))
    assert world.workflow.started == [("dev-chat", "forward")]


def test_a_trial_that_cannot_be_noted_is_not_started(unreadable: World, create: CustomResourceEvent) -> None:
    assert "SlowDown" in str(reason(unreadable.ask(create)))
    assert unreadable.workflow.started == []


@pytest.mark.parametrize("mode", ["rollback", "report"])
def test_a_workflow_that_cannot_be_started_is_an_answer_too(
    world: World, create: CustomResourceEvent, monkeypatch: pytest.MonkeyPatch, unverified: dict[str, str], mode: str
) -> None:
    def refused(*_: object) -> None:
        raise UnavailableError("starting the trial's workflow: TooManyRequestsException")

    monkeypatch.setattr(world.workflow, "start", refused)
    create["ResourceProperties"]["Mode"] = mode
    response = world.ask(create)
    if mode == "report":
        assert data(response) == {**unverified, "Verdict": "error", "ResultsBucket": "results"}
    else:
        assert "failed to run: starting the trial's workflow: TooMany" in str(reason(response))


def test_another_endpoint_name_is_another_resource(world: World, update: CustomResourceEvent) -> None:
    update["ResourceProperties"]["EndpointName"] = "dev-talk"
    world.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    response = world.ask(update)
    assert response is not None
    assert response["PhysicalResourceId"] == "smoke-benchmark-dev-talk"


def test_an_older_release_that_is_rolled_back_to_names_less(world: World, create: CustomResourceEvent) -> None:
    for name in ("Specification", "CopyCount", "StartSeconds", "Alarms", "Update"):
        del create["ResourceProperties"][name]
    assert world.ask(create) is None


def test_a_missing_property_fails_the_creation_by_its_name(world: World, create: CustomResourceEvent) -> None:
    del create["ResourceProperties"]["ModelName"]
    assert reason(world.ask(create)) == "The sea trial's request failed: the property 'ModelName' is missing"


@pytest.mark.parametrize("broken", [{}, {"EndpointName": "dev-chat"}, {"BudgetSeconds": "long"}])
def test_delete_succeeds_whatever_the_properties(
    world: World, create: CustomResourceEvent, broken: dict[str, str]
) -> None:
    identity = "smoke-benchmark-dev-chat"
    deletion: CustomResourceEvent = {
        **create,
        "RequestType": "Delete",
        "PhysicalResourceId": identity,
        "ResourceProperties": broken,
    }
    response = world.ask(deletion)
    assert response is not None
    assert (response["Status"], response["PhysicalResourceId"]) == ("SUCCESS", identity)


def test_a_store_that_cannot_be_read_never_blocks_a_deletion(unreadable: World, create: CustomResourceEvent) -> None:
    unreadable.status = "ROLLBACK_IN_PROGRESS"
    response = unreadable.ask({**create, "RequestType": "Delete", "PhysicalResourceId": "id"})
    assert response is not None
    assert (response["Status"], response["PhysicalResourceId"]) == ("SUCCESS", "id")


@pytest.mark.parametrize(
    "properties",
    [None, {}, {"Phase": "candidate"}, {"EndpointName": ""}, {"EndpointName": ["a"]}, {"EndpointName": "../x"}],
)
@pytest.mark.parametrize("kind", ["Create", "Update", "Delete"])
def test_a_request_without_an_endpoint_is_answered(
    world: World, create: CustomResourceEvent, kind: Literal["Create", "Update", "Delete"], properties: object
) -> None:
    event = {**create, "RequestType": kind, "ResourceProperties": properties}
    answer = world.ask(cast("CustomResourceEvent", event))
    assert answer is not None
    assert answer["Status"] == ("SUCCESS" if kind == "Delete" else "FAILED")
    assert ("EndpointName" in f"{answer.get('Reason')}") == (kind != "Delete")
    assert {key.removeprefix("runs/_noted/").split("/")[1] for key in world.store.texts if key.startswith("runs/")} == {
        "unknown"
    }
