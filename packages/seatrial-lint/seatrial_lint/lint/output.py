"""Findings as text, as JSON and as SARIF 2.1.0."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from seatrial_base.rules import RULES
from seatrial_base.secrets import redacted
from seatrial_base.units import counted
from seatrial_lint.lint.rules import LINT_RULES

if TYPE_CHECKING:
    from seatrial_lint.lint.finding import Finding, Severity
    from seatrial_lint.lint.lint import LintReport

Json: TypeAlias = bool | int | str | list["Json"] | dict[str, "Json"]

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


MOST_LISTED = 100
"""Findings of one rule in one file that are written; --fix mends the others too."""
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


def summary(report: LintReport) -> str:
    """Return how many files were read, and how many findings of each severity they have."""
    counts = [sum(one.severity == severity for one in report.findings) for severity in SEVERITIES]
    told = (counted(count, severity) for count, severity in zip(counts, SEVERITIES, strict=True))
    return f"{counted(report.files, 'file')}: {', '.join(told)}"


def as_text(report: LintReport) -> str:
    """Return each finding: errors first, then by file and line; empty without any."""
    findings = _listed(report)
    ordered = (one for severity in SEVERITIES for one in findings if one.severity == severity)
    return "".join(f"{one}\n" for one in ordered)


def _listed(report: LintReport) -> list[Finding]:
    """Return the findings that are written: of a rule the first ones of each file, then one that counts the rest."""
    counts = Counter((one.file, one.rule) for one in report.findings)
    seen: Counter[tuple[str, str]] = Counter()
    listed: list[Finding] = []
    for finding in report.findings:
        place = finding.file, finding.rule
        seen[place] += 1
        if seen[place] <= MOST_LISTED:
            listed.append(finding)
        elif seen[place] == MOST_LISTED + 1:
            message = f"{counts[place] - MOST_LISTED:,} more findings of this rule in this file are not listed"
            listed.append(replace(finding, key="", message=message, fix="", edit=None))
    return listed


def as_json(report: LintReport) -> list[Json]:
    """Return the findings as objects of file, line, key, rule, severity, message and fix."""
    return [_row(finding) for finding in _listed(report)]


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
    listed = _listed(report)
    used = sorted({finding.rule for finding in listed})
    notes: list[Json] = [{"level": "note", "message": {"text": reading}} for reading in report.readings]
    notes += [
        {"level": "error", "message": {"text": redacted(f"{one.file}: {one.because}")}} for one in report.unreadable
    ]
    driver: Json = {"name": "seatrial", "version": version, "rules": [_rule(rule) for rule in used]}
    invocation: Json = {"executionSuccessful": not report.unreadable, "toolExecutionNotifications": notes}
    results: list[Json] = [_result(finding, used.index(finding.rule)) for finding in listed]
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
