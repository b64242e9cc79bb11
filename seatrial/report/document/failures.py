"""The failed requests by class, those that were repeated too, each class with a sample in the service's own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.document.section import Section
from seatrial.report.values import count_cell, level_name, missing_cell, number_cell, share_cell
from seatrial_base.table import CONCURRENCY, Cell, Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_load.documents.result import LevelResult, TrialResult, Unmeasured

IN_THE_RAMP = "The error rate does not include failures in the ramp."
OUTSIDE = (
    "Requests outside of measured levels: the first one, warm-up, and levels cut short. Unanswered requests were in "
    "flight when a level was cut."
)
REPEATED = "A retried request fails only if every attempt fails. Its latency includes every attempt."


def failures_section(result: TrialResult) -> Section:
    """Return the failures and repetitions, those outside of the levels too; empty when there are none."""
    outside = (unmeasured_table(result),) if has_unmeasured_failures(result) else ()
    where = (OUTSIDE,) if outside else ()
    if not has_failures(result):
        return Section(anchor="failures", heading="Failed requests", paragraphs=where, tables=outside, detail=True)
    repeated = (REPEATED,) if any(level.retried for level in result.levels) else ()
    ramp = (IN_THE_RAMP,) if _has_ramp_errors(result) else ()
    return Section(
        anchor="failures",
        heading="Failed requests",
        paragraphs=(*repeated, *ramp, *where),
        tables=(failure_table(result), *outside),
        detail=True,
    )


def has_failures(result: TrialResult) -> bool:
    """Return whether a request failed or was repeated."""
    return any(level.errors or level.retried or level.ramp_errors for level in result.levels)


def has_unmeasured_failures(result: TrialResult) -> bool:
    """Return whether the first request, one of the warm-up or one of a level that was cut failed."""
    return any(seen.errors for seen in result.unmeasured)


def unmeasured_table(result: TrialResult) -> Table:
    """Return the failures of requests that no level measured, by class."""
    columns = (
        Column("where", kind="text"),
        Column("class", kind="text"),
        Column("failed"),
        Column("of all"),
        Column("the longest wait", "s"),
        Column("first message of the service", kind="prose"),
    )
    return Table("Failures outside of measured levels", columns, tuple(_unmeasured_rows(result)))


def _unmeasured_rows(result: TrialResult) -> Iterator[tuple[Cell, ...]]:
    for seen in result.unmeasured:
        for error, failed in seen.errors.items():
            yield (
                Cell(seen.place),
                Cell(error),
                count_cell(failed),
                count_cell(seen.sent),
                number_cell(seen.longest_wait_s, "not recorded"),
                _sample(seen, error),
            )


def _has_ramp_errors(result: TrialResult) -> bool:
    return any(level.ramp_errors for level in result.levels)


def failure_table(result: TrialResult) -> Table:
    """Return failures by level and class."""
    columns = (
        CONCURRENCY,
        Column("class", kind="text"),
        Column("failed"),
        Column("of all"),
        Column("repeated"),
        *((Column("in the ramp"),) if _has_ramp_errors(result) else ()),
        Column("first message of the service", kind="prose"),
    )
    return Table("Failures by level and class", columns, tuple(_rows(result)))


def _rows(result: TrialResult) -> Iterator[tuple[Cell, ...]]:
    ramp = _has_ramp_errors(result)
    for level in result.levels:
        for error in dict.fromkeys((*level.errors, *level.retried, *level.ramp_errors)):
            failed = level.errors.get(error, 0)
            yield (
                level_name(level),
                Cell(error),
                count_cell(failed),
                share_cell(failed / level.requests),
                count_cell(level.retried.get(error, 0)),
                *((count_cell(level.ramp_errors.get(error, 0)),) if ramp else ()),
                _sample(level, error),
            )


def _sample(seen: LevelResult | Unmeasured, error: str) -> Cell:
    first = next((text for text in seen.first_errors if text.startswith(f"{error}: ")), None)
    if first is None:
        return missing_cell("no sample was kept")
    return Cell(first.removeprefix(f"{error}: "), tone="code")
