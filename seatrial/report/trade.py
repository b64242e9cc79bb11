"""The latency-throughput curve: what each level buys in throughput, and what it costs in latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.cell import digits
from seatrial.report.chart.panel import Box, Mark, Panel, Series
from seatrial.report.level_values import statistic_of
from seatrial.report.marks import is_open, point_label, point_name
from seatrial.report.names import bound_text
from seatrial.report.quantity import edges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.result import LevelResult, TrialResult
    from seatrial.report.chart.panel import Bound, Label, Style
    from seatrial.report.expectation import Expectation, Statistic

STATISTICS: tuple[tuple[Statistic, Style], ...] = (("p50", "first"), ("p95", "second"))

PREDICTED: tuple[Statistic, ...] = ("p95", "mean")  # the plan's, and the prior's


def trade_panel(result: TrialResult, expected: Expectation | None, bounds: tuple[Bound, ...]) -> Panel:
    """Return end-to-end latency over output throughput, all copies together; levels without either are left out.

    Args:
        result: The trial.
        expected: The prediction; None without one.
        bounds: The SLO's bounds on end-to-end latency.
    """
    copies = result.request.copy_count
    together = "" if copies == 1 else f", {copies} copies together"
    return Panel(
        anchor="latency-throughput",
        title=f"End-to-end latency over output throughput{together}",
        unit="ms",
        description=_described(result),
        series=(*(_measured(result, name, style) for name, style in STATISTICS), *_predicted(expected)),
        boxes=tuple(_boxes(expected)),
        bounds=bounds,
        marks=tuple(_marks(result)),
        labels=tuple(_labels(result)),
        over="throughput",
        wide=True,
    )


def _measured(result: TrialResult, statistic: Statistic, style: Style) -> Series:
    points = tuple(
        (level.output_tok_s, statistic_of(level.e2e_latency_ms, statistic))
        for level in result.levels
        if level.output_tok_s is not None
    )
    void = frozenset(level.output_tok_s for level in result.levels if level.output_tok_s and not level.valid)
    return Series(f"measured {statistic}", style, points, void)


def _predicted(expected: Expectation | None) -> Iterator[Series]:
    if expected is None:
        return
    for statistic in PREDICTED:
        points = _expected_points(expected, statistic)
        if points:
            yield Series(f"predicted {statistic}", "predicted", points)


def _expected_points(expected: Expectation, statistic: Statistic) -> tuple[tuple[float, float], ...]:
    throughputs = dict(expected.throughputs())
    return tuple((throughputs[at], y) for at, y in expected.latencies("e2e_latency_ms", statistic))


def _boxes(expected: Expectation | None) -> Iterator[Box]:
    if expected is None or expected.throughput_share is None or expected.latency_share is None:
        return
    for x, y in _expected_points(expected, "p95"):
        yield Box(*edges(x, expected.throughput_share), *edges(y, expected.latency_share))


def _marks(result: TrialResult) -> Iterator[Mark]:
    for objective in result.request.objectives:
        if objective.metric == "output_tok_s":
            yield Mark(objective.bound, f"SLO {bound_text(objective)}", "bound")


def _labels(result: TrialResult) -> Iterator[Label]:
    for level in result.levels:
        place = _place(level)
        if place is not None:
            yield point_label(result, level, place)


def _place(level: LevelResult) -> tuple[float, float] | None:
    latency = statistic_of(level.e2e_latency_ms, "p95")
    return None if level.output_tok_s is None or latency is None else (level.output_tok_s, latency)


def _described(result: TrialResult) -> str:
    values = ", ".join(
        f"{digits(place[1])} ms at {digits(place[0])} tok/s ({point_name(result, level)}"
        f"{'' if level.valid else ', void'})"
        for level in result.levels
        if (place := _place(level)) is not None
    )
    load = "rate offered" if is_open(result) else "concurrency per copy"
    return f"p95 by output throughput, with the {load}: {values or 'no value'}."
