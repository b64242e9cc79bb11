"""Findings as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.secrets import redacted
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_lint.template_rules.template_finding import TemplateFinding

SEVERITIES = ("error", "warning")


def findings_text(findings: Sequence[TemplateFinding]) -> str:
    """Return how many findings there are, and each: errors first; empty without any."""
    if not findings:
        return ""
    by_severity = {name: [each for each in findings if each.severity == name] for name in SEVERITIES}
    counts = ", ".join(counted(len(told), name) for name, told in by_severity.items() if told)
    templates = counted(len({each.template for each in findings}), "template")
    lines = (f"{counts} in {templates}", *(str(each) for told in by_severity.values() for each in told))
    return redacted("".join(f"{line}\n" for line in lines))


def findings_rows(findings: Sequence[TemplateFinding]) -> list[dict[str, str]]:
    """Return the findings as objects of template, resource, construct, path, rule, severity, message and hint."""
    return [
        {
            "template": redacted(each.template),
            "resource": each.logical_id,
            "construct": each.construct_path,
            "path": each.path,
            "rule": each.rule,
            "severity": each.severity,
            "message": redacted(each.message),
            "hint": redacted(each.hint),
        }
        for each in findings
    ]
