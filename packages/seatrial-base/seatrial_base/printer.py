"""The one printer of findings: text, JSON, SARIF 2.1.0, Markdown, and GitHub's workflow commands.

Whatever a finding quotes is printed without credentials and control characters, and without markup of the format.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from seatrial_base import __version__
from seatrial_base.findings import RULES, SEVERITIES, Place, severity_rank
from seatrial_base.secrets import redacted
from seatrial_base.text import code, escaped, printable
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from seatrial_base.findings import Finding, Format, Severity

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

# Of the JSON document; 1 were the documents of each command.
SCHEMA: Final = "2"
SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
# Characters of a message, or of another part of a finding, that are printed: what it quotes may be of any length.
LONGEST_SHOWN: Final = 4_096
_GITHUB_LEVELS: Final[Mapping[Severity, str]] = {"error": "error", "warning": "warning", "note": "notice"}
_COLUMNS = ("severity", "rule", "where", "what", "to do")


# Findings of one rule in one file that are reported one by one.
MOST_LISTED: Final = 100


def listed(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the first findings of each rule in each file, then one that counts the rest, at the place of the next."""
    every = list(findings)
    counts = Counter((one.place.file, one.rule) for one in every)
    seen: Counter[tuple[str, str]] = Counter()
    for finding in every:
        place = finding.place.file, finding.rule
        seen[place] += 1
        if seen[place] <= MOST_LISTED:
            yield finding
        elif seen[place] == MOST_LISTED + 1:
            message = f"{counts[place] - MOST_LISTED:,} more findings of this rule in this file are not listed"
            yield replace(finding, place=replace(finding.place, field=""), message=message, hint="", edit=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a command that judges has to say.

    Attributes:
        command: The command (`check`).
        findings: What its rules say.
        facts: What it tells beside the findings, for programs: keys of the JSON document.
        readings: How files were read, for SARIF.
        failures: Why files could not be read, for SARIF.
    """

    command: str
    findings: Sequence[Finding]
    facts: Mapping[str, Json] = field(default_factory=dict)
    readings: Sequence[str] = ()
    failures: Sequence[str] = ()


def formatted(judgement: Judgement, output_format: Format) -> str:
    """Return a judgement in a format, with a line break at its end; text and GitHub are empty without findings."""
    return _WRITERS[output_format](judgement)


def tally(findings: Iterable[Finding]) -> str:
    """Count findings by severity: `1 error, 2 warnings`; empty for none."""
    counts = Counter(finding.severity for finding in findings)
    return ", ".join(counted(counts[severity], severity) for severity in SEVERITIES if counts[severity])


def text_lines(findings: Iterable[Finding]) -> list[str]:
    """Return findings as lines, errors first: place, rule, severity and message, and below it how to fix it."""
    return [line for finding in _ordered(findings) for line in _text(finding)]


def markdown_lines(findings: Iterable[Finding]) -> list[str]:
    """Return findings as a table of Markdown, errors first; empty for none."""
    rows: list[str] = []
    for each in _ordered(findings):
        where = code(f"{each.place}") if f"{each.place}" else ""
        rows.append(f"| {' | '.join((each.severity, each.rule, where, escaped(each.message), escaped(each.hint)))} |")
    return [f"| {' | '.join(_COLUMNS)} |", f"|{' --- |' * len(_COLUMNS)}", *rows] if rows else []


def finding_rows(findings: Iterable[Finding]) -> list[dict[str, Json]]:
    """Return findings as objects of JSON, errors first."""
    return [_row(finding) for finding in _ordered(findings)]


def _ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Return what may be shown of findings, errors first, in their own order else."""
    return sorted(map(_shown, findings), key=severity_rank)


def _shown(finding: Finding) -> Finding:
    place = finding.place
    shown = Place(_plain(place.file), place.line, *map(_plain, (place.resource, place.field, place.construct_path)))
    message, hint, source, seen = map(_plain, (finding.message, finding.hint, finding.source, finding.evidence))
    return replace(finding, place=shown, message=message, hint=hint, source=source, evidence=seen)


def _plain(text: str) -> str:
    shown = redacted(printable(text.replace("\r\n", "\n")))
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}… ({len(shown):,} characters)"


def _text(finding: Finding) -> list[str]:
    parts = (f"{finding.place}", finding.rule, finding.severity, finding.message)
    head = " ".join(": ".join(part for part in parts if part).splitlines())
    return [head, f"  hint: {' '.join(finding.hint.splitlines())}"] if finding.hint else [head]


def _as_json(judgement: Judgement) -> str:
    counts = Counter(finding.severity for finding in judgement.findings)
    document: dict[str, Json] = {
        "schema_version": SCHEMA,
        "command": judgement.command,
        **judgement.facts,
        "findings": finding_rows(judgement.findings),
        "counts": {severity: counts[severity] for severity in SEVERITIES},
    }
    return _json(document)


def _json(document: Json) -> str:
    return f"{json.dumps(_redacted(document), indent=2, ensure_ascii=False)}\n"


def _redacted(value: Json, name: str = "") -> Json:
    if isinstance(value, str):
        return redacted(value, name=name)
    if isinstance(value, dict):
        return {key: _redacted(inner) for key, inner in value.items()}
    return [_redacted(inner) for inner in value] if isinstance(value, list | tuple) else value


def _row(finding: Finding) -> dict[str, Json]:
    place = finding.place
    return {
        "rule": finding.rule,
        "title": RULES[finding.rule].title if finding.rule in RULES else "",
        "severity": finding.severity,
        "file": place.file,
        "line": place.line or None,
        "resource": place.resource,
        "field": place.field,
        "construct": place.construct_path,
        "message": finding.message,
        "hint": finding.hint,
        "source": (finding.source or (RULES[finding.rule].source if finding.rule in RULES else "")),
        "evidence": finding.evidence,
    }


def _as_markdown(judgement: Judgement) -> str:
    lines = markdown_lines(judgement.findings)
    head = f"### Seatrial {judgement.command}: {tally(judgement.findings) or 'nothing wrong'}"
    return "\n".join([head, *([""] if lines else []), *lines, ""])


def _as_sarif(judgement: Judgement) -> str:
    findings = _ordered(judgement.findings)
    used = sorted({finding.rule for finding in findings if finding.rule})
    notes = [_notification("note", text) for text in judgement.readings]
    notes += [_notification("error", text) for text in judgement.failures]
    driver: Json = {"name": "seatrial", "version": __version__, "rules": [_sarif_rule(rule) for rule in used]}
    run: Json = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": not judgement.failures, "toolExecutionNotifications": notes}],
        "results": [_sarif_result(finding, used) for finding in findings],
    }
    return _json({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def _notification(level: str, text: str) -> dict[str, Json]:
    return {"level": level, "message": {"text": _plain(text)}}


def _sarif_rule(name: str) -> Json:
    if name not in RULES:
        return {"id": name}
    rule = RULES[name]
    described: dict[str, Json] = {
        "id": name,
        "shortDescription": {"text": rule.title},
        "defaultConfiguration": {"level": rule.severity},
    }
    return described | ({"help": {"text": f"Source: {rule.source}"}} if rule.source else {})


def _sarif_result(finding: Finding, used: Sequence[str]) -> Json:
    parts = (finding.place.resource, finding.field, finding.message)
    hint = f" Hint: {finding.hint}." if finding.hint else ""
    rule: dict[str, Json] = {"ruleId": finding.rule, "ruleIndex": used.index(finding.rule)} if finding.rule else {}
    from urllib.parse import quote  # noqa: PLC0415 (only SARIF needs it)

    physical: dict[str, Json] = {"artifactLocation": {"uri": quote(finding.place.file)}} if finding.place.file else {}
    if physical and finding.place.line:
        physical["region"] = {"startLine": finding.place.line}
    name = finding.place.construct_path or finding.place.resource
    logical: dict[str, Json] = {"logicalLocations": [{"fullyQualifiedName": name}]} if name else {}
    location = {**({"physicalLocation": physical} if physical else {}), **logical}
    return {
        **rule,
        "level": finding.severity,
        "message": {"text": f"{': '.join(part for part in parts if part)}.{hint}"},
        "locations": [location] if location else [],
    }


def _workflow_command(finding: Finding) -> str:
    """Return an annotation as a runner of GitHub Actions reads it (actions/toolkit, packages/core/src/command.ts)."""
    place = finding.place
    named = {"file": place.file, "line": f"{place.line or ''}", "title": finding.rule}
    data = {name: _command_data(text).replace(":", "%3A").replace(",", "%2C") for name, text in named.items()}
    properties = ",".join(f"{name}={text}" for name, text in data.items() if text)
    parts = (place.resource, place.field, finding.message)
    hint = f"\nhint: {finding.hint}" if finding.hint else ""
    text = _command_data(f"{': '.join(part for part in parts if part)}{hint}")
    return f"::{_GITHUB_LEVELS[finding.severity]} {properties}::{text}"


def _command_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


_WRITERS: Final[Mapping[Format, Callable[[Judgement], str]]] = {
    "text": lambda judgement: "".join(f"{line}\n" for line in text_lines(judgement.findings)),
    "json": _as_json,
    "sarif": _as_sarif,
    "markdown": _as_markdown,
    "github": lambda judgement: "".join(f"{_workflow_command(each)}\n" for each in _ordered(judgement.findings)),
}
