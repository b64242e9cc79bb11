"""Loads every endpoint of a folder for one environment: specs, locks, serving configurations and trials."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.deployment.document import (
    COMPONENT_SUFFIX,
    LONGEST_NAME,
    Deployment,
    products_stack,
    service_stack,
    stack_name,
)
from seatrial.deployment.evidence import locked_evidence_problems
from seatrial.deployment.guests import packing_of, read_guests
from seatrial.deployment.optimization_job import job_of
from seatrial.deployment.packing import copies_of
from seatrial.deployment.trial import request_template
from seatrial.engines.render import render_plan
from seatrial.locks.guard_rails import Beside, created_problems
from seatrial.locks.lock_file import locked_environments
from seatrial.locks.locked_plan import awaits_promotion, promotion_command, read_locked_plan
from seatrial.specs.load import environment_names, load_environment, load_spec
from seatrial.specs.spec_files import hosts
from seatrial_base.catalog.instances import find_instance
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from seatrial.deployment.guests import Guest
    from seatrial.deployment.packing import Packing
    from seatrial.documents.plan import Plan
    from seatrial.specs.endpoint import EndpointSpec
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.yaml_source import FieldPath


def load_deployments(
    endpoints: Path,
    environments: Path,
    environment: str,
    endpoint: str | None = None,
    *,
    templates: Path | None = None,
) -> LockedDeployments:
    """Load the endpoints of a folder for one environment, sorted by file name.

    Those that await a promotion are left out: what is deployed stays.

    Args:
        endpoint: Load only the file of this name, also when it awaits a promotion; `None` loads all.
        templates: Folder of serving templates that override ours file by file; default: none.

    Raises:
        SpecError: With every problem of every spec, environment and lock where no endpoint is right; SEA108, SEA128
            and the like for endpoints that collide; SEA404 when there is no spec.
    """
    loaded = _load(
        _specs(endpoints, endpoint), environments, environment, by_name=endpoint is not None, templates=templates
    )
    if loaded.broken and not (loaded.deployments or loaded.awaiting):
        # One of an environment concerns every spec, and is reported once.
        raise SpecError(dict.fromkeys(problem for each in loaded.broken for problem in each.problems))
    return LockedDeployments(
        tuple(loaded.deployments.values()),
        tuple(_awaiting(loaded.awaiting)),
        _environments(loaded.awaiting),
        loaded.broken,
        tuple(loaded.deployments),
    )


@dataclass(frozen=True, slots=True)
class BrokenEndpoint:
    """An endpoint that can't be synthesized in an environment, and why; the others can be."""

    environment: str
    name: str
    problems: tuple[Finding, ...]

    @property
    def stack_name(self) -> str:
        """The name that its stack has, or would have: a spec that can't be read is known by its file."""
        return re.sub(r"[^A-Za-z0-9-]", "-", stack_name(self.environment, self.name))


@dataclass(frozen=True, slots=True)
class LockedDeployments:
    """What is locked in every environment.

    Attributes:
        deployments: By environment, then by file name.
        left_out: One line for each environment in which something is left out, and why.
        awaiting: The environments in which endpoints await a promotion.
        broken: What is locked and can't be synthesized.
        files: The specs of the deployments of one environment, in their order.
    """

    deployments: tuple[Deployment, ...]
    left_out: tuple[str, ...]
    awaiting: tuple[EnvironmentSpec, ...] = ()
    broken: tuple[BrokenEndpoint, ...] = ()
    files: tuple[Path, ...] = ()


def find_deployments(
    endpoints: Path, environments: Path, endpoint: str | None = None, *, templates: Path | None = None
) -> LockedDeployments:
    """Load what is locked in every environment; the embedded AWS is none of them, since it must be selected by name.

    Raises:
        SpecError: With every problem where no endpoint is right, where environments are wrong or endpoints collide;
            SEA404 when nothing is locked.
    """
    names = environment_names(environments)
    locks = _locks(_specs(endpoints, endpoint), names)
    problems: list[Finding] = []
    deployments: list[Deployment] = []
    broken: list[BrokenEndpoint] = []
    left_out: list[str] = []
    awaiting: list[LoadedSpec] = []
    for name in names:
        try:
            place = load_environment(environments, name)
        except SeatrialError as error:
            problems += error.problems
            continue
        # Its account is none of the real AWS, so it has to be selected by name.
        if place.is_embedded:
            left_out.append(f"{name} (embedded AWS) is skipped; select it with -c environment={name}")
            continue
        required = place.promotion.required
        # Where a promotion is required, a missing lock is no choice of the owner: it awaits one, and is reported.
        locked = [file for file, known in locks.items() if name in known or required]
        there = _load(locked, environments, name, templates=templates)
        deployments += there.deployments.values()
        broken += there.broken
        awaiting += there.awaiting
        left_out += _awaiting(there.awaiting)
        left_out += _unlocked(name, [file for file in locks if file not in locked])
    if problems or (broken and not (deployments or awaiting)):
        raise SpecError(dict.fromkeys([*problems, *(problem for each in broken for problem in each.problems)]))
    if not deployments and not awaiting:
        hint = "; ".join(left_out) or f"no environment in {environments.as_posix()}"
        raise SpecError.of("SEA404", "no endpoint has a lock in any environment", where=endpoints.as_posix(), hint=hint)
    return LockedDeployments(tuple(deployments), tuple(left_out), _environments(awaiting), tuple(broken))


def _awaiting(awaiting: Sequence[LoadedSpec]) -> Iterator[str]:
    if awaiting:
        names = ", ".join(one.path.stem for one in awaiting)
        command = promotion_command(awaiting[0])
        yield f"{awaiting[0].environment.name}: left as deployed until promoted: {names} (promote with `{command}`)"


def _environments(awaiting: Iterable[LoadedSpec]) -> tuple[EnvironmentSpec, ...]:
    """Return the environments of endpoints that have trials, each once."""
    tried = (
        one.environment for one in awaiting if one.endpoint.trial.mode != "off" or one.environment.audit is not None
    )
    return tuple({environment.name: environment for environment in tried}.values())


def _specs(endpoints: Path, endpoint: str | None) -> list[Path]:
    files = [file for file in sorted(endpoints.glob("*.yaml")) if endpoint in (None, file.stem)]
    if not files:
        what = f"no spec {endpoint}.yaml" if endpoint else "no spec (*.yaml)"
        raise SpecError.of("SEA404", f"found {what}", where=endpoints.as_posix(), hint="name the folder of specs")
    return files


def _locks(files: Iterable[Path], names: Iterable[str]) -> dict[Path, frozenset[str]]:
    """Return the environments that each spec is locked for; a lock that can't be read counts in every environment."""
    locks: dict[Path, frozenset[str]] = {}
    for file in files:
        try:
            locks[file] = locked_environments(file)
        except SeatrialError:
            locks[file] = frozenset(names)
    return locks


def _unlocked(environment: str, files: list[Path]) -> Iterator[str]:
    if files:
        names = ", ".join(file.stem for file in files)
        command = f"seatrial plan {files[0].as_posix()} --environment {environment} --write"
        yield f"{environment}: skipped without a lock: {names} (lock with `{command}`)"


@dataclass(frozen=True, slots=True)
class _Loaded:
    """Some endpoints in one environment, those that await a promotion, and those that are wrong."""

    deployments: Mapping[Path, Deployment]
    awaiting: tuple[LoadedSpec, ...]
    broken: tuple[BrokenEndpoint, ...]


def _load(
    files: Iterable[Path], environments: Path, environment: str, *, by_name: bool = False, templates: Path | None
) -> _Loaded:
    """Load some endpoints for one environment; one that was selected by name can't await a promotion.

    Raises:
        SpecError: Endpoints have one name, or one is hosted by two: which of them is wrong only their owners know.
    """
    deployments: dict[Path, Deployment] = {}
    awaiting: list[LoadedSpec] = []
    broken: list[BrokenEndpoint] = []
    files = tuple(files)
    hosted = hosts(files[0].parent, environment) if files else {}
    hosting = {file for others in hosted.values() for file in others}
    for file in files:
        # A guest is part of its host's stack; one that hosts others itself is a mistake, which is reported below.
        if not by_name and file.stem in hosted and file not in hosting:
            continue
        try:
            loaded = load_spec(file, environment, environments=environments)
        except SeatrialError as error:
            broken.append(BrokenEndpoint(environment, file.stem, error.problems))
            continue
        if file.stem in hosted:
            broken.append(
                BrokenEndpoint(environment, loaded.endpoint.name, (_hosted_problem(loaded, hosted[file.stem]),))
            )
            continue
        try:
            deployments[file] = deployment_of(loaded, templates=templates)
        except SeatrialError as error:
            if by_name or not awaits_promotion(error, loaded):
                broken.append(BrokenEndpoint(environment, loaded.endpoint.name, error.problems))
            else:
                awaiting.append(loaded)
    if problems := [*name_problems(deployments), *_hosted_twice(hosted, files)]:
        raise SpecError([*(problem for each in broken for problem in each.problems), *problems])
    return _Loaded(deployments, tuple(awaiting), tuple(broken))


def name_problems(deployments: Mapping[Path, Deployment]) -> Iterator[Finding]:
    """Yield what is wrong with the names of one environment's deployments, by the specs' files."""
    yield from _same_names(deployments)
    yield from _same_endpoints(deployments)
    for file, deployment in deployments.items():
        # The spec's own name fits; a later generation adds a suffix to it, which only the lock knows.
        over = len(deployment.endpoint_name) + len(COMPONENT_SUFFIX) - LONGEST_NAME
        if over > 0:
            message = f"{deployment.endpoint_name}{COMPONENT_SUFFIX} has {over} characters more than {LONGEST_NAME}"
            hint = "give the endpoint, or its environment, a shorter name"
            yield Finding("SEA107", Place.at(file.as_posix(), "name"), message, hint)
    yield from _service_names(deployments)


def load_deployment(
    spec: Path,
    environments: Path,
    environment: str,
    *,
    templates: Path | None = None,
    hosted: Mapping[str, tuple[Path, ...]] | None = None,
) -> Deployment:
    """Load one endpoint with its locked plan and render it.

    Args:
        hosted: The models of the folder that others host; default: they are looked up.

    Raises:
        SpecError: When the spec, the environment or the lock is wrong; SEA128 when another endpoint hosts the model.
        RenderError: When the plan can't be rendered.
    """
    loaded = load_spec(spec, environment, environments=environments)
    refuse_hosted(loaded, hosts(spec.parent, environment) if hosted is None else hosted)
    return deployment_of(loaded, templates=templates)


def refuse_hosted(loaded: LoadedSpec, hosted: Mapping[str, tuple[Path, ...]]) -> None:
    """Refuse a spec whose model another endpoint hosts.

    Raises:
        SpecError: SEA128.
    """
    if others := hosted.get(loaded.path.stem, ()):
        raise SpecError([_hosted_problem(loaded, others)])


def _hosted_problem(loaded: LoadedSpec, others: Sequence[Path]) -> Finding:
    names = " and ".join(file.as_posix() for file in others)
    if loaded.endpoint.hosting.more_models:
        message = f"it hosts other models, and {names} would host it"
        return loaded.problem(("hosting", "more_models"), "SEA128", message, "let one endpoint host all of them")
    message = f"it has no stack of its own: {names} {'hosts' if len(others) == 1 else 'host'} it"
    return loaded.problem(("name",), "SEA128", message, f"name {others[0].stem} instead")


def _hosted_twice(hosted: Mapping[str, tuple[Path, ...]], files: Iterable[Path]) -> Iterator[Finding]:
    loaded = set(files)
    for guest, others in hosted.items():
        if len(others) > 1 and loaded & {*others}:
            message = f"{guest} is hosted by {' and '.join(file.stem for file in others)}"
            yield Finding(
                "SEA128", Place.at(others[1].as_posix(), "hosting.more_models"), message, "keep it in one of them"
            )


def deployment_of(
    loaded: LoadedSpec, plan: Plan | None = None, *, packaged: bool = True, templates: Path | None = None
) -> Deployment:
    """Render the plan of a spec.

    Args:
        plan: Its plan. Default: the locked one.

    Raises:
        SpecError: When the lock is wrong, or its evidence proves nothing (`deployment.evidence`); SEA111 for a guard
            rail that everything together breaks.
        RenderError: When the plan can't be rendered.
    """
    is_locked = plan is None
    plan = plan or read_locked_plan(loaded)
    guests = read_guests(loaded, plan)
    variants = tuple(read_variants(loaded))
    packing = packing_of(loaded, plan, guests) if guests else None
    # The lock was checked by itself; what guests and variants add can break a rail only here, where they are known.
    if problems := created_problems(plan, loaded, beside_of(variants, guests, packing)):
        raise SpecError(problems)
    return replace(
        _rendered(loaded, plan, packaged=packaged, templates=templates, is_locked=is_locked),
        variants=variants,
        guests=tuple(
            _rendered(each.loaded, each.plan, packaged=packaged, templates=templates, is_locked=True) for each in guests
        ),
        packing=packing,
    )


def runs_others(loaded: LoadedSpec) -> bool:
    """Return whether an endpoint runs something of other specs: further models, or variants."""
    hosting = loaded.endpoint.hosting
    named = [*(each.spec for each in hosting.variants or ()), hosting.shadow.spec if hosting.shadow else None]
    return bool(hosting.more_models) or any(name is not None for name in named)


def whole_problems(loaded: LoadedSpec, plan: Plan) -> tuple[Finding, ...]:
    """Return every guard rail that an endpoint breaks with all that it runs of other specs: SEA111.

    Raises:
        SpecError: With every problem of the other specs and their locks.
    """
    guests = read_guests(loaded, plan)
    packing = packing_of(loaded, plan, guests) if guests else None
    return created_problems(plan, loaded, beside_of(tuple(read_variants(loaded)), guests, packing))


def beside_of(variants: Iterable[Deployment], guests: Sequence[Guest], packing: Packing | None) -> Beside:
    """Return what an endpoint runs of other specs, as guard rails are held against it."""
    return Beside(
        variants={each.endpoint.name: (each.endpoint, each.plan) for each in variants},
        guests=tuple((each.loaded.endpoint, each.plan) for each in guests),
        guest_copies=sum(copies_of(each.plan).most for each in guests),
        instances=None if packing is None else packing.max_instances,
    )


def _rendered(loaded: LoadedSpec, plan: Plan, *, packaged: bool, templates: Path | None, is_locked: bool) -> Deployment:
    serving = render_plan(loaded, plan, packaged=packaged, templates=templates)
    if is_locked and (problems := locked_evidence_problems(loaded, plan, serving)):
        raise SpecError(problems)
    instance = find_instance(plan.instance_type.value)
    return Deployment(
        endpoint=loaded.endpoint,
        environment=loaded.environment,
        plan=plan,
        serving=serving,
        trial_request=request_template(loaded, plan, serving),
        has_local_nvme=instance is not None and bool(instance.nvme_gb),
        optimization_job=job_of(loaded, plan),
    )


def read_variants(loaded: LoadedSpec) -> Iterator[Deployment]:
    """Yield the deployments of other specs in the same folder that variants of an endpoint run.

    Raises:
        SpecError: SEA130 for a spec that is not there, has another name or has variants itself; or what is wrong with
            it or its lock.
    """
    hosting, seen = loaded.endpoint.hosting, set[str]()
    references: list[tuple[FieldPath, str | None]]
    references = [
        (("hosting", "variants", index, "spec"), each.spec) for index, each in enumerate(hosting.variants or ())
    ]
    references += [(("hosting", "shadow", "spec"), hosting.shadow.spec)] if hosting.shadow else []
    for path, name in references:
        if name is None or name in seen:
            continue
        # A variant and the shadow may run the same spec: it is loaded once, as its deployment is the same.
        seen.add(name)
        file = loaded.path.parent / f"{name}.yaml"
        if not file.is_file():
            problem = loaded.problem(path, "SEA130", f"there is no spec {file.name} beside this one", f"write {file}")
            raise SpecError([problem])
        other = load_spec(file, loaded.environment.name, environments=Path(loaded.place.path).parent)
        if wrong := _unfit_variant(loaded.endpoint, other):
            raise SpecError([loaded.problem(path, "SEA130", f"{file.name} {wrong[0]}", wrong[1])])
        yield deployment_of(other)


def _unfit_variant(endpoint: EndpointSpec, other: LoadedSpec) -> tuple[str, str] | None:
    """Return what is wrong with a spec as a variant of an endpoint, and a hint."""
    spec = other.endpoint
    if spec.name != other.path.stem or spec.name == endpoint.name:
        return f"has the name {spec.name}", "name another spec, whose name is that of its file"
    if spec.hosting.kind != "single_model":
        return "is planned for inference components", "set hosting.kind: single_model in it, and plan it again"
    if spec.hosting.variants or spec.hosting.shadow:
        return "has variants itself", "name a spec with one model"
    if spec.hosting.capacity_reservation_arn not in {None, endpoint.hosting.capacity_reservation_arn}:
        return "has another capacity reservation, and an endpoint has one", "name the same one in both, or in this one"
    return None


def _same_endpoints(deployments: Mapping[Path, Deployment]) -> Iterator[Finding]:
    """Yield each endpoint whose name on SageMaker is that of another spec's, by its generation."""
    first: dict[str, Path] = {}
    for file, deployment in deployments.items():
        other = first.setdefault(deployment.endpoint_name.lower(), file)
        if deployments[other].endpoint.name.lower() != deployment.endpoint.name.lower():
            message = f"{other.as_posix()} is deployed as {deployments[other].endpoint_name}, like this one"
            yield Finding("SEA108", Place.at(file.as_posix(), "name"), message, "rename one")


def _same_names(deployments: Mapping[Path, Deployment]) -> Iterator[Finding]:
    """Yield each name that another spec has already, in upper or lower case."""
    first: dict[str, Path] = {}
    for file, deployment in deployments.items():
        name = deployment.endpoint.name
        other = first.setdefault(name.lower(), file)
        if other != file:
            message = f"{other.as_posix()} has the name {deployments[other].endpoint.name}, this one {name}"
            hint = "rename one: names must differ in more than upper and lower case"
            yield Finding("SEA108", Place.at(file.as_posix(), "name"), message, hint)


def _service_names(deployments: Mapping[Path, Deployment]) -> Iterator[Finding]:
    """Yield each endpoint whose stack would have the name of one that its endpoints share."""
    for file, deployment in deployments.items():
        name = deployment.environment.name
        shared = {service_stack(name): "trial service", products_stack(name): "products"}
        if (what := shared.get(deployment.stack_name.lower())) is not None:
            message = f"{deployment.stack_name} is the stack of the environment's {what}"
            yield Finding("SEA522", Place.at(file.as_posix(), "name"), message, "give the endpoint another name")
