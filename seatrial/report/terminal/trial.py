"""What a trial concludes, on a terminal: verdict, SLO, knee, target, what changed; the JumpStart table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.report.document.baseline import changed_of, comparison_sentence, comparison_table
from seatrial.report.document.jumpstart import jumpstart_table
from seatrial.report.metric_names import bound_text, measured_text, objective_name
from seatrial.report.terminal.tables import UNKNOWN, add_columns, add_row, heading, table
from seatrial_base.units import usd, whole_or_tenths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from seatrial.planner.document import Plan
    from seatrial_load.model.result import Check, Comparison, TrialResult


MOST_CHANGES = 10
_STATES = {True: "met", False: "missed", None: "not proven"}


def conclusion_view(result: TrialResult) -> RenderableType:
    """Return what a trial found, the verdict first."""
    parts: list[RenderableType] = [Text(f"verdict: {result.verdict.status}: {verdict_sentence(result)}")]
    if result.verdict.checks:
        parts.append(_checks(result.verdict.checks))
    parts += map(Text, _facts(result))
    if result.comparison is not None:
        parts.append(comparison_view(result.comparison))
    parts += [Text(f"not measured: {seen.place}: {seen.sentence}") for seen in result.unmeasured if seen.errors]
    parts.append(Text(f"stopped: {result.stopped.because}"))
    if result.engine_note:
        parts.append(Text(f"measured on: {result.engine_note}"))
    return Group(*parts)


def comparison_view(comparison: Comparison) -> RenderableType:
    """Return how many numbers changed since the last release, and a table of the largest changes, the worse first."""
    title = Text(f"last release: {comparison.status}: {comparison_sentence(comparison)}")
    changed = changed_of(comparison)
    if not changed:
        return title
    shown = comparison_table(changed[:MOST_CHANGES], "")
    made = table()
    for column in shown.columns:
        add_columns(made, "right" if column.kind == "number" else "left", (column.label,))
    for row in shown.cells:
        add_row(made, *(cell.text for cell in row))
    more = len(changed) - MOST_CHANGES
    return Group(title, made, *((Text(f"and {more} more in the report"),) if more > 0 else ()))


def verdict_sentence(result: TrialResult) -> str:
    """Return why a trial passed or not; of a regression, how many numbers got worse instead of all of them."""
    because, comparison = result.verdict.because, result.comparison
    if comparison is None or not comparison.because:
        return because
    return because.replace(comparison.because, comparison_sentence(comparison))


def knee_line(result: TrialResult) -> str:
    """Return the knee that sets the scaling target with its detector, else the first that was found."""
    if result.request.manner != "load":
        return "knee: none was sought"
    found = result.knee or next((knee for knee in result.knees if knee.concurrency is not None), None)
    if found is None or found.concurrency is None:
        return "knee: none found"
    return f"knee: {whole_or_tenths(found.concurrency)} concurrent requests per copy ({found.detector})"


def _checks(checks: tuple[Check, ...]) -> RenderableType:
    made = table(words=("SLO",), numbers=("measured", "bound"))
    add_columns(made, "left", ("",))
    for check in checks:
        objective = check.objective
        measured = UNKNOWN if check.measured is None else measured_text(check.measured, objective.metric)
        add_row(made, objective_name(objective), measured, bound_text(objective), _STATES[check.met])
    return made


def _facts(result: TrialResult) -> Iterator[str]:
    if result.users is not None:
        yield f"users: {result.users.because}"
    yield knee_line(result)
    yield f"scaling target: {result.target_because}"
    if result.usd_per_million_output_tokens is not None:
        yield f"cost: {usd(result.usd_per_million_output_tokens)} per million output tokens"


def jumpstart_view(result: TrialResult, plan: Plan | None = None) -> RenderableType:
    """Return throughput and p90 latency per token over concurrency, as the article tabulates them."""
    shown = jumpstart_table(result, plan)
    made = table()
    for column in shown.columns:
        add_columns(made, "right" if column.kind == "number" else "left", (f"{column.label}\n{column.unit}",))
    for row in shown.cells:
        add_row(made, *(cell.text for cell in row))
    engine = (Text(f"measured on: {result.engine_note}", style="yellow"),) if result.engine_note else ()
    return Group(heading(shown.caption), made, *engine)
