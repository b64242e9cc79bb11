"""`seatrial report` as a user runs it, on results that were made up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.locks.locked_plan import read_locked_plan
from seatrial.specs.load import load_spec
from seatrial_load.documents.result import TrialResult
from tests.report.samples import concluded, sample_level, sample_request
from tests.sample_plan import sample_plan

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial


@pytest.fixture
def result() -> TrialResult:
    levels = tuple(map(sample_level, (1, 4, 16)))
    return concluded(sample_request(sample_plan()), levels, "")


def test_the_three_files_are_named(seatrial: Seatrial, project: Path, result: TrialResult) -> None:
    (project / "now.json").write_text(result.to_json())
    done = seatrial("report", "now.json", "--output", "page")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["page/report.html", "page/report.md", "page/report.json"]
    assert TrialResult.from_json((project / "page" / "report.json").read_text()) == result


def test_a_result_that_passed_without_a_level_has_no_report(
    seatrial: Seatrial, project: Path, result: TrialResult
) -> None:
    assert result.verdict.status == "pass"
    (project / "forged.json").write_text(replace(result, levels=()).to_json())
    done = seatrial("report", "forged.json", "--output", "page")
    assert done.returncode == 1
    assert done.stderr.startswith("forged.json: verdict.status: SEA501: pass, though no request of a valid level or of")
    assert (done.stdout, (project / "page").exists()) == ("", False)


def test_two_results_are_compared(seatrial: Seatrial, project: Path, result: TrialResult) -> None:
    slower = tuple(replace(level, output_tok_s=(level.output_tok_s or 0) * 0.5) for level in result.levels)
    (project / "before.json").write_text(result.to_json())
    (project / "now.json").write_text(replace(result, levels=slower).to_json())
    done = seatrial("report", "now.json", "--against", "before.json")
    assert (done.returncode, done.stderr) == (0, "")
    title, header, first = done.stdout.splitlines()[:3]
    assert title.startswith("last release: worse: ")
    assert header.split()[-4:] == ["before", "now", "change", "outcome"]
    assert first.split()[-4:] == ["+100.0", "%", "✗", "worse"]
    assert max(map(len, done.stdout.splitlines())) < 120
    written = TrialResult.from_json((project / "report" / "report.json").read_text()).comparison
    assert written
    assert (written.status, written.baseline_uri) == ("worse", "before.json")
    assert any(change.metric == "output_tok_s" and change.worse for change in written.changes)
    assert "Largest changes, worst first" in (project / "report" / "report.html").read_text()


def test_a_server_s_result_needs_an_environment(seatrial: Seatrial, project: Path, result: TrialResult) -> None:
    target = replace(result.request.target, kind="openai", model="m", endpoint_url="http://localhost/v1")
    request = replace(result.request, target=target, environment="none", plan_digest="")
    (project / "now.json").write_text(replace(result, request=request).to_json())
    words = ("report", "now.json", "--spec", "endpoints/llama-2-7b-chat.yaml")
    refused = seatrial(*words)
    assert "SEA106: the result of a server names no environment of the spec\n  hint: name it: -e ENV" in refused.stderr
    assert seatrial(*words, "-e", "dev").returncode == 0
    page = (project / "report" / "report.md").read_text()
    assert ("was made without a plan" in page, "plan of this trial" in page) == (True, False)


def test_a_missing_baseline_is_named(seatrial: Seatrial, project: Path, result: TrialResult) -> None:
    (project / "now.json").write_text(result.to_json())
    done = seatrial("report", "now.json", "--against", "none.json")
    assert (done.returncode, done.stderr.partition("\n")[0]) == (
        1,
        "none.json: SEA501: the result can't be read: No such file or directory",
    )
    assert not (project / "report").exists()


def test_the_articles_table_is_printed_for_its_protocol(seatrial: Seatrial, project: Path, result: TrialResult) -> None:
    load = replace(result.request.load, protocol="jumpstart-2024")
    (project / "now.json").write_text(replace(result, request=replace(result.request, load=load)).to_json())
    done = seatrial("report", "now.json")
    assert done.returncode == 0, done.stderr
    assert "sample-chat, 512 total tokens, 256 of them output" in done.stdout


def test_the_locked_plan_stands_beside_and_says_what_a_calibration_would_change(
    seatrial: Seatrial, project: Path, result: TrialResult
) -> None:
    spec = "endpoints/llama-2-7b-chat.yaml"
    locked = seatrial("plan", spec, "-e", "dev", "--write")
    assert locked.returncode == 0, locked.stderr
    plan = read_locked_plan(load_spec(project / spec, "dev", environments=project / "environments"))
    own = replace(result, request=replace(result.request, endpoint=plan.endpoint, plan_digest=plan.digest))
    (project / "now.json").write_text(own.to_json())
    done = seatrial("report", "now.json", "--spec", spec)
    assert (done.returncode, done.stderr) == (0, "")
    page = (project / "report" / "report.html").read_text()
    assert "Predicted and measured by level" in page
    assert (
        "“seatrial calibrate” would scale the fixed time per step" in page or "These levels give no calibration" in page
    )
