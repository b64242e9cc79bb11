"""The report as Markdown for a pull request: verdict, levels, checks, knees, and what to know before reading."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seatrial.report.caution import cautions, is_comparable, plan_of_trial
from seatrial.report.cell import digits
from seatrial.report.judgement import checks_table, knee_table
from seatrial.report.levels import failure_table, summary_table
from seatrial.report.prediction import comparison_tables
from seatrial.report.printable import printable
from seatrial.report.quantity import band_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.result import TrialResult
    from seatrial.plan.document import Plan
    from seatrial.report.cell import Cell
    from seatrial.report.table import Table

_PUNCTUATION = re.compile(r"[\\`*{}\[\]<>|~#$&]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_LINK = re.compile(r"(?i):(?=//)|(?<=\bwww)\.")
_MENTION = re.compile(r"@(?=\w)")
_UNBROKEN_MENTION = "@\N{WORD JOINER}"


def render_markdown(result: TrialResult, plan: Plan | None) -> str:
    """Write the short report; equal input gives equal text."""
    return "\n\n".join(_blocks(result, plan)) + "\n"


def escaped(text: str) -> str:
    """Write a text that may have come over the network so that Markdown shows it and does nothing with it.

    No markup, no link, no table cell, no mention of a user, one line.
    """
    line = printable(" ".join(text.split()))
    marked = _LINK.sub(r"\\\g<0>", _PUNCTUATION.sub(r"\\\g<0>", line))
    return _MENTION.sub(_UNBROKEN_MENTION, marked)


def markdown_table(table: Table) -> str:
    """Write a table; reasons for missing values follow below it."""
    lines = [
        _line(escaped(column.heading) for column in table.columns),
        _line("---:" if column.kind == "number" else ":---" for column in table.columns),
        *(_line(map(_cell, row)) for row in table.cells),
    ]
    reasons = [f"– : {escaped(because)}" for because in table.missing_because]
    return "\n".join([*lines, "", "  \n".join(reasons)] if reasons else lines)


def _blocks(result: TrialResult, plan: Plan | None) -> Iterator[str]:
    name = f"{escaped(result.request.endpoint)} in {escaped(result.request.environment)}"
    yield f"## Sea trial of {name}: {result.verdict.status}"
    yield f"**{result.verdict.status.upper()}**: {escaped(result.verdict.because)}."
    yield from (f"> {escaped(caution)}" for caution in cautions(result, plan))
    yield from _level_blocks(result)
    if result.verdict.checks:
        yield f"### The SLO at the gate, {result.request.gate_concurrency} per copy"
        yield markdown_table(checks_table(result))
    yield "### Knees"
    yield markdown_table(knee_table(result))
    target = f"**{digits(result.target_concurrency_per_copy)}** requests in flight per copy"
    yield f"Scaling target: {target} ({escaped(result.target_because)})."
    own = plan_of_trial(result, plan)
    if own is not None and result.levels and is_comparable(result, own):
        yield "### Predicted beside measured, one copy"
        yield escaped(band_text(own))
        yield from map(markdown_table, comparison_tables(result, own))
    yield f"Plan `{escaped(result.request.plan_digest)}`, started {escaped(result.started_at)}."


def _level_blocks(result: TrialResult) -> Iterator[str]:
    yield "### Levels"
    if not result.levels:
        yield f"No level was measured in full: {escaped(result.stopped_because)}."
        return
    yield markdown_table(summary_table(result))
    yield f"Stopped: {escaped(result.stopped_because)}."
    if any(level.errors for level in result.levels):
        yield "### Failed requests"
        yield markdown_table(failure_table(result))


def _cell(cell: Cell) -> str:
    return escaped(cell.text)


def _line(cells: Iterator[str] | map[str]) -> str:
    return f"| {' | '.join(cells)} |"
