"""The objectives: the SLO's checks at the gate, quality with its bounds, the scaling target and the knees."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING

from seatrial.report.document.section import Section
from seatrial.report.values import (
    bound_text,
    load_value,
    measured_text,
    missing_cell,
    objective_name,
    percent,
    plain,
    sentence,
    with_interval,
)
from seatrial_base.table import Cell, Column, Table
from seatrial_base.units import digits, exported
from seatrial_load.documents.distribution import Interval
from seatrial_load.metrics.sent import random_arrivals_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial_load.documents.request import Metric
    from seatrial_load.documents.result import Check, Detector, Knee, QualityResult, QualityScore, TrialResult

DETECTORS: Mapping[Detector, str] = {
    "slo": "highest load that meets the SLO",
    "saturation": "load from which more adds little throughput",
    "gate": "load that copies are planned for",
    "half_latency": "twice the unloaded latency",
    "kneedle": "bend of the throughput curve",
    "two_segment": "intersection of two lines through throughput",
    "theory": "limit from the plan, not measured",
}
METRICS = {
    "exact_match": "exact match",
    "mean_logprob": "log-probability per token",
    "perplexity": "perplexity",
}
_UNREPORTED = "not in the responses"


def checks_section(result: TrialResult) -> Section:
    """Return measured against bound, objective by objective, and the scaling target."""
    opened = any(level.is_open for level in result.levels)
    rate = result.request.load.gate_rate_per_s
    offered = "the highest rate offered" if rate is None else f"{rate:g} requests/s"
    where = offered if opened else f"concurrency {result.request.gate_concurrency} per copy"
    gate = f"The SLO must hold at {where}.{_confidence(result)}"
    if not result.request.objectives:
        gate = "The spec sets no objective."
    elif not result.verdict.checks:
        gate += " No objective could be checked."
    tables = (checks_table(result),) if result.verdict.checks else ()
    return Section(
        anchor="slo",
        heading="SLO and scaling target",
        half=True,
        short="SLO",
        paragraphs=(gate,),
        tables=tables,
        remarks=(*map(sentence, random_arrivals_lines(result)), target_sentence(result)),
    )


def target_sentence(result: TrialResult) -> str:
    """Return what autoscaling shall track, and the source of the number."""
    target = exported(result.target_concurrency_per_copy)
    return f"Scaling target: {target} requests in flight per copy. Source: {sentence(result.target_because)}"


def _confidence(result: TrialResult) -> str:
    confidence = result.request.gate.confidence
    if not confidence:
        return ""
    return (
        f" An objective is proven if its one-sided {confidence * 100:g} % interval, below the measured value, does "
        f"not cross the bound."
    )


def checks_table(result: TrialResult) -> Table:
    """Return the checks of the verdict."""
    columns = (
        Column("objective", kind="text"),
        Column("bound"),
        Column("measured"),
        Column("outcome", kind="text"),
    )
    return Table("Objectives, measured against their bounds", columns, tuple(map(_check_row, result.verdict.checks)))


def knees_section(result: TrialResult) -> Section:
    """Return the knees by detector, and which of them sets the scaling target."""
    if not result.knees:
        return Section(anchor="knee", heading="Knee detectors", detail=True)
    return Section(
        anchor="knee",
        heading="Knee detectors",
        paragraphs=("Knee: concurrency beyond which more load does not pay. One detector sets the target.",),
        tables=(knee_table(result),),
        detail=True,
    )


def knee_table(result: TrialResult) -> Table:
    """Return one row for each detector."""
    columns = (
        Column("detector", kind="text"),
        Column("knee", "per copy"),
        Column("sets the target", kind="text"),
        Column("looks for", kind="prose"),
        Column("result", kind="prose"),
    )
    rows = tuple(_knee_row(knee, sets=knee.detector == result.target_detector) for knee in result.knees)
    return Table("Knees by detector", columns, rows)


def _check_row(check: Check) -> tuple[Cell, ...]:
    objective = check.objective
    measured = missing_cell(check.sentence) if check.measured is None else _value(check.measured, objective.metric)
    proven = with_interval(
        measured, Interval(low=check.bound_low, high=check.bound_high), partial(_value, metric=objective.metric)
    )
    bound = Cell(bound_text(objective), exact=json.dumps(objective.bound))
    return Cell(objective_name(objective)), bound, proven, _outcome(check)


def _value(value: float, metric: Metric) -> Cell:
    return Cell(measured_text(value, metric), exact=json.dumps(value))


def _outcome(check: Check) -> Cell:
    if check.met is None:
        return Cell("? not measured" if check.measured is None else "? not proven", tone="unknown")
    return Cell("✓ met", tone="good") if check.met else Cell("✗ missed", tone="bad")


def _knee_row(knee: Knee, *, sets: bool) -> tuple[Cell, ...]:
    knee_cell = missing_cell("the detector found no knee") if knee.concurrency is None else load_value(knee.concurrency)
    knee_cell = with_interval(knee_cell, knee.interval, load_value)
    chosen = Cell("✓ yes", tone="good") if sets else Cell("no")
    return Cell(knee.detector), knee_cell, chosen, Cell(DETECTORS[knee.detector]), Cell(plain(knee.because))


def quality_section(result: TrialResult) -> Section:
    """Return the scores of the evaluation set with their bounds; nothing without one."""
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


def overload_section(result: TrialResult) -> Section:
    """Return what load beyond the knee did, with its numbers; nothing where it was not tried."""
    seen = result.overload
    if seen is None:
        return Section(anchor="overload", heading="Overload")
    numbers = ((name.name, getattr(seen, name.name)) for name in fields(seen) if name.name not in {"status", "because"})
    rows = [(Cell(name), Cell(f"{value:g}")) for name, value in numbers if isinstance(value, int | float)]
    rows += [(Cell(f"refused: {name}"), Cell(f"{count:,}")) for name, count in seen.refusals.items()]
    table = Table("Overload", (Column("what", kind="text"), Column("value")), tuple(rows))
    paragraph = f"{seen.status.capitalize()}: {plain(seen.because)}."
    return Section(anchor="overload", heading="Overload", half=True, paragraphs=(paragraph,), tables=(table,))


def _row(quality: QualityResult, score: QualityScore) -> Iterator[Cell]:
    yield Cell(METRICS[score.metric])
    if score.value is None:
        yield Cell(_UNREPORTED, tone="unknown")
    else:
        low, high = score.interval.low, score.interval.high
        ends = (
            "" if low is None or high is None else f" ({written(score.metric, low)} to {written(score.metric, high)})"
        )
        yield Cell(f"{written(score.metric, score.value)}{ends}")
    bounds = [
        f"{check.objective.sense.replace('_', ' ')} {written(score.metric, check.objective.bound)}"
        for check in quality.checks
        if check.objective.metric == score.metric
    ]
    yield Cell(", ".join(bounds) or "none")
    yield Cell(f"{score.count:,}")


def written(metric: str, value: float) -> str:
    """Write a value of a quality metric: shares in percent."""
    return percent(value) if metric == "exact_match" else digits(value)
