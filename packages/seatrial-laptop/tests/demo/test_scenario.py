"""What the story checks: values are compared as they are, and a failure is named."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from seatrial.documents.live import LiveStack
from seatrial_base.errors import LocalError
from seatrial_cdk.trials.runtime.attributes import measured_attributes
from seatrial_laptop.demo.cdk_cli import CdkCli, ToolOutcome
from seatrial_laptop.demo.embedded_aws import Live
from seatrial_laptop.demo.runner import Deployed, check_deployment, check_refused, check_update
from seatrial_load.documents.result import Knee, Verdict
from seatrial_load.knee import scaling_target

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.documents.plan import Plan
    from seatrial_load.documents.result import TrialResult

HINT = "\n  hint: run again with --verbose; logs: .seatrial/demo"


@dataclass(frozen=True)
class Told:
    """One deployment of the demo whose trial has found a knee."""

    plan: Plan
    result: TrialResult

    def with_knee(self, knee: int, *, target: float | None = None) -> Deployed:
        """Return what is deployed when a trial finds a knee; the policy's target goes through the attribute's text."""
        low, high = replace(self.result.levels[0], concurrency=knee), replace(self.result.levels[1], meets_slo=False)
        found = Knee(detector="slo", concurrency=knee, because="by hand")
        decided = scaling_target(self.result.request, [low, replace(high, concurrency=2 * knee)], [found])
        result = replace(self.result, target_concurrency_per_copy=decided.concurrency_per_copy)
        attribute = measured_attributes(result, "s3://results/x.json")["TargetConcurrencyPerCopy"]
        live = Live("arn", "2026-01-01", "model-1", float(attribute) if target is None else target)
        stack = LiveStack("s", "CREATE_COMPLETE", {"TrialResultUri": "s3://results/x.json"})
        return Deployed(self.plan, stack, live, result)


@pytest.fixture
def told(plan: Plan, passed: TrialResult) -> Told:
    request = replace(passed.request, plan_digest=plan.digest, target_utilization=0.8)
    return Told(plan, replace(passed, request=request))


@pytest.mark.parametrize("knee", [3, 6, 7, 12, 14])
def test_the_target_of_the_policy_is_that_of_the_trial(told: Told, knee: int) -> None:
    check_deployment(told.with_knee(knee))


def test_another_target_is_told(told: Told) -> None:
    with pytest.raises(LocalError) as error:
        check_deployment(told.with_knee(3, target=2.5))
    assert str(error.value) == (f"SEA606: the autoscaling target is not the trial's: expected 2.4, not 2.5{HINT}")


def test_a_trial_that_did_not_pass_is_told_with_its_reason(told: Told) -> None:
    deployed = told.with_knee(4)
    verdict = Verdict(status="inconclusive", because="nothing was measured", checks=())
    with pytest.raises(LocalError) as error:
        check_deployment(replace(deployed, result=replace(deployed.result, verdict=verdict)))
    assert str(error.value) == (
        f"SEA606: the trial did not pass (nothing was measured): expected 'pass', not 'inconclusive'{HINT}"
    )


def test_a_failed_deployment_is_headed_by_its_failure(tmp_path: Path) -> None:
    tools = CdkCli(tmp_path, {}, tmp_path / "tools.log", verbose=False)
    with pytest.raises(LocalError) as error:
        tools.must("deploy", ToolOutcome(1, "CREATE_FAILED\n\nno room\n"))
    assert str(error.value) == (
        "SEA606: cdk deploy failed: exit code 1; its last lines:\nCREATE_FAILED\nno room\n"
        f"  hint: full output: {tmp_path / 'tools.log'}; --verbose shows it live"
    )


class TestAnUpdate:
    def test_that_replaced_the_component_is_told(self, told: Told) -> None:
        first = told.with_knee(4)
        second = replace(first, live=replace(first.live, created="2026-01-02", model_name="model-2"))
        with pytest.raises(LocalError, match="the update replaced the component; creation time: expected"):
            check_update(first, second)

    def test_that_changed_nothing_is_told(self, told: Told) -> None:
        with pytest.raises(LocalError, match="the update changed nothing: model model-1 is still live"):
            check_update(told.with_knee(4), told.with_knee(4))

    def test_that_was_not_tried_is_told(self, told: Told) -> None:
        first = told.with_knee(4)
        second = replace(first, live=replace(first.live, model_name="model-2"))
        with pytest.raises(LocalError, match=r"the update had no trial: the result is still s3://results/x\.json"):
            check_update(first, second)


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (ToolOutcome(0, "done"), "cdk deploy ended with exit code 0, although ttft_ms: {p95: 0.5} can't be met"),
        (
            ToolOutcome(1, "no Docker"),
            "cdk deploy failed, but not with ttft_ms p95: exit code 1; its last lines:\nno Docker",
        ),
    ],
)
def test_a_deployment_that_was_to_fail_is_told_when_it_did_not(outcome: ToolOutcome, message: str) -> None:
    with pytest.raises(LocalError) as error:
        check_refused(outcome)
    assert str(error.value) == f"SEA606: {message}{HINT}"
