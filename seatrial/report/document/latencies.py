"""The latencies of the measured levels: a chart and a table for each, with the 95 % interval of what has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.report.charts.model import Axis, Chart, ChartPoint, Series
from seatrial.report.document.section import Section
from seatrial.report.values import (
    NO_SECOND_TOKEN,
    NO_TOKEN_COUNT,
    NOT_STREAMED,
    count_cell,
    drawn,
    drawn_of,
    level_name,
    measured_cell,
    missing_cell,
    number_cell,
    why_missing,
)
from seatrial_base.table import CONCURRENCY, Cell, Column, Table
from seatrial_base.units import digits
from seatrial_load.measure.interval import percentile
from seatrial_load.metrics.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial_load.documents.distribution import Distribution
    from seatrial_load.documents.result import LevelResult, TrialResult


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
    yield missing_cell(because) if values is None else count_cell(values.count)
    for name in STATISTICS:
        yield number_cell(None, because) if values is None else _statistic(values, name)


def _statistic(values: Distribution, name: str) -> Cell:
    value: float = getattr(values, name)
    return measured_cell(value, "", values.intervals.get(name))


def _has_interval(result: TrialResult) -> bool:
    return any(
        values.intervals
        for level in result.levels
        for latency in LATENCIES
        if (values := latency.of(level)) is not None
    )


US_PER_MS = 1000
PERCENTS = (0, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 92.5, 95, 97.5, 99, 99.5, 99.9, 100)
DRAWN = (
    ("ttft_ms", "Distribution of TTFT"),
    ("tpot_ms", "Distribution of TPOT"),
    ("e2e_latency_ms", "Distribution of end-to-end latency"),
)


def distribution_charts(result: TrialResult) -> tuple[Chart, ...]:
    """Return one chart for each latency of which a level kept its histogram."""
    return tuple(chart for field, title in DRAWN if (chart := _chart(result, field, title)).series)


def _chart(result: TrialResult, field: str, title: str) -> Chart:
    kept = tuple(_kept(result, field))
    series = tuple(_series(drawn(kept)))
    highest = series[-1].name if series else ""
    return Chart(
        anchor=f"cdf-{field.replace('_', '-')}",
        title=title,
        description=f"Share of requests up to a latency, one curve per level up to {highest}. The table below has the "
        f"percentiles. {drawn_of(len(kept))}".rstrip(),
        x=Axis(label="ms (log)", scale="log10"),
        y=Axis(label="share of requests", percent=True),
        series=series,
    )


def _kept(result: TrialResult, field: str) -> Iterator[tuple[str, float, Distribution]]:
    """Yield name and shade of each level that kept its histogram."""
    last = max(len(result.levels) - 1, 1)
    for index, level in enumerate(result.levels):
        values: Distribution | None = getattr(level, field)
        if values is not None and values.histogram:
            yield _name(level), index / last, values


def _series(kept: Sequence[tuple[str, float, Distribution]]) -> Iterator[Series]:
    for name, shade, values in kept:
        yield Series(name=name, points=tuple(_points(values, name)), shade=shade, marked=False)


def _points(values: Distribution, name: str) -> Iterator[ChartPoint]:
    ranked = Histogram.decode(values.histogram).ranked()
    for percent in PERCENTS:
        latency_ms = percentile(ranked, percent) / US_PER_MS
        if latency_ms > 0:  # a logarithmic axis has no zero
            hover = f"{name}\n{percent:g} % of requests ≤ {digits(latency_ms)} ms"
            yield ChartPoint(x=latency_ms, y=percent / 100, hover=hover)


def _name(level: LevelResult) -> str:
    void = "" if level.valid else " (void)"
    if level.is_open:
        return f"{level.offered_load:g}/s{void}"
    return f"concurrency {level.concurrency}{void}"
