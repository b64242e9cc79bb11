"""The measured curves: throughput and latency over concurrency per copy, with knees, gate and SLO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.cell import digits
from seatrial.report.chart.panel import Bound, Mark, Panel, Series
from seatrial.report.level_values import latency_of, statistic_of
from seatrial.report.names import METRICS, bound_text
from seatrial.report.section import Section

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.bench.request import Metric, Objective, Statistic
    from seatrial.bench.result import TrialResult
    from seatrial.report.chart.panel import Style

DRAWN_ALWAYS: tuple[Metric, ...] = ("ttft_ms", "tpot_ms")
LATENCIES: tuple[Metric, ...] = (*DRAWN_ALWAYS, "e2e_latency_ms")
STYLES: tuple[Style, ...] = ("first", "second", "third")
READING = "Vertical lines mark the gate and the knees, dashed horizontal lines the bounds of the SLO."
HEADINGS: Mapping[Metric, str] = {
    "ttft_ms": "Time to first token",
    "tpot_ms": "Time per output token",
    "e2e_latency_ms": "End-to-end latency",
}


def curves_section(result: TrialResult) -> Section:
    """Return the figure of the trial; a sentence stands for each panel that has nothing to show."""
    panels: list[Panel] = []
    absent: list[str] = []
    for panel in _panels(result):
        if any(series.known for series in panel.series):
            panels.append(panel)
        else:
            absent.append(f"{panel.title}: no level gave a value.")
    if not result.levels:
        absent = [f"No level was measured in full, so there is no curve: {result.stopped_because}."]
    return Section(
        anchor="curve",
        heading="Throughput and latency under load",
        paragraphs=(*((READING,) if panels else ()), *absent),
        panels=tuple(panels),
    )


def marks_of(result: TrialResult) -> tuple[Mark, ...]:
    """Return the gate and the knees by concurrency, one mark for all that share a place."""
    gate = result.request.gate_concurrency
    detectors: dict[int, list[str]] = {gate: []}
    for knee in result.knees:
        if knee.concurrency is not None:
            detectors.setdefault(knee.concurrency, []).append(knee.detector)
    return tuple(_mark(at, found, is_gate=at == gate) for at, found in sorted(detectors.items()))


def _mark(concurrency: int, detectors: list[str], *, is_gate: bool) -> Mark:
    knee = (f"knee ({', '.join(detectors)})",) if detectors else ()
    names = ("gate", *knee) if is_gate else knee
    return Mark(concurrency, f"{' and '.join(names)} at {concurrency}", "knee" if detectors else "gate")


def _panels(result: TrialResult) -> Iterator[Panel]:
    yield _throughput(result)
    bounded = {objective.metric for objective in result.request.objectives}
    for metric in LATENCIES:
        if metric in DRAWN_ALWAYS or metric in bounded:
            yield _latency(result, metric)


def _throughput(result: TrialResult) -> Panel:
    copies = result.request.copy_count
    points = tuple((level.concurrency, level.output_tok_s) for level in result.levels)
    series = Series("output throughput", "first", points)
    return Panel(
        anchor="throughput",
        title="Output throughput",
        unit="tok/s" if copies == 1 else f"tok/s, {copies} copies together",
        description=_described(series, "tok/s"),
        series=(series,),
        bounds=_bounds(result, "output_tok_s"),
        marks=marks_of(result),
    )


def _latency(result: TrialResult, metric: Metric) -> Panel:
    statistics = _statistics(result.request.objectives, metric)
    series = tuple(
        Series(statistic, style, _points(result, metric, statistic))
        for statistic, style in zip(statistics, STYLES, strict=False)
    )
    return Panel(
        anchor=METRICS[metric].lower().replace(" ", "-"),
        title=f"{HEADINGS[metric]}, {' and '.join(statistics[: len(STYLES)])}",
        unit="ms",
        description=_described(series[0], "ms"),
        series=series,
        bounds=_bounds(result, metric),
        marks=marks_of(result),
    )


def _statistics(objectives: tuple[Objective, ...], metric: Metric) -> tuple[Statistic, ...]:
    """Return p95, and every statistic that the SLO bounds."""
    bounded: list[Statistic] = [objective.statistic for objective in objectives if objective.metric == metric]
    return tuple(dict.fromkeys(["p95", *bounded]))


def _points(result: TrialResult, metric: Metric, statistic: Statistic) -> tuple[tuple[int, float | None], ...]:
    return tuple((level.concurrency, statistic_of(latency_of(level, metric), statistic)) for level in result.levels)


def _bounds(result: TrialResult, metric: Metric) -> tuple[Bound, ...]:
    return tuple(
        Bound(objective.bound, " ".join(("SLO", *_shown(objective.statistic), bound_text(objective))))
        for objective in result.request.objectives
        if objective.metric == metric
    )


def _shown(statistic: Statistic) -> tuple[str, ...]:
    return () if statistic == "value" else (statistic,)


def _described(series: Series, unit: str) -> str:
    values = ", ".join(f"{digits(y)} {unit} at {x}" for x, y in series.known)
    return f"{series.name} by concurrency per copy: {values or 'no value'}."
