"""Throughput and latencies within each level, over its time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.report.charts.model import Axis, Chart, ChartPoint, Mark, Series
from seatrial.report.document.section import Section
from seatrial.report.values import drawn, drawn_of, level_name, missing_cell, number_cell, seconds
from seatrial_base.table import CONCURRENCY, Cell, Column, Table
from seatrial_base.units import digits
from seatrial_load.documents.result import loads_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seatrial_load.documents.result import LevelResult, Timeline, TrialResult


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
    tok_s = _tok_s(timeline)
    ttft_ms = [value for value in timeline.ttft_ms if value is not None]
    bins = len(timeline.in_flight)
    yield level_name(level)
    yield missing_cell("not recorded") if level.duration_s is None else Cell(seconds(level.duration_s))
    yield number_cell(timeline.bin_s, "")
    yield from (number_cell(value, "") for value in (math.fsum(tok_s) / bins, min(tok_s), max(tok_s)))
    yield from (number_cell(value, "") for value in (math.fsum(timeline.in_flight) / bins, max(timeline.in_flight)))
    because = "no request streamed a token"
    yield from (number_cell(value, because) for value in (min(ttft_ms, default=None), max(ttft_ms, default=None)))


@dataclass(frozen=True, slots=True)
class TimelineQuantity:
    """One value of every bin, with anchor and title of its chart."""

    anchor: str
    title: str
    unit: str
    values: Callable[[Timeline], tuple[float | None, ...]]


def _tok_s(timeline: Timeline) -> tuple[float, ...]:
    return tuple(tokens / timeline.bin_s for tokens in timeline.output_tokens)


TIMELINE_QUANTITIES = (
    TimelineQuantity("time-throughput", "Output throughput over time", "tok/s", _tok_s),
    TimelineQuantity("time-ttft", "TTFT over time, mean by time of sending", "ms", lambda timeline: timeline.ttft_ms),
    TimelineQuantity("time-in-flight", "Requests in flight over time", "requests", lambda timeline: timeline.in_flight),
)


def timed_levels(result: TrialResult) -> tuple[tuple[LevelResult, Timeline], ...]:
    """Return the levels that kept a timeline, in the order of their measurement."""
    order = {step.concurrency: index for index, step in enumerate(result.search)}
    levels = sorted(result.levels, key=lambda level: order.get(level.concurrency, len(order)))
    return tuple((level, level.timeline) for level in levels if level.timeline is not None)


def time_charts(result: TrialResult) -> tuple[Chart, ...]:
    """Return the charts over time; none when no level kept a timeline."""
    charts = (_chart(result, quantity) for quantity in TIMELINE_QUANTITIES) if timed_levels(result) else ()
    return tuple(chart for chart in charts if any(series.known for series in chart.series))


def _chart(result: TrialResult, quantity: TimelineQuantity) -> Chart:
    series: list[Series] = []
    marks: list[Mark] = []
    start_s = 0.0
    timed = timed_levels(result)
    for level, timeline in drawn(timed):
        name = f"{loads_words([level])}{'' if level.valid else ' (void)'}"
        marks.append(Mark(start_s, str(level.concurrency), "level"))
        points = tuple(_points(timeline, quantity, start_s, name))
        series.append(Series(name=name, points=points, marked=False, filled=True))
        # Levels follow each other without the pauses between them, which hold no load.
        start_s += timeline.bin_s * len(timeline.in_flight)
    return Chart(
        anchor=quantity.anchor,
        title=quantity.title,
        description=f"{quantity.title}, {len(series)} levels in sequence. The table below has the totals. "
        f"{drawn_of(len(timed))}".rstrip(),
        x=Axis(label="seconds of load, without pauses between levels"),
        y=Axis(label=quantity.unit),
        series=tuple(series),
        marks=tuple(marks),
        size="low",
    )


def _points(timeline: Timeline, quantity: TimelineQuantity, start_s: float, name: str) -> Iterator[ChartPoint]:
    for index, value in enumerate(quantity.values(timeline)):
        at_s = (index + 0.5) * timeline.bin_s
        shown = "no request was sent" if value is None else f"{digits(value)} {quantity.unit}"
        yield ChartPoint(x=round(start_s + at_s, 4), y=value, hover=f"{name}, second {digits(at_s)}\n{shown}")
