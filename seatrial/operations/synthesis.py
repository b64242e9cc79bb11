"""The template of one endpoint as the app of `cdk.json` writes it, for this checkout or for another revision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.locks.lock_file import locked_environments
from seatrial.operations.app import app_folder, run_app
from seatrial.operations.checkout import checkout_of, commit_of, git_repository_of, moved
from seatrial.operations.review.affected import refuse_code_of_others
from seatrial.operations.review.side import RepositorySide
from seatrial_base.errors import SeatrialError
from seatrial_base.files import follow_links
from seatrial_lint.cloudformation.read import read_template, read_template_file
from seatrial_lint.cloudformation.template import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seatrial.specs.environment import EnvironmentSpec
    from seatrial_lint.cloudformation.template import Template


@dataclass(frozen=True, slots=True, kw_only=True)
class StackSource:
    """Where one stack comes from.

    Attributes:
        root: Folder of `cdk.json`.
        spec: The endpoint's spec.
        environments: Folder of environments.
        environment: The environment.
        stack_name: The stack's name.
    """

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

    def template(self, text: str, where: str) -> Template:
        """Read a template of this stack."""
        return read_template(text, name=where, region=self.environment.region, account=self.environment.account)

    def template_file(self, file: Path, where: str) -> Template:
        """Read a template of this stack from a file."""
        return read_template_file(file, name=where, region=self.environment.region, account=self.environment.account)


def synthesize(source: StackSource, folder: Path, context: Mapping[str, str] | None = None) -> Template:
    """Run the app for one endpoint in one environment.

    Args:
        source: What to synthesize.
        folder: For what the app writes; it is made.
        context: Further context values of the app, as `cdk deploy -c` gives them; default: none.

    Raises:
        SeatrialError: SEA450 with the app's last lines when it fails or writes no such stack; SEA451 when what it
            writes is no template.
    """
    narrowed = {
        "environment": source.environment.name,
        "endpoint": source.spec.stem,
        "endpoints": source.spec.parent.as_posix(),
        "environments": source.environments.as_posix(),
        **(context or {}),
    }
    file = run_app(source.root, narrowed, folder) / f"{source.stack_name}.template.json"
    if not file.is_file():
        where = (source.root / "cdk.json").as_posix()
        raise SeatrialError.of("SEA450", f"the app has no stack {source.stack_name}", where=where)
    return source.template_file(file, source.stack_name)


def given_template(source: StackSource, path: Path) -> Template:
    """Read a template from a file, or that of the stack from a folder such as cdk.out.

    Raises:
        SpecError: SEA101 when it can't be read, SEA451 when it is no template.
    """
    file = path / f"{source.stack_name}.template.json" if path.is_dir() else path
    return source.template_file(file, file.as_posix())


def synthesize_revision(source: StackSource, revision: str, folder: Path) -> Template:
    """Synthesize the stack as it is in another revision; that of a revision without the endpoint's lock is empty.

    Args:
        source: What to synthesize.
        revision: A revision of git.
        folder: An empty folder; the revision is checked out there for a while.

    Raises:
        SeatrialError: SEA452 when the revision can't be checked out, or has code that the checkout lacks; SEA450 and
            SEA451 as `synthesize`.
    """
    top, commit = git_repository_of(source.root), commit_of(source.root, revision)
    side = RepositorySide(top=top, root=source.root, endpoints=source.spec.parent, environments=source.environments)
    refuse_code_of_others(side, commit)
    with checkout_of(source.root, commit, folder / "checkout") as (_, checkout):
        there = StackSource(
            root=moved(source.root, top, checkout),
            spec=moved(source.spec, top, checkout),
            environments=moved(source.environments, top, checkout),
            environment=source.environment,
            stack_name=source.stack_name,
        )
        if not _is_locked(there):
            return EMPTY
        return synthesize(there, folder / "app")


def _is_locked(source: StackSource) -> bool:
    return source.spec.is_file() and source.environment.name in locked_environments(source.spec)
