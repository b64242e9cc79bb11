"""The life of an endpoint that has users: what a deployment promises of its first day, its updates and its failures.

The cases are a chain. A configuration that passed its trial is not tried again, so each case that needs a candidate has
a batch limit of its own.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.endpoint import MISSED, batch_of
from tests.acceptance.questions import record
from tests.acceptance.room import emptied, filled

if TYPE_CHECKING:
    from tests.acceptance.endpoint import Endpoint, Seen, Update
    from tests.acceptance.target import Target

pytestmark = pytest.mark.acceptance

LAST_DEPLOYED = {**batch_of(4), "slo": {"ttft_ms": {"p95": 15_000}, "tpot_ms": {"p95": 5_000}}}
ONE_BY_ONE = {"MaximumBatchSize": {"Type": "COPY_COUNT", "Value": 1}, "WaitIntervalInSeconds": 0}
"""There is room for one copy more: all at once, SageMaker would lack instances and return to what was."""
DENIED = re.compile("not authorized|access ?denied|unwatched", re.IGNORECASE)
"""With which words an update ends that may not do something: it would end likewise with room for it."""
SET_BY_HAND = 3
"""Copies that somebody set, one more than planned."""


def unnoticed(endpoint: Endpoint, seen: Seen) -> None:
    """Check that no request failed, no copy was taken away, and nothing was left."""
    assert seen.failures == []
    assert seen.requests > 0
    assert (seen.least_copies, endpoint.copies()) == (SET_BY_HAND, SET_BY_HAND)
    assert endpoint.left() == []


@pytest.fixture(scope="module")
def scaled(chat: Endpoint) -> Endpoint:
    """Return the endpoint once it has a copy more than planned."""
    chat.hold_copies(SET_BY_HAND)
    return chat


def test_a_first_deployment_is_tried_and_serves(chat: Endpoint) -> None:
    outputs = chat.outputs()
    assert (outputs["Verdict"], outputs["Verified"]) == ("pass", "true")
    assert chat.result()["verdict"]["status"] == "pass"
    assert chat.copies() == 2
    assert chat.ask()
    path = f"/seatrial/{chat.target.environment}"
    found = chat.target.client("ssm").get_parameters_by_path(Path=path, Recursive=True)["Parameters"]
    assert any(chat.endpoint_name in each["Value"] for each in found), "its alias names it"


def test_an_update_tries_a_candidate_and_keeps_the_copies_that_somebody_set(scaled: Endpoint) -> None:
    before = scaled.model()
    ended, seen = scaled.update(batch_of(4), hurry_rollout)
    assert ended.exit_code == 0, ended.last_lines
    unnoticed(scaled, seen)
    outputs = scaled.outputs()
    assert len(seen.candidates) == 1
    assert (outputs["Verdict"], outputs["Verified"]) == ("pass", "true")
    assert scaled.model() == outputs["ModelName"] != before


def hurry_rollout(update: Update) -> None:
    """Let the minutes pass quickly in which SageMaker watches the alarms after each batch."""
    update.until_rollout()
    with update.endpoint.target.hurry(60):
        while update.is_updating() and not update.ended.is_set():
            update.ended.wait(update.endpoint.target.look_s)


def on_the_embedded_aws_alone(endpoint: Endpoint) -> None:
    """Leave a case out of an account for its price, an hour of an instance."""
    if not endpoint.target.is_embedded:
        pytest.skip("left out of an account for its price: an hour of an instance")


def test_another_slo_alone_touches_no_copy(scaled: Endpoint) -> None:
    on_the_embedded_aws_alone(scaled)
    before = scaled.described()["LastModifiedTime"], scaled.model()
    ended, seen = scaled.update(LAST_DEPLOYED)
    assert ended.exit_code == 0, ended.last_lines
    unnoticed(scaled, seen)
    assert len(seen.candidates) == 1
    assert (scaled.described()["LastModifiedTime"], scaled.model()) == before


def test_a_configuration_that_fails_its_trial_never_serves(scaled: Endpoint) -> None:
    before = scaled.described()["LastModifiedTime"], scaled.model()
    ended, seen = scaled.update({**batch_of(3), "slo": MISSED})
    assert ended.exit_code == 1
    assert "ttft_ms" in failures(scaled)["Custom::CandidateTrial"], "the objective that it missed"
    unnoticed(scaled, seen)
    assert len(seen.candidates) == 1
    assert (scaled.described()["LastModifiedTime"], scaled.model()) == before, "there was nothing to undo"
    assert scaled.target.status(scaled.stack) == "UPDATE_ROLLBACK_COMPLETE"


def test_an_update_that_is_cancelled_in_mid_trial_leaves_what_serves(scaled: Endpoint) -> None:
    on_the_embedded_aws_alone(scaled)
    before = scaled.model()

    def cancel(update: Update) -> None:
        update.until_candidate()
        scaled.target.client("cloudformation").cancel_update_stack(StackName=scaled.stack)

    ended, seen = scaled.update(batch_of(6), cancel)
    assert ended.exit_code == 1
    assert "cancelled" in failures(scaled)["Custom::CandidateTrial"]
    unnoticed(scaled, seen)
    assert (scaled.model(), scaled.target.status(scaled.stack)) == (before, "UPDATE_ROLLBACK_COMPLETE")


def test_an_alarm_during_the_rollout_returns_every_copy(scaled: Endpoint) -> None:
    before = scaled.model()
    cloudwatch, name = scaled.target.client("cloudwatch"), alarm_of(scaled)

    def raise_alarm(update: Update) -> None:
        update.until_rollout()
        with scaled.target.hurry(60):
            while not update.ended.wait(scaled.target.look_s):  # CloudWatch evaluates it anew each minute
                cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="raised by hand")

    ended, seen = scaled.update(batch_of(7), raise_alarm)
    cloudwatch.set_alarm_state(AlarmName=name, StateValue="OK", StateReason="ended by hand")
    target, copies = scaled.target, scaled.copies()
    record(target, "rollback-under-alarm", {"stack": target.status(scaled.stack)})
    record(target, "copies-after-rollback", {"set by hand": SET_BY_HAND, "after": copies})
    assert ended.exit_code == 1
    assert name in failures(scaled)["AWS::SageMaker::InferenceComponent"], "the alarm is named"
    if copies != SET_BY_HAND:  # only AWS knows; the cases that follow begin with those that somebody set
        scaled.set_copies_when_settled(SET_BY_HAND)
    unnoticed(scaled, replace(seen, least_copies=SET_BY_HAND))
    assert scaled.model() == before


def alarm_of(endpoint: Endpoint) -> str:
    """Return the name of the alarm that rolls updates back and has no data of its own."""
    pages = endpoint.target.client("cloudwatch").get_paginator("describe_alarms").paginate()
    alarms = (alarm for page in pages for alarm in page["MetricAlarms"])
    (name,) = (
        str(alarm["AlarmName"])
        for alarm in alarms
        if alarm.get("MetricName") == "NoCapacityInvocationFailures"
        and alarm.get("AlarmDescription", "").startswith("Rolls updates back")
        and endpoint.component in json.dumps(alarm["Dimensions"])
    )
    return name


def failures(endpoint: Endpoint) -> dict[str, str]:
    """Return with which words resources failed in the last update, by their type."""
    begun, events = (endpoint.stack, "UPDATE_IN_PROGRESS"), endpoint.target.events(endpoint.stack)
    update = takewhile(lambda each: (each["LogicalResourceId"], each["ResourceStatus"]) != begun, events)
    return {
        each["ResourceType"]: str(each.get("ResourceStatusReason", ""))
        for each in update
        if each["ResourceStatus"].endswith("_FAILED")
    }


def test_without_room_an_update_ends_and_users_keep_what_they_have(scaled: Endpoint, target: Target) -> None:
    before = scaled.model()
    filler = filled(scaled)
    try:
        ended, seen = scaled.update(batch_of(5))
    finally:
        emptied(scaled, filler)
    assert ended.exit_code == 1
    words = failures(scaled)
    record(target, "update-without-room", {**words})
    assert words.keys() <= {"Custom::CandidateTrial", "AWS::SageMaker::InferenceComponent"}, words
    assert not DENIED.search(f"{words}"), "it ends for want of room, not of a right"
    unnoticed(scaled, seen)
    assert scaled.model() == before
    target.until(lambda: target.status(scaled.stack) == "UPDATE_ROLLBACK_COMPLETE", "the rollback")


def test_a_change_by_hand_is_drift(scaled: Endpoint) -> None:
    scaled.write(**(LAST_DEPLOYED if scaled.target.is_embedded else batch_of(4)))
    assert drift(scaled) == []
    live = scaled.described()["Specification"]
    startup = live["StartupParameters"]
    longer = startup["ModelDataDownloadTimeoutInSeconds"] + 60
    scaled.target.client("sagemaker").update_inference_component(
        InferenceComponentName=scaled.component,
        Specification={
            "ModelName": live["ModelName"],
            "ComputeResourceRequirements": live["ComputeResourceRequirements"],
            "StartupParameters": {**startup, "ModelDataDownloadTimeoutInSeconds": longer},
        },
        DeploymentConfig={"RollingUpdatePolicy": ONE_BY_ONE},
    )
    scaled.target.until(lambda: scaled.described()["InferenceComponentStatus"] == "InService", "the change by hand")
    assert drift(scaled) == [("download timeout (s)", f"{longer}")]


def drift(endpoint: Endpoint) -> list[tuple[str, str]]:
    """Return in what the endpoint is not as locked."""
    words = ("drift", f"endpoints/{endpoint.name}.yaml", "-e", endpoint.target.environment, "--format", "json")
    told = endpoint.target.seatrial(*words)
    (found,) = json.loads(told.output)["endpoints"]
    assert found["not_asked"] == []
    return [
        (each["field"], each["message"].partition(",")[0]) for each in found["findings"] if each["rule"] == "SEA432"
    ]
