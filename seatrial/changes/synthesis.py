"""The template of one endpoint as the app of `cdk.json` writes it, for this checkout or for another revision."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.changes.template import EMPTY, read_template
from seatrial.errors import SeatrialError, SpecError
from seatrial.files import read_text
from seatrial.plan.lock.lock_file import locked_environments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.changes.template import StackTemplate
    from seatrial.spec.environment import EnvironmentSpec

LONGEST_S = 600
LAST_LINES = 25
MOST_BYTES = 64 * 2**20
PUBLISHER = "seatrial_stacks.publish_products"
"""The module that writes the templates of products, by its name: the core knows no CDK."""
_SOURCE_ROOTS = (".", "constructs", "stacks")
_OF_GIT = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX", "GIT_COMMON_DIR")
"""Variables that a hook of git sets, and that would lead another git to the wrong place."""


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
            spec=spec.resolve(),
            environments=environments.resolve(),
            environment=environment,
            stack_name=stack_name,
        )

    def template(self, text: str, where: str) -> StackTemplate:
        """Read a template of this stack."""
        return read_template(text, where=where, region=self.environment.region, account=self.environment.account)


def synthesize(source: StackSource, folder: Path) -> StackTemplate:
    """Run the app for one endpoint in one environment.

    Args:
        source: What to synthesize.
        folder: For what the app writes; it is made.

    Raises:
        SeatrialError: SEA450 with the app's last lines when it fails or writes no such stack; SEA451 when what it
            writes is no template.
    """
    app, context = _app(source)
    out, scratch = folder / "out", folder / "tmp"  # what an app that is ended leaves behind goes with the folder
    for each in (out, scratch):
        each.mkdir(parents=True)
    variables = app_variables(source.root) | {
        "CDK_OUTDIR": f"{out}",
        "CDK_CONTEXT_JSON": json.dumps(context),
        "TMPDIR": f"{scratch}",
    }
    where = (source.root / "cdk.json").as_posix()
    done = _run(app, source.root, variables, where)
    if done.returncode:
        lines = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        said = "\n".join(lines[-LAST_LINES:])
        raise SeatrialError.of("SEA450", f"the app ended with exit code {done.returncode}:\n{said}", where=where)
    file = out / f"{source.stack_name}.template.json"
    if not file.is_file():
        raise SeatrialError.of("SEA450", f"the app has no stack {source.stack_name}", where=where)
    return source.template(_text(file), source.stack_name)


def publish_products(product: Path, environments: Path) -> str:
    """Write the templates of a product's current version, with the feature flags of the nearest `cdk.json`.

    Args:
        product: The product's YAML file.
        environments: Folder of environments.

    Returns:
        The paths of the templates, one on each line.

    Raises:
        SpecError: SEA450 when there is no `cdk.json`.
        SeatrialError: SEA450 with the last lines when the templates can't be made.
    """
    root = app_folder(product)
    command = [sys.executable, "-m", PUBLISHER, str(product.resolve()), str(environments.resolve())]
    done = _run(command, root, app_variables(root), product.as_posix())
    if done.returncode:
        said = "\n".join(done.stderr.splitlines()[-LAST_LINES:])
        raise SeatrialError.of("SEA450", f"its templates can't be made:\n{said}", where=product.as_posix())
    return done.stdout


def app_folder(spec: Path) -> Path:
    """Return the nearest folder with a `cdk.json`, of a spec's folder and those above.

    Raises:
        SpecError: SEA450 when there is none.
    """
    folders = spec.resolve().parents
    root = next((folder for folder in folders if (folder / "cdk.json").is_file()), None)
    if root is None:
        hint = "keep the spec below the folder of the CDK app"
        raise SpecError.of("SEA450", "no cdk.json in its folder or above", where=spec.as_posix(), hint=hint)
    return root


def _app(source: StackSource) -> tuple[list[str], dict[str, object]]:
    """Return the app's command line and its context, narrowed to what is asked."""
    where = (source.root / "cdk.json").as_posix()
    try:
        document = json.loads(read_text(source.root / "cdk.json"))
        command = shlex.split(document["app"])
        context: dict[str, object] = dict(document.get("context", {}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"it can't be read, or names no app: {error}"
        raise SpecError.of("SEA450", message, where=where) from error
    if command and command[0] in {"python", "python3"}:
        command[0] = sys.executable
    narrowed = {
        "environment": source.environment.name,
        "endpoint": source.spec.stem,
        "endpoints": source.spec.parent.as_posix(),
        "environments": source.environments.as_posix(),
    }
    return command, context | narrowed


def app_variables(root: Path) -> dict[str, str]:
    """Return the variables of the app: this interpreter's tools and the modules of its own folder first."""
    given = os.environ
    tools = os.pathsep.join([str(Path(sys.executable).parent), *filter(None, [given.get("PATH")])])
    roots = [str((root / name).resolve()) for name in _SOURCE_ROOTS if (root / name).is_dir()]
    modules = os.pathsep.join([*roots, *filter(None, [given.get("PYTHONPATH")])])
    return {**given, "PATH": tools, "PYTHONPATH": modules}


def _run(
    command: list[str], folder: Path, variables: Mapping[str, str], where: str
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SeatrialError.of("SEA450", f"the app did not end within {LONGEST_S} s", where=where) from error
    except OSError as error:
        raise SeatrialError.of("SEA450", f"the app can't be started: {error.strerror}", where=where) from error


def given_template(source: StackSource, path: Path) -> StackTemplate:
    """Read a template from a file, or that of the stack from a folder such as cdk.out.

    Raises:
        SpecError: SEA451 when it can't be read or is no template.
    """
    file = path / f"{source.stack_name}.template.json" if path.is_dir() else path
    return source.template(_text(file), file.as_posix())


def _text(file: Path) -> str:
    try:
        return read_text(file, most_bytes=MOST_BYTES)
    except OSError as error:
        raise SpecError.of("SEA451", f"it can't be read: {error.strerror}", where=file.as_posix()) from error
    except UnicodeDecodeError as error:
        raise SpecError.of("SEA451", "not UTF-8 text", where=file.as_posix()) from error


def synthesize_revision(source: StackSource, revision: str, folder: Path) -> StackTemplate:
    """Synthesize the stack as it is in another revision; that of a revision without the endpoint's lock is empty.

    Args:
        source: What to synthesize.
        revision: A revision of git.
        folder: An empty folder; the revision is checked out there for a while.

    Raises:
        SeatrialError: SEA452 when the revision can't be checked out, SEA450 and SEA451 as `synthesize`.
    """
    with _checkout(source.root, revision, folder / "checkout") as (top, checkout):
        there = StackSource(
            root=_moved(source.root, top, checkout),
            spec=_moved(source.spec, top, checkout),
            environments=_moved(source.environments, top, checkout),
            environment=source.environment,
            stack_name=source.stack_name,
        )
        if not _is_locked(there):
            return EMPTY
        return synthesize(there, folder / "app")


def _is_locked(source: StackSource) -> bool:
    return source.spec.is_file() and source.environment.name in locked_environments(source.spec)


def _moved(path: Path, top: Path, checkout: Path) -> Path:
    if not path.is_relative_to(top):
        hint = "give a spec and environments of the repository"
        message = f"it is not in the repository {top.as_posix()}"
        raise SpecError.of("SEA452", message, where=path.as_posix(), hint=hint)
    return checkout / path.relative_to(top)


@contextmanager
def _checkout(root: Path, revision: str, checkout: Path) -> Iterator[tuple[Path, Path]]:
    """Check a revision out beside the repository; it is gone afterwards."""
    top = Path(_git(root, "rev-parse", "--show-toplevel")).resolve()
    commit = _git(root, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    try:
        _git(root, "-c", "core.hooksPath=/dev/null", "worktree", "add", "--detach", "--quiet", f"{checkout}", commit)
        yield top, checkout.resolve()
    finally:
        if checkout.exists():
            _git(root, "worktree", "remove", "--force", f"{checkout}")


def _git(folder: Path, *arguments: str) -> str:
    variables = {name: value for name, value in os.environ.items() if name not in _OF_GIT}
    try:
        done = subprocess.run(
            ["git", *arguments],  # noqa: S607 (the user's git)
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise SpecError.of("SEA452", f"git can't be started: {error.strerror}", hint="install git") from error
    if done.returncode:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        hint = "give a revision that `git rev-parse` knows; fetch it first in a shallow clone"
        raise SpecError.of("SEA452", said, where=folder.as_posix(), hint=hint)
    return done.stdout.strip()
