"""Findings as text, as JSON and as SARIF 2.1.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from seatrial.secrets import redacted
from seatrial.serving.lint.rules import LINT_RULES
from seatrial.spec.rules import RULES
from seatrial.units import counted

if TYPE_CHECKING:
    from seatrial.serving.lint.finding import Finding, Severity
    from seatrial.serving.lint.lint import LintReport

Json: TypeAlias = bool | int | str | list["Json"] | dict[str, "Json"]

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


def as_text(report: LintReport) -> str:
    """Return how many findings there are, and each: errors first, then by file and line; empty without any."""
    if not report.findings:
        return ""
    by_severity = {
        severity: [finding for finding in report.findings if finding.severity == severity] for severity in SEVERITIES
    }
    counts = ", ".join(counted(len(found), severity) for severity, found in by_severity.items() if found)
    files = counted(len({finding.file for finding in report.findings}), "file")
    lines = [f"{counts} in {files}", *(str(finding) for found in by_severity.values() for finding in found)]
    return "".join(f"{line}\n" for line in lines)


def as_json(report: LintReport) -> list[Json]:
    """Return the findings as objects of file, line, key, rule, severity, message and fix."""
    return [_row(finding) for finding in report.findings]


def _row(finding: Finding) -> Json:
    return {
        "file": redacted(finding.file),
        "line": finding.line,
        "key": finding.key,
        "rule": finding.rule,
        "severity": finding.severity,
        "message": finding.message,
        "fix": finding.fix,
    }


def as_sarif(report: LintReport, version: str) -> Json:
    """Return the findings as a SARIF log of one run; what each file was read as is a notification."""
    used = sorted({finding.rule for finding in report.findings})
    notes: list[Json] = [{"level": "note", "message": {"text": reading}} for reading in report.readings]
    notes += [
        {"level": "error", "message": {"text": redacted(f"{one.file}: {one.because}")}} for one in report.unreadable
    ]
    driver: Json = {"name": "seatrial", "version": version, "rules": [_rule(rule) for rule in used]}
    invocation: Json = {"executionSuccessful": not report.unreadable, "toolExecutionNotifications": notes}
    results: list[Json] = [_result(finding, used.index(finding.rule)) for finding in report.findings]
    run: Json = {"tool": {"driver": driver}, "invocations": [invocation], "results": results}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: str) -> Json:
    return {
        "id": rule,
        "shortDescription": {"text": RULES[rule]},
        "defaultConfiguration": {"level": LINT_RULES[rule].severity},
        "help": {"text": f"Source: {LINT_RULES[rule].source}"},
    }


def _result(finding: Finding, index: int) -> Json:
    fix = f" Fix: {finding.fix}." if finding.fix else ""
    place: Json = {"artifactLocation": {"uri": _uri(redacted(finding.file))}, "region": {"startLine": finding.line}}
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.severity,
        "message": {"text": f"{finding.key}: {finding.message}.{fix}" if finding.key else f"{finding.message}.{fix}"},
        "locations": [{"physicalLocation": place}],
    }


def _uri(path: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 (only SARIF needs it)

    return quote(path)
