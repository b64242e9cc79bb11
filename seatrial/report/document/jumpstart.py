"""The table of the JumpStart article of January 2024: throughput and latency per token over doubled concurrency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.document.section import Section
from seatrial.report.values import NO_TOKEN_COUNT, count_cell, level_name, measured_cell, number_cell, why_missing
from seatrial_base.table import CONCURRENCY, Cell, Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.documents.plan import Plan
    from seatrial_load.documents.result import LevelResult, TrialResult

PROTOCOL = (
    "Protocol of the JumpStart article of January 2024: concurrency doubles until a request is not answered within "
    "60 s; 3 requests for each in flight; no warm-up; throughput over the whole time; latency is the p90 of end-to-end "
    "time by output tokens. Compare the article only with results of this protocol."
)


def is_jumpstart(result: TrialResult) -> bool:
    """Return whether the trial was measured by the article's protocol."""
    return result.request.load.protocol == "jumpstart-2024"


def jumpstart_section(result: TrialResult, plan: Plan | None) -> Section:
    """Return the article's table of this trial."""
    remarks: list[str] = []
    last = last_before_timeout(result)
    if last is None:
        remarks.append("No level was answered in full, so the article's table would be empty.")
    elif any(level.concurrency > last for level in result.levels):
        remarks.append(f"The article's table ends at {last}: above it, a request failed.")
    else:
        remarks.append(f"Every request succeeded up to {last}, the highest level measured.")
    return Section(
        anchor="jumpstart",
        heading="JumpStart protocol",
        paragraphs=(PROTOCOL,),
        tables=(jumpstart_table(result, plan),),
        remarks=tuple(remarks),
    )


def jumpstart_table(result: TrialResult, plan: Plan | None) -> Table:
    """Return throughput and latency in the article's units: tok/s of the endpoint, ms per token (p90)."""
    columns = (
        CONCURRENCY,
        Column("throughput", "tok/s"),
        Column("latency p90", "ms/token"),
        Column("latency p50", "ms/token"),
        Column("requests"),
        Column("answered in time", kind="text"),
    )
    rows = tuple(tuple(_row(level)) for level in result.levels)
    work = result.request.workload
    what = result.request.endpoint if plan is None else f"{plan.model_name} on {plan.instance_type.value}"
    total = work.input_tokens + work.output_tokens
    return Table(f"{what}, {total:,} total tokens, {work.output_tokens:,} of them output", columns, rows)


def last_before_timeout(result: TrialResult) -> int | None:
    """Return the highest concurrency below which, and at which, every request was answered; None when none was."""
    last: int | None = None
    for level in result.levels:
        # The article's table ends at the first failure; a higher level that succeeds afterwards does not continue it.
        if level.succeeded < level.requests:
            break
        last = level.concurrency
    return last


def _row(level: LevelResult) -> Iterator[Cell]:
    per_token, because = level.ms_per_token, why_missing(level, NO_TOKEN_COUNT)
    intervals = {} if per_token is None else per_token.intervals
    yield level_name(level)
    yield measured_cell(level.output_tok_s, because, level.output_tok_s_interval)
    yield measured_cell(None if per_token is None else per_token.p90, because, intervals.get("p90"))
    yield number_cell(None if per_token is None else per_token.p50, because)
    yield count_cell(level.requests)
    whole = level.succeeded == level.requests
    yield Cell("✓ all", tone="good") if whole else Cell(f"✗ {level.succeeded} of {level.requests}", tone="bad")
