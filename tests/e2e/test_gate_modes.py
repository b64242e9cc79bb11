"""What a trial may do to a deployment: mode `report` only reports, and mode `off` deploys no trial at all.

What has no trial is measured by hand: two probes show how a calibration is fitted; numbers of a CPU are not kept.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial_laptop import lifecycle
from tests.e2e.gate import boto3_client
from tests.tools import BIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seatrial.documents.plan import Plan
    from seatrial_laptop.demo.embedded_aws import EmbeddedAws
    from tests.e2e.conftest import RunCdk, RunTool, Workspace
    from tests.tools import Ended

pytestmark = pytest.mark.e2e

REPORT, OFF = "seatrial-local-report", "seatrial-local-off"
MISSED_SLO = {"ttft_ms": {"p95": 0.01}, "tpot_ms": {"p95": 5_000}}
PROBED = {"input_tokens": 48, "output_tokens": 96}
SHORT_TRIAL = {
    "mode": "report",
    "concurrency_levels": [1, 4],
    "requests_per_concurrency": 1,
    "budget_minutes": 1,
    "request_timeout_s": 20,
}
NO_TRIAL = {
    "mode": "off",
    "concurrency_levels": [1, 2, 4, 8],
    "requests_per_concurrency": 2,
    "budget_minutes": 2,
    "confidence": 0,  # two probes prove nothing of the gate between them
}


@pytest.fixture(scope="module")
def plans(workspace: Workspace) -> dict[str, Plan]:
    return {
        REPORT: workspace.write("report", slo=MISSED_SLO, trial=SHORT_TRIAL),
        OFF: workspace.write(
            "off",
            workload={**PROBED, "concurrency": 4},
            trial=NO_TRIAL,
            environments={"local": {"workload": PROBED}},  # which is kept as it is: answers longer than others'
        ),
    }


@pytest.fixture(scope="module")
def assembly(
    cdk: RunCdk, workspace: Workspace, plans: dict[str, Plan], remove_stacks: Callable[[], None]
) -> Iterator[Path]:
    """Synthesize and deploy both stacks; they are destroyed in the end if no test did."""
    folder = workspace.folder / "cdk.out"
    options = ("--require-approval", "never", "--concurrency", "2")
    try:
        ended = cdk("deploy", "--all", *workspace.synth_arguments(), "--output", folder, *options)
        assert ended.exit_code == 0, ended.output
        yield folder
    finally:
        remove_stacks()


def test_a_missed_slo_is_reported_and_the_deployment_stands(
    cloud: EmbeddedAws, plans: dict[str, Plan], assembly: Path
) -> None:
    stack = cloud.stack(REPORT)
    assert stack.status == "CREATE_COMPLETE"
    assert (stack.output("Verdict"), stack.output("Verified")) == ("fail", "false")
    result = cloud.result(stack.output("TrialResultUri"))
    assert result.start is not None
    assert ("CreationTime" in result.start.because, result.start.simulated) == (True, True)
    assert result.request.plan_digest == plans[REPORT].digest
    assert "ttft_ms p95" in result.verdict.because


def test_without_a_knee_the_scaling_target_is_no_more_than_the_lowest_load_that_missed(
    cloud: EmbeddedAws, plans: dict[str, Plan], assembly: Path
) -> None:
    stack = cloud.stack(REPORT)
    assert plans[REPORT].target_concurrency_per_copy.value > 1
    assert stack.output("KneeConcurrencyPerCopy") == "unknown"
    assert float(stack.output("TargetConcurrencyPerCopy")) == 1
    assert cloud.live(stack.output("InferenceComponentName")).target == 1


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


@pytest.fixture(scope="module")
def probe(cloud: EmbeddedAws, run_tool: RunTool, workspace: Workspace, assembly: Path) -> Callable[..., Ended]:
    """Return a function that runs a command on the endpoint without a trial, once it was measured at two levels."""
    del assembly
    env = lifecycle.child_variables(cloud.local)

    def run(command: str, *arguments: str) -> Ended:
        spec = ("endpoints/off.yaml", "-e", "local")
        return run_tool(BIN / "seatrial", command, *spec, *arguments, folder=workspace.folder, env=env)

    probed = run("bench", "--levels", "1,8", "--output", "probes")
    assert probed.exit_code == 0, probed.output
    _level_out(workspace.folder / "probes" / "report.json")
    return run


def _level_out(report: Path) -> None:
    """Give the levels one throughput and no latency, and count each.

    A machine that does other things may measure less under more load, and hold up the client itself. Calibration
    refuses such points, which `tests/planner/test_points.py` tests, and leaves out void levels.
    """
    document = json.loads(report.read_text())
    levels = document["levels"]
    for level in levels:
        level |= {"output_tok_s": levels[0]["output_tok_s"], "ms_per_token": None, "void": None}
    report.write_text(json.dumps(document))


def test_two_probes_stand_beside_the_prediction(probe: Callable[..., Ended]) -> None:
    calibrated = probe("calibrate", "--result", "probes/report.json")
    assert calibrated.exit_code == 0, calibrated.output
    words = " ".join(calibrated.output.split())
    assert " 1 probe " in words
    assert " 8 probe " in words
    assert "measured on: local-cpu-random-llama (not the model named)" in words


def test_an_evaluation_set_is_scored_on_the_live_endpoint(probe: Callable[..., Ended], workspace: Workspace) -> None:
    prompts = [{"prompt": f"sea {number}", "reference": "a random model writes no such thing"} for number in range(5)]
    (workspace.folder / "eval.jsonl").write_text("".join(f"{json.dumps(prompt)}\n" for prompt in prompts))
    scored = probe("quality", "--suite", "eval.jsonl", "--max-tokens", "8", "--at-least", "eval=0.5")
    assert (scored.exit_code, "5 of 5" in scored.output) == (1, True), scored.output
    assert "measured on: local-cpu-random-llama (not the model named)" in scored.output


def test_a_cpus_numbers_become_no_constants(probe: Callable[..., Ended], workspace: Workspace) -> None:
    """They were written, and scaled a GPU's steps by 0.052 and 16.97."""
    written = probe("calibrate", "--result", "probes/report.json", "--write")
    assert written.exit_code == 2
    assert "SEA615" in written.output
    assert not (workspace.endpoints / "off.calibration.json").exists()


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
    assert list(billed(cloud)) == []


def billed(cloud: EmbeddedAws) -> Iterator[str]:
    """Yield what still costs money beside models and buckets; the bootstrap's own and log groups that end do not count.

    Nobody limits the containers' logs of an endpoint without a trial, as `off` and those of other files are.
    """
    for alarm in boto3_client(cloud, "cloudwatch").describe_alarms()["MetricAlarms"]:
        yield alarm["AlarmName"]
    for schedule in boto3_client(cloud, "scheduler").list_schedules()["Schedules"]:
        yield schedule["Name"]
    for machine in boto3_client(cloud, "stepfunctions").list_state_machines()["stateMachines"]:
        yield machine["name"]
    for function in boto3_client(cloud, "lambda").list_functions()["Functions"]:
        yield function["FunctionName"]
    for group in boto3_client(cloud, "logs").describe_log_groups(logGroupNamePrefix="/aws/sagemaker/")["logGroups"]:
        if "retentionInDays" not in group and "local-report" in group["logGroupName"]:
            yield group["logGroupName"]


def trials(cloud: EmbeddedAws, bucket: str) -> list[str]:
    found = cloud.client("s3").list_objects_v2(Bucket=bucket, Prefix="trials/").get("Contents", [])
    return [entry["Key"] for entry in found if entry["Key"].endswith(".json")]
