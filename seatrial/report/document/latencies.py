"""The latencies of the measured levels: a chart and a table for each, with the 95 % interval of what has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.report.charts.distribution import distribution_charts
from seatrial.report.document.section import Section
from seatrial.report.table import CONCURRENCY, Column, Table
from seatrial.report.values import (
    NO_SECOND_TOKEN,
    NO_TOKEN_COUNT,
    NOT_STREAMED,
    Cell,
    count,
    level_name,
    measured,
    missing,
    number,
    why_missing,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_load.measure.distribution import Distribution
    from seatrial_load.model.result import LevelResult, TrialResult

STATISTICS = ("mean", "p50", "p90", "p95", "p99", "max")
READING = (
    "TTFT: from sending to the first token, queueing included. TPOT: time per output token after the first, per "
    "request. ITL: gaps between token events, pooled. ms per token: end-to-end latency by output tokens."
)
INTERVALS = "Small numbers are 95 % intervals. With few requests, a high percentile is close to the maximum."


@dataclass(frozen=True, slots=True)
class Latency:
    """One latency of a level.

    Attributes:
        field: Its field in a level's result.
        title: Its name as a caption.
        otherwise: Why it may be missing though requests succeeded.
    """

    field: str
    title: str
    otherwise: str

    def of(self, level: LevelResult) -> Distribution | None:
        """Return its distribution; None when it wasn't measured."""
        found: Distribution | None = getattr(level, self.field)
        return found


LATENCIES = (
    Latency("ttft_ms", "Time to first token (TTFT), ms", NOT_STREAMED),
    Latency("tpot_ms", "Time per output token (TPOT), ms", NO_SECOND_TOKEN),
    Latency("itl_ms", "Gaps between token events (ITL), ms", "no request streamed two token events or more"),
    Latency("e2e_latency_ms", "End-to-end latency, ms", "no answer was complete"),
    Latency("ms_per_token", "End-to-end latency per output token, ms", NO_TOKEN_COUNT),
)


def latencies_section(result: TrialResult) -> Section:
    """Return every latency's distribution and percentiles by level; empty without levels."""
    heading = "Latency distributions and percentiles"
    if not result.levels:
        return Section(anchor="latencies", heading=heading, detail=True)
    return Section(
        anchor="latencies",
        heading=heading,
        paragraphs=(READING, INTERVALS) if _has_interval(result) else (READING,),
        charts=distribution_charts(result),
        tables=tuple(latency_table(result, latency) for latency in LATENCIES),
        detail=True,
    )


def latency_table(result: TrialResult, latency: Latency) -> Table:
    """Return one latency by level: how many measurements, mean, percentiles, maximum."""
    columns = (CONCURRENCY, Column("measured"), *(Column(name) for name in STATISTICS))
    return Table(latency.title, columns, tuple(tuple(_cells(level, latency)) for level in result.levels))


def _cells(level: LevelResult, latency: Latency) -> Iterator[Cell]:
    values, because = latency.of(level), why_missing(level, latency.otherwise)
    yield level_name(level)
    yield missing(because) if values is None else count(values.count)
    for name in STATISTICS:
        yield number(None, because) if values is None else _statistic(values, name)


def _statistic(values: Distribution, name: str) -> Cell:
    value: float = getattr(values, name)
    return measured(value, "", values.intervals.get(name))


def _has_interval(result: TrialResult) -> bool:
    return any(
        values.intervals
        for level in result.levels
        for latency in LATENCIES
        if (values := latency.of(level)) is not None
    )
