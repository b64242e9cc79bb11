"""The sides of a review, the checkout and another revision: their endpoints, and what a change of files affects."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from seatrial.deployment.load import deployment_of
from seatrial.locks.lock_file import document_in_lock, locked_environments
from seatrial.locks.locked_plan import awaits_promotion, read_locked_plan
from seatrial.operations.checkout import added_paths
from seatrial.specs.load import environment_names, load_environment, load_spec
from seatrial.specs.prices import PRICES_FILE
from seatrial.specs.spec_files import calibration_path, hosts, lock_path
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.files import read_text
from seatrial_base.findings import Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from seatrial.deployment.document import Deployment
    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.findings import Finding

NOT_SYNTHESIZED = ("docs", "tests", "benchmarks", ".github", ".gitlab", ".ci", ".vscode")
"""Folders at the top of a repository that no app reads."""
PRODUCTS = "products"
"""Folder of products, next to `cdk.json`."""
_NOT_SYNTHESIZED_SUFFIXES = frozenset({".md", ".rst", ".txt"})
_NOT_SYNTHESIZED_NAMES = frozenset(
    {
        ".editorconfig",
        ".gitattributes",
        ".gitignore",
        ".gitlab-ci.yml",
        ".pre-commit-config.yaml",
        "CODEOWNERS",
        "LICENSE",
        "Makefile",
    }
)
_MOST_NAMED = 5
_READ_ANYWAY = frozenset({"requirements.txt"})


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
        origins: The names of files here that the other side has under another name, by that one.
    """

    top: Path
    root: Path
    endpoints: Path
    environments: Path
    origins: Mapping[str, str] = field(default_factory=dict)

    def spec(self, place: EndpointPlace) -> Path:
        """Return the file of a spec."""
        return self.endpoints / f"{self.origins.get(place.endpoint, place.endpoint)}.yaml"

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
    now = {origin: name for name, origin in side.origins.items()}
    locked_places: list[EndpointPlace] = []
    for file in sorted(side.endpoints.glob("*.yaml")):
        try:
            locked = locked_environments(file)
        except SeatrialError:
            # A lock that can't be read may hold any environment: reported in all, it is missed in none.
            locked = frozenset(names)
        locked_places += [
            EndpointPlace(now.get(file.stem, file.stem), name)
            for name in names
            if name in locked and file.stem not in hosted[name]
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
            problems = tuple(replace(problem, severity="warning") for problem in problems)
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


def affected(
    side: RepositorySide, paths: Iterable[str], candidates: Iterable[EndpointPlace]
) -> frozenset[EndpointPlace]:
    """Return the endpoints and environments whose template may depend on changed files.

    A file that is neither of an endpoint nor of an environment may be code of the app: it affects all of them, unless
    no app reads its folder.
    """
    every = frozenset(candidates)
    own = defaultdict(list)
    for place in every:
        spec = side.spec(place)
        for file in (spec, lock_path(spec), calibration_path(spec)):
            own[file].append(place)
    result: set[EndpointPlace] = set()
    for path in paths:
        if result == every:
            break
        file = side.top / path
        result.update(own[file] if file in own else _of_file(side, file, PurePosixPath(path), every))
    return frozenset(result)


def affects_products(side: RepositorySide, paths: Iterable[str]) -> bool:
    """Return whether a file of products or of environments changed."""
    folders = (side.root / PRODUCTS, side.environments)
    return any((side.top / path).is_relative_to(folder) for path in paths for folder in folders)


def is_code_changed(side: RepositorySide, paths: Iterable[str]) -> bool:
    """Return whether a file changed that may be code of the app, so that equal endpoints may have other templates."""
    folders = (side.endpoints, side.environments, side.root / PRODUCTS)
    return any(
        not _is_inert(PurePosixPath(path)) and not any((side.top / path).is_relative_to(folder) for folder in folders)
        for path in paths
    )


def refuse_code_of_others(side: RepositorySide, commit: str) -> None:
    """Refuse a revision whose code the checkout lacks: to compare it would run it.

    Its specs, environments and templates are data. The app of `cdk.json`, and what may be a module of it, is code.

    Raises:
        SpecError: SEA452 with the files of code.
    """
    # Templates are rendered in a sandbox, so they are data as specs are.
    templates = side.root / "serving_templates"
    added = (path for path in added_paths(side.top, commit) if not (side.top / path).is_relative_to(templates))
    if code := [path for path in added if is_code_changed(side, [path])]:
        more = f" and {len(code) - _MOST_NAMED} more" if len(code) > _MOST_NAMED else ""
        message = (
            f"it has code that this checkout lacks: {', '.join(code[:_MOST_NAMED])}{more}; to compare it would run it"
        )
        hint = "compare with the merge base (three dots behind the revision), or read its code and merge it first"
        raise SpecError.of("SEA452", message, where=commit, hint=hint)


def _of_file(
    side: RepositorySide, file: Path, relative: PurePosixPath, every: frozenset[EndpointPlace]
) -> Iterator[EndpointPlace]:
    # Which spec reads a file is known only by loading all of them, in every environment: the name in the text is
    # a bound from above, and the price of a false match is one synthesis.
    if file.is_relative_to(side.endpoints):
        # Endpoints whose spec names a file of the folder of specs, or its folder there.
        name = file.relative_to(side.endpoints).parts[0]
        texts = {spec: _text(spec) for spec in {side.spec(place) for place in every}}
        yield from (place for place in every if name in texts[side.spec(place)])
    elif file.parent == side.environments and file.suffix == ".yaml" and file.name != PRICES_FILE:
        yield from (place for place in every if place.environment == file.stem)
        yield from _of_prices(side, file, every)
    elif file.parent == side.environments:
        yield from _of_prices(side, file, every)
    elif file.is_relative_to(side.root / PRODUCTS):
        return
    # Any other file may be a module of the app: what reads it is unknown without running it.
    elif not _is_inert(relative):
        yield from every


def _is_inert(relative: PurePosixPath) -> bool:
    if relative.parts[0] in NOT_SYNTHESIZED:
        return True
    if len(relative.parts) > 1 or relative.name in _READ_ANYWAY:
        return False
    return relative.suffix in _NOT_SYNTHESIZED_SUFFIXES or relative.name in _NOT_SYNTHESIZED_NAMES


def _text(file: Path) -> str:
    try:
        return read_text(file, errors="replace")
    except OSError:
        return ""


def _of_prices(side: RepositorySide, file: Path, every: frozenset[EndpointPlace]) -> Iterator[EndpointPlace]:
    """Yield what is planned with a prices file; where an environment can't be read, it may be."""
    for name in sorted({place.environment for place in every}):
        try:
            prices = load_environment(side.environments, name).prices or PRICES_FILE
        except SeatrialError:
            # What can't be read may name this file: to compare too much is slow, to compare too little hides a change.
            prices = file.name
        if side.environments / prices == file:
            yield from (place for place in every if place.environment == name)
