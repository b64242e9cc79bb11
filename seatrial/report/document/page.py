"""The report as one HTML page that needs nothing else, with the result as files to download."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from seatrial.report.charts import ABSENT, LIBRARY, scripts, source_hash
from seatrial.report.document.baseline import compared_section, comparison_section
from seatrial.report.document.client import container_section, service_section, validity_section
from seatrial.report.document.cost import cost_section, level_cost_section
from seatrial.report.document.header import cautions, header_facts, key_figures, verdict_sentence
from seatrial.report.document.jumpstart import is_jumpstart, jumpstart_section
from seatrial.report.document.levels import (
    curves_section,
    failures_section,
    latencies_section,
    levels_section,
    measurement_section,
    time_section,
)
from seatrial.report.document.prediction import prediction_apart, prediction_beside
from seatrial.report.document.provenance import (
    decisions_section,
    live_section,
    reproduction_section,
    scaled_section,
    start_section,
    trial_name,
)
from seatrial.report.document.slo import checks_section, knees_section, overload_section, quality_section
from seatrial.report.planned import is_comparable, plan_of_trial
from seatrial_base.secrets import redacted
from seatrial_base.table import csv_table, html_cell, html_table, record_table
from seatrial_base.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2 import Environment
    from pydantic import JsonValue

    from seatrial.documents.calibration import Outlook
    from seatrial.documents.plan import Plan
    from seatrial.documents.simulation import CopyStart
    from seatrial.report.document.section import Fact, Section
    from seatrial_base.table import Scalar
    from seatrial_load.documents.distribution import Distribution, Interval
    from seatrial_load.documents.result import LevelResult, TrialResult


SIGNS = {"pass": "✓ Pass", "fail": "✗ Fail", "inconclusive": "? Inconclusive"}
_PLACE = "<!-- {} -->"  # in the template; a text from elsewhere is escaped, so it can't hold this
CSV_FIELDS = (
    "concurrency", "offered_requests_per_s", "arrival", "requests", "succeeded", "error_rate", "window", "window_s",
    "duration_s", "ramp_requests", "output_tok_s", "total_tok_s", "requests_per_s", "goodput_requests_per_s",
    "input_tokens_mean", "input_tokens_p50", "input_tokens_p95", "output_tokens_mean", "output_tokens_p50",
    "output_tokens_p95", "meets_slo",
)  # fmt: skip
CSV_LATENCIES = ("ttft_ms", "tpot_ms", "itl_ms", "ms_per_token", "e2e_latency_ms")
CSV_STATISTICS = ("count", "mean", "p50", "p90", "p95", "p99", "max")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything on the page.

    Attributes:
        sign: The verdict as it is shown.
        cautions: To be read before any number.
        facts: Of the thing on trial.
        sections: Those to decide by.
        details: The rest, folded.
        downloads: The result as files.
        eyebrow: What the page is of, above its title.
    """

    title: str
    status: str
    sign: str
    because: str
    cautions: tuple[str, ...]
    sections: tuple[Section, ...]
    facts: tuple[Fact, ...] = ()
    key_figures: tuple[Fact, ...] = ()
    details: tuple[Section, ...] = ()
    downloads: tuple[Download, ...] = ()
    footer: str = ""
    eyebrow: str = "Sea trial"


def render_html(
    result: TrialResult,
    plan: Plan | None,
    outlook: Outlook | None = None,
    *,
    library: Path = LIBRARY,
    document: str | None = None,
    start: CopyStart | None = None,
) -> str:
    """Write the report as one HTML page.

    Args:
        library: As `page_html` takes it.
        document: What `render_json` wrote of the result, where it is at hand.
        start: What the plan's spec says of the start of a copy.
    """
    return page_html(page_of(result, plan, outlook, document, start), library)


def page_html(page: Page, library: Path = LIBRARY) -> str:
    """Write a page that needs nothing else; equal input gives equal bytes.

    Of credentials, only the first characters are left. Scripts and downloads are put in after these were sought: a
    download is masked already, and its Base64 is three quarters of a page of many levels.

    Args:
        library: The chart library; where it is missing, the page has a note and the tables alone.
    """
    has_charts = any(section.charts for section in (*page.sections, *page.details))
    carried = scripts(library) if has_charts else ()
    policy = " ".join(map(source_hash, carried)) or "'none'"
    absent = ABSENT if has_charts and not carried else ""
    text = redacted(_templates().get_template("report.html.j2").render(page=page, policy=policy, absent=absent))
    text = "\n".join(line if line.isprintable() else printable(line) for line in text.split("\n"))
    for download in page.downloads:
        text = text.replace(_PLACE.format(download.name), download.uri)
    return text.replace(_PLACE.format("scripts"), "\n".join(f"<script>{script}</script>" for script in carried))


def page_of(
    result: TrialResult,
    plan: Plan | None,
    outlook: Outlook | None = None,
    document: str | None = None,
    start: CopyStart | None = None,
) -> Page:
    """Return the report's content; a plan that the trial was not made from is left out with a caution."""
    own = plan_of_trial(result, plan)
    sections = [section for section in _sections(result, own, outlook, start) if not section.is_empty]
    version = f" {result.seatrial_version}" if result.seatrial_version else ""
    return Page(
        title=trial_name(result.request),
        status=result.verdict.status,
        sign=SIGNS[result.verdict.status],
        because=verdict_sentence(result),
        cautions=tuple(cautions(result, plan)),
        facts=tuple(header_facts(result, own)),
        key_figures=tuple(key_figures(result)),
        sections=tuple(section for section in sections if not section.detail),
        details=tuple(section for section in sections if section.detail),
        downloads=downloads_of(result, document),
        footer=f"Measured by Seatrial{version}, {result.started_at}. Result schema {result.schema_version}.",
    )


def _sections(
    result: TrialResult, plan: Plan | None, outlook: Outlook | None, start: CopyStart | None
) -> Iterator[Section]:
    yield curves_section(result, plan)
    yield checks_section(result)
    yield scaled_section(result)
    yield quality_section(result)
    yield overload_section(result)
    yield container_section(result)
    yield cost_section(result, plan)
    yield levels_section(result)
    yield comparison_section(result)
    if is_jumpstart(result):
        yield jumpstart_section(result, plan)
    yield latencies_section(result)
    yield time_section(result)
    yield failures_section(result)
    if plan is not None:
        comparable = is_comparable(result, plan)
        yield prediction_beside(result, plan, outlook) if comparable else prediction_apart(result, plan)
    yield start_section(result, start if plan is not None else None)
    yield knees_section(result)
    yield measurement_section(result)
    yield level_cost_section(result, plan)
    yield compared_section(result)
    yield validity_section(result)
    yield service_section(result)
    yield live_section(result)
    if plan is not None:
        yield decisions_section(plan)
    yield reproduction_section(result)


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (only a page needs Jinja)

    loader = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {
        "cell_html": lambda cell: Markup(html_cell(cell)),  # noqa: S704 (the writer escapes)
        "table_html": lambda table: Markup(html_table(table)),  # noqa: S704 (likewise)
    }
    return environment


@dataclass(frozen=True, slots=True)
class Download:
    """One file.

    Attributes:
        uri: The file itself, as a `data:` URI.
    """

    name: str
    label: str
    uri: str


def downloads_of(result: TrialResult, document: str | None = None) -> tuple[Download, ...]:
    """Return the result as JSON and its levels as CSV; of credentials, only the first characters are left."""
    return (
        Download("report.json", "JSON", data_uri("application/json", document or render_json(result))),
        Download("report.csv", "CSV", data_uri("text/csv", redacted(render_csv(result)))),
    )


def render_json(result: TrialResult) -> str:
    """Write the result as indented JSON; of credentials, only the first characters are left."""
    return redacted(f"{_indented(json.loads(result.to_json()), '')}\n")


def _indented(value: JsonValue, pad: str) -> str:
    """Write JSON as `json.dumps` does with `indent=2`; what holds no other object or list is written in C."""
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value)
    inner = f"{pad}  "
    members = value.values() if isinstance(value, dict) else value
    if not any(isinstance(member, dict | list) for member in members):
        text = _encoder(inner).encode(value)
        return f"{text[0]}\n{inner}{text[1:-1]}\n{pad}{text[-1]}"
    if isinstance(value, dict):
        lines = (f"{json.dumps(key)}: {_indented(one, inner)}" for key, one in value.items())
        return f"{{\n{inner}{f',{chr(10)}{inner}'.join(lines)}\n{pad}}}"
    return f"[\n{inner}{f',{chr(10)}{inner}'.join(_indented(one, inner) for one in value)}\n{pad}]"


@cache
def _encoder(inner: str) -> json.JSONEncoder:
    return json.JSONEncoder(separators=(f",\n{inner}", ": "))


def render_csv(result: TrialResult) -> str:
    """Write one row for each level, its columns named by the fields of the JSON; what is missing is empty."""
    records = [dict(_cells(level)) for level in result.levels]
    return csv_table(record_table(list(records[0]) if records else CSV_FIELDS, records))


def _cells(level: LevelResult) -> Iterator[tuple[str, Scalar]]:
    for name in CSV_FIELDS:
        yield name, getattr(level, name)
    yield from _ends("output_tok_s", level.output_tok_s_interval)
    yield from _ends("error_rate", level.error_rate_interval)
    for field in CSV_LATENCIES:
        values: Distribution | None = getattr(level, field)
        for name in CSV_STATISTICS:
            yield f"{field}_{name}", None if values is None else getattr(values, name)
        for name in CSV_STATISTICS[1:-1]:
            yield from _ends(f"{field}_{name}", None if values is None else values.intervals.get(name))
    yield "void_because", "" if level.void is None else level.void.because
    yield "cut_because", level.cut


def _ends(name: str, interval: Interval | None) -> Iterator[tuple[str, float | None]]:
    yield f"{name}_low", None if interval is None else interval.low
    yield f"{name}_high", None if interval is None else interval.high


def data_uri(kind: str, text: str) -> str:
    """Return a text as a `data:` URI."""
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
