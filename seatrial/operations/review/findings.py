"""What is to be said of an endpoint beside its changes: why it can't be deployed, warnings, what lint finds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.engines.rendered import rendered_files
from seatrial.locks.changes import compiled_anew
from seatrial_base.findings import Finding, Place
from seatrial_lint.lint.lint import Given, lint_sources
from seatrial_lint.lint.read import read_content
from seatrial_lint.lint.source import ConfigSource, SourceEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.deployment.document import Deployment
    from seatrial.operations.review.side import EndpointState

PROPERTIES, ENVIRONMENT = "serving.properties", "container.env"
"""The files that hold a container's options; the first of them that there is holds all of them."""


def findings(old: EndpointState | None, new: EndpointState | None) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return what is to be said of the new side alone, and what the old side has too."""
    before = {(one.rule, one.message) for one in _findings(old)}
    after = tuple(_findings(new))
    known = tuple(one for one in after if (one.rule, one.message) in before)
    return (*(one for one in after if one not in known), *_compiled_anew(old, new)), known


def _compiled_anew(old: EndpointState | None, new: EndpointState | None) -> Iterator[Finding]:
    """Yield what makes the compiled artifacts of the old plan useless."""
    plans = [side.plan.model_dump(mode="json") for side in (old, new) if side is not None and side.plan is not None]
    if len(plans) == len((old, new)):
        yield from map(_warning, compiled_anew(*plans))


def _findings(state: EndpointState | None) -> Iterator[Finding]:
    if state is None:
        return
    yield from state.problems
    if state.plan is not None:
        yield from map(_warning, state.plan.warnings)
    if state.deployment is not None:
        yield from _linted(state.deployment)


def _warning(message: str) -> Finding:
    return Finding("", Place("plan"), message, severity="warning")


def _linted(deployment: Deployment) -> Iterator[Finding]:
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
        for source in read_content(files.get(name, "").encode(), name)
        if isinstance(source, ConfigSource)
    ]
    yield from lint_sources(sources, given).findings
