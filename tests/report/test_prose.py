"""All that a reader of the report meets as prose, in one file for each trial; UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.report.document.markdown import render_markdown
from seatrial.report.document.page import page_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.documents.plan import Plan
    from seatrial.report.document.section import Section
    from seatrial_load.documents.result import TrialResult

GOLDEN = Path(__file__).parent / "golden"
TRIALS = ("real", "rich", "local", "hopeless", "empty")


def same_as_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def prose(result: TrialResult, plan: Plan) -> Iterator[str]:
    """Yield what the page says beside its numbers: headings, sentences, captions, headings of columns."""
    page = page_of(result, plan)
    yield f"# {page.title}"
    yield f"{page.sign}: {page.because}"
    yield from (f"> {caution}" for caution in page.cautions)
    for fact in (*page.facts, *page.key_figures):
        yield f"{fact.name}: {fact.value.text} {fact.aside}".rstrip()
    for section in page.sections:
        yield from _section("##", section)
    for section in page.details:
        yield from _section("## (folded)", section)
    yield page.footer


def _section(mark: str, section: Section) -> Iterator[str]:
    yield f"\n{mark} {section.heading}"
    yield from section.paragraphs
    for chart in section.charts:
        yield f"chart: {chart.title}; {chart.x.label}; {chart.y.label}; {', '.join(name for *_, name in chart.legend)}"
    yield from (f"{fact.name}: {fact.value.text} {fact.aside}".rstrip() for fact in section.facts)
    for table in section.tables:
        yield f"table: {table.caption}: {', '.join(column.heading for column in table.columns)}"
        yield from (f"– : {because}" for because in table.missing_because)
    yield from (f"- {remark}" for remark in section.remarks)
    yield from (f"text: {text.title}" for text in section.texts)


@pytest.mark.parametrize("name", TRIALS)
def test_the_prose_of_the_page(name: str, plan: Plan, request: pytest.FixtureRequest) -> None:
    result: TrialResult = request.getfixturevalue(name)
    same_as_golden(f"{name}.page.txt", "\n".join(prose(result, plan)).replace(plan.digest, "DIGEST") + "\n")


@pytest.mark.parametrize("name", TRIALS)
def test_the_markdown(name: str, plan: Plan, request: pytest.FixtureRequest) -> None:
    result: TrialResult = request.getfixturevalue(name)
    same_as_golden(f"{name}.md", render_markdown(result, plan).replace(plan.digest, "DIGEST"))
