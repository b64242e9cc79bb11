"""The quality that a trial found: scores with their intervals, and the bounds of the spec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.document.section import Section
from seatrial.report.values import percent, sentence
from seatrial_base.table import Cell, Column, Table
from seatrial_base.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_load.documents.request import QualityMetric
    from seatrial_load.documents.result import QualityResult, QualityScore, TrialResult


METRICS = {
    "exact_match": "exact match",
    "mean_logprob": "log-probability per token",
    "perplexity": "perplexity",
}
_NOT_TOLD = "not told by the answers"


def quality_section(result: TrialResult) -> Section:
    """Return the scores of the evaluation set beside their bounds; nothing where none was to be asked."""
    quality = result.quality
    if quality is None:
        return Section(anchor="quality", heading="Quality")
    columns = tuple(Column(name, kind="text") for name in ("metric", "measured", "bound", "prompts"))
    table = Table("Quality", columns, tuple(tuple(_row(quality, score)) for score in quality.scores))
    return Section(
        anchor="quality",
        heading="Quality",
        half=True,
        paragraphs=(sentence(quality.because),),
        tables=(table,) if quality.scores else (),
        remarks=tuple(sentence(check.sentence) for check in quality.checks),
    )


def _row(quality: QualityResult, score: QualityScore) -> Iterator[Cell]:
    yield Cell(METRICS[score.metric])
    if score.value is None:
        yield Cell(_NOT_TOLD, tone="unknown")
    else:
        low, high = score.interval.low, score.interval.high
        ends = (
            "" if low is None or high is None else f" ({written(score.metric, low)} to {written(score.metric, high)})"
        )
        yield Cell(f"{written(score.metric, score.value)}{ends}")
    yield Cell(", ".join(_bounds(quality, score.metric)) or "none")
    yield Cell(f"{score.count:,}")


def _bounds(quality: QualityResult, metric: QualityMetric) -> Iterator[str]:
    for check in quality.checks:
        if check.objective.metric == metric:
            side = "at most" if check.objective.sense == "at_most" else "at least"
            yield f"{side} {written(metric, check.objective.bound)}"


def written(metric: str, value: float) -> str:
    """Write a value of a quality metric: shares in percent."""
    return percent(value) if metric == "exact_match" else digits(value)
