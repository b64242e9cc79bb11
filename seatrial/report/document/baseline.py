"""This trial and the last release's, number by number: changes first, the rest folded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial.report.document.section import Fact, Section
from seatrial.report.values import count_cell, money_cell, number_cell, sentence, share_cell, signed_percent
from seatrial_base.table import CONCURRENCY, Cell, Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seatrial_load.documents.result import Change, Comparison, TrialResult

STATUSES = {"same": "≈ same", "better": "✓ better", "worse": "✗ worse", "incomparable": "? not comparable"}
NAMES: Mapping[str, str] = {
    "output_tok_s": "output throughput, tok/s",
    "ttft_ms p95": "TTFT p95, ms",
    "tpot_ms p95": "TPOT p95, ms",
    "e2e_latency_ms p95": "end-to-end latency p95, ms",
    "error_rate": "error rate",
    "usd_per_million_output_tokens": "cost of a million output tokens",
}
SHOWN = 6  # changes above the fold


def comparison_section(result: TrialResult) -> Section:
    """Return what changed since the baseline; empty when there is none."""
    comparison = result.comparison
    if comparison is None:
        return Section(anchor="comparison", heading="Against the last release")
    changed = changed_of(comparison)[:SHOWN]
    facts = [Fact("This trial is", comparison_status(comparison))]
    if comparison.baseline_started_at:
        facts.append(Fact("Last release measured", Cell(comparison.baseline_started_at.replace("T", " "))))
    if comparison.baseline_plan_digest:
        facts.append(Fact("Its plan", Cell(comparison.baseline_plan_digest, tone="code")))
    return Section(
        anchor="comparison",
        heading="Against the last release",
        paragraphs=(comparison_sentence(comparison),),
        facts=tuple(facts),
        tables=(comparison_table(changed, "Largest changes, worst first"),) if changed else (),
    )


def compared_section(result: TrialResult) -> Section:
    """Return every compared number, and the baseline's URI; empty when there is none."""
    comparison, heading = result.comparison, "All numbers compared with the last release"
    if comparison is None or not comparison.changes:
        return Section(anchor="compared", heading=heading, detail=True)
    uri = comparison.baseline_uri
    return Section(
        anchor="compared",
        heading=heading,
        facts=(Fact("Result of the last release", Cell(uri, tone="code")),) if uri else (),
        tables=(comparison_table(comparison.changes, "Numbers before and now"),),
        detail=True,
    )


def comparison_sentence(comparison: Comparison) -> str:
    """Return in one sentence how many numbers changed; of trials that can't be compared, why not."""
    if comparison.status == "incomparable" or not comparison.changes:
        return sentence(comparison.because)
    total, worse = len(comparison.changes), sum(change.worse for change in comparison.changes)
    better = len(changed_of(comparison)) - worse
    return (
        f"{worse} of {total} numbers worse, {better} better, {total - worse - better} unchanged within tolerance and "
        f"noise."
    )


def verdict_reason(result: TrialResult) -> str:
    """Return the reason of the verdict; of a regression, how many numbers got worse instead of all of them."""
    because, comparison = result.verdict.because, result.comparison
    if comparison is None or not comparison.because:
        return because
    return because.replace(comparison.because, comparison_sentence(comparison))


def changed_of(comparison: Comparison) -> tuple[Change, ...]:
    """Return what changed beyond tolerance and noise: the worse first, the larger first."""
    changed = [change for change in comparison.changes if change.worse or change.better]
    return tuple(sorted(changed, key=lambda change: (not change.worse, -abs(change.share))))


def comparison_table(changes: Sequence[Change], caption: str) -> Table:
    """Return before and after of numbers."""
    columns = (
        CONCURRENCY,
        Column("metric", kind="text"),
        Column("before"),
        Column("now"),
        Column("change"),
        Column("outcome", kind="text"),
    )
    return Table(caption, columns, tuple(map(_row, changes)))


def comparison_status(comparison: Comparison) -> Cell:
    """Return how this trial compares."""
    match comparison.status:
        case "better":
            return Cell(STATUSES["better"], tone="good")
        case "worse":
            return Cell(STATUSES["worse"], tone="bad")
        case "incomparable":
            return Cell(STATUSES["incomparable"], tone="unknown")
        case "same":
            return Cell(STATUSES["same"])


def _row(change: Change) -> tuple[Cell, ...]:
    # An error rate is a share itself: a relative change of it would read as another rate, so it is in points.
    points = signed_percent(change.share)
    outcome = Cell(STATUSES["better"], tone="good") if change.better else Cell(STATUSES["same"])
    return (
        count_cell(change.concurrency),
        Cell(NAMES.get(change.metric, change.metric)),
        _value(change.metric, change.before),
        _value(change.metric, change.after),
        Cell(
            points.replace(" %", " points") if change.metric == "error_rate" else points, exact=json.dumps(change.share)
        ),
        Cell(STATUSES["worse"], tone="bad") if change.worse else outcome,
    )


def _value(metric: str, value: float) -> Cell:
    if metric == "error_rate":
        return share_cell(value)
    return money_cell(value, "") if metric == "usd_per_million_output_tokens" else number_cell(value, "")
