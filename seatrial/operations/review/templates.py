"""The templates of many endpoints of one side, from as few runs of the app as possible."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seatrial.deployment.document import service_stack
from seatrial.operations.app import run_app
from seatrial.specs.load import environment_names, load_environment
from seatrial.specs.spec_files import lock_path
from seatrial_base.errors import SeatrialError
from seatrial_base.files import read_text
from seatrial_lint.cloudformation.read import read_template_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from seatrial.deployment.document import Deployment
    from seatrial.operations.review.side import EndpointPlace, RepositorySide
    from seatrial_lint.cloudformation.template import Template

NO_VALIDATION = {"CDK_VALIDATION": "false"}
"""The CDK's own check of the templates changes none of them and takes half of a synthesis; `cdk synth` makes it."""
_SPEC_AND_LOCK = (".yaml", ".lock.json")


@dataclass(frozen=True, slots=True)
class SideTemplates:
    """What one side synthesizes.

    Attributes:
        endpoints: The template of each endpoint in each environment.
        services: The template of each environment's trial service, by environment.
    """

    endpoints: Mapping[EndpointPlace, Template] = field(default_factory=dict)
    services: Mapping[str, Template] = field(default_factory=dict)


def synthesize_both(
    sides: tuple[RepositorySide, RepositorySide],
    wanted: tuple[Mapping[EndpointPlace, Deployment], Mapping[EndpointPlace, Deployment]],
    folder: Path,
) -> tuple[SideTemplates, SideTemplates]:
    """Synthesize some endpoints of two sides at the same time.

    Args:
        sides: The old one and the new one.
        wanted: What to synthesize of each.
        folder: For what the apps write; it is made.

    Raises:
        SeatrialError: SEA450 when an app fails or lacks a stack, SEA451 when what it writes is no template.
    """
    accounts = _accounts(wanted)
    with ThreadPoolExecutor(len(sides)) as pool:
        old, new = (
            pool.submit(_synthesized, side, deployments, folder / name, accounts)
            for side, deployments, name in zip(sides, wanted, ("old", "new"), strict=True)
        )
    return old.result(), new.result()


def _accounts(wanted: Iterable[Mapping[EndpointPlace, Deployment]]) -> Mapping[str, str]:
    """Return the accounts that either side names, by environment: a side that names none may mean the same one."""
    every = (deployment.environment for deployments in wanted for deployment in deployments.values())
    return {one.name: one.account for one in every if one.account is not None}


def _synthesized(
    side: RepositorySide, wanted: Mapping[EndpointPlace, Deployment], folder: Path, accounts: Mapping[str, str]
) -> SideTemplates:
    endpoints: dict[EndpointPlace, Template] = {}
    services: dict[str, Template] = {}
    for number, (environment, some) in enumerate(_runs(side, wanted)):
        scratch = folder / f"{number}"
        narrowed = {
            "endpoints": _only(side, some, scratch / "repository").as_posix(),
            "environments": side.environments.as_posix(),
        }
        if environment is not None:
            narrowed["environment"] = environment
        out = run_app(side.root, narrowed, scratch, NO_VALIDATION)
        endpoints |= {place: _template(side, out, deployment, accounts) for place, deployment in some.items()}
        services |= _services(out, some.values(), accounts)
    return SideTemplates(endpoints, services)


def _runs(
    side: RepositorySide, wanted: Mapping[EndpointPlace, Deployment]
) -> tuple[tuple[str | None, dict[EndpointPlace, Deployment]], ...]:
    """Return what each run of the app synthesizes, and for which environment where it must be named.

    The app defines the embedded AWS only when it is named, and nothing at all when any environment is wrong.
    """
    by_name: dict[str | None, dict[EndpointPlace, Deployment]] = defaultdict(dict)
    are_right = _are_right(side)
    for place, deployment in wanted.items():
        is_named = deployment.environment.is_embedded or not are_right
        by_name[place.environment if is_named else None][place] = deployment
    return tuple(by_name.items())


def _are_right(side: RepositorySide) -> bool:
    try:
        for name in environment_names(side.environments):
            load_environment(side.environments, name)
    except SeatrialError:
        return False
    return True


def _only(side: RepositorySide, places: Iterable[EndpointPlace], scratch: Path) -> Path:
    """Return a folder with some specs, each locked only where it is wanted; what else the specs name is linked."""
    here, there = side.top, scratch
    there.mkdir(parents=True)
    for part in side.endpoints.relative_to(side.top).parts:
        _link((entry for entry in here.iterdir() if entry.name != part), there)
        here, there = here / part, there / part
        there.mkdir()
    _link((entry for entry in here.iterdir() if not entry.name.endswith(_SPEC_AND_LOCK)), there)
    environments: dict[Path, set[str]] = defaultdict(set)
    for place in places:
        environments[side.spec(place)].add(place.environment)
    for spec, names in environments.items():
        shutil.copyfile(spec, there / spec.name)
        lock_path(there / spec.name).write_text(_lock_of(spec, names), encoding="utf-8")
    return there


def _link(entries: Iterable[Path], there: Path) -> None:
    for entry in entries:
        (there / entry.name).symlink_to(entry)


def _lock_of(spec: Path, environments: set[str]) -> str:
    """Return a spec's lock without the plans of other environments."""
    document = json.loads(read_text(lock_path(spec)))
    parts = {
        part: {name: plan for name, plan in document[part].items() if name in environments}
        for part in ("environments", "digests")
        if isinstance(document.get(part), dict)
    }
    return json.dumps(document | parts)


def _template(side: RepositorySide, out: Path, deployment: Deployment, accounts: Mapping[str, str]) -> Template:
    file = out / f"{deployment.stack_name}.template.json"
    if not file.is_file():
        where = (side.root / "cdk.json").as_posix()
        raise SeatrialError.of("SEA450", f"the app has no stack {deployment.stack_name}", where=where)
    return _read(file, deployment, accounts)


def _services(out: Path, deployments: Iterable[Deployment], accounts: Mapping[str, str]) -> dict[str, Template]:
    found: dict[str, Template] = {}
    for deployment in deployments:
        name = deployment.environment.name
        file = out / f"{service_stack(name)}.template.json"
        if name not in found and file.is_file():
            found[name] = _read(file, deployment, accounts)
    return found


def _read(file: Path, deployment: Deployment, accounts: Mapping[str, str]) -> Template:
    environment = deployment.environment
    where = file.name.removesuffix(".template.json")
    account = environment.account or accounts.get(environment.name)
    return read_template_file(file, name=where, region=environment.region, account=account)
