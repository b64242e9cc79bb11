"""A configuration that plans and renders, and that the container refuses at its start: CloudFormation takes it back.

vLLM takes at most all of the accelerator's memory; what is passed through `extra` only the container can judge.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from benchmarks.living_endpoint.synthesis import synthesize
from tests.e2e.conftest import variables_of
from tests.tools import BIN, ROOT, run_to_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seatrial_laptop.demo.embedded_aws import EmbeddedAws
    from tests.e2e.conftest import RunCdk, Workspace
    from tests.tools import Ended

    Deploy = Callable[[str, Path], Ended]

pytestmark = pytest.mark.e2e

REFUSED = {
    "instance_types": ["ml.g5.2xlarge"],
    "overrides": {"max_model_len": 512, "max_num_seqs": 8, "extra": {"gpu_memory_utilization": "most"}},
}
REASON = "option.gpu_memory_utilization: SEA605: 'most'"
NEW, STEADY = "seatrial-local-refused", "seatrial-local-steady"


@pytest.fixture(scope="module")
def assemblies(new_workspace: Callable[[], Workspace]) -> tuple[Path, Path]:
    """Synthesize a refused and a healthy stack, and the change that gets the healthy one refused."""
    first, second = new_workspace(), new_workspace()
    first.write("refused", serving=REFUSED)
    first.write("steady")
    second.write("steady", serving=REFUSED)
    before, after = (synthesize(each.folder / "cdk.out", each.context()) for each in (first, second))
    return before, after


@pytest.fixture(scope="module")
def deploy(cdk: RunCdk, remove_stacks: Callable[[], None]) -> Iterator[Deploy]:
    """Return a function that deploys one stack of an assembly; whatever was deployed is destroyed in the end."""

    def run(stack: str, assembly: Path) -> Ended:
        return cdk("deploy", stack, "--app", assembly, "--require-approval", "never", "--progress", "events")

    try:
        yield run
    finally:
        remove_stacks()


def test_a_new_stack_is_rolled_back_and_leaves_nothing(
    cloud: EmbeddedAws, deploy: Deploy, assemblies: tuple[Path, Path], engines: Callable[[], list[int]]
) -> None:
    ended = deploy(NEW, assemblies[0])
    assert ended.exit_code == 1
    assert REASON in ended.output
    assert "The container ended with status 1 before it passed the ping health check." in ended.output
    assert cloud.stack(NEW).status == "ROLLBACK_COMPLETE"
    assert cloud.leftovers(NEW) == []
    assert engines() == []


def test_a_refused_update_leaves_the_old_copy_serving_and_the_last_line_says_so(
    cloud: EmbeddedAws, deploy: Deploy, assemblies: tuple[Path, Path], engines: Callable[[], list[int]]
) -> None:
    assert deploy(STEADY, assemblies[0]).exit_code == 0
    healthy, (engine,) = cloud.stack(STEADY), engines()
    component = healthy.output("InferenceComponentName")
    before = cloud.live(component)

    shutil.copy(ROOT / "cdk.json", assemblies[1].parent)
    command = (
        "deploy",
        assemblies[1].parent / "endpoints" / "steady.yaml",
        "-e",
        "local",
        "--",
        "--app",
        assemblies[1],
    )
    ended = run_to_end(BIN / "seatrial", *command, folder=ROOT, env=variables_of(cloud.local))
    last = ended.output.splitlines()[-1]
    assert (ended.exit_code, last.startswith("FAILED: "), REASON in last) == (14, True, True)
    assert f"; rolled back; local-steady serves plan {healthy.output('PlanDigest')} (" in last

    after = cloud.stack(STEADY)
    assert (after.status, after.outputs) == ("UPDATE_ROLLBACK_COMPLETE", healthy.outputs)
    assert cloud.live(component) == before
    assert engines() == [engine]
    assert cloud.ask(after.output("EndpointName"), component)
    models = cloud.client("sagemaker").list_models()["Models"]
    assert [model["ModelName"] for model in models] == [before.model_name]
