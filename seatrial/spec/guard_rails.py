"""What an environment forbids, checked against what a spec asks for outright."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.spec.endpoint import EndpointSpec
    from seatrial.spec.environment import EnvironmentSpec
    from seatrial.spec.merge import Document
    from seatrial.spec.source import FieldPath


def guard_rail_problems(endpoint: EndpointSpec, environment: EnvironmentSpec, document: Document) -> Iterator[Problem]:
    """Yield every guard rail that the spec breaks by itself; the planner keeps those on cost."""
    rails = environment.guard_rails
    if rails.max_copies is not None and endpoint.scaling.max_copies > rails.max_copies:
        message = f"max_copies {endpoint.scaling.max_copies} exceeds {environment.name}'s guard rail {rails.max_copies}"
        yield _problem(document, ("scaling", "max_copies"), message, f"at most {rails.max_copies}")
    asked = endpoint.serving.instance_types or ()
    if rails.instance_types is not None and asked and not set(asked) & set(rails.instance_types):
        message = f"none of {', '.join(asked)} is allowed in {environment.name}"
        hint = f"allowed: {', '.join(rails.instance_types)}"
        yield _problem(document, ("serving", "instance_types"), message, hint)
    if environment.network.isolated and endpoint.model.hub_id is not None:
        message = f"{environment.name} is isolated, so the weights can't come from a hub"
        yield _problem(document, ("model",), message, "stage the weights to S3 and give model.s3_uri")


def _problem(document: Document, path: FieldPath, message: str, hint: str) -> Problem:
    return Problem(document.where(path), document.field(path), "SEA111", message, hint)
