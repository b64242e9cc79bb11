"""The verdict's checks, the knees, and the scaling target that follows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial.report.cell import Cell, count, digits, missing
from seatrial.report.names import bound_text, measured_text, objective_name
from seatrial.report.section import Section
from seatrial.report.table import Column, Table

if TYPE_CHECKING:
    from seatrial.bench.judgement import Check
    from seatrial.bench.result import Knee, TrialResult

DETECTORS = "The slo knee is the highest load that meets the SLO; the kneedle knee is where throughput bends."


def checks_section(result: TrialResult) -> Section:
    """Return measured against bound, objective by objective."""
    gate = f"The SLO must hold at concurrency {result.request.gate_concurrency} per copy."
    if not result.request.objectives:
        gate = "The spec sets no objective, so there was nothing to hold the endpoint to."
    elif not result.verdict.checks:
        gate += " No objective could be checked there."
    tables = (checks_table(result),) if result.verdict.checks else ()
    return Section(anchor="slo", heading="The SLO at the gate", paragraphs=(gate,), tables=tables)


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
    target = f"Scaling target: {digits(result.target_concurrency_per_copy)} requests in flight per copy."
    return Section(
        anchor="knee",
        heading="Where more load stops paying",
        paragraphs=(f"{target} Where it comes from: {result.target_because}.", DETECTORS),
        tables=(knee_table(result),),
    )


def knee_table(result: TrialResult) -> Table:
    """Return one row for each detector."""
    columns = (Column("detector", kind="text"), Column("knee", "per copy"), Column("because", kind="prose"))
    return Table("Knees by detector", columns, tuple(map(_knee_row, result.knees)))


def _check_row(check: Check) -> tuple[Cell, ...]:
    objective = check.objective
    measured = (
        missing(check.sentence)
        if check.measured is None
        else Cell(measured_text(check.measured, objective.metric), exact=json.dumps(check.measured))
    )
    bound = Cell(bound_text(objective), exact=json.dumps(objective.bound))
    return Cell(objective_name(objective)), bound, measured, _outcome(check)


def _outcome(check: Check) -> Cell:
    if check.met is None:
        return Cell("? not measured", tone="unknown")
    return Cell("✓ met", tone="good") if check.met else Cell("✗ missed", tone="bad")


def _knee_row(knee: Knee) -> tuple[Cell, ...]:
    found = (
        missing("no knee was found, the reason stands beside") if knee.concurrency is None else count(knee.concurrency)
    )
    return Cell(knee.detector), found, Cell(knee.because)
