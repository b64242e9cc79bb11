"""The report as Markdown for a pull request: verdict and levels first, what else there is folded below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.caution import cautions, is_comparable, plan_of_trial
from seatrial.report.command import trial_name
from seatrial.report.comparison import comparison_status, comparison_table
from seatrial.report.cost import cost_table, level_cost_table
from seatrial.report.escape import escaped, markdown_table
from seatrial.report.failures import failure_table, has_failures, has_unmeasured_failures, unmeasured_table
from seatrial.report.judgement import checks_table, knee_table
from seatrial.report.jumpstart import is_jumpstart, jumpstart_table
from seatrial.report.levels import summary_table
from seatrial.report.prediction import comparison_tables
from seatrial.report.quantity import band_text
from seatrial.report.sentence import sentence
from seatrial.report.validity import validity_sentence, validity_table
from seatrial.units import exported, usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.result import TrialResult
    from seatrial.plan.document import Plan


def render_markdown(result: TrialResult, plan: Plan | None) -> str:
    """Write the short report; equal input gives equal text."""
    return "\n\n".join(_blocks(result, plan)) + "\n"


def _blocks(result: TrialResult, plan: Plan | None) -> Iterator[str]:
    yield f"## Sea trial of {escaped(trial_name(result.request))}: {result.verdict.status}"
    yield f"**{result.verdict.status.upper()}**: {escaped(result.verdict.because)}."
    yield from (f"> {escaped(caution)}" for caution in cautions(result, plan))
    if result.verdict.checks:
        yield markdown_table(checks_table(result))
    yield _target(result)
    yield from _level_blocks(result)
    yield from _comparison_blocks(result)
    for summary, blocks in _folded(result, plan_of_trial(result, plan)):
        yield "\n\n".join((f"<details>\n<summary>{summary}</summary>", *blocks, "</details>"))
    yield _origin(result)


def _target(result: TrialResult) -> str:
    target = f"**{exported(result.target_concurrency_per_copy)}** requests in flight per copy"
    text = f"Scaling target: {target} ({escaped(result.target_because)})."
    cost, mixed = result.usd_per_million_output_tokens, result.blended_usd_per_million_tokens
    if cost is None or result.engine_note:
        return text
    blended = "" if mixed is None else f", {escaped(usd(mixed))} blended 3:1"
    return f"{text} There a million output tokens cost {escaped(usd(cost))}{blended}."


def _level_blocks(result: TrialResult) -> Iterator[str]:
    yield "### Levels"
    if not result.levels:
        yield f"No level was measured in full: {escaped(result.stopped_because)}."
        return
    yield markdown_table(summary_table(result))
    yield f"Stopped: {escaped(result.stopped_because)}."


def _comparison_blocks(result: TrialResult) -> Iterator[str]:
    comparison = result.comparison
    if comparison is not None:
        yield "### Against the last release"
        yield f"**{comparison_status(comparison).text}**: {escaped(sentence(comparison.because))}"
        if comparison.changes:
            yield markdown_table(comparison_table(comparison))


def _folded(result: TrialResult, plan: Plan | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "Knees", (markdown_table(knee_table(result)),)
    if is_jumpstart(result) and result.levels:
        yield "By the JumpStart article's protocol", (markdown_table(jumpstart_table(result, plan)),)
    failures = [failure_table(result)] if has_failures(result) else []
    failures += [unmeasured_table(result)] if has_unmeasured_failures(result) else []
    if failures:
        yield "Failed requests", tuple(map(markdown_table, failures))
    if plan is not None and result.levels and is_comparable(result, plan):
        tables = map(markdown_table, comparison_tables(result, plan))
        yield "Predicted beside measured, one copy", (escaped(band_text(plan)), *tables)
    if plan is not None:
        yield "Cost", (markdown_table(cost_table(result, plan)),)
    elif result.request.usd_per_hour_per_copy is not None and not result.engine_note and result.levels:
        yield "Cost", (markdown_table(level_cost_table(result)),)
    if any(level.client is not None for level in result.levels):
        yield "Was the client the limit?", (escaped(validity_sentence(result)), markdown_table(validity_table(result)))


def _origin(result: TrialResult) -> str:
    version = f", Seatrial {escaped(result.seatrial_version)}" if result.seatrial_version else ""
    plan = f"Plan `{escaped(result.request.plan_digest)}`, started" if result.request.plan_digest else "Started"
    return f"{plan} {escaped(result.started_at)}{version}."
