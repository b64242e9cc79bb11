"""The verdict's checks, the knees, and the scaling target that follows."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from seatrial.measure.distribution import Interval
from seatrial.report.cell import Cell, missing, with_interval
from seatrial.report.names import bound_text, measured_text, objective_name
from seatrial.report.section import Section
from seatrial.report.table import Column, Table
from seatrial.units import exported, whole_or_tenths

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.bench.judgement import Check
    from seatrial.bench.request import Metric
    from seatrial.bench.result import Detector, Knee, TrialResult

DETECTORS: Mapping[Detector, str] = {
    "slo": "the highest load that meets the SLO",
    "saturation": "the load that gives the highest throughput at the unloaded pace",
    "half_latency": "where latency is twice the unloaded one (the queueing rule)",
    "kneedle": "where throughput bends",
    "two_segment": "where two straight lines through throughput meet",
    "theory": "what the plan says, nothing measured",
}


def checks_section(result: TrialResult) -> Section:
    """Return measured against bound, objective by objective."""
    opened = any(level.offered_requests_per_s is not None for level in result.levels)
    where = "the highest rate offered" if opened else f"concurrency {result.request.gate_concurrency} per copy"
    gate = f"The SLO must hold at {where}.{_confidence(result)}"
    if not result.request.objectives:
        gate = "The spec sets no objective, so there was nothing to hold the endpoint to."
    elif not result.verdict.checks:
        gate += " No objective could be checked there."
    tables = (checks_table(result),) if result.verdict.checks else ()
    return Section(anchor="slo", heading="The SLO at the gate", paragraphs=(gate,), tables=tables)


def _confidence(result: TrialResult) -> str:
    confidence = result.request.gate.confidence
    if not confidence:
        return ""
    return (
        f" An objective counts as met or missed only when the one-sided interval of {confidence * 100:g} % confidence, "
        "below the measured value, lies on that side of the bound."
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
    """Return the knees with their reasons, and the scaling target."""
    target = f"Scaling target: {exported(result.target_concurrency_per_copy)} requests in flight per copy."
    return Section(
        anchor="knee",
        heading="Where more load stops paying",
        paragraphs=(f"{target} Where it comes from: {result.target_because}.", _detectors(result)),
        tables=(knee_table(result),),
    )


def knee_table(result: TrialResult) -> Table:
    """Return one row for each detector."""
    columns = (Column("detector", kind="text"), Column("knee", "per copy"), Column("because", kind="prose"))
    return Table("Knees by detector", columns, tuple(map(_knee_row, result.knees)))


def _detectors(result: TrialResult) -> str:
    named = "; ".join(f"{knee.detector}, {DETECTORS[knee.detector]}" for knee in result.knees)
    return f"The detectors: {named}." if named else "No detector looked for a knee."


def _check_row(check: Check) -> tuple[Cell, ...]:
    objective = check.objective
    measured = missing(check.sentence) if check.measured is None else _value(check.measured, objective.metric)
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


def _knee_row(knee: Knee) -> tuple[Cell, ...]:
    found = (
        missing("no knee was found, the reason stands beside")
        if knee.concurrency is None
        else Cell(whole_or_tenths(knee.concurrency), exact=json.dumps(knee.concurrency))
    )
    return Cell(knee.detector), found, Cell(knee.because)
