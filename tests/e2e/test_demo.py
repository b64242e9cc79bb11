"""`make demo`, as a user runs it: in a checkout, with no AWS account and nothing on the machine before."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.operations.app import source_roots

if TYPE_CHECKING:
    from tests.e2e.conftest import Processes, RunTool
    from tests.tools import Ended

pytestmark = pytest.mark.e2e

SEATRIAL = Path(sys.executable).with_name("seatrial")
CHAPTERS = [
    "1. Plan and serving configuration",
    "2. First deployment with sea trial",
    "3. Update: max_num_seqs: 8 becomes max_num_seqs: 2",
    "4. Rollback: impossible SLO ttft_ms: {p95: 0.5}",
    "5. Destroy",
]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of temporary files of all that the demo starts, which makes its processes known."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def told(checkout: Path, trace: Path, variables: dict[str, str], run_tool: RunTool) -> Ended:
    code = os.pathsep.join(source_roots(checkout))
    env = {**variables, "PYTHONPATH": code, "TMPDIR": str(trace), "COLUMNS": "80"}
    return run_tool(SEATRIAL, "demo", folder=checkout, env=env)


def test_the_story_is_told_to_its_end(told: Ended) -> None:
    assert told.exit_code == 0, told.output
    assert [line for line in told.output.splitlines() if re.match(r"\d\. ", line)] == CHAPTERS
    assert re.search(r"\nFinished in \d+ s\.\n$", told.output)


def test_no_step_failed(told: Ended) -> None:
    assert "✗" not in told.output
    assert told.output.count("✓") == 11


def test_each_passed_trial_has_its_report_page(told: Ended) -> None:
    pages = [Path(path).read_text("utf-8") for path in re.findall(r"^report: (.+\.html)$", told.output, re.MULTILINE)]
    assert len(pages) == 2
    assert pages[0] != pages[1]
    for page in pages:
        assert page.startswith("<!DOCTYPE html>")
        assert page.rstrip().endswith("</html>")
        assert "local-cpu-random-llama (not the model named)" in page


def test_nothing_runs_any_more(told: Ended, checkout: Path, trace: Path, left: Processes) -> None:
    assert told.exit_code == 0
    assert left(trace) == []
    assert left(checkout / ".seatrial") == []


def test_no_temporary_file_is_left(told: Ended, checkout: Path, trace: Path) -> None:
    demo = checkout / ".seatrial" / "demo"
    assert [path for path in (*trace.iterdir(), demo / "tmp", demo / "local" / "tmp") if path.exists()] == []
