"""The report as Markdown for a pull request: verdict and levels first, the rest folded below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.document.baseline import compared_section, comparison_section
from seatrial.report.document.client import validity_section
from seatrial.report.document.cost import cost_section, level_cost_section
from seatrial.report.document.header import cautions, verdict_sentence
from seatrial.report.document.jumpstart import is_jumpstart, jumpstart_section
from seatrial.report.document.levels import failures_section, levels_section, time_section
from seatrial.report.document.prediction import prediction_beside
from seatrial.report.document.provenance import scaled_section, start_section, trial_name
from seatrial.report.document.slo import checks_section, knees_section, overload_section, quality_section
from seatrial.report.planned import is_comparable, plan_of_trial
from seatrial_base.table import markdown_table
from seatrial_base.text import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.documents.plan import Plan
    from seatrial.documents.simulation import CopyStart
    from seatrial.report.document.section import Fact, Section
    from seatrial_load.documents.result import TrialResult


def render_markdown(result: TrialResult, plan: Plan | None, start: CopyStart | None = None) -> str:
    """Write the short report; equal input gives equal text."""
    return "\n\n".join(_blocks(result, plan, start)) + "\n"


def _blocks(result: TrialResult, plan: Plan | None, start: CopyStart | None) -> Iterator[str]:
    own = plan_of_trial(result, plan)
    yield f"## Sea trial of {escaped(trial_name(result.request))}: {result.verdict.status}"
    yield f"**{result.verdict.status.upper()}**: {escaped(verdict_sentence(result))}"
    yield from (f"> {escaped(caution)}" for caution in cautions(result, plan))
    yield from section_blocks(checks_section(result))
    yield from section_blocks(quality_section(result))
    yield from section_blocks(overload_section(result))
    yield from section_blocks(levels_section(result))
    yield from section_blocks(cost_section(result, own))
    yield from section_blocks(comparison_section(result))
    for section in _details(result, own, start):
        if not section.is_empty:
            yield "\n\n".join((f"<details>\n<summary>{section.heading}</summary>", *_body(section), "</details>"))
    yield _origin(result)


def _details(result: TrialResult, plan: Plan | None, start: CopyStart | None) -> Iterator[Section]:
    yield scaled_section(result)
    yield knees_section(result)
    if is_jumpstart(result) and result.levels:
        yield jumpstart_section(result, plan)
    yield time_section(result)
    yield failures_section(result)
    if plan is not None and result.levels and is_comparable(result, plan):
        yield prediction_beside(result, plan)
    yield start_section(result, start if plan is not None else None)
    yield level_cost_section(result, plan)
    yield compared_section(result)
    yield validity_section(result)


def section_blocks(section: Section) -> Iterator[str]:
    """Yield a section's heading and parts; nothing of an empty one."""
    if not section.is_empty:
        yield f"### {section.heading}"
        yield from _body(section)


def _body(section: Section) -> Iterator[str]:
    yield from map(escaped, section.paragraphs)
    if section.facts:
        yield "\n".join(f"- {escaped(fact.name)}: {_fact(fact)}" for fact in section.facts)
    for table in section.tables:
        yield "\n".join(markdown_table(table))
    if section.remarks:
        yield "\n".join(f"- {escaped(remark)}" for remark in section.remarks)


def _fact(fact: Fact) -> str:
    value = fact.value.missing_because or fact.value.text
    return escaped(f"{value} ({fact.aside})" if fact.aside else value)


def _origin(result: TrialResult) -> str:
    version = f", Seatrial {escaped(result.seatrial_version)}" if result.seatrial_version else ""
    plan = f"Plan `{escaped(result.request.plan_digest)}`, started" if result.request.plan_digest else "Started"
    return f"{plan} {escaped(result.started_at)}{version}."
