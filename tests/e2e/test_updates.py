"""Updates of an endpoint that is scaled out and has users, by the real CDK CLI: nobody notices, nothing is left.

The tests are a chain: batches of 4 serve from the first on, also where those that are opt-in are left out. A
configuration that passed its trial is not tried again, so each test that needs a candidate has a batch of its own.
AWS is as unkind meanwhile as its usual faults; `make test-failures` goes through the others.
`python -m benchmarks.living_endpoint` does the same with more cases, and prints what users see.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from benchmarks.living_endpoint.cases import MISSED, Case, batch_of, cancel, run_case, scale_out
from benchmarks.living_endpoint.endpoint import ENDPOINT, STACK, LivingEndpoint, living_endpoint
from benchmarks.living_endpoint.faults import chosen_faults, faults_of
from seatrial_load.documents.stop import StopReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.living_endpoint.cases import Outcome, RunningUpdate

IN_THE_GATE = "the gate goes through these updates in tests/acceptance; here: make test-updates, make test-failures"
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not {"SEATRIAL_ALL_UPDATES", "SEATRIAL_FAULTS"} & os.environ.keys(), reason=IN_THE_GATE),
]

BEFORE_S = 1.0
opt_in = pytest.mark.skipif("SEATRIAL_ALL_UPDATES" not in os.environ, reason="opt-in: make test-updates")
"""Of what lasts longer than the gate has time for; the benchmark shows the same."""


@pytest.fixture(scope="module", params=chosen_faults(os.environ.get("SEATRIAL_FAULTS", "usual")))
def living(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[LivingEndpoint]:
    """Deploy an endpoint of one planned copy, on an AWS with faults; SEATRIAL_FAULTS names other ones."""
    with living_endpoint(tmp_path_factory.mktemp("living"), faults_of(str(request.param))) as endpoint:
        endpoint.write()
        first = endpoint.deploy(endpoint.synth("first"))
        assert first.exit_code == 0, first.last_lines()
        yield endpoint


def unnoticed(outcome: Outcome, living: LivingEndpoint) -> None:
    """Check that no request failed, no copy was taken away, and nothing was left.

    A candidate that is still starting can't be deleted: where instances take their time, the sweep removes it. What a
    throttled request did not restore, it restores too.
    """
    assert (outcome.failed, outcome.first_failure) == (0, "")
    assert outcome.least_copies >= 3
    if {"wait_speed", "throttled"} & living.faults.keys():
        living.until(living.sweep, "the sweep removes the candidate and restores scaling")
    else:
        assert outcome.left == ()


def model_of(living: LivingEndpoint) -> str:
    return living.cloud.live(living.component).model_name


def test_the_sweep_deletes_what_a_trial_left_and_no_live_component_for_its_name(living: LivingEndpoint) -> None:
    live, left = f"{ENDPOINT}-candidate-ranker-model", f"{ENDPOINT}-candidate-00000000"
    for name in (live, left):
        living.create_beside(name)
    living.until(lambda: all(living.status_of(name) == "InService" for name in (live, left)), "both serve")

    def swept() -> bool:
        living.sweep()
        return left not in living.candidates

    living.until(swept, f"the sweep removes {left}, which carries the tag of an older release")
    assert (living.candidates, living.status_of(live)) == ([live], "InService")
    living.sagemaker.delete_inference_component(InferenceComponentName=live)
    living.until(lambda: not living.candidates, f"{live} is gone")
    arn = living.sagemaker.describe_inference_component(InferenceComponentName=living.component)[
        "InferenceComponentArn"
    ]
    stacks = living.cloud.client("cloudformation")
    assert stacks.describe_stack_resources(PhysicalResourceId=arn)["StackResources"][0]["StackName"] == STACK


def test_a_good_configuration_replaces_the_one_that_serves(living: LivingEndpoint) -> None:
    before = model_of(living)
    outcome = run_case(living, Case("good", batch_of(4)), before_s=BEFORE_S)
    unnoticed(outcome, living)
    assert (outcome.deployed, outcome.tried, outcome.copies) == (True, 1, 3)
    stack = living.cloud.stack(STACK)
    assert (stack.output("Verdict"), stack.output("Verified")) == ("pass", "true")
    assert model_of(living) == stack.output("ModelName") != before
    assert outcome.target == float(stack.output("TargetConcurrencyPerCopy"))


def test_a_configuration_that_fails_its_trial_never_serves(living: LivingEndpoint) -> None:
    before, ports = living.cloud.live(living.component), living.ports
    outcome = run_case(living, Case("bad", {**batch_of(3), "slo": MISSED}, deploys=False), before_s=BEFORE_S)
    unnoticed(outcome, living)
    assert (outcome.deployed, outcome.tried) == (False, 1)
    assert living.cloud.live(living.component) == before, "there was nothing to undo"
    assert set(ports) <= set(living.ports)  # scaling may add a copy while it lasts


def test_an_update_that_is_cancelled_in_mid_trial_leaves_what_serves(living: LivingEndpoint) -> None:
    before = model_of(living)
    outcome = run_case(living, Case("cancelled", batch_of(6), cancel, deploys=False), before_s=BEFORE_S)
    unnoticed(outcome, living)
    assert (outcome.deployed, model_of(living)) == (False, before)
    assert living.cloud.stack(STACK).status == "UPDATE_ROLLBACK_COMPLETE"


SLO = {"slo": {"ttft_ms": {"p95": 15_000}, "tpot_ms": {"p95": 5_000}}}


def test_another_slo_alone_touches_no_copy(living: LivingEndpoint) -> None:
    case = Case("slo", {**batch_of(4), **SLO})
    living.write(**case.changes)
    living.set_copies(3)
    before = living.ports
    outcome = run_case(living, case, before_s=BEFORE_S)
    unnoticed(outcome, living)
    assert (outcome.deployed, outcome.tried) == (True, 1)
    assert set(before) <= set(living.ports)  # likewise


ROLLING = {"environments": {"local": {"scaling": {"min_copies": 2, "max_copies": 5}}}}
"""Two copies at least, so that an update replaces them one after the other."""


@opt_in
def test_another_rolling_policy_alone_keeps_the_copies(living: LivingEndpoint) -> None:
    """CloudFormation sends the copy count with every update of the component."""
    outcome = run_case(living, Case("policy", {**batch_of(4), **SLO, **ROLLING}), before_s=BEFORE_S)
    unnoticed(outcome, living)
    assert (outcome.deployed, outcome.copies) == (True, 3)


def test_a_rolling_update_that_raises_an_alarm_is_rolled_back_with_every_copy(living: LivingEndpoint) -> None:
    before = model_of(living)
    outcome = run_case(living, Case("alarm", {**batch_of(7), **ROLLING}, raise_alarm, deploys=False), before_s=BEFORE_S)
    living.settle_alarm()
    unnoticed(outcome, living)
    assert (outcome.deployed, outcome.tried, model_of(living), outcome.copies) == (False, 1, before, 3)
    events = living.cloud.client("cloudformation").describe_stack_events(StackName=STACK)["StackEvents"]
    failed = next(each for each in events if each["ResourceStatus"] == "UPDATE_FAILED")
    assert failed.get("ResourceType") == "AWS::SageMaker::InferenceComponent"
    assert "NoCapacity" in failed.get("ResourceStatusReason", ""), "the alarm is named"


@opt_in
def test_a_scale_out_meanwhile_is_waited_out_and_its_copy_is_kept(living: LivingEndpoint) -> None:
    outcome = run_case(living, Case("scale-out", batch_of(5), scale_out), before_s=BEFORE_S)
    unnoticed(outcome, living)
    assert (outcome.deployed, outcome.copies) == (True, 4)


@opt_in
def test_in_place_no_candidate_is_tried_and_load_is_added_beside_the_users(living: LivingEndpoint) -> None:
    changes = {
        **batch_of(16),
        "workload": {"input_tokens": 48, "output_tokens": 16, "concurrency": 8},
        "trial": {"concurrency_levels": [1, 8], "budget_minutes": 5, "update": "in_place"},
    }
    outcome = run_case(living, Case("in place", changes), before_s=15.0)
    unnoticed(outcome, living)
    assert (outcome.deployed, outcome.tried, outcome.copies) == (True, 0, 3)
    result = living.cloud.result(living.cloud.stack(STACK).output("TrialResultUri"))
    assert result.users is not None
    assert result.users.concurrency_per_copy is not None, result.users.because
    assert (result.request.manner, result.knees, result.verdict.status) == ("in_place", (), "pass")
    assert result.stopped.reason == StopReason.NO_KNEE_SOUGHT
    most = result.request.gate_concurrency - result.users.concurrency_per_copy
    assert 1 <= [level.concurrency for level in result.levels][-1] <= most
    assert result.request.copy_count == 3, "the load follows the live copies"


def raise_alarm(update: RunningUpdate) -> None:
    """Raise an alarm of the endpoint as soon as its component is updated; minutes pass quickly until it is back.

    Longer they must not: scaling goes on after the rollback, and would soon take idle copies away.
    """
    living = update.living
    update.until_candidate()
    update.until(lambda: not living.candidates and living.status == "Updating", "the rolling update")
    living.raise_alarm()
    update.until(lambda: living.status == "InService", "the component as it was")
    living.control()
