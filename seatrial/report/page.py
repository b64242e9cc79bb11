"""The whole report as sections, and its HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.printable import printable
from seatrial.report.between import between_section
from seatrial.report.caution import cautions, is_comparable, plan_of_trial
from seatrial.report.cell import Cell, as_set, count, money, number, seconds
from seatrial.report.command import ARRIVALS, trial_name
from seatrial.report.comparison import comparison_section
from seatrial.report.cost import NO_MEASURED_COST, cost_section, has_cost
from seatrial.report.curves import curves_section
from seatrial.report.failures import failures_section
from seatrial.report.judgement import checks_section, knees_section
from seatrial.report.jumpstart import is_jumpstart, jumpstart_section
from seatrial.report.latencies import latencies_section
from seatrial.report.level_values import NO_SECOND_TOKEN, NO_TOKEN_COUNT, NOT_STREAMED, statistic_of, why_missing
from seatrial.report.levels import levels_section
from seatrial.report.prediction import prediction_apart, prediction_beside
from seatrial.report.provenance import decisions_section, live_section, reproduction_section
from seatrial.report.section import Fact, Section
from seatrial.report.validity import validity_section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2 import Environment

    from seatrial.bench.result import LevelResult, TrialResult
    from seatrial.plan.document import Plan
    from seatrial.report.outlook import Outlook

SIGNS = {"pass": "✓ Pass", "fail": "✗ Fail", "inconclusive": "? Inconclusive"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything on the page.

    Attributes:
        title: The endpoint and its environment.
        status: The verdict: pass, fail, inconclusive.
        sign: The verdict as it is shown.
        because: The verdict's reason.
        cautions: What must be known before any number is read.
        facts: What was put on trial.
        key_figures: The few numbers that matter most.
        sections: The rest.
        footer: What wrote the page, and from what.
    """

    title: str
    status: str
    sign: str
    because: str
    cautions: tuple[str, ...]
    facts: tuple[Fact, ...]
    key_figures: tuple[Fact, ...]
    sections: tuple[Section, ...]
    footer: str


def render_html(result: TrialResult, plan: Plan | None, outlook: Outlook | None = None) -> str:
    """Write the report as one HTML page that needs nothing else; equal input gives equal bytes.

    Args:
        result: The trial.
        plan: A locked plan.
        outlook: The calibration that the trial would give; None when the spec isn't at hand.
    """
    return printable(_templates().get_template("report.html.j2").render(page=page_of(result, plan, outlook)))


def page_of(result: TrialResult, plan: Plan | None, outlook: Outlook | None = None) -> Page:
    """Return the report's content; a plan that the trial was not made from is left out, and this is said."""
    own = plan_of_trial(result, plan)
    return Page(
        title=trial_name(result.request),
        status=result.verdict.status,
        sign=SIGNS[result.verdict.status],
        because=result.verdict.because,
        cautions=tuple(cautions(result, plan)),
        facts=tuple(_facts(result, own)),
        key_figures=tuple(_key_figures(result)),
        sections=tuple(_sections(result, own, outlook)),
        footer=_footer(result),
    )


def _footer(result: TrialResult) -> str:
    version = f" {result.seatrial_version}" if result.seatrial_version else ""
    return f"Measured by Seatrial{version}, {result.started_at}. Result schema {result.schema_version}."


def _facts(result: TrialResult, plan: Plan | None) -> Iterator[Fact]:
    request = result.request
    work, target = request.workload, request.target
    place = target.region if target.kind == "sagemaker" else str(target.endpoint_url)
    yield Fact("Endpoint", Cell(target.endpoint_name, tone="code"), place)
    if plan is not None:
        yield Fact("Model", Cell(plan.model_name))
        yield Fact("Planned on", Cell(plan.instance_type.value), f"{plan.engine.value} {plan.engine_version.value}")
    streamed = "streamed" if work.stream else "not streamed"
    yield Fact("Workload", Cell(f"{work.input_tokens:,} + {work.output_tokens:,} tokens"), f"{work.schema}, {streamed}")
    yield Fact("Load", Cell(ARRIVALS[request.load.arrival]), f"{request.load.search}, {request.load.protocol}")
    yield Fact("Copies", count(request.copy_count))
    yield Fact("Started", Cell(result.started_at.replace("T", " ")), f"took {seconds(result.duration_s)}")


def _key_figures(result: TrialResult) -> Iterator[Fact]:
    level, at_gate = _gate_level(result)
    unmeasured = f"concurrency {result.request.gate_concurrency} was not measured"
    target = as_set(result.target_concurrency_per_copy)
    yield Fact("Scaling target", target, "requests in flight per copy")
    for name, unit, value, otherwise in _gate_values(level):
        because = otherwise if level else unmeasured
        yield Fact(name, number(value, because, unit=unit), because if value is None else at_gate)
    if not result.engine_note:
        usd = result.usd_per_million_output_tokens
        aside = NO_MEASURED_COST if usd is None else "per million output tokens"
        yield Fact("Measured cost", money(usd, NO_MEASURED_COST), aside)


def _gate_level(result: TrialResult) -> tuple[LevelResult | None, str]:
    """Return the level that the verdict is about, and where it stands: of an open loop, the highest rate offered."""
    offered = [level for level in result.levels if level.offered_requests_per_s is not None]
    if offered:
        return offered[-1], f"at {offered[-1].offered_requests_per_s:,.3g} requests/s offered"
    gate = result.request.gate_concurrency
    level = next((level for level in result.levels if level.concurrency == gate), None)
    return level, f"at the gate, {gate} per copy"


def _gate_values(level: LevelResult | None) -> tuple[tuple[str, str, float | None, str], ...]:
    """Return throughput, TTFT and TPOT: name, unit, value, and why it may be missing."""
    if level is None:
        return ("Throughput", "tok/s", None, ""), ("TTFT p95", "ms", None, ""), ("TPOT p95", "ms", None, "")
    return (
        ("Throughput", "tok/s", level.output_tok_s, why_missing(level, NO_TOKEN_COUNT)),
        ("TTFT p95", "ms", statistic_of(level.ttft_ms, "p95"), why_missing(level, NOT_STREAMED)),
        ("TPOT p95", "ms", statistic_of(level.tpot_ms, "p95"), why_missing(level, NO_SECOND_TOKEN)),
    )


def _sections(result: TrialResult, plan: Plan | None, outlook: Outlook | None) -> Iterator[Section]:
    yield curves_section(result, plan)
    yield checks_section(result)
    yield knees_section(result)
    yield comparison_section(result)
    yield levels_section(result)
    if is_jumpstart(result):
        yield jumpstart_section(result, plan)
    yield latencies_section(result)
    yield failures_section(result)
    if plan is not None:
        beside = is_comparable(result, plan)
        yield prediction_beside(result, plan, outlook) if beside else prediction_apart(result, plan)
    if has_cost(result, plan):
        yield cost_section(result, plan)
    yield validity_section(result)
    yield between_section(result)
    yield live_section(result)
    if plan is not None:
        yield decisions_section(plan)
    yield reproduction_section(result)


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (only a page needs Jinja)

    loader = FileSystemLoader(Path(__file__).parent / "templates")
    return Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
