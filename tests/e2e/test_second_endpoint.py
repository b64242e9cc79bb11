"""Another instance type is a second endpoint: the alias moves to it when it serves, and stays when it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest

from benchmarks.living_endpoint.synthesis import synthesize
from seatrial.client import Alias, Options, Schema, generate
from seatrial.locks.changes import count_generation
from seatrial.locks.lock_file import write_lock
from seatrial_laptop.lifecycle import child_variables
from tests.environment import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seatrial_laptop.demo.embedded_aws import EmbeddedAws
    from tests.e2e.conftest import RunCdk, Workspace
    from tests.tools import Ended

    Deploy = Callable[[Path], Ended]

pytestmark = pytest.mark.e2e

NAME = "twin"
STACK = f"seatrial-local-{NAME}"
LIMITS = {"max_model_len": 512, "max_num_seqs": 8}
FIRST = {"instance_types": ["ml.g5.2xlarge"], "overrides": LIMITS}
SECOND = {"instance_types": ["ml.g6.2xlarge"], "overrides": LIMITS}
REFUSED = {"instance_types": ["ml.g5.4xlarge"], "overrides": {**LIMITS, "extra": {"gpu_memory_utilization": "most"}}}


@pytest.fixture(scope="module")
def assemblies(new_workspace: Callable[[], Workspace]) -> tuple[Path, ...]:
    """Synthesize the endpoint on one instance type, then on another, then on a third with which it can't start."""
    workspace, made = new_workspace(), []
    locked = None
    for index, serving in enumerate((FIRST, SECOND, REFUSED)):
        plan, _ = count_generation(locked, workspace.write(NAME, serving=serving))
        write_lock(plan, workspace.endpoints / f"{NAME}.yaml")
        locked = plan.model_dump(mode="json")
        made.append(synthesize(workspace.folder / f"cdk.out.{index}", workspace.context()))
    return tuple(made)


@pytest.fixture(scope="module")
def deploy(cdk: RunCdk, remove_stacks: Callable[[], None]) -> Iterator[Deploy]:
    """Return a function that deploys the stack of an assembly; whatever was deployed is destroyed in the end."""

    def run(assembly: Path) -> Ended:
        return cdk("deploy", STACK, "--app", assembly, "--require-approval", "never", "--progress", "events")

    try:
        yield run
    finally:
        remove_stacks()


def names(cloud: EmbeddedAws) -> tuple[list[str], list[str]]:
    sagemaker = cloud.client("sagemaker")
    endpoints = [each["EndpointName"] for each in sagemaker.list_endpoints()["Endpoints"]]
    parts = [each["InferenceComponentName"] for each in sagemaker.list_inference_components()["InferenceComponents"]]
    return endpoints, parts


def test_the_alias_follows_the_endpoint_that_serves(
    cloud: EmbeddedAws, deploy: Deploy, assemblies: tuple[Path, ...], engines: Callable[[], list[int]]
) -> None:
    with environment(child_variables(cloud.local)):
        alias = Alias(boto3.client("ssm"), "local", NAME, Schema.LMI_ASYNC)
    runtime, few = cloud.client("sagemaker-runtime"), Options(max_tokens=4)

    assert deploy(assemblies[0]).exit_code == 0
    assert names(cloud) == (["local-twin"], ["local-twin-model"])
    assert generate(runtime, alias, "hello", few).text
    assert alias.target().endpoint_name == "local-twin"

    ended = deploy(assemblies[1])
    assert ended.exit_code == 0, ended.output
    assert names(cloud) == (["local-twin-2"], ["local-twin-2-model"])
    assert generate(runtime, alias, "hello", few).text
    assert alias.target().endpoint_name == "local-twin-2"
    assert cloud.stack(STACK).output("EndpointName") == "local-twin-2"
    assert len(engines()) == 1

    before = engines()
    assert deploy(assemblies[2]).exit_code == 1
    assert cloud.stack(STACK).status == "UPDATE_ROLLBACK_COMPLETE"
    assert names(cloud) == (["local-twin-2"], ["local-twin-2-model"])
    assert engines() == before
    with environment(child_variables(cloud.local)):
        fresh = Alias(boto3.client("ssm"), "local", NAME, Schema.LMI_ASYNC)
    assert generate(runtime, fresh, "hello", few).text
    assert fresh.target().endpoint_name == "local-twin-2"
