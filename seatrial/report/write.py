"""The files of a report or of a comparison of two recipes, written to a folder: all of them, or none."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial.quality.pairs import blind_rows, pairs_of, sheet_csv, sheet_html, sheet_key
from seatrial.report.document.markdown import render_markdown
from seatrial.report.document.page import render_html, render_json
from seatrial.report.document.recipes import comparison_title, recipes_html, recipes_markdown
from seatrial_base.errors import BenchError
from seatrial_base.files import write_together
from seatrial_base.secrets import redacted

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.documents.calibration import Outlook
    from seatrial.documents.plan import Plan
    from seatrial.documents.simulation import CopyStart
    from seatrial.quality.recipe_comparison import RecipeComparison
    from seatrial.quality.recipe_result import RecipeResult
    from seatrial_load.documents.result import TrialResult

FILES: Final = ("comparison.html", "comparison.md", "comparison.json", "sheet.html", "sheet.csv", "key.json")
"""The last three are written with an evaluation set."""
SCHEMA_VERSION: Final = "1"


@dataclass(frozen=True, slots=True)
class Report:
    """The files of a written report."""

    html: Path
    markdown: Path
    json: Path


def write_trial_report(
    result: TrialResult,
    plan: Plan | None,
    folder: Path,
    *,
    outlook: Outlook | None = None,
    start: CopyStart | None = None,
) -> Report:
    """Write `report.html`, `report.md` and `report.json` to a folder, over an earlier report if there is one.

    The JSON is the result itself, indented: `TrialResult.from_json` reads it back, and the schema trial-result in
    `docs/schema` describes it.

    Raises:
        BenchError: SEA506 when the files can't be written; then none is changed.
    """
    report = Report(html=folder / "report.html", markdown=folder / "report.md", json=folder / "report.json")
    document = render_json(result)
    texts = {
        report.html.name: render_html(result, plan, outlook, document=document, start=start),
        report.markdown.name: redacted(render_markdown(result, plan, start)),
        report.json.name: document,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_together(folder, texts)
    except OSError as error:
        raise BenchError.of("SEA506", f"can't be written: {error.strerror}", where=folder.as_posix()) from error
    return report


def comparison_document(compared: RecipeComparison) -> dict[str, object]:
    """Return a comparison as JSON; the results themselves are in files of their own."""
    return {
        "schema_version": SCHEMA_VERSION,
        "endpoint": compared.a.endpoint,
        "environment": compared.a.trial.request.environment,
        "engine_note": compared.engine_note,
        "a": _recipe(compared.a),
        "b": _recipe(compared.b),
        "figures": [{**dataclasses.asdict(figure), "ratio": figure.ratio} for figure in compared.figures],
        "quality": None if compared.quality is None else dataclasses.asdict(compared.quality),
        "accepted": compared.is_accepted,
        "verdict": compared.verdict,
    }


def _recipe(result: RecipeResult) -> dict[str, object]:
    return {
        "recipe": result.recipe,
        "digest": result.digest,
        "deployment": dataclasses.asdict(result.deployment),
        "trial": {"status": result.trial.verdict.status, "because": result.trial.verdict.because},
        "evaluation_set": result.evaluation_set,
        "prompts": len(result.prompts),
        "failed": {answer.id: answer.failure for answer in result.answers if answer.failure},
        "retried": sum(answer.retried for answer in result.answers),
    }


def write_comparison(compared: RecipeComparison, folder: Path) -> tuple[Path, ...]:
    """Write report and sheet to a folder, over earlier ones.

    Raises:
        BenchError: SEA530 when the files can't be written; then none is changed.
    """
    texts = {
        "comparison.html": recipes_html(compared),
        "comparison.md": recipes_markdown(compared),
        "comparison.json": json.dumps(comparison_document(compared), indent=2, allow_nan=False) + "\n",
        **_sheets(compared),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_together(folder, {name: redacted(text) for name, text in texts.items()})
    except OSError as error:
        raise BenchError.of("SEA530", f"can't be written: {error.strerror}", where=folder.as_posix()) from error
    return tuple(folder / name for name in texts)


def _sheets(compared: RecipeComparison) -> dict[str, str]:
    pairs = pairs_of(compared.a.prompts, compared.a.answers, compared.b.answers) if compared.quality else ()
    if not pairs:
        return {}
    rows = blind_rows(pairs, f"{compared.a.digest}:{compared.b.digest}")
    return {
        "sheet.html": sheet_html(rows, f"Answers of {comparison_title(compared).partition(' of ')[2]}"),
        "sheet.csv": sheet_csv(rows),
        "key.json": sheet_key(rows, compared.a.recipe, compared.b.recipe),
    }
