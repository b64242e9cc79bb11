"""The charts over the load, the first thing after the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.charts.load import is_open, load_charts
from seatrial.report.document.section import Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.planner.document import Plan
    from seatrial_load.model.result import TrialResult


def curves_section(result: TrialResult, plan: Plan | None) -> Section:
    """Return the charts over the load; without a level, a sentence.

    Args:
        result: The trial.
        plan: Its own plan; None when it wasn't given.
    """
    charts = load_charts(result, plan)
    nothing = "No values to draw." if result.levels else f"No level was measured: {result.stopped.because}."
    said = " ".join(_reading(result)) if charts else nothing
    return Section(
        anchor="curve", heading="Latency and throughput under load", short="Charts", paragraphs=(said,), charts=charts
    )


def _reading(result: TrialResult) -> Iterator[str]:
    load = "its rate in requests/s" if is_open(result) else "its concurrency per copy"
    yield f"Each point is one level, named by {load}."
    if any(level.output_tok_s_interval is not None for level in result.levels):
        yield "Error bars are 95 % intervals."
    if result.target_detector is not None:
        yield f"Knee: detector {result.target_detector}, which sets the scaling target."
    if not all(level.valid for level in result.levels):
        yield "Hollow points are void: the client was the limit."
