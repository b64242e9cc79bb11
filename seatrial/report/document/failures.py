"""The failed requests by class, those that were repeated too, each class with a sample in the service's own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.document.section import Section
from seatrial.report.table import CONCURRENCY, Column, Table
from seatrial.report.values import Cell, count, level_name, missing, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.result import LevelResult, TrialResult

IN_THE_RAMP = "Failures in the ramp do not count in the error rate."
REPEATED = (
    "A repeated request counts as failed only if no attempt succeeded. The time of every attempt counts in its latency."
)


def failures_section(result: TrialResult) -> Section:
    """Return the failures and repetitions; empty when there are none."""
    if not has_failures(result):
        return Section(anchor="failures", heading="Failed requests", detail=True)
    repeated = (REPEATED,) if any(level.retried for level in result.levels) else ()
    ramp = (IN_THE_RAMP,) if _has_ramp_errors(result) else ()
    return Section(
        anchor="failures",
        heading="Failed requests",
        paragraphs=(*repeated, *ramp),
        tables=(failure_table(result),),
        detail=True,
    )


def has_failures(result: TrialResult) -> bool:
    """Return whether a request failed or was repeated."""
    return any(level.errors or level.retried or level.ramp_errors for level in result.levels)


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
                count(failed),
                share(failed / level.requests),
                count(level.retried.get(error, 0)),
                *((count(level.ramp_errors.get(error, 0)),) if ramp else ()),
                _sample(level, error),
            )


def _sample(level: LevelResult, error: str) -> Cell:
    first = next((text for text in level.first_errors if text.startswith(f"{error}: ")), None)
    if first is None:
        return missing("no sample was kept")
    return Cell(first.removeprefix(f"{error}: "), tone="code")
