"""Two probes of the local engine show how a calibration is fitted; a CPU's numbers are never written beside a spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from seatrial.local import lifecycle
from tests.e2e.conftest import BIN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial.demo.embedded_aws import EmbeddedAws
    from tests.e2e.conftest import Outcome, RunCdk, RunTool, Workspace

pytestmark = pytest.mark.e2e

STACK = "seatrial-local-probe"
LEVELS = [1, 2, 4, 8]
OUTPUT_TOKENS = 96


@dataclass(frozen=True, slots=True)
class Told:
    """What the commands said, and the folder that they wrote to."""

    folder: Path
    calibrated: Outcome
    written: Outcome


@pytest.fixture(scope="module")
def told(cloud: EmbeddedAws, cdk: RunCdk, run_tool: RunTool, workspace: Workspace) -> Iterator[Told]:
    """Deploy, measure at concurrency 1 and at the batch limit, calibrate, and ask to keep that."""
    trial = {"mode": "off", "concurrency_levels": LEVELS, "requests_per_concurrency": 2, "budget_minutes": 2}
    trial["confidence"] = 0  # two probes prove nothing of the gate between them
    workload = {"input_tokens": 48, "output_tokens": OUTPUT_TOKENS, "concurrency": 4}
    workspace.write("probe", workload=workload, trial=trial)
    env, folder = lifecycle.child_variables(cloud.local), workspace.folder

    def seatrial(command: str, *arguments: str) -> Outcome:
        spec = ("endpoints/probe.yaml", "-e", "local")
        return run_tool(BIN / "seatrial", command, *spec, *arguments, folder=folder, env=env)

    assembly = folder / "cdk.out"
    try:
        ended = cdk(
            "deploy", "--all", *workspace.synth_arguments(), "--output", assembly, "--require-approval", "never"
        )
        assert ended.exit_code == 0, ended.output
        probed = seatrial("bench", "--levels", "1,8", "--output", "probes")
        assert probed.exit_code == 0, probed.output
        calibrated = seatrial("calibrate", "--result", "probes/report.json")
        assert calibrated.exit_code == 0, calibrated.output
        yield Told(folder, calibrated, seatrial("calibrate", "--result", "probes/report.json", "--write"))
    finally:
        if (assembly / "manifest.json").exists():
            cdk("destroy", "--all", "--force", "--app", assembly)


def test_the_probes_stand_beside_the_prediction(told: Told) -> None:
    words = " ".join(told.calibrated.output.split())
    assert " 1 probe " in words
    assert " 8 probe " in words
    assert "measured on: local-cpu-random-llama (not the model named)" in words


def test_a_cpus_numbers_become_no_constants(told: Told) -> None:
    """They were written, and scaled a GPU's steps by 0.052 and 16.97."""
    assert told.written.exit_code == 2
    assert "SEA615" in told.written.output
    assert not (told.folder / "endpoints" / "probe.calibration.json").exists()
