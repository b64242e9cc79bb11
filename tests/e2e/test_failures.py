"""AWS's failures while an endpoint is updated under load: nobody notices, and nothing is left.

`tests/e2e/test_updates.py` goes through every update with one of `FAULTS` on (`SEATRIAL_FAULT`, or all of them by
`make test-failures`); here are the failures that come and go during one update.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks.living_endpoint.cases import Case, batch_of, run_case
from benchmarks.living_endpoint.endpoint import ENDPOINT, STACK, LivingEndpoint, living_endpoint
from benchmarks.living_endpoint.users import steady_users

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.living_endpoint.cases import Outcome, RunningUpdate

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif("SEATRIAL_ALL_FAILURES" not in os.environ, reason="opt-in: make test-failures"),
]
BEFORE_S = 1.0
HURRY = {"wait_speed": 600}
TOLD = {
    "trial": {"concurrency_levels": [1, 2, 4], "requests_per_concurrency": 4, "budget_minutes": 5, "mode": "report"}
}
"""What is tried beside users has too few requests here to be proven: its trial tells, and refuses nothing."""


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivingEndpoint]:
    """Deploy an endpoint of one planned copy."""
    with living_endpoint(tmp_path_factory.mktemp("living"), HURRY) as endpoint:
        endpoint.write()
        first = endpoint.deploy(endpoint.synth("first"))
        assert first.exit_code == 0, first.last_lines()
        yield endpoint


def unharmed(outcome: Outcome) -> None:
    """Check that no request failed and no copy was taken away."""
    assert (outcome.failed, outcome.first_failure) == (0, "")
    assert outcome.least_copies >= 3


def logical_id(living: LivingEndpoint) -> str:
    """Return the logical ID of the component that serves."""
    told = living.cloud.client("cloudformation").describe_stack_resources(StackName=STACK)["StackResources"]
    return next(
        each["LogicalResourceId"] for each in told if each["ResourceType"] == "AWS::SageMaker::InferenceComponent"
    )


def failure_of_component(living: LivingEndpoint) -> str:
    """Return the words with which the update of the component failed last."""
    events = living.cloud.client("cloudformation").describe_stack_events(StackName=STACK)["StackEvents"]
    failed = (each for each in events if each["ResourceStatus"] == "UPDATE_FAILED")
    ours = (each for each in failed if each.get("ResourceType") == "AWS::SageMaker::InferenceComponent")
    return next(ours).get("ResourceStatusReason", "")


def nothing_left(living: LivingEndpoint) -> None:
    """Check that the sweep, which comes every five minutes, removes what an update could not."""
    living.until(living.sweep, "the sweep removes the candidates and restores scaling")


def test_a_candidate_whose_instance_never_comes_is_given_up_and_the_update_goes_on_in_place(
    living: LivingEndpoint,
) -> None:
    """Instances come again once the component itself is updated."""
    began_s = time.monotonic()

    def beside(update: RunningUpdate) -> None:
        living.control(capacity_pending=True)
        update.until_candidate()
        update.until(lambda: living.status == "Updating", "the update in place")
        living.control()

    outcome = run_case(living, Case("pending", {**batch_of(4), **TOLD}, beside), before_s=BEFORE_S)
    unharmed(outcome)
    assert (outcome.deployed, outcome.tried, outcome.copies) == (True, 1, 3)
    assert time.monotonic() - began_s < 300, "an hour of waiting was skipped"
    nothing_left(living)


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (5, "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error."),
        (6, "Amazon SageMaker does not have enough capacity to fulfil the request."),
        (7, "Not enough hardware resources on the endpoint's instances."),
        (9, "There is no instance with enough accelerators."),
    ],
)
def test_a_candidate_that_fails_for_lack_of_capacity_is_given_up_and_the_update_goes_on_in_place(
    living: LivingEndpoint, batch: int, reason: str
) -> None:
    def beside(update: RunningUpdate) -> None:
        living.control(no_capacity=["ml.g5.2xlarge"], no_capacity_reason=reason)
        update.until_candidate()
        update.until(lambda: not living.candidates, "the end of the candidate")
        living.control()

    outcome = run_case(living, Case("no capacity", {**batch_of(batch), **TOLD}, beside), before_s=BEFORE_S)
    unharmed(outcome)
    assert (outcome.deployed, outcome.tried, outcome.copies, outcome.left) == (True, 1, 3, ())


def test_an_alarm_that_is_raised_before_ends_the_update_and_its_rollback_until_the_component_is_skipped(
    living: LivingEndpoint,
) -> None:
    living.write(**batch_of(10))
    assert living.deploy(living.synth("assembly")).exit_code == 0
    before = living.cloud.live(living.component).model_name

    def beside(update: RunningUpdate) -> None:
        update.until_candidate()
        living.raise_alarm()
        living.control(raised_alarms_end_updates=True)

    outcome = run_case(living, Case("raised", batch_of(11), beside, deploys=False), before_s=BEFORE_S)
    unharmed(outcome)
    assert (outcome.deployed, living.cloud.stack(STACK).status) == (False, "UPDATE_ROLLBACK_FAILED")
    client = living.cloud.client("cloudformation")
    client.continue_update_rollback(StackName=STACK, ResourcesToSkip=[logical_id(living)])
    living.until(lambda: living.cloud.stack(STACK).status == "UPDATE_ROLLBACK_COMPLETE", "the rollback")
    assert (living.cloud.live(living.component).model_name, living.copies) == (before, 3)
    living.settle_alarm()
    nothing_left(living)


MINUTES = {"clock_speed": 20}
"""A minute passes in three seconds, and in no less: each has requests of users."""
SLOW = {
    "slo": {"e2e_latency_ms": {"p95": 0.1}, "ttft_ms": {"p95": 0.01}, "tpot_ms": {"p95": 0.01}},
    "environments": {"local": {"scaling": {"min_copies": 3, "max_copies": 5}}},
    "trial": TOLD["trial"],
}
"""Objectives that no engine meets, not even ten times as loose, as they are on the laptop: the users themselves raise
the alarms, as on an endpoint that is broken."""
FIT = {**SLOW, "slo": {"ttft_ms": {"p95": 20_000}, "tpot_ms": {"p95": 5_000}}}


def raised_by_users(living: LivingEndpoint) -> None:
    with steady_users(living.runtime, living.alias()):
        living.until(lambda: "ModelLatency" in living.raised, "the users raise the alarm")


def test_what_serves_badly_is_repaired_by_an_update_without_rollback_alarms_alone(living: LivingEndpoint) -> None:
    """The alarms are raised before the update, by what it replaces; another update restores them and moves no copy."""
    living = replace(living, faults=MINUTES)
    living.control()
    living.write(**batch_of(13), **SLOW)
    assert living.deploy(living.synth("assembly")).exit_code == 0
    before = living.cloud.live(living.component).model_name
    raised_by_users(living)

    outcome = run_case(living, Case("refused", {**batch_of(14), **SLOW}, deploys=False), before_s=BEFORE_S)
    unharmed(outcome)
    assert (outcome.deployed, outcome.tried, living.cloud.stack(STACK).status) == (False, 1, "UPDATE_ROLLBACK_COMPLETE")
    assert living.cloud.live(living.component).model_name == before
    assert "Alarms in state ALARM" in failure_of_component(living)
    raised_by_users(living)

    repair = Case("repair", {**batch_of(15), **SLOW}, context={"rollback_alarms": "off"})
    outcome = run_case(living, repair, before_s=BEFORE_S)
    unharmed(outcome)
    assert (outcome.deployed, outcome.tried, living.raised) == (True, 1, [])
    repaired = living.cloud.live(living.component).model_name
    assert repaired != before

    ports = living.ports
    outcome = run_case(living, Case("restored", {**batch_of(15), **FIT}), before_s=BEFORE_S)
    unharmed(outcome)
    assert (outcome.deployed, living.cloud.live(living.component).model_name, living.ports) == (True, repaired, ports)
    assert [each for each in living.rollback_alarms if "rollback_alarms=off" in each["AlarmDescription"]] == []


def test_objects_expire_and_a_harmless_update_takes_no_copy_away(living: LivingEndpoint) -> None:
    outcome = run_case(living, Case("six", batch_of(12)), before_s=BEFORE_S)
    assert (outcome.deployed, outcome.copies) == (True, 3)
    living.control(object_age_days=3650)
    bucket = next(
        each["Name"] for each in living.cloud.client("s3").list_buckets()["Buckets"] if "trials" in each["Name"]
    )
    listed = living.cloud.client("s3").list_objects_v2
    living.until(
        lambda: not listed(Bucket=bucket, Prefix=f"trials/{ENDPOINT}/").get("Contents"), "the trials' documents expire"
    )
    ports = living.ports
    changes = {**batch_of(12), "trial": {"concurrency_levels": [1, 2], "budget_minutes": 6}}
    outcome = run_case(living, Case("harmless", changes), before_s=BEFORE_S)
    unharmed(outcome)
    assert (outcome.deployed, outcome.copies, living.ports) == (True, 3, ports)


def test_a_stack_with_a_candidate_that_can_not_be_deleted_is_deleted(living: LivingEndpoint) -> None:
    """SageMaker refuses to delete it until its instance comes, which is soon enough for the function that waits."""
    living.control(capacity_pending=True, wait_speed=None)
    living.create_beside(f"{ENDPOINT}-candidate-00000000")
    client = living.cloud.client("cloudformation")
    client.delete_stack(StackName=STACK)
    living.until(lambda: "DELETE" in living.cloud.stack(STACK).status, "the deletion")
    time.sleep(5.0)
    living.control(wait_speed=None)
    client.get_waiter("stack_delete_complete").wait(StackName=STACK, WaiterConfig={"Delay": 2, "MaxAttempts": 90})
