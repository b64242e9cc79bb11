"""The distribution of each latency as a curve: which share of the requests took at most so long, level by level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.charts.model import Axis, Chart, ChartPoint, Series
from seatrial.report.values import digits
from seatrial_load.measure.distribution import percentile
from seatrial_load.metrics.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_load.measure.distribution import Distribution
    from seatrial_load.model.result import LevelResult, TrialResult

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
    series = tuple(_series(result, field))
    highest = series[-1].name if series else ""
    return Chart(
        anchor=f"cdf-{field.replace('_', '-')}",
        title=title,
        description=f"Share of requests up to a latency, one curve per level up to {highest}. The table below has the "
        f"percentiles.",
        x=Axis(label="ms (log)", scale="log10"),
        y=Axis(label="share of requests", percent=True),
        series=series,
    )


def _series(result: TrialResult, field: str) -> Iterator[Series]:
    last = max(len(result.levels) - 1, 1)
    for index, level in enumerate(result.levels):
        values: Distribution | None = getattr(level, field)
        if values is not None and values.histogram:
            name = _name(level)
            yield Series(name=name, points=tuple(_points(values, name)), shade=index / last, marked=False)


def _points(values: Distribution, name: str) -> Iterator[ChartPoint]:
    ranked = Histogram.decode(values.histogram).ranked()
    for percent in PERCENTS:
        latency_ms = percentile(ranked, percent) / US_PER_MS
        if latency_ms > 0:  # a logarithmic axis has no zero
            hover = f"{name}\n{percent:g} % of requests ≤ {digits(latency_ms)} ms"
            yield ChartPoint(x=latency_ms, y=percent / 100, hover=hover)


def _name(level: LevelResult) -> str:
    void = "" if level.valid else " (void)"
    if level.offered_requests_per_s is not None:
        return f"{level.offered_requests_per_s:g}/s{void}"
    return f"concurrency {level.concurrency}{void}"
