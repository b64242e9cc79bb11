"""The measured curves: latency over throughput, and each over concurrency, with knees, gate, SLO and prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial.report.cell import digits
from seatrial.report.chart.panel import Band, Bound, Panel, Series
from seatrial.report.expectation import expectation_of
from seatrial.report.level_values import latency_of, statistic_of
from seatrial.report.marks import is_open, marks_of, place_of
from seatrial.report.names import METRICS, bound_text
from seatrial.report.quantity import edges
from seatrial.report.section import Section
from seatrial.report.trade import trade_panel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.bench.request import Metric, Objective, Statistic
    from seatrial.bench.result import TrialResult
    from seatrial.plan.document import Plan
    from seatrial.report.chart.panel import Style
    from seatrial.report.expectation import Expectation

DRAWN_ALWAYS: tuple[Metric, ...] = ("ttft_ms", "tpot_ms")
LATENCIES: tuple[Metric, ...] = (*DRAWN_ALWAYS, "e2e_latency_ms")
Over: TypeAlias = Literal["concurrency", "rate"]
STYLES: tuple[Style, ...] = ("first", "second", "third")
READING = (
    "Each point is a level, named by its {load}. Vertical lines mark the gate and the knees, dashed red lines the "
    "bounds of the SLO."
)
PREDICTED = "The dashed grey curve is what the plan predicted{band}."
VOID = "Hollow points are void: there the client was the limit, not the endpoint, so they count for no knee."
HEADINGS: Mapping[Metric, str] = {
    "ttft_ms": "Time to first token",
    "tpot_ms": "Time per output token",
    "e2e_latency_ms": "End-to-end latency",
}


def curves_section(result: TrialResult, plan: Plan | None) -> Section:
    """Return the figure of the trial; a sentence stands for each panel that has nothing to show.

    Args:
        result: The trial.
        plan: Its own plan; None when it wasn't given.
    """
    expected = expectation_of(result, plan)
    panels: list[Panel] = []
    absent: list[str] = []
    for panel in _panels(result, expected):
        if any(series.known for series in panel.series if series.style != "predicted"):
            panels.append(panel)
        else:
            absent.append(f"{panel.title}: no level gave a value.")
    if not result.levels:
        absent = [f"No level was measured in full, so there is no curve: {result.stopped_because}."]
    return Section(
        anchor="curve",
        heading="Throughput and latency under load",
        paragraphs=((" ".join(_reading(result, expected)),) if panels else ()) + tuple(absent),
        panels=tuple(panels),
    )


def _reading(result: TrialResult, expected: Expectation | None) -> Iterator[str]:
    yield READING.format(load="rate offered" if is_open(result) else "concurrency per copy")
    if expected is not None:
        shaded = "" if expected.throughput_share is None else ", the shade its band"
        yield PREDICTED.format(band=shaded)
    if not all(level.valid for level in result.levels):
        yield VOID


def _void_places(result: TrialResult) -> frozenset[float]:
    return frozenset(place_of(level, result) for level in result.levels if not level.valid)


def _panels(result: TrialResult, expected: Expectation | None) -> Iterator[Panel]:
    yield trade_panel(result, expected, _bounds(result, "e2e_latency_ms"))
    yield _throughput(result, expected)
    bounded = {objective.metric for objective in result.request.objectives}
    for metric in LATENCIES:
        if metric in DRAWN_ALWAYS or metric in bounded:
            yield _latency(result, metric, expected)


def _axis(result: TrialResult) -> Over:
    """Return the axis of the load; predictions are of a closed loop, so they stand over concurrency alone."""
    return "rate" if is_open(result) else "concurrency"


def _throughput(result: TrialResult, expected: Expectation | None) -> Panel:
    copies = result.request.copy_count
    points = tuple((place_of(level, result), level.output_tok_s) for level in result.levels)
    series = Series("measured", "first", points, _void_places(result))
    over = _axis(result)
    predicted = () if expected is None or over == "rate" else expected.throughputs()
    share = None if expected is None else expected.throughput_share
    return Panel(
        anchor="throughput",
        title="Output throughput",
        unit="tok/s" if copies == 1 else f"tok/s, {copies} copies together",
        description=_described(series, "tok/s", "output throughput", over),
        series=(series, *_predicted(predicted)),
        bands=_band(predicted, share),
        bounds=_bounds(result, "output_tok_s"),
        marks=marks_of(result),
        over=over,
    )


def _latency(result: TrialResult, metric: Metric, expected: Expectation | None) -> Panel:
    statistics = _statistics(result.request.objectives, metric)
    void = _void_places(result)
    series = tuple(
        Series(statistic, style, _points(result, metric, statistic), void)
        for statistic, style in zip(statistics, STYLES, strict=False)
    )
    over = _axis(result)
    predicted = () if expected is None or over == "rate" else expected.latencies(metric, "p95")
    share = None if expected is None else expected.latency_share
    return Panel(
        anchor=METRICS[metric].lower().replace(" ", "-"),
        title=f"{HEADINGS[metric]}, {' and '.join(statistics[: len(STYLES)])}",
        unit="ms",
        description=_described(series[0], "ms", series[0].name, over),
        series=(*series, *_predicted(predicted)),
        bands=_band(predicted, share),
        bounds=_bounds(result, metric),
        marks=marks_of(result),
        over=over,
    )


def _predicted(points: tuple[tuple[float, float], ...]) -> tuple[Series, ...]:
    return (Series("predicted", "predicted", points),) if points else ()


def _band(points: tuple[tuple[float, float], ...], share: float | None) -> tuple[Band, ...]:
    if not points or share is None:
        return ()
    return (Band(f"±{share:.0%}", tuple((x, *edges(y, share)) for x, y in points)),)


def _statistics(objectives: tuple[Objective, ...], metric: Metric) -> tuple[Statistic, ...]:
    """Return p95, and every statistic that the SLO bounds."""
    bounded: list[Statistic] = [objective.statistic for objective in objectives if objective.metric == metric]
    return tuple(dict.fromkeys(["p95", *bounded]))


def _points(result: TrialResult, metric: Metric, statistic: Statistic) -> tuple[tuple[float, float | None], ...]:
    return tuple(
        (place_of(level, result), statistic_of(latency_of(level, metric), statistic)) for level in result.levels
    )


def _bounds(result: TrialResult, metric: Metric) -> tuple[Bound, ...]:
    return tuple(
        Bound(objective.bound, " ".join(("SLO", *_shown(objective.statistic), bound_text(objective))))
        for objective in result.request.objectives
        if objective.metric == metric
    )


def _shown(statistic: Statistic) -> tuple[str, ...]:
    return () if statistic == "value" else (statistic,)


def _described(series: Series, unit: str, name: str, over: Over) -> str:
    values = ", ".join(f"{digits(y)} {unit} at {x:g}{_void(series, x)}" for x, y in series.known)
    load = "offered requests per second" if over == "rate" else "concurrency per copy"
    return f"{name} by {load}: {values or 'no value'}."


def _void(series: Series, x: float) -> str:
    return " (void)" if x in series.hollow else ""
