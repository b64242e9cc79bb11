"""A configuration that plans and renders, and that the container refuses at its start: CloudFormation takes it back.

vLLM takes at most all of the accelerator's memory; what is passed through `extra` only the container can judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seatrial.demo.cloud import Cloud
    from tests.e2e.conftest import Outcome, RunCdk, Workspace

pytestmark = pytest.mark.e2e

REFUSED = {
    "instance_types": ["ml.g5.2xlarge"],
    "overrides": {"max_model_len": 512, "max_num_seqs": 8, "extra": {"gpu_memory_utilization": 1.5}},
}
REASON = "option.gpu_memory_utilization: SEA605: 1.5 must be above 0 and at most 1"
NEW, STEADY = "seatrial-local-refused", "seatrial-local-steady"


@pytest.fixture(scope="module")
def deploy(cdk: RunCdk, workspace: Workspace) -> Iterator[Callable[..., Outcome]]:
    """Return a function that deploys one stack of an assembly; whatever was deployed is destroyed in the end."""
    assemblies: set[Path] = set()

    def run(stack: str, assembly: Path) -> Outcome:
        assemblies.add(assembly)
        return cdk("deploy", stack, "--app", assembly, "--require-approval", "never", "--progress", "events")

    yield run
    for assembly in assemblies:
        cdk("destroy", "--all", "--force", "--app", assembly)


@pytest.fixture(scope="module")
def first(cdk: RunCdk, workspace: Workspace) -> Path:
    """Synthesize a stack that is refused and one that is not."""
    workspace.write("refused", serving=REFUSED)
    workspace.write("steady")
    return synthesized(cdk, workspace, "first")


@pytest.fixture(scope="module")
def second(first: Path, cdk: RunCdk, workspace: Workspace) -> Path:
    """Synthesize the change of the healthy stack to a configuration that is refused."""
    (workspace.endpoints / "refused.yaml").unlink()
    workspace.write("steady", serving=REFUSED)
    return synthesized(cdk, workspace, "second")


def synthesized(cdk: RunCdk, workspace: Workspace, name: str) -> Path:
    assembly = workspace.folder / name
    ended = cdk("synth", "--quiet", *workspace.synth_arguments(), "--output", assembly)
    assert ended.exit_code == 0, ended.output
    return assembly


def test_a_new_stack_is_rolled_back_and_leaves_nothing(
    cloud: Cloud, deploy: Callable[..., Outcome], first: Path, engines: Callable[[], list[int]]
) -> None:
    ended = deploy(NEW, first)
    assert ended.exit_code == 1
    assert REASON in ended.output
    assert "The container ended with status 1 before it passed the ping health check." in ended.output
    assert cloud.stack(NEW).status == "ROLLBACK_COMPLETE"
    assert cloud.leftovers(NEW) == []
    assert engines() == []


def test_a_refused_update_leaves_the_old_copy_serving(
    cloud: Cloud, deploy: Callable[..., Outcome], first: Path, second: Path, engines: Callable[[], list[int]]
) -> None:
    assert deploy(STEADY, first).exit_code == 0
    healthy, (engine,) = cloud.stack(STEADY), engines()
    component = healthy.output("InferenceComponentName")
    before = cloud.live(component)

    ended = deploy(STEADY, second)
    assert ended.exit_code == 1
    assert REASON in ended.output

    after = cloud.stack(STEADY)
    assert (after.status, after.outputs) == ("UPDATE_ROLLBACK_COMPLETE", healthy.outputs)
    assert cloud.live(component) == before
    assert engines() == [engine]
    assert cloud.ask(after.output("EndpointName"), component)
    models = cloud.client("sagemaker").list_models()["Models"]
    assert [model["ModelName"] for model in models] == [before.model_name]
