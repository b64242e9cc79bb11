"""Two probes of the local engine calibrate its plan, and the report shows the rest of its curve beside the prediction.

Its speed depends on what else the machine does, so that no error of a prediction is asserted here; docs/calibration.md
has measured ones.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from seatrial.local import lifecycle
from tests.e2e.conftest import BIN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial.demo.cloud import Cloud
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
    measured: Outcome

    @property
    def report(self) -> str:
        return (self.folder / "measured" / "report.md").read_text("utf-8")


@pytest.fixture(scope="module")
def told(cloud: Cloud, cdk: RunCdk, run_tool: RunTool, workspace: Workspace) -> Iterator[Told]:
    """Deploy, measure at concurrency 1 and at the batch limit, calibrate, plan, and measure every level."""
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
        calibrated = seatrial("calibrate", "--result", "probes/report.json", "--write")
        assert calibrated.exit_code == 0, calibrated.output
        planned = seatrial("plan", "--write")
        assert planned.exit_code == 0, planned.output
        yield Told(folder, calibrated, seatrial("bench", "--output", "measured"))
    finally:
        if (assembly / "manifest.json").exists():
            cdk("destroy", "--all", "--force", "--app", assembly)


def test_the_probes_stand_beside_the_prediction(told: Told) -> None:
    words = " ".join(told.calibrated.output.split())
    assert " 1 probe " in words
    assert " 8 probe " in words
    assert "measured on: local-cpu-random-llama (not the model named)" in words


def test_the_calibration_is_stored_for_this_environment_alone(told: Told) -> None:
    document = json.loads((told.folder / "endpoints" / "probe.calibration.json").read_text())
    assert list(document["environments"]) == ["local"]
    entry = document["environments"]["local"]
    assert [point["concurrency"] for point in entry["points"]] == [1, 8]
    assert entry["source"]["engine_note"] == "local-cpu-random-llama (not the model named)"


def test_the_report_shows_every_level_measured_beside_predicted(told: Told) -> None:
    assert told.measured.exit_code == 0, told.measured.output
    assert "<summary>Predicted beside measured, one copy</summary>" in told.report
    table = told.report.partition("<summary>Predicted beside measured, one copy</summary>")[2]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    assert [row for row in rows if row.isdigit()][: len(LEVELS)] == [str(level) for level in LEVELS]
    assert "Calibrated by 2 points" in table


def test_the_report_says_that_the_numbers_are_the_local_engine_s(told: Told) -> None:
    assert "local-cpu-random-llama (not the model named)" in told.report
