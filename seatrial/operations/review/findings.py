"""What is to be said of an endpoint beside its changes: why it can't be deployed, warnings, what lint finds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from seatrial.engines.write import rendered_files
from seatrial.locks.compiled import compiled_anew
from seatrial_lint.lint.lint import Given, lint
from seatrial_lint.lint.read import read_bytes
from seatrial_lint.lint.source import ConfigSource, SourceEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.deployment.document import Deployment
    from seatrial.operations.review.side import EndpointState
    from seatrial_base.errors import Problem

PROPERTIES, ENVIRONMENT = "serving.properties", "container.env"
"""The files that hold a container's options; the first of them that there is holds all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFinding:
    """One finding of the new side.

    Attributes:
        severity: `error`: it can't be deployed or will not serve; `warning` and `note` do not stop it.
        rule: The rule's ID; empty for a warning of the plan.
        where: File, line and field, or the rendered file.
        message: What is wrong.
        hint: How to mend it.
        is_new: The old side does not have it.
    """

    severity: Literal["error", "warning", "note"]
    rule: str
    where: str
    message: str
    hint: str
    is_new: bool = True


def findings(old: EndpointState | None, new: EndpointState | None) -> tuple[ReviewFinding, ...]:
    """Return what is to be said of the new side, and whether the old one has it too."""
    before = {(one.rule, one.message) for one in _findings(old)}
    told = tuple(replace(one, is_new=(one.rule, one.message) not in before) for one in _findings(new))
    return (*told, *_compiled_anew(old, new))


def _compiled_anew(old: EndpointState | None, new: EndpointState | None) -> Iterator[ReviewFinding]:
    """Yield what makes the compiled artifacts of the old plan useless."""
    plans = [side.plan.model_dump(mode="json") for side in (old, new) if side is not None and side.plan is not None]
    if len(plans) == len((old, new)):
        for message in compiled_anew(*plans):
            yield ReviewFinding(severity="warning", rule="", where="plan", message=message, hint="")


def _findings(state: EndpointState | None) -> Iterator[ReviewFinding]:
    if state is None:
        return
    yield from (of_problem(one) for one in state.problems)
    if state.plan is not None:
        yield from (
            ReviewFinding(severity="warning", rule="", where="plan", message=one, hint="")
            for one in state.plan.warnings
        )
    if state.deployment is not None:
        yield from _linted(state.deployment)


def of_problem(problem: Problem) -> ReviewFinding:
    """Return a problem as a finding."""
    where = ": ".join(part for part in (problem.where, problem.field) if part)
    return ReviewFinding(
        severity=problem.severity, rule=problem.rule, where=where, message=problem.message, hint=problem.hint
    )


def _linted(deployment: Deployment) -> Iterator[ReviewFinding]:
    plan, serving = deployment.plan, deployment.serving
    given = Given(
        instance_type=plan.instance_type.value,
        ami_version=plan.inference_ami_version.value,
        startup_timeout_s=plan.startup_timeout_s.value,
    )
    files = rendered_files(serving)
    name = next((one for one in (PROPERTIES, ENVIRONMENT) if one in files), "")
    sources = [
        replace(source, facts={**source.facts, "image": SourceEntry("", serving.image, 1, "env")})
        for source in read_bytes(files.get(name, "").encode(), name)
        if isinstance(source, ConfigSource)
    ]
    for one in lint(sources, given).findings:
        where = f"{one.file}:{one.line}" + (f": {one.key}" if one.key else "")
        yield ReviewFinding(severity=one.severity, rule=one.rule, where=where, message=one.message, hint=one.fix)
