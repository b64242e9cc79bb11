"""`seatrial compare` on the embedded AWS: weights of 16, 8 and 4 bits, each deployed, tried, asked and deleted."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.operations.app import source_roots
from tests.e2e.conftest import ENVIRONMENT, make_workspace, variables_of
from tests.environment import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial_laptop.demo.embedded_aws import EmbeddedAws
    from tests.e2e.conftest import RunCdk, RunTool
    from tests.tools import Ended

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif("SEATRIAL_ALL_RECIPES" not in os.environ, reason="opt-in: make test-recipes"),
]

NAME = "compared"
SEATRIAL = Path(sys.executable).with_name("seatrial")
TRIAL = {"mode": "off", "budget_minutes": 1, "warmup_requests": 1, "request_timeout_s": 20}
PROMPTS = 24
AWQ = "awq=TheBloke/Llama-2-7B-Chat-AWQ"


@pytest.fixture(scope="module")
def folder(checkout: Path) -> Path:
    """Return a workspace below the app of a checkout, with a locked spec and an evaluation set."""
    workspace = make_workspace(checkout / NAME)
    workspace.write(NAME, trial=TRIAL)
    lines = (json.dumps({"prompt": f"Tell me more of the number {n} and of"}) for n in range(PROMPTS))
    (workspace.folder / "eval.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return workspace.folder


@pytest.fixture(scope="module")
def compare(
    folder: Path, cloud: EmbeddedAws, account_free: dict[str, str], run_tool: RunTool, cdk: RunCdk
) -> Callable[..., Ended]:
    """Return the way to run the command on the bootstrapped embedded AWS."""
    assert cdk
    code = os.pathsep.join(source_roots(folder.parent))
    with environment(account_free):
        env = {**variables_of(cloud.local), "PYTHONPATH": code, "COLUMNS": "200"}

    def run(*arguments: str | Path) -> Ended:
        return run_tool(SEATRIAL, "compare", *arguments, folder=folder, env=env)

    return run


@pytest.fixture(scope="module", autouse=True)
def nothing_left(remove_stacks: Callable[[], None]) -> Iterator[None]:
    yield
    remove_stacks()


def measured(output: Path) -> tuple[float, float, float]:
    """Return the GiB of A's and B's weights, and the distance of their log-probabilities."""
    document = json.loads((output / "comparison.json").read_text(encoding="utf-8"))
    (weights,) = [each for each in document["figures"] if each["name"] == "weights, local engine"]
    (distance,) = [each["value"] for each in document["quality"]["likeness"] if each["metric"] == "logprob_distance"]
    return weights["a"], weights["b"], distance


def test_fewer_bits_are_smaller_and_farther_and_nothing_is_left(
    compare: Callable[..., Ended],
    folder: Path,
    cloud: EmbeddedAws,
    engines: Callable[[], list[int]],
    tmp_path: Path,
) -> None:
    spec = folder / "endpoints" / f"{NAME}.yaml"
    asked = ("-e", ENVIRONMENT, "--evaluation-set", folder / "eval.jsonl", "--max-tokens", "8")
    for recipe in ("fp8", AWQ):
        done = compare(spec, "none", recipe, *asked, "--output", tmp_path / recipe[:3])
        assert done.exit_code in (0, 1), done.output
        assert "simulated, measured on: local-cpu-random-llama (not the model named)" in done.output
    assert "none: measured before" in done.output
    f16, q8, nearer = measured(tmp_path / "fp8")
    again, q4, farther = measured(tmp_path / "awq")
    assert f16 == again > q8 > q4 > 0
    assert 0 < nearer < farther
    stacks = [stack["StackName"] for stack in cloud.client("cloudformation").describe_stacks()["Stacks"]]
    assert [name for name in stacks if "-recipe-" in name] == []
    sagemaker, scaling = cloud.client("sagemaker"), cloud.client("application-autoscaling")
    assert sagemaker.list_endpoints()["Endpoints"] == []
    assert sagemaker.list_inference_components()["InferenceComponents"] == []
    assert scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"] == []
    assert engines() == []
