"""Views of an examination: the result in one line, the parts as a table, the details, a document for programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal

from seatrial.documents.live import IN_TRANSIT
from seatrial.operations.doctor.diagnose import container_status
from seatrial_base.printer import Judgement
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.operations.doctor.facts import Examination
    from seatrial.operations.doctor.steps import FixStep
    from seatrial_base.findings import Finding
    from seatrial_base.printer import Json

SHOWN_LINES = 10
"""Last lines of each log that `--why` shows."""
Health = Literal["ok", "problem", "changing", "unknown"]


@dataclass(frozen=True, slots=True)
class PartRow:
    """One row of the table."""

    part: str
    status: str
    health: Health


def answer_line(examination: Examination, diagnoses: tuple[Finding, ...]) -> str:
    """Return the first problem and its remedy, in one line."""
    if diagnoses:
        first = diagnoses[0]
        more = f" ({counted(len(diagnoses) - 1, 'more problem')} below)" if diagnoses[1:] else ""
        return f"{examination.name}: {first.rule}: {first.place.resource}: {first.message} {first.hint}{more}"
    if examination.endpoint.existence != "found":
        state = "is not there yet; its stack is at work" if examination.stack.is_at_work else "could not be read"
        return f"{examination.name}: the endpoint {state}."
    if any(row.health == "changing" for row in part_rows(examination, diagnoses)):
        return f"{examination.name}: it is being changed; nothing is wrong so far."
    return f"{examination.name}: nothing is wrong."


def part_rows(examination: Examination, diagnoses: tuple[Finding, ...]) -> tuple[PartRow, ...]:
    """Return every part with its status."""
    wrong = {finding.place.resource.partition(", ")[0] for finding in diagnoses}
    return tuple(PartRow(part, status, _health(part, status, wrong)) for part, status in _parts(examination))


def _health(part: str, status: str, wrong: set[str]) -> Health:
    if part in wrong:
        return "problem"
    if status.startswith("could not be read"):
        return "unknown"
    in_progress = "IN_PROGRESS" in status and not status.startswith("UPDATE_COMPLETE_CLEANUP")
    return "changing" if in_progress or status.partition(",")[0] in IN_TRANSIT else "ok"


def _parts(examination: Examination) -> Iterator[tuple[str, str]]:
    endpoint = examination.endpoint
    yield f"endpoint {examination.name}", status_words(endpoint.existence, endpoint.status)
    for variant in endpoint.variants:
        yield (
            f"variant {variant.name}",
            f"{variant.current} of {variant.desired} instances, {variant.instance_type or 'instance pools'}",
        )
    for component in examination.components:
        status = f"{component.status}, {component.copies} of {counted(component.desired, 'copy', 'copies')}"
        yield f"inference component {component.name}", status
    for target in examination.targets:
        suspended = f", suspended: {', '.join(target.suspended)}" if target.suspended else ""
        yield f"scalable target {target.resource_id}", f"{target.least} to {target.most}{suspended}"
    for alarm in examination.alarms:
        yield f"alarm {alarm.name}", "ALARM"
    yield f"stack {examination.stack.name}", status_words(examination.stack.existence, examination.stack.status)
    for log in examination.logs:
        yield f"log group {log.group}", status_words(log.existence, f"{counted(len(log.lines), 'line')} read")
    for container in examination.containers:
        yield f"containers of {container.part}", container_status(container)
    for check in examination.checks:
        yield check.subject, f"could not be read: {check.answer}" if check.is_unread else check.answer


def status_words(existence: str, status: str) -> str:
    """Return a status, or that there is none."""
    return {"found": status, "absent": "does not exist"}.get(existence, "could not be read")


def doctor_lines(examination: Examination, diagnoses: tuple[Finding, ...], *, why: bool) -> Iterator[str]:
    """Yield the result, the other problems and the parts; with `why`, the evidence of each and the logs."""
    yield answer_line(examination, diagnoses)
    for each in diagnoses if why else diagnoses[1:]:
        yield ""
        yield from finding_lines(each, why=why)
    yield ""
    rows = part_rows(examination, diagnoses)
    width = max(len(row.health) for row in rows)
    yield from (f"{row.health:<{width}}  {row.part}: {row.status}" for row in rows)
    yield from (f"could not be read: {line}" for line in examination.unreadable)
    if why:
        for log in examination.logs:
            if log.lines:
                yield ""
                yield f"last lines of {log.group}"
                yield from (f"  {line}" for line in log.lines[-SHOWN_LINES:])


def finding_lines(finding: Finding, *, why: bool) -> Iterator[str]:
    """Yield a problem with what to do; with `why`, by what it was seen and from where it is known."""
    yield f"{finding.rule}: {finding.place.resource}: {finding.message}"
    yield f"  to do: {finding.hint}"
    if why and finding.evidence:
        yield f"  seen: {finding.evidence}"
    if why and finding.source:
        yield f"  known from: {finding.source}"


def doctor_judgement(examination: Examination, diagnoses: tuple[Finding, ...], steps: tuple[FixStep, ...]) -> Judgement:
    """Return the examination for the printer; `fix` are the commands of `--fix`."""
    facts: dict[str, Json] = {
        "endpoint": examination.name,
        "answer": answer_line(examination, diagnoses),
        "is_healthy": is_healthy(examination, diagnoses),
        "parts": [asdict(row) for row in part_rows(examination, diagnoses)],
        "logs": {log.group: log.lines for log in examination.logs},
        "fix": [{"why": step.why, "command": step.command} for step in steps],
        "not_asked": examination.unreadable,
    }
    placed = [replace(finding, place=replace(finding.place, file=examination.name)) for finding in diagnoses]
    return Judgement(command="doctor", findings=placed, facts=facts)


def text_judgement(diagnoses: tuple[Finding, ...]) -> Judgement:
    """Return what a text tells for the printer."""
    placed = [replace(finding, place=replace(finding.place, file="text")) for finding in diagnoses]
    return Judgement(command="doctor", findings=placed, facts={"answer": f"{diagnoses[0].message} {diagnoses[0].hint}"})


def is_healthy(examination: Examination, diagnoses: tuple[Finding, ...]) -> bool:
    """Return whether nothing is wrong, as far as the endpoint itself could be read."""
    return not diagnoses and examination.endpoint.existence != "not asked"
