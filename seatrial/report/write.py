"""Writes a report's files to a folder: all of them, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.report.document.downloads import render_json
from seatrial.report.document.markdown import render_markdown
from seatrial.report.document.page import render_html
from seatrial_base.errors import BenchError
from seatrial_base.files import write_together
from seatrial_base.secrets import redacted

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.planner.document import Plan
    from seatrial.report.calibration_preview import Outlook
    from seatrial_load.model.result import TrialResult


@dataclass(frozen=True, slots=True)
class Report:
    """Where the report was written."""

    html: Path
    markdown: Path
    json: Path


def write_report(result: TrialResult, plan: Plan | None, folder: Path, *, outlook: Outlook | None = None) -> Report:
    """Write `report.html`, `report.md` and `report.json` to a folder, over an earlier report if there is one.

    The JSON is the result itself, indented: `TrialResult.from_json` reads it back, and the schema trial-result in
    `docs/schema` describes it.

    Args:
        result: The trial.
        plan: A locked plan.
        folder: Where to write.
        outlook: The calibration that the trial would give; None when the spec isn't at hand.

    Raises:
        BenchError: SEA506 when the files can't be written; then none is changed.
    """
    report = Report(html=folder / "report.html", markdown=folder / "report.md", json=folder / "report.json")
    texts = {
        report.html.name: redacted(render_html(result, plan, outlook)),
        report.markdown.name: redacted(render_markdown(result, plan)),
        report.json.name: redacted(render_json(result)),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_together(folder, texts)
    except OSError as error:
        raise BenchError.of("SEA506", f"can't be written: {error.strerror}", where=folder.as_posix()) from error
    return report
