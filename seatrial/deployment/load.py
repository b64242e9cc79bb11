"""Loads every endpoint of a folder for one environment: specs, locks, serving configurations and trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.catalog import instances
from seatrial.deployment.document import Deployment
from seatrial.deployment.trial import request_template
from seatrial.errors import Problem, SeatrialError, SpecError
from seatrial.plan.lock import read_locked_plan
from seatrial.serving.render import render
from seatrial.spec.load import load_spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def load_deployments(
    endpoints: Path, environments: Path, environment: str, endpoint: str | None = None
) -> tuple[Deployment, ...]:
    """Load the endpoints of a folder for one environment, sorted by file name.

    Args:
        endpoints: Folder of specs with their locks.
        environments: Folder of environments.
        environment: The environment's name.
        endpoint: Load only the file of this name; `None` loads all.

    Raises:
        SpecError: With every problem of every spec, environment and lock; SEA404 when no spec is found.
    """
    files = [file for file in sorted(endpoints.glob("*.yaml")) if endpoint in (None, file.stem)]
    if not files:
        what = f"no spec {endpoint}.yaml" if endpoint else "no spec (*.yaml)"
        raise SpecError.of("SEA404", f"there is {what}", where=endpoints.as_posix(), hint="name the folder of specs")
    deployments: dict[Path, Deployment] = {}
    problems: list[Problem] = []
    for file in files:
        try:
            deployments[file] = load_deployment(file, environments, environment)
        except SeatrialError as error:
            problems += error.problems
    problems += _same_names(deployments)
    if problems:
        raise SpecError(dict.fromkeys(problems))  # an environment's problem concerns every spec, and is told once
    return tuple(deployments.values())


def load_deployment(spec: Path, environments: Path, environment: str) -> Deployment:
    """Load one endpoint with its locked plan and render it.

    Raises:
        SpecError: When the spec, the environment or the lock is wrong.
        RenderError: When the plan can't be rendered.
    """
    loaded = load_spec(spec, environment, environments=environments)
    plan = read_locked_plan(loaded)
    serving = render(loaded, plan)
    instance = instances.find(plan.instance_type.value)
    return Deployment(
        endpoint=loaded.endpoint,
        environment=loaded.environment,
        plan=plan,
        serving=serving,
        trial_request=request_template(loaded, plan, serving),
        has_local_nvme=instance is not None and bool(instance.nvme_gb),
    )


def _same_names(deployments: Mapping[Path, Deployment]) -> Iterator[Problem]:
    """Yield each name that another spec has already, in upper or lower case."""
    first: dict[str, Path] = {}
    for file, deployment in deployments.items():
        name = deployment.endpoint.name
        other = first.setdefault(name.lower(), file)
        if other != file:
            message = (
                f"{other.as_posix()} names its endpoint {deployments[other].endpoint.name}, and this one is {name}"
            )
            hint = "an endpoint's name is its identity, in upper or lower case; rename one"
            yield Problem(file.as_posix(), "name", "SEA108", message, hint)
