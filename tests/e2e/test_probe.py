"""`seatrial probe` on the embedded AWS: two stacks in turn, then one level of an endpoint that serves."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.operations.app import source_roots
from tests.e2e.conftest import ENVIRONMENT, Workspace, make_workspace, variables_of
from tests.environment import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial_laptop.demo.embedded_aws import EmbeddedAws
    from tests.e2e.conftest import RunCdk, RunTool
    from tests.tools import Ended

pytestmark = pytest.mark.e2e

NAME = "probed"
SEATRIAL = Path(sys.executable).with_name("seatrial")
NOTE = "simulated, measured on: local-cpu-random-llama (not the model named)"
TRIAL = {"mode": "off", "budget_minutes": 1, "warmup_requests": 1, "request_timeout_s": 20}


@pytest.fixture(scope="module")
def probed(checkout: Path) -> Workspace:
    """Return specs below the app of a checkout, one of them locked."""
    workspace = make_workspace(checkout / NAME)
    workspace.write(NAME, trial=TRIAL)
    return workspace


@pytest.fixture(scope="module")
def probe(
    probed: Workspace, cloud: EmbeddedAws, account_free: dict[str, str], run_tool: RunTool, cdk: RunCdk
) -> Callable[..., Ended]:
    """Return the way to run the command on the bootstrapped embedded AWS."""
    assert cdk
    code = os.pathsep.join(source_roots(probed.folder.parent))
    with environment(account_free):
        env = {**variables_of(cloud.local), "PYTHONPATH": code, "COLUMNS": "200"}

    def run(*arguments: str) -> Ended:
        spec = probed.endpoints / f"{NAME}.yaml"
        return run_tool(SEATRIAL, "probe", spec, "-e", ENVIRONMENT, *arguments, folder=probed.folder, env=env)

    return run


@pytest.fixture(scope="module", autouse=True)
def nothing_left(remove_stacks: Callable[[], None]) -> Iterator[None]:
    yield
    remove_stacks()


def test_both_deployments_are_measured_in_turn_and_deleted(
    probe: Callable[..., Ended], probed: Workspace, cloud: EmbeddedAws
) -> None:
    done = probe("--candidate", "ml.g6e.2xlarge:1", "--level", "2")
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    for role, instance_type in (("plan", "ml.g5.2xlarge"), ("candidate", "ml.g6e.2xlarge")):
        assert f"{role}: {instance_type}, TP 1, 2 concurrent requests per copy" in lines
        name = f"{NAME}-probe-{role}.result.json"
        assert len(list((probed.folder.parent / ".seatrial" / "probe").rglob(name))) == 1
    assert lines.count(NOTE) == 2
    assert cloud.client("sagemaker").list_endpoints()["Endpoints"] == []
    stacks = [stack["StackName"] for stack in cloud.client("cloudformation").describe_stacks()["Stacks"]]
    assert [name for name in stacks if "-probe-" in name] == []


def test_a_level_of_an_endpoint_that_serves_is_measured(
    probe: Callable[..., Ended], probed: Workspace, cdk: RunCdk, cloud: EmbeddedAws, tmp_path: Path
) -> None:
    stack = f"seatrial-{ENVIRONMENT}-{NAME}"
    output = ("--output", tmp_path, "--require-approval", "never", "--method", "direct")
    deployed = cdk("deploy", stack, *probed.synth_arguments(), *output)
    assert deployed.exit_code == 0, deployed.output
    done = probe("--endpoint", cloud.stack(stack).output("EndpointName"), "--level", "2")
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert "plan: ml.g5.2xlarge, TP 1, 2 concurrent requests per copy" in lines
    assert NOTE in lines
    assert cloud.live(cloud.stack(stack).output("InferenceComponentName"))
    shutil.rmtree(tmp_path)
