"""The report's charts: their content is decided and written here, the page draws it with Observable Plot.

Over the load: latency over throughput, and each metric over concurrency, with knee, gate and SLO.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from markupsafe import Markup

from seatrial.report.planned import edges, expectation_of
from seatrial.report.values import METRICS, bound_text, drawn
from seatrial_base.units import digits, whole_or_tenths
from seatrial_load.slo.evaluate import latency_of, statistic_of
from seatrial_load.slo.verdict import up_to_gate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.documents.plan import Plan
    from seatrial.report.planned import Expectation
    from seatrial_load.documents.distribution import Interval
    from seatrial_load.documents.request import Metric, Statistic
    from seatrial_load.documents.result import LevelResult, TrialResult

Style: TypeAlias = Literal["first", "second", "third", "predicted"]
ABSENT = (
    "No charts: this installation lacks plot.min.js. In a checkout, run “make install” and write the report again. "
    "The tables have every number."
)
ALWAYS: tuple[Metric, ...] = ("ttft_ms", "tpot_ms")
LATENCIES: tuple[Metric, ...] = (*ALWAYS, "e2e_latency_ms")
STATISTICS: tuple[Statistic, ...] = ("p50", "p95")
STYLES: tuple[Style, ...] = ("first", "second", "third")
TITLES: Mapping[Metric, str] = {
    "ttft_ms": "Time to first token (TTFT)",
    "tpot_ms": "Time per output token (TPOT)",
    "e2e_latency_ms": "End-to-end latency",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPoint:
    """One measured or predicted value.

    Attributes:
        y: Its value; `None` leaves a gap in the curve.
        hover: The text under the pointer, one fact a line.
        low: Lower end of the interval of `y`; `None` without one.
        x_low: Lower end of the interval of `x`.
        void: Why it proves nothing, `void` or `cut`: drawn hollow, and not joined.
        label: Name at the point; empty for none.
        strong: Whether the name must be shown; others are left out where there is no room.
    """

    x: float
    y: float | None
    hover: str
    low: float | None = None
    high: float | None = None
    x_low: float | None = None
    x_high: float | None = None
    void: str = ""
    label: str = ""
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One curve.

    Attributes:
        points: In the order in which they are joined.
        shade: Of curves that differ by a number (levels): where between the two ends of the scale, 0 to 1; else None.
    """

    name: str
    points: tuple[ChartPoint, ...]
    style: Style = "first"
    shade: float | None = None
    marked: bool = True
    filled: bool = False

    @property
    def known(self) -> tuple[ChartPoint, ...]:
        """The points with a value."""
        return tuple(point for point in self.points if point.y is not None)


@dataclass(frozen=True, slots=True)
class ChartBand:
    """The room between a lower and an upper curve: (x, low, high)."""

    name: str
    points: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """The room around a curve whose x and y are both uncertain, as a polygon."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Region:
    """Where the SLO is met: up to a bound, or from it on; of the x axis when `upright`."""

    name: str
    bound: float
    sense: Literal["at_most", "at_least"]
    upright: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line with its name above the chart."""

    at: float
    label: str
    kind: Literal["gate", "knee", "level"]


@dataclass(frozen=True, slots=True)
class Dot:
    """A place on a curve that is named though nothing was measured there: a knee between two levels."""

    x: float
    y: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis.

    Attributes:
        label: What it measures, with its unit.
        scale: `log2` for loads that double, `log10` for latencies of all levels, else `linear`.
        ticks: The places of labels; chosen by the page when empty.
    """

    label: str
    scale: Literal["linear", "log2", "log10"] = "linear"
    ticks: tuple[float, ...] = ()
    percent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart.

    Attributes:
        anchor: Its id in the page, unique there.
        description: The chart in words, for those who don't see it.
        y: The vertical axis; it begins at 0.
        series: The curves; at least one has a point.
        bands: Uncertainty around a curve.
        outlines: Uncertainty around a curve in both directions.
        regions: Where the SLO is met.
        marks: The gate and the knee, or where levels begin.
        dots: Named places on a curve.
        size: `wide` charts take the whole row.
    """

    anchor: str
    title: str
    description: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    bands: tuple[ChartBand, ...] = ()
    outlines: tuple[Outline, ...] = ()
    regions: tuple[Region, ...] = ()
    marks: tuple[Mark, ...] = ()
    dots: tuple[Dot, ...] = ()
    size: Literal["wide", "low", "narrow"] = "narrow"

    @property
    def data(self) -> Markup:
        """The chart as JSON without empty values, fit for a `<script>`: no text in it ends the element."""
        text = json.dumps(asdict(self, dict_factory=_without_empty), separators=(",", ":"), allow_nan=False)
        # Within a script element only `<` can end it; as an escape it is the same JSON.
        return Markup(text.replace("<", "\\u003c"))  # noqa: S704 (no "<" is left)

    @property
    def legend(self) -> Iterator[tuple[str, str, str]]:
        """Each sign: its class in the page's style, its shade in percent, its name."""
        if any(mark.kind == "level" for mark in self.marks):
            return  # one curve, cut at levels that are named above it
        for series in self.series:
            yield (
                "shade" if series.shade is not None else series.style,
                f"{(series.shade or 0) * 100:.0f}%",
                series.name,
            )
        for name in (*(band.name for band in self.bands), *(outline.name for outline in self.outlines)):
            yield "band", "0%", name
        for region in self.regions:
            yield "region", "0%", region.name


def _without_empty(items: list[tuple[str, object]]) -> dict[str, object]:
    return {name: value for name, value in items if value is not None and value is not False and value != ""}


FOLDER = Path(__file__).parent


LIBRARY = FOLDER / "plot.min.js"


SCRIPT = FOLDER / "draw.js"


@cache
def scripts(library: Path = LIBRARY) -> tuple[str, ...]:
    """Return the scripts of the page, the library first; none where the library wasn't built."""
    if not library.is_file():
        return ()
    return tuple(path.read_text(encoding="utf-8") for path in (library, SCRIPT))


def source_hash(script: str) -> str:
    """Return the hash of a script's text, by which a content security policy allows it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def load_charts(result: TrialResult, plan: Plan | None) -> tuple[Chart, ...]:
    """Return the charts over the load; one without a measured value is left out."""
    view = LoadView(result, expectation_of(result, plan))
    bounded = {objective.metric for objective in result.request.objectives}
    metrics = [metric for metric in LATENCIES if metric in ALWAYS or metric in bounded]
    charts = (_trade(view), _throughput(view), *(_latency(view, metric) for metric in metrics))
    return tuple(chart for chart in charts if any(one.known for one in chart.series if one.style != "predicted"))


def is_open(result: TrialResult) -> bool:
    """Return whether every level is of an open loop: then a level is named by the rate that it offered."""
    return bool(result.levels) and all(level.is_open for level in result.levels)


def level_load(level: LevelResult, result: TrialResult) -> float:
    """Return a level's place on the axis: its concurrency per copy, or the rate that an open loop offered."""
    return level.offered_load if is_open(result) else level.concurrency


@dataclass(frozen=True)
class LoadView:
    """A trial as the charts over the load see it; `expected` is `None` without a prediction."""

    result: TrialResult
    expected: Expectation | None

    @cached_property
    def unit(self) -> str:
        """The suffix of a load when it is written."""
        return "/s" if is_open(self.result) else ""

    @cached_property
    def gate(self) -> float:
        """Where the SLO must hold: of an open loop, at the rate of its gate."""
        if is_open(self.result):
            # An open loop is at its gate where it was offered that rate; the concurrency that this made is a result,
            # and no place on the axis.
            gated = up_to_gate(self.result.levels, self.result.request.load) or self.result.levels
            return level_load(gated[-1], self.result)
        return self.result.request.gate_concurrency

    @cached_property
    def knee(self) -> float | None:
        """The load of the knee that the scaling target comes from; None when it comes from none."""
        concurrency = None if self.result.knee is None else self.result.knee.concurrency
        if concurrency is None or not is_open(self.result):
            return concurrency
        return _between([(level.load, level_load(level, self.result)) for level in self.result.levels], concurrency)

    def axis(self) -> Axis:
        """Return the axis of the load."""
        places = tuple(dict.fromkeys(level_load(level, self.result) for level in self.result.levels))
        label = "offered load, requests/s" if is_open(self.result) else "concurrency, requests in flight per copy"
        return Axis(label=label, scale="log2", ticks=drawn(places))

    def marks(self) -> tuple[Mark, ...]:
        """Return the gate and the knee, as one where they are equal."""
        if self.knee == self.gate:
            return (Mark(self.gate, f"knee = gate {self.gate:g}{self.unit}", "knee"),)
        gate = Mark(self.gate, f"gate {self.gate:g}{self.unit}", "gate")
        if self.knee is None:
            return (gate,)
        return gate, Mark(self.knee, f"knee {whole_or_tenths(self.knee)}{self.unit}", "knee")

    def name(self, level: LevelResult) -> str:
        """Name a level at its point: its load, and whether it is the gate or the knee."""
        at = level_load(level, self.result)
        also = [name for name, place in (("knee", self.knee), ("gate", self.gate)) if at == place]
        return " ".join((f"{at:g}{self.unit}", *(("= " + " and ".join(also),) if also else ())))

    def load(self, at: float) -> str:
        """Write a load for the pointer."""
        return f"{at:g} requests/s offered" if self.unit else f"concurrency {at:g}"


def _trade(view: LoadView) -> Chart:
    """Return end-to-end latency over output throughput, all copies together; levels without either are left out."""
    objectives = view.result.request.objectives
    series = [
        Series(name=f"measured {name}", style=style, points=tuple(_trade_points(view, name, named=name == "p95")))
        for name, style in zip(STATISTICS, STYLES, strict=False)
    ]
    predicted_trade: list[Series] = []
    for statistic in ("p95", "mean"):
        points = tuple(
            ChartPoint(x=x, y=y, hover=f"{view.load(at)}\npredicted {statistic} {digits(y)} ms\n{digits(x)} tok/s")
            for at, x, y in _expected_trade(view.expected, statistic)
        )
        if points:
            predicted_trade.append(Series(name=f"predicted {statistic}", style="predicted", points=points))
    return Chart(
        anchor="latency-throughput",
        title=f"End-to-end latency over output throughput{copies_words(view.result)}",
        description=_described(view, series[-1], "ms", "p95"),
        x=Axis(label="output throughput, tok/s"),
        y=Axis(label="end-to-end latency, ms"),
        series=(*series, *predicted_trade),
        outlines=_outline(view.expected),
        regions=(
            *_regions(view.result, "e2e_latency_ms"),
            *(
                Region(
                    f"within SLO: throughput {bound_text(objective)}", objective.bound, objective.sense, upright=True
                )
                for objective in objectives
                if objective.metric == "output_tok_s"
            ),
        ),
        dots=tuple(_knee_between(view, series[-1])),
        size="wide",
    )


def _trade_points(view: LoadView, statistic: Statistic, *, named: bool) -> Iterator[ChartPoint]:
    for level in view.result.levels:
        latency = level.e2e_latency_ms
        if level.output_tok_s is None or latency is None:
            continue
        value, interval = statistic_of(latency, statistic), latency.intervals.get(statistic)
        at = level_load(level, view.result)
        reach = level.output_tok_s_interval
        yield ChartPoint(
            x=level.output_tok_s,
            y=value,
            hover="\n".join(
                (
                    view.load(at) + _void(level),
                    f"{statistic} {_written(value, interval, 'ms')}",
                    _written(level.output_tok_s, reach, "tok/s"),
                )
            ),
            low=None if interval is None else interval.low,
            high=None if interval is None else interval.high,
            x_low=None if reach is None else reach.low,
            x_high=None if reach is None else reach.high,
            void=level.mark,
            label=view.name(level) if named else "",
            strong=at in {view.gate, view.knee},
        )


def _expected_trade(expected: Expectation | None, statistic: str) -> Iterator[tuple[float, float, float]]:
    if expected is not None and statistic in {"p95", "mean"}:
        throughputs = dict(expected.throughputs())
        latencies = expected.latencies("e2e_latency_ms", "p95" if statistic == "p95" else "mean")
        yield from ((at, throughputs[at], y) for at, y in latencies)


def _outline(expected: Expectation | None) -> tuple[Outline, ...]:
    """Return the room between the slower and the faster edge: less throughput at more latency, and the contrary."""
    points = tuple(_expected_trade(expected, "p95"))
    if expected is None or expected.throughput_share is None or expected.latency_share is None or not points:
        return ()
    slow: list[tuple[float, float]] = []
    fast: list[tuple[float, float]] = []
    for _, x, y in points:
        (x_low, x_high), (y_low, y_high) = edges(x, expected.throughput_share), edges(y, expected.latency_share)
        # The corners of both bands that belong together: who is slower gives fewer tokens and a longer wait.
        slow.append((x_low, y_high))
        fast.append((x_high, y_low))
    name = f"prediction ±{expected.throughput_share:.0%} tok/s, ±{expected.latency_share:.0%} ms"
    return (Outline(name, (*slow, *reversed(fast))),)


def _knee_between(view: LoadView, series: Series) -> Iterator[Dot]:
    """Yield the knee's place on the curve where it is between two levels."""
    knee, levels = view.knee, view.result.levels
    # A level at the knee is marked by its own point.
    if knee is None or any(level_load(level, view.result) == knee for level in levels):
        return
    placed = [
        (level_load(level, view.result), level.output_tok_s, level.e2e_latency_ms.p95)
        for level in levels
        if level.valid and level.output_tok_s is not None and level.e2e_latency_ms is not None
    ]
    x = _between([(at, tok_s) for at, tok_s, _ in placed], knee)
    y = _between([(at, latency) for at, _, latency in placed], knee)
    if series.known and x is not None and y is not None:
        yield Dot(x, y, f"knee {whole_or_tenths(knee)}{view.unit} (between levels)")


def _between(places: list[tuple[float, float]], at: float) -> float | None:
    """Interpolate linearly; None outside of what is known."""
    for (before, low), (after, high) in pairwise(sorted(places)):
        if before <= at <= after:
            return low if after == before else low + (high - low) * (at - before) / (after - before)
    return next((value for place, value in places if place == at), None)


def _throughput(view: LoadView) -> Chart:
    points = tuple(
        ChartPoint(
            x=level_load(level, view.result),
            y=level.output_tok_s,
            hover=f"{view.load(level_load(level, view.result))}{_void(level)}\n"
            f"{_written(level.output_tok_s, level.output_tok_s_interval, 'tok/s')}",
            low=None if level.output_tok_s_interval is None else level.output_tok_s_interval.low,
            high=None if level.output_tok_s_interval is None else level.output_tok_s_interval.high,
            void=level.mark,
        )
        for level in view.result.levels
    )
    expected = None if view.unit else view.expected
    predicted = () if expected is None else expected.throughputs()
    series = Series(name="measured", points=points)
    return Chart(
        anchor="throughput",
        title=f"Output throughput{copies_words(view.result)}",
        description=_described(view, series, "tok/s", "output throughput"),
        x=view.axis(),
        y=Axis(label="tok/s"),
        series=(series, *_predicted(view, predicted, "tok/s", "predicted")),
        bands=_band(predicted, None if expected is None else expected.throughput_share),
        regions=_regions(view.result, "output_tok_s"),
        marks=view.marks(),
    )


def _latency(view: LoadView, metric: Metric) -> Chart:
    bounded = [objective.statistic for objective in view.result.request.objectives if objective.metric == metric]
    statistics = tuple(dict.fromkeys((*STATISTICS, *bounded)))[: len(STYLES)]
    series = tuple(
        Series(name=statistic, style=style, points=tuple(_latency_points(view, metric, statistic)))
        for statistic, style in zip(statistics, STYLES, strict=False)
    )
    expected = None if view.unit else view.expected
    predicted = () if expected is None else expected.latencies(metric, "p95")
    return Chart(
        anchor=METRICS[metric].lower().replace(" ", "-"),
        title=TITLES[metric],
        description=_described(view, series[1], "ms", "p95"),
        x=view.axis(),
        y=Axis(label="ms"),
        series=(*series, *_predicted(view, predicted, "ms", "predicted p95")),
        bands=_band(predicted, None if expected is None else expected.share_of(metric)),
        regions=_regions(view.result, metric),
        marks=view.marks(),
    )


def _latency_points(view: LoadView, metric: Metric, statistic: Statistic) -> Iterator[ChartPoint]:
    for level in view.result.levels:
        latency = latency_of(level, metric)
        value = statistic_of(latency, statistic)
        interval = None if latency is None else latency.intervals.get(statistic)
        at = level_load(level, view.result)
        yield ChartPoint(
            x=at,
            y=value,
            hover=f"{view.load(at)}{_void(level)}\n{statistic} {_written(value, interval, 'ms')}",
            low=None if interval is None else interval.low,
            high=None if interval is None else interval.high,
            void=level.mark,
        )


def _predicted(view: LoadView, points: tuple[tuple[float, float], ...], unit: str, name: str) -> tuple[Series, ...]:
    drawn = tuple(ChartPoint(x=x, y=y, hover=f"{view.load(x)}\n{name} {digits(y)} {unit}") for x, y in points)
    return (Series(name=name, style="predicted", points=drawn),) if drawn else ()


def _band(points: tuple[tuple[float, float], ...], share: float | None) -> tuple[ChartBand, ...]:
    if not points or share is None:
        return ()
    return (ChartBand(f"prediction ±{share:.0%}", tuple((x, *edges(y, share)) for x, y in points)),)


def _regions(result: TrialResult, metric: Metric) -> tuple[Region, ...]:
    return tuple(
        Region(
            f"within SLO: {'' if objective.statistic == 'value' else f'{objective.statistic} '}{bound_text(objective)}",
            objective.bound,
            objective.sense,
        )
        for objective in result.request.objectives
        if objective.metric == metric
    )


def copies_words(result: TrialResult) -> str:
    """Return the end of the title of what all copies do: `, 2 copies together`; empty for one copy."""
    copies = result.request.copy_count
    return "" if copies == 1 else f", {copies} copies together"


def _void(level: LevelResult) -> str:
    return f" ({level.mark})" if level.mark else ""


def _written(value: float | None, interval: Interval | None, unit: str) -> str:
    if value is None:
        return "no value"
    ends = "" if interval is None else _ends(interval)
    return f"{digits(value)} {unit}{ends}"


def _ends(interval: Interval) -> str:
    match interval.low, interval.high:
        case None, None:
            return ""
        case low, None if low is not None:
            return f" (≥ {digits(low)})"
        case None, high if high is not None:
            return f" (≤ {digits(high)})"
        case low, high:
            return f" ({digits(low or 0)}–{digits(high or 0)})"


def _described(view: LoadView, series: Series, unit: str, name: str) -> str:
    load = "offered requests per second" if view.unit else "concurrency per copy"
    values = [
        f"{digits(point.y)} {unit} at {point.label or f'{point.x:g}'}{f' ({point.void})' if point.void else ''}"
        for point in series.known
        if point.y is not None
    ]
    return f"{name} by {load}: {', '.join(values) or 'no value'}."
