"""This trial beside the last release's, number by number."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial.report.cell import Cell, count, number
from seatrial.report.section import Fact, Section
from seatrial.report.sentence import sentence
from seatrial.report.table import CONCURRENCY, Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.judgement import Change, Comparison
    from seatrial.bench.result import TrialResult

STATUSES = {"same": "≈ same", "better": "✓ better", "worse": "✗ worse", "incomparable": "? not comparable"}


def comparison_section(result: TrialResult) -> Section:
    """Return the comparison with the baseline; a sentence when there is none."""
    comparison = result.comparison
    heading = "Against the last release"
    if comparison is None:
        nothing = ("This trial was compared with no other.",)
        return Section(anchor="comparison", heading=heading, paragraphs=nothing)
    return Section(
        anchor="comparison",
        heading=heading,
        paragraphs=(sentence(comparison.because),),
        facts=tuple(_facts(comparison)),
        tables=(comparison_table(comparison),) if comparison.changes else (),
    )


def comparison_table(comparison: Comparison) -> Table:
    """Return before and after of every number."""
    columns = (
        CONCURRENCY,
        Column("metric", kind="text"),
        Column("before"),
        Column("now"),
        Column("change"),
        Column("outcome", kind="text"),
        Column("in words", kind="prose"),
    )
    return Table("Changes since the last release", columns, tuple(map(_row, comparison.changes)))


def comparison_status(comparison: Comparison) -> Cell:
    """Say how this trial compares."""
    match comparison.status:
        case "better":
            return Cell(STATUSES["better"], tone="good")
        case "worse":
            return Cell(STATUSES["worse"], tone="bad")
        case "incomparable":
            return Cell(STATUSES["incomparable"], tone="unknown")
        case "same":
            return Cell(STATUSES["same"])


def _facts(comparison: Comparison) -> Iterator[Fact]:
    yield Fact("This trial is", comparison_status(comparison))
    if comparison.baseline_plan_digest:
        yield Fact("Its plan", Cell(comparison.baseline_plan_digest, tone="code"))
    if comparison.baseline_started_at:
        yield Fact("Measured", Cell(comparison.baseline_started_at.replace("T", " ")))
    if comparison.baseline_uri:
        yield Fact("Its result", Cell(comparison.baseline_uri, tone="code"))


def _row(change: Change) -> tuple[Cell, ...]:
    return (
        count(change.concurrency),
        Cell(change.metric),
        number(change.before, ""),
        number(change.after, ""),
        Cell(signed_percent(change.share), exact=json.dumps(change.share)),
        Cell(STATUSES["worse"], tone="bad") if change.worse else Cell("within bounds"),
        Cell(change.sentence),
    )


def signed_percent(share: float) -> str:
    """Write a relative change in percent with its sign, one decimal."""
    return f"{share * 100:+.1f} %".replace("-", "−")  # noqa: RUF001 (the minus sign, as wide as the plus)
