"""One side of a review: the checkout or another revision, with the state of its endpoints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from seatrial.deployment.load import deployment_of
from seatrial.locks.lock_file import awaits_promotion, document_in_lock, locked_environments, read_locked_plan
from seatrial.specs.load import environment_names, load_spec
from seatrial.specs.spec_files import hosts
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.findings import Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from seatrial.deployment.document import Deployment
    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.findings import Finding


class EndpointPlace(NamedTuple):
    """An endpoint in an environment: the name of the spec's file without its suffix, and the environment's name."""

    endpoint: str
    environment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositorySide:
    """One side.

    Attributes:
        top: The repository's folder, or that of the other revision's checkout.
        root: Folder of `cdk.json`.
        endpoints: Folder of specs.
        environments: Folder of environments.
    """

    top: Path
    root: Path
    endpoints: Path
    environments: Path

    def spec(self, place: EndpointPlace) -> Path:
        """Return the file of a spec."""
        return self.endpoints / f"{place.endpoint}.yaml"

    def shown(self, problems: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return problems with paths that begin at the repository."""
        folder = f"{self.top.as_posix()}/"
        return tuple(
            replace(
                problem,
                place=Place.at(problem.where.replace(folder, ""), problem.field),
                message=problem.message.replace(folder, ""),
                hint=problem.hint.replace(folder, ""),
            )
            for problem in problems
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointState:
    """The state of an endpoint in an environment on one side.

    Attributes:
        loaded: Its spec; `None` when that is wrong.
        plan: Its locked plan, stale or not; `None` when it can't be read.
        deployment: What would be synthesized; `None` where there are problems.
        problems: Why it can't be synthesized.
    """

    loaded: LoadedSpec | None = None
    plan: Plan | None = None
    deployment: Deployment | None = None
    problems: tuple[Finding, ...] = ()


def places(side: RepositorySide) -> tuple[EndpointPlace, ...]:
    """Return what is locked, by file name and environment; a lock that can't be read counts in every environment.

    A model that another endpoint hosts is left out: it has no stack.
    """
    names = environment_names(side.environments)
    hosted = {name: hosts(side.endpoints, name) for name in names}
    locked_places: list[EndpointPlace] = []
    for file in sorted(side.endpoints.glob("*.yaml")):
        try:
            locked = locked_environments(file)
        except SeatrialError:
            # A lock that can't be read may hold any environment: reported in all, it is missed in none.
            locked = frozenset(names)
        locked_places += [
            EndpointPlace(file.stem, name) for name in names if name in locked and file.stem not in hosted[name]
        ]
    return tuple(locked_places)


def never_locked(side: RepositorySide, known: Iterable[EndpointPlace]) -> tuple[Path, ...]:
    """Return the specs that have no plan in any environment, by file name."""
    hosted = {guest for name in environment_names(side.environments) for guest in hosts(side.endpoints, name)}
    listed = {*hosted, *(place.endpoint for place in known)}
    return tuple(file for file in sorted(side.endpoints.glob("*.yaml")) if file.stem not in listed)


def endpoint_state(side: RepositorySide, place: EndpointPlace) -> EndpointState:
    """Load an endpoint in an environment; what is wrong with it is part of the state."""
    try:
        loaded = load_spec(side.spec(place), place.environment, environments=side.environments)
    except SpecError as error:
        return EndpointState(problems=side.shown(error.problems))
    try:
        deployment = deployment_of(loaded)
    except SeatrialError as error:
        problems = error.problems
        # What awaits its promotion is no mistake of the change: it stays as deployed until it is promoted.
        if awaits_promotion(error, loaded):
            problems = tuple(replace(one, severity="warning") for one in problems)
        return EndpointState(loaded=loaded, plan=stale_plan(loaded), problems=side.shown(problems))
    return EndpointState(loaded=loaded, plan=deployment.plan, deployment=deployment)


def stale_plan(loaded: LoadedSpec) -> Plan | None:
    """Return the locked plan of a spec, stale or not; `None` when it can't be read."""
    try:
        return read_locked_plan(loaded, stale=True)
    except SeatrialError:
        return None


def instances_of_plan(side: RepositorySide, place: EndpointPlace) -> Mapping[str, int]:
    """Return the most instances that a locked plan runs by type, as far as its lock can be read."""
    try:
        plan = document_in_lock(side.spec(place), place.environment) or {}
    except SeatrialError:
        return {}
    kind, most = plan.get("instance_type"), plan.get("max_instances")
    name = kind.get("value") if isinstance(kind, dict) else None
    return {name: most} if isinstance(name, str) and isinstance(most, int) else {}
