"""The report of a drift check, per endpoint and for the environment as a whole, and its views."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from seatrial_base.findings import Finding, Place
from seatrial_base.printer import Judgement, finding_rows, markdown_lines, text_lines
from seatrial_base.text import escaped
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial_base.findings import Severity
    from seatrial_base.printer import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointDrift:
    """The differences of one endpoint.

    Attributes:
        endpoint: Its name in the spec.
        status: CloudFormation's status of the stack; empty where it could not be read.
        plan_digest: The locked plan; empty where the lock can't be read.
        deployed_digest: The deployed plan; empty where it is unknown.
        trial: Verdict and date of the last trial; empty where it is unknown.
        trial_verdict: Its verdict alone; `error` where it could not be made, empty where it is unknown.
        trial_date: The day on which it ended, in UTC; empty where it is unknown.
        scheduled_trial: The same as `trial` of the last scheduled trial.
        day: A live day beside its simulation; empty where none was requested or read.
        unreadable: What could not be read, with the reason; no finding.
    """

    endpoint: str
    stack_name: str
    status: str = ""
    plan_digest: str = ""
    deployed_digest: str = ""
    trial: str = ""
    trial_verdict: str = ""
    trial_date: str = ""
    scheduled_trial: str = ""
    day: str = ""
    findings: tuple[Finding, ...] = ()
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """The differences in one environment.

    Attributes:
        endpoints: Every endpoint that has a lock there, by name.
        findings: Of the environment as a whole.
        unreadable: What could not be read.
    """

    environment: str
    endpoints: tuple[EndpointDrift, ...]
    findings: tuple[Finding, ...] = ()
    unreadable: tuple[str, ...] = ()

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """The findings of all endpoints, each with its endpoint, and those of the environment."""
        placed = (
            replace(finding, place=replace(finding.place, resource=drift.endpoint))
            for drift in self.endpoints
            for finding in drift.findings
        )
        return (*placed, *self.findings)


def drift_finding(
    *, rule: str, severity: Severity, what: str, live: str, expected: str = "", hint: str = ""
) -> Finding:
    """Return one difference.

    Args:
        severity: `error`: users or the next deployment are affected; `warning`: the endpoint is not the locked one;
            `note`: nothing is wrong yet.
        expected: The value in the lock, or of the deployment; empty where there is nothing to compare.
    """
    message = f"{live}, expected {expected}" if expected else live
    return Finding(rule, Place(field=what), message, hint, severity)


def drift_judgement(report: DriftReport) -> Judgement:
    """Return the report for the printer; its facts are the endpoints."""
    endpoints: list[Json] = []
    for drift in report.endpoints:
        of_drift = {**asdict(drift), "findings": finding_rows(drift.findings)}
        endpoints.append({**of_drift, "not_asked": of_drift.pop("unreadable")})  # the key of earlier releases
    facts: dict[str, Json] = {"environment": report.environment, "endpoints": endpoints, "not_asked": report.unreadable}
    return Judgement(command="drift", findings=report.all_findings, facts=facts)


def _title(report: DriftReport) -> str:
    return f"Drift in {report.environment}: {counted(len(report.all_findings), 'finding')}"


def drift_lines(report: DriftReport) -> Iterator[str]:
    """Yield the report for a terminal."""
    yield _title(report)
    for drift in report.endpoints:
        yield ""
        yield f"{drift.endpoint}: {', '.join(_facts(drift)) or 'nothing could be read'}"
        yield from _indented(drift.findings, drift.unreadable)
    if report.findings or report.unreadable:
        yield ""
        yield report.environment
        yield from _indented(report.findings, report.unreadable)


def _facts(drift: EndpointDrift) -> Iterator[str]:
    if drift.status:
        yield drift.status
    if drift.deployed_digest:
        yield f"plan {drift.deployed_digest}"
    if drift.trial:
        yield f"trial {drift.trial}"
    if drift.scheduled_trial:
        yield f"scheduled trial {drift.scheduled_trial}"
    if drift.day:
        yield drift.day


def _indented(findings: Iterable[Finding], unread: Iterable[str]) -> Iterator[str]:
    yield from (f"  {line}" for line in text_lines(findings))
    yield from (f"  could not be read: {line}" for line in unread)


def drift_markdown(report: DriftReport) -> str:
    """Return the report as the body of an issue; its first line is the title."""
    lines = [f"# {_title(report)}", ""]
    for drift in report.endpoints:
        facts = "; ".join(map(escaped, _facts(drift))) or "Nothing could be read."
        lines += [f"## {escaped(drift.endpoint)}", "", facts, "", *_section(drift.findings, drift.unreadable)]
    if report.findings or report.unreadable:
        lines += [f"## {escaped(report.environment)} as a whole", "", *_section(report.findings, report.unreadable)]
    return "\n".join(lines).rstrip() + "\n"


def _section(findings: Iterable[Finding], unreadable: Iterable[str]) -> list[str]:
    unread = [f"- Could not be read: {escaped(line)}" for line in unreadable]
    return [*(markdown_lines(findings) or ["No finding."]), "", *(unread and [*unread, ""])]
