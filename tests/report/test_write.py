from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from seatrial.report.document.markdown import render_markdown
from seatrial.report.write import Report, write_trial_report
from seatrial_base.errors import BenchError
from seatrial_load.documents.result import TrialResult

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.documents.plan import Plan


def test_three_files_are_written_into_a_new_folder(
    tmp_path: Path, real: TrialResult, plan: Plan, real_page: str
) -> None:
    folder = tmp_path / "reports" / "chat"
    report = write_trial_report(real, plan, folder)
    assert report == Report(folder / "report.html", folder / "report.md", folder / "report.json")
    assert report.html.read_text(encoding="utf-8") == real_page
    assert report.markdown.read_text(encoding="utf-8") == render_markdown(real, plan)
    assert sorted(folder.iterdir()) == [report.html, report.json, report.markdown]


def test_the_json_is_the_result(tmp_path: Path, real: TrialResult, plan: Plan) -> None:
    report = write_trial_report(real, plan, tmp_path)
    text = report.json.read_text(encoding="utf-8")
    assert TrialResult.from_json(text) == real
    assert f'\n    "plan_digest": "{plan.digest}",\n' in text


def test_a_report_replaces_an_earlier_one(tmp_path: Path, real: TrialResult, local: TrialResult, plan: Plan) -> None:
    write_trial_report(real, plan, tmp_path)
    report = write_trial_report(local, plan, tmp_path)
    assert TrialResult.from_json(report.json.read_text(encoding="utf-8")) == local
    assert len(list(tmp_path.iterdir())) == 3


def test_nothing_is_changed_when_one_file_cannot_be_written(tmp_path: Path, real: TrialResult, plan: Plan) -> None:
    (tmp_path / "report.html").write_text("earlier")
    (tmp_path / "report.json").mkdir()
    with pytest.raises(
        BenchError, match=rf"^{re.escape(tmp_path.as_posix())}: SEA506: can't be written: Is a directory$"
    ):
        write_trial_report(real, plan, tmp_path)
    assert (tmp_path / "report.html").read_text() == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json"]


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path, real: TrialResult) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BenchError, match="SEA506: can't be written: File exists"):
        write_trial_report(real, None, tmp_path / "file")
