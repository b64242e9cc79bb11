"""What a trial may do to a deployment: mode `report` only reports, and mode `off` deploys no trial at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial.demo.embedded_aws import EmbeddedAws
    from seatrial.plan.document import Plan
    from tests.e2e.conftest import RunCdk, Workspace

pytestmark = pytest.mark.e2e

REPORT, OFF = "seatrial-local-report", "seatrial-local-off"
MISSED_SLO = {"ttft_ms": {"p95": 0.01}, "tpot_ms": {"p95": 5_000}}
SHORT_TRIAL = {
    "mode": "report",
    "concurrency_levels": [1, 4],
    "requests_per_concurrency": 1,
    "budget_minutes": 1,
    "request_timeout_s": 20,
}


@pytest.fixture(scope="module")
def plans(workspace: Workspace) -> dict[str, Plan]:
    return {
        REPORT: workspace.write("report", slo=MISSED_SLO, trial=SHORT_TRIAL),
        OFF: workspace.write("off", trial={"mode": "off"}),
    }


@pytest.fixture(scope="module")
def assembly(cdk: RunCdk, workspace: Workspace, plans: dict[str, Plan]) -> Iterator[Path]:
    """Synthesize and deploy both stacks; they are destroyed in the end if no test did."""
    folder = workspace.folder / "cdk.out"
    options = ("--require-approval", "never", "--concurrency", "2")
    try:
        ended = cdk("deploy", "--all", *workspace.synth_arguments(), "--output", folder, *options)
        assert ended.exit_code == 0, ended.output
        yield folder
    finally:
        if (folder / "manifest.json").exists():
            cdk("destroy", "--all", "--force", "--app", folder)


def test_a_missed_slo_is_reported_and_the_deployment_stands(
    cloud: EmbeddedAws, plans: dict[str, Plan], assembly: Path
) -> None:
    stack = cloud.stack(REPORT)
    assert stack.status == "CREATE_COMPLETE"
    assert (stack.output("Verdict"), stack.output("Verified")) == ("fail", "false")
    result = cloud.result(stack.output("TrialResultUri"))
    assert result.request.plan_digest == plans[REPORT].digest
    assert "ttft_ms p95" in result.verdict.because


def test_without_a_knee_the_scaling_target_is_the_planned_one(
    cloud: EmbeddedAws, plans: dict[str, Plan], assembly: Path
) -> None:
    stack = cloud.stack(REPORT)
    planned = plans[REPORT].target_concurrency_per_copy.value
    assert stack.output("KneeConcurrencyPerCopy") == "unknown"
    assert float(stack.output("TargetConcurrencyPerCopy")) == pytest.approx(planned)
    assert cloud.live(stack.output("InferenceComponentName")).target == pytest.approx(planned)


def test_a_deployment_without_a_trial_has_the_planned_target(
    cloud: EmbeddedAws, plans: dict[str, Plan], assembly: Path
) -> None:
    stack = cloud.stack(OFF)
    template = json.loads((assembly / f"{OFF}.template.json").read_text())
    types = {resource["Type"] for resource in template["Resources"].values()}
    assert not {kind for kind in types if kind.startswith(("Custom::", "AWS::Lambda::", "AWS::S3::"))}
    assert "Verdict" not in stack.outputs
    planned = plans[OFF].target_concurrency_per_copy.value
    assert cloud.live(stack.output("InferenceComponentName")).target == pytest.approx(planned)


def test_an_update_that_leaves_the_plan_as_it_is_runs_no_trial_again(
    cloud: EmbeddedAws, cdk: RunCdk, assembly: Path
) -> None:
    before = cloud.stack(REPORT).outputs
    options = ("--app", assembly, "--require-approval", "never", "--tags", "review=again")
    ended = cdk("deploy", REPORT, *options)
    assert ended.exit_code == 0, ended.output
    after = cloud.stack(REPORT)
    assert after.status == "UPDATE_COMPLETE"
    assert after.outputs == before
    assert len(trials(cloud, before["ResultsBucket"])) == 1


def test_a_destroyed_stack_leaves_nothing_of_itself(cloud: EmbeddedAws, cdk: RunCdk, assembly: Path) -> None:
    bucket = cloud.stack(REPORT).output("ResultsBucket")
    assert trials(cloud, bucket)
    assert len(cloud.leftovers("seatrial-local")) == 2 * len(("endpoint", "component", "model", "config", "target")) + 1
    ended = cdk("destroy", "--all", "--force", "--app", assembly)
    assert ended.exit_code == 0, ended.output
    assert cloud.leftovers("seatrial-local") == []
    left = cloud.client("cloudformation").list_stacks(StackStatusFilter=["CREATE_COMPLETE", "UPDATE_COMPLETE"])
    assert [stack["StackName"] for stack in left["StackSummaries"]] == ["CDKToolkit"]


def trials(cloud: EmbeddedAws, bucket: str) -> list[str]:
    found = cloud.client("s3").list_objects_v2(Bucket=bucket, Prefix="trials/").get("Contents", [])
    return [entry["Key"] for entry in found if entry["Key"].endswith(".json")]
