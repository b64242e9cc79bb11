"""A drift report as lines, as the Markdown of an issue, and as a document for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from seatrial.operations.drift.finding import SEVERITIES
from seatrial_base.markdown import escaped
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial.operations.drift.finding import DriftFinding, DriftReport, EndpointDrift

SCHEMA = "1"


def title_of(report: DriftReport) -> str:
    """Return one line: the environment, and how much was found."""
    return f"Drift in {report.environment}: {counted(report.count, 'finding')}"


def ordered(findings: Iterable[DriftFinding]) -> list[DriftFinding]:
    """Return findings, the severest first, then by rule and what was compared."""
    return sorted(findings, key=lambda each: (SEVERITIES.index(each.severity), each.rule, each.what, each.live))


def as_lines(report: DriftReport) -> Iterator[str]:
    """Yield the report for a terminal."""
    yield title_of(report)
    for each in report.endpoints:
        yield ""
        yield f"{each.endpoint}: {', '.join(_facts(each)) or 'nothing could be asked'}"
        yield from (f"  {line}" for line in _told(each.findings, each.not_asked))
    if report.findings or report.not_asked:
        yield ""
        yield report.environment
        yield from (f"  {line}" for line in _told(report.findings, report.not_asked))


def _facts(drift: EndpointDrift) -> Iterator[str]:
    if drift.status:
        yield drift.status
    if drift.deployed_digest:
        yield f"plan {drift.deployed_digest}"
    if drift.trial:
        yield f"trial {drift.trial}"
    if drift.scheduled_trial:
        yield f"scheduled trial {drift.scheduled_trial}"


def _told(findings: Iterable[DriftFinding], not_asked: Iterable[str]) -> Iterator[str]:
    for each in ordered(findings):
        expected = f", expected {each.expected}" if each.expected else ""
        yield f"{each.severity}: {each.rule}: {each.what}: {each.live}{expected}"
        if each.hint:
            yield f"  hint: {each.hint}"
    yield from (f"could not be asked: {line}" for line in not_asked)


def as_markdown(report: DriftReport) -> str:
    """Return the report as the body of an issue; its first line is the title."""
    lines = [f"# {title_of(report)}", ""]
    for each in report.endpoints:
        lines += [
            f"## {escaped(each.endpoint)}",
            "",
            "; ".join(map(escaped, _facts(each))) or "Nothing could be asked.",
            "",
        ]
        lines += [*_table(each.findings), *_unasked(each.not_asked)]
    if report.findings or report.not_asked:
        lines += [
            f"## {escaped(report.environment)} as a whole",
            "",
            *_table(report.findings),
            *_unasked(report.not_asked),
        ]
    return "\n".join(lines).rstrip() + "\n"


def _table(findings: Iterable[DriftFinding]) -> list[str]:
    rows = [
        f"| {each.severity} | {each.rule} | {escaped(each.what)} | {escaped(each.expected)} | {escaped(each.live)} | "
        f"{escaped(each.hint)} |"
        for each in ordered(findings)
    ]
    if not rows:
        return ["No finding.", ""]
    return ["| severity | rule | what | expected | live | to do |", "|---|---|---|---|---|---|", *rows, ""]


def _unasked(lines: Iterable[str]) -> list[str]:
    told = [f"- Could not be asked: {escaped(line)}" for line in lines]
    return [*told, ""] if told else []


def as_document(report: DriftReport) -> dict[str, object]:
    """Return the report as a document for programs."""
    return {
        "schema_version": SCHEMA,
        "environment": report.environment,
        "count": report.count,
        "endpoints": [
            {**asdict(each), "findings": [asdict(found) for found in ordered(each.findings)]}
            for each in report.endpoints
        ],
        "findings": [asdict(found) for found in ordered(report.findings)],
        "not_asked": list(report.not_asked),
    }
