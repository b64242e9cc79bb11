"""An optimization job from its start to an endpoint that serves what it made, on the embedded AWS."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from benchmarks.living_endpoint.synthesis import synthesize
from seatrial.client import Options, Schema, Target, generate
from seatrial_laptop.control import change_control, reset_control
from seatrial_laptop.engine.weights import weights_file
from seatrial_laptop.lifecycle import child_variables
from tests.environment import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mypy_boto3_sagemaker.type_defs import OptimizationJobSummaryTypeDef

    from seatrial_laptop.demo.embedded_aws import EmbeddedAws
    from tests.e2e.conftest import RunCdk, Workspace
    from tests.tools import Ended

    Deploy = Callable[[str], Ended]

Ssm = Any  # there are no stubs of its client here
pytestmark = pytest.mark.e2e

JOBS, ENDPOINT = "seatrial-local-optimizations", "seatrial-local-narrow"
BUCKET = "weights-of-narrow"
LONGEST_JOB_S = 30.0


@pytest.fixture(scope="module")
def assembly(workspace: Workspace, cloud: EmbeddedAws, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Put weights into S3, and synthesize an endpoint that serves them as AWQ by a job."""
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.upload_file(f"{weights_file(tmp_path_factory.mktemp('weights'))}", BUCKET, "base/model.gguf")
    model = {"s3_uri": f"s3://{BUCKET}/base/", "architecture": "meta-llama/Llama-2-7b-chat-hf", "accept_eula": True}
    workspace.write("narrow", model=model, optimization=[{"awq": {"job": True}}])
    return synthesize(workspace.folder / "cdk.out", workspace.context())


@pytest.fixture(scope="module")
def deploy(cdk: RunCdk, assembly: Path, remove_stacks: Callable[[], None], state_dir: Path) -> Iterator[Deploy]:
    def run(stack: str) -> Ended:
        arguments = ("--app", assembly, "--exclusively", "--require-approval", "never", "--progress", "events")
        return cdk("deploy", stack, *arguments)

    try:
        yield run
    finally:
        reset_control(state_dir)
        remove_stacks()


@pytest.fixture(scope="module")
def ssm(cloud: EmbeddedAws) -> Ssm:
    with environment(child_variables(cloud.local)):
        return boto3.client("ssm")


def jobs(cloud: EmbeddedAws) -> list[OptimizationJobSummaryTypeDef]:
    return cloud.client("sagemaker").list_optimization_jobs()["OptimizationJobSummaries"]


def await_state(ssm: Ssm, parameter: str, state: str) -> dict[str, str]:
    deadline = time.monotonic() + LONGEST_JOB_S
    while time.monotonic() < deadline:
        told: dict[str, str] = json.loads(ssm.get_parameter(Name=parameter)["Parameter"]["Value"])
        if told["state"] == state:
            return told
        time.sleep(0.1)
    raise TimeoutError(f"{told}")


def test_a_job_runs_once_and_the_endpoint_serves_what_it_made(
    cloud: EmbeddedAws, ssm: Ssm, deploy: Deploy, state_dir: Path, remove_stacks: Callable[[], None]
) -> None:
    change_control(state_dir, {"optimization_job_s": 600.0})
    started = deploy(JOBS)
    assert started.exit_code == 0, started.output
    too_early = deploy(ENDPOINT)
    assert (too_early.exit_code, "SEA458" in too_early.output) == (1, True), too_early.output
    cloud.client("cloudformation").delete_stack(StackName=ENDPOINT)
    change_control(state_dir, {"clock_speed": 600.0})

    every = [each["Name"] for each in ssm.describe_parameters()["Parameters"]]
    (parameter,) = [name for name in every if "/optimizations/" in name and not name.endswith("/request")]
    told = await_state(ssm, parameter, "COMPLETED")
    (job,) = jobs(cloud)
    assert job["OptimizationJobName"] == told["job"]
    deployed = deploy(ENDPOINT)
    assert deployed.exit_code == 0, deployed.output
    name = cloud.stack(ENDPOINT).output("ModelName")
    container = cloud.client("sagemaker").describe_model(ModelName=name)["PrimaryContainer"]
    assert container["ModelDataSource"]["S3DataSource"]["S3Uri"] == told["artifact_s3_uri"]
    runtime = cloud.client("sagemaker-runtime")
    live = Target("local-narrow", Schema.LMI_ASYNC, "local-narrow-model")
    assert generate(runtime, live, "hello", Options(max_tokens=4)).text
    assert any("model-q4_0.gguf, as it was mounted" in log.read_text() for log in (state_dir / "logs").glob("*.log"))

    assert deploy(JOBS).exit_code == 0
    assert [each["OptimizationJobName"] for each in jobs(cloud)] == [told["job"]]
    remove_stacks()
    assert {each["OptimizationJobStatus"] for each in jobs(cloud)} == {"COMPLETED"}
