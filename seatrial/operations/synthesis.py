"""Templates as the app of `cdk.json` writes them: of one stack or of many endpoints, here or in another revision.

The template that is deployed is read here too, since it is compared with them.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from seatrial.account.reader import aws_failures
from seatrial.deployment.document import service_stack
from seatrial.locks.lock_file import locked_environments
from seatrial.operations.app import app_folder, run_app
from seatrial.operations.checkout import checkout_of, commit_of, git_repository_of, moved
from seatrial.operations.review.side import RepositorySide, refuse_code_of_others
from seatrial.specs.load import environment_names, load_environment
from seatrial.specs.spec_files import lock_path
from seatrial_base.errors import SeatrialError
from seatrial_base.files import follow_links, read_text
from seatrial_lint.cloudformation.template import EMPTY, read_template, read_template_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from mypy_boto3_cloudformation import CloudFormationClient

    from seatrial.deployment.document import Deployment
    from seatrial.operations.review.side import EndpointPlace
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial_lint.cloudformation.template import Template

NO_VALIDATION = {"CDK_VALIDATION": "false"}
"""The CDK's own check of the templates changes none of them and takes half of a synthesis; `cdk synth` makes it."""
_SPEC_AND_LOCK = (".yaml", ".lock.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class StackSource:
    """The sources of one stack; `root` is the folder of `cdk.json`."""

    root: Path
    spec: Path
    environments: Path
    environment: EnvironmentSpec
    stack_name: str

    @classmethod
    def of(cls, spec: Path, environments: Path, environment: EnvironmentSpec, stack_name: str) -> StackSource:
        """Find the app of a spec: the nearest `cdk.json` in its folder or above.

        Raises:
            SpecError: SEA450 when there is none.
        """
        return cls(
            root=app_folder(spec),
            spec=follow_links(spec),
            environments=follow_links(environments),
            environment=environment,
            stack_name=stack_name,
        )


def synthesize(source: StackSource, folder: Path, context: Mapping[str, str] | None = None) -> Template:
    """Run the app for one endpoint in one environment, and read the template that it writes.

    Raises:
        SeatrialError: As `synthesized_file`; SEA451 when what the app writes is no template.
    """
    return _read(synthesized_file(source, folder, context), source.environment)


def synthesized_file(source: StackSource, folder: Path, context: Mapping[str, str] | None = None) -> Path:
    """Run the app for one endpoint in one environment, and return the template that it writes, beside its assets.

    Args:
        context: Further context values of the app, as `cdk deploy -c` gives them; default: none.

    Raises:
        SeatrialError: SEA450 with the app's last lines when it fails or writes no such stack.
    """
    narrowed = {
        "environment": source.environment.name,
        "endpoint": source.spec.stem,
        "endpoints": source.spec.parent.as_posix(),
        "environments": source.environments.as_posix(),
        **(context or {}),
    }
    return _stack_file(source.root, run_app(source.root, narrowed, folder, NO_VALIDATION), source.stack_name)


def _stack_file(root: Path, out: Path, stack_name: str) -> Path:
    file = out / f"{stack_name}.template.json"
    if not file.is_file():
        where = (root / "cdk.json").as_posix()
        raise SeatrialError.of("SEA450", f"the app has no stack {stack_name}", where=where)
    return file


def given_template(source: StackSource, path: Path) -> Template:
    """Read a template from a file, or that of the stack from a folder such as cdk.out.

    Raises:
        SpecError: SEA101 when it can't be read, SEA451 when it is no template.
    """
    file = path / f"{source.stack_name}.template.json" if path.is_dir() else path
    return _read(file, source.environment, name=file.as_posix())


def synthesize_revision(source: StackSource, revision: str, folder: Path) -> Template:
    """Synthesize the stack as it is in another revision; that of a revision without the endpoint's lock is empty.

    Raises:
        SeatrialError: SEA452 when the revision can't be checked out, or has code that the checkout lacks; SEA450 and
            SEA451 as `synthesize`.
    """
    top, commit = git_repository_of(source.root), commit_of(source.root, revision)
    side = RepositorySide(top=top, root=source.root, endpoints=source.spec.parent, environments=source.environments)
    # Before the checkout: to synthesize a revision runs its code, and a pull request of a fork may hold anyone's.
    refuse_code_of_others(side, commit)
    with checkout_of(source.root, commit, folder / "checkout") as (_, checkout):
        there = replace(
            source,
            root=moved(source.root, top, checkout),
            spec=moved(source.spec, top, checkout),
            environments=moved(source.environments, top, checkout),
        )
        if not (there.spec.is_file() and there.environment.name in locked_environments(there.spec)):
            return EMPTY
        return synthesize(there, folder / "app")


def deployed_template(source: StackSource, cloudformation: CloudFormationClient) -> Template:
    """Read the template of a deployed stack; that of a stack that is not there is empty.

    Raises:
        BenchError: As `aws_failures`: no credentials, no connection, no permission.
        SeatrialError: SEA451 when it is no template.
    """
    from botocore.exceptions import ClientError  # noqa: PLC0415 (heavy, and only a deployed stack needs it)

    try:
        with aws_failures(source.stack_name):
            body = cloudformation.get_template(StackName=source.stack_name, TemplateStage="Original")["TemplateBody"]
    except ClientError as error:
        failure = error.response.get("Error", {})
        # CloudFormation has no code of its own for a stack that is not there.
        if failure.get("Code") == "ValidationError" and "does not exist" in failure.get("Message", ""):
            return EMPTY
        message = f"the deployed template can't be read: {failure.get('Code')}: {failure.get('Message')}"
        raise SeatrialError.of("SEA451", message, where=source.stack_name) from error
    text, environment = body if isinstance(body, str) else json.dumps(body), source.environment
    return read_template(text, name=source.stack_name, region=environment.region, account=environment.account)


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

    Raises:
        SeatrialError: SEA450 when an app fails or lacks a stack, SEA451 when what it writes is no template.
    """
    # The accounts that either side names, by environment: a side that names none may mean the same one.
    every = (deployment.environment for deployments in wanted for deployment in deployments.values())
    accounts = {place.name: place.account for place in every if place.account is not None}
    # Each side waits for processes of its own, so both run at the same time; they share nothing but the accounts.
    with ThreadPoolExecutor(len(sides)) as pool:
        old, new = (
            pool.submit(_synthesized, side, deployments, folder / name, accounts)
            for side, deployments, name in zip(sides, wanted, ("old", "new"), strict=True)
        )
    return old.result(), new.result()


def _synthesized(
    side: RepositorySide, wanted: Mapping[EndpointPlace, Deployment], folder: Path, accounts: Mapping[str, str]
) -> SideTemplates:
    by_name: dict[str | None, dict[EndpointPlace, Deployment]] = defaultdict(dict)
    are_right = _are_right(side)
    for place, deployment in wanted.items():
        # One run of the app for all environments is the fastest; the app leaves out the embedded AWS unless it is
        # named, and ends where any environment is wrong.
        is_named = deployment.environment.is_embedded or not are_right
        by_name[place.environment if is_named else None][place] = deployment
    endpoints: dict[EndpointPlace, Template] = {}
    services: dict[str, Template] = {}
    for number, (environment, some) in enumerate(by_name.items()):
        scratch = folder / f"{number}"
        narrowed = {
            "endpoints": _only(side, some, scratch / "repository").as_posix(),
            "environments": side.environments.as_posix(),
        }
        if environment is not None:
            narrowed["environment"] = environment
        out = run_app(side.root, narrowed, scratch, NO_VALIDATION)
        for place, deployment in some.items():
            target, name = deployment.environment, deployment.environment.name
            endpoints[place] = _read(_stack_file(side.root, out, deployment.stack_name), target, accounts)
            service = out / f"{service_stack(name)}.template.json"
            if name not in services and service.is_file():
                services[name] = _read(service, target, accounts)
    return SideTemplates(endpoints, services)


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
        document = json.loads(read_text(lock_path(spec)))
        parts = {
            part: {name: plan for name, plan in document[part].items() if name in names}
            for part in ("environments", "digests")
            if isinstance(document.get(part), dict)
        }
        # The app makes a stack of whatever is locked: without the other environments' plans it synthesizes
        # only what is compared.
        lock_path(there / spec.name).write_text(json.dumps(document | parts), encoding="utf-8")
    return there


def _link(entries: Iterable[Path], there: Path) -> None:
    for entry in entries:
        (there / entry.name).symlink_to(entry)


def _read(
    file: Path, environment: EnvironmentSpec, accounts: Mapping[str, str] = MappingProxyType({}), *, name: str = ""
) -> Template:
    # The accounts are those that another side names: one that names none may mean the same.
    name = name or file.name.removesuffix(".template.json")
    account = environment.account or accounts.get(environment.name)
    return read_template_file(file, name=name, region=environment.region, account=account)
