"""What happened within the trial over time: charts, and a table that sums each level up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial.report.charts.over_time import time_charts, timed_levels
from seatrial.report.document.section import Section
from seatrial.report.table import CONCURRENCY, Column, Table
from seatrial.report.values import Cell, level_name, missing, number, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial_load.model.result import LevelResult, Timeline, TrialResult

READING = (
    "Time starts with the first request of each level, ramp included. Tokens are spread evenly from first to last "
    "token. TTFT is shown at the time of sending."
)


def time_section(result: TrialResult) -> Section:
    """Return throughput, TTFT and requests in flight over time; empty when no level kept a timeline."""
    timed = timed_levels(result)
    return Section(
        anchor="time",
        heading="Throughput, TTFT and requests in flight over time",
        paragraphs=(READING,) if timed else (),
        charts=time_charts(result),
        tables=(_table(timed),) if timed else (),
        detail=True,
    )


def _table(timed: Sequence[tuple[LevelResult, Timeline]]) -> Table:
    columns = (
        CONCURRENCY,
        Column("took", "s"),
        Column("one bin", "s"),
        *(Column(name, "tok/s", "Output throughput") for name in ("mean", "lowest", "highest")),
        *(Column(name, group="In flight") for name in ("mean", "highest")),
        *(Column(name, "ms", "TTFT by bin") for name in ("lowest", "highest")),
    )
    return Table(
        "The trial over time, by level in the order of measurement", columns, tuple(tuple(_row(*one)) for one in timed)
    )


def _row(level: LevelResult, timeline: Timeline) -> Iterator[Cell]:
    tok_s = [tokens / timeline.bin_s for tokens in timeline.output_tokens]
    ttft_ms = [value for value in timeline.ttft_ms if value is not None]
    bins = len(timeline.in_flight)
    yield level_name(level)
    yield missing("not recorded") if level.duration_s is None else Cell(seconds(level.duration_s))
    yield number(timeline.bin_s, "")
    yield from (number(value, "") for value in (math.fsum(tok_s) / bins, min(tok_s), max(tok_s)))
    yield from (number(value, "") for value in (math.fsum(timeline.in_flight) / bins, max(timeline.in_flight)))
    because = "no request streamed a token"
    yield from (number(value, because) for value in (min(ttft_ms, default=None), max(ttft_ms, default=None)))
