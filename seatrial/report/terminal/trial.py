"""Measurements on a terminal: a trial while it runs and its conclusion, two recipes, a calibration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.report.document.baseline import changed_of, comparison_sentence, comparison_table, verdict_reason
from seatrial.report.document.jumpstart import jumpstart_table
from seatrial.report.document.recipes import comparison_title, recipe_sections
from seatrial.report.terminal.tables import heading, table_view
from seatrial.report.values import bound_text, measured_text, objective_name
from seatrial_base.table import number_columns, table_of, text_columns
from seatrial_base.units import S_PER_HOUR, UNKNOWN, minutes
from seatrial_load.cli.show import LEVEL_NUMBERS, doubt_lines, fact_lines, level_cells
from seatrial_load.documents.progress import LevelAdvanced, LevelEnded, LevelStarted, TrialMessage
from seatrial_load.metrics.counts import unmeasured_lines
from seatrial_load.trial.budget import budget_s

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seatrial.documents.calibration import Compared, EndpointCalibration, Outlook
    from seatrial.documents.plan import Plan
    from seatrial.quality.recipe_comparison import RecipeComparison
    from seatrial_load.documents.progress import TrialEvent
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import Check, Comparison, LevelResult, TrialResult

MOST_CHANGES = 10
_STATES = {True: "met", False: "missed", None: "not proven"}


def conclusion_view(result: TrialResult) -> RenderableType:
    """Return the conclusion of a trial, the verdict first."""
    parts: list[RenderableType] = [Text(f"verdict: {result.verdict.status}: {verdict_reason(result)}")]
    parts += map(Text, doubt_lines(result))
    if result.verdict.checks:
        columns = (*text_columns("SLO"), *number_columns("measured", "bound"), *text_columns(""))
        parts.append(table_view(table_of(columns, map(_check_row, result.verdict.checks))))
    parts += map(Text, fact_lines(result))
    # What holds a local engine back means nothing for the endpoint.
    if result.container is not None and not result.engine_note:
        parts += (Text(f"held back: {cause.because}. {cause.mend}") for cause in result.container.causes)
    if result.comparison is not None:
        parts.append(release_view(result.comparison))
    parts += map(Text, unmeasured_lines(result.unmeasured))
    parts.append(Text(f"stopped: {result.stopped.because}"))
    if result.engine_note:
        parts.append(Text(f"measured on: {result.engine_note}"))
    return Group(*parts)


def release_view(comparison: Comparison) -> RenderableType:
    """Return how many numbers changed since the last release, and a table of the largest changes, the worse first."""
    title = Text(f"last release: {comparison.status}: {comparison_sentence(comparison)}")
    changed = changed_of(comparison)
    if not changed:
        return title
    table = comparison_table(changed[:MOST_CHANGES], "")
    view = table_view(replace(table, columns=tuple(replace(column, unit="") for column in table.columns)))
    more = len(changed) - MOST_CHANGES
    return Group(title, view, *((Text(f"and {more} more in the report"),) if more > 0 else ()))


def _check_row(check: Check) -> tuple[str, ...]:
    objective = check.objective
    measured = UNKNOWN if check.measured is None else measured_text(check.measured, objective.metric)
    return (objective_name(objective), measured, bound_text(objective), _STATES[check.met])


def jumpstart_view(result: TrialResult, plan: Plan | None = None) -> RenderableType:
    """Return throughput and p90 latency per token over concurrency, as the article tabulates them."""
    table = jumpstart_table(result, plan)
    engine = (Text(f"measured on: {result.engine_note}", style="yellow"),) if result.engine_note else ()
    return Group(heading(table.caption), table_view(table), *engine)


@dataclass(slots=True)
class TrialScreen:
    """The view of a running trial; `watch` takes the trial's events.

    Attributes:
        levels: The levels that ended.
        started: The level that runs; `None` between two levels.
        ended: Requests of it that ended, as far as it was reported.
        note: The last message.
    """

    request: TrialRequest
    levels: list[LevelResult] = field(default_factory=list)
    started: LevelStarted | None = None
    ended: int = 0
    note: str = ""
    elapsed_s: float = 0.0

    def watch(self, event: TrialEvent) -> None:
        """Take an event."""
        self.elapsed_s = event.elapsed_s
        match event:
            case LevelStarted():
                self.started, self.ended, self.note = event, 0, ""
            case LevelAdvanced(ended=ended):
                self.ended = ended
            case LevelEnded(level=level):
                self.levels.append(level)
                self.started = None
            case TrialMessage(text=text):
                self.note = text

    def __rich__(self) -> RenderableType:
        levels = (level_cells(level, has_slo=bool(self.request.objectives)) for level in self.levels)
        rows = table_view(table_of((*number_columns(*LEVEL_NUMBERS), *text_columns("")), levels))
        return Group(rows, Text(self._running(), style="bold"), Text(self._spent(), style="dim"))

    def _running(self) -> str:
        if self.started is None:
            return self.note
        load = f"concurrency {self.started.concurrency} per copy"
        if self.started.rate_per_s is not None:
            load = f"{self.started.rate_per_s:g} requests/s"
        progress = f", {self.ended} of at most {self.started.requests} requests" if self.ended else ""
        return f"{load}{progress}: {self.started.because}"

    def _spent(self) -> str:
        left_s = max(0.0, budget_s(self.request) - self.elapsed_s)
        price, cost = self.request.usd_per_hour_per_copy, ""
        if price is not None:
            usd = price * self.request.copy_count * self.elapsed_s / S_PER_HOUR
            cost = f", cost so far {usd:.2f} USD"
        return f"elapsed {minutes(self.elapsed_s)}, at most {minutes(left_s)} left{cost}"


def recipe_comparison_view(compared: RecipeComparison) -> RenderableType:
    """Return the whole comparison, the verdict first."""
    parts: list[RenderableType] = [Text(f"Recipes {comparison_title(compared)}", style="bold"), Text(compared.verdict)]
    if compared.engine_note:
        parts.append(Text(f"simulated, measured on: {compared.engine_note}", style="yellow"))
    for section in recipe_sections(compared):
        parts.append(heading(section.heading))
        parts += [Text(paragraph) for paragraph in section.paragraphs]
        parts += [table_view(table) for table in section.tables]
        parts += [Text(f"- {remark}") for remark in section.remarks]
    return Group(*parts)


def calibration_view(outlook: Outlook, entry: EndpointCalibration) -> RenderableType:
    """Return the factors, and every measured level with its predictions without and with them."""
    probes = {point.concurrency for point in entry.points}
    where = f"{entry.instance_type} with degree {entry.tensor_parallel_degree}, {entry.engine} {entry.engine_version}"
    numbers = ("tok/s\nmeasured", "\nbefore", "\nafter", "p90 ms/token\nmeasured", "\nbefore", "\nafter")
    columns = (*text_columns("\nconcurrency", ""), *number_columns(*numbers))
    parts: list[RenderableType] = [
        Text(f"Calibration of {entry.model} on {where}", style="bold"),
        Text(
            f"Fixed time per step: x {entry.fixed:,.4g}. Time per sequence and token: x {entry.marginal:,.4g}. "
            f"Band between the probes: throughput \u00b1{entry.throughput_error:.0%}, latency "
            f"\u00b1{entry.latency_error or 0:.0%}."
        ),
        table_view(table_of(columns, map(partial(_level_row, probes), outlook.before, outlook.after))),
    ]
    # The probes are what was fitted: only the levels between them show how good the fit is.
    between = [level for level in outlook.after if level.measured.concurrency not in probes]
    if between:
        throughput = sum(level.throughput_error for level in between) / len(between)
        latencies = [level.latency_error for level in between if level.latency_error is not None]
        text = f"Mean error at the other levels: throughput {throughput:.1%}"
        parts.append(
            Text(f"{text}." if not latencies else f"{text}, p90 latency {sum(latencies) / len(latencies):.1%}.")
        )
    if entry.source.start is not None:
        parts.append(Text(f"start of a copy: {entry.source.start.words}"))
    if entry.source.engine_note:
        parts.append(Text(f"measured on: {entry.source.engine_note}", style="yellow"))
    return Group(*parts)


def _level_row(probes: set[int], plain: Compared, calibrated: Compared) -> tuple[str, ...]:
    point = plain.measured
    return (
        str(point.concurrency),
        "probe" if point.concurrency in probes else "",
        f"{point.output_tok_s:,.4g}",
        f"{plain.output_tok_s:,.4g}",
        f"{calibrated.output_tok_s:,.4g}",
        "" if point.ms_per_token_p90 is None else f"{point.ms_per_token_p90:,.4g}",
        f"{plain.ms_per_token:,.4g}",
        f"{calibrated.ms_per_token:,.4g}",
    )
