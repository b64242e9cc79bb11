"""The folder that the demo works in: a copy of the spec and environment, which it edits as a user would."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seatrial.locks.lock_file import write_lock
from seatrial.operations.app import cdk_cli
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from seatrial_base.errors import LocalError, SpecError
from seatrial_base.files import hold_file_lock
from seatrial_base.findings import Finding, Place
from seatrial_base.units import MIB
from seatrial_laptop.lifecycle import stop_embedded_aws
from seatrial_laptop.state import cache_dir, server_scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec


NEEDED_BYTES: Final = 100 * MIB
"""What the demo's folder holds in the end (20 MiB) and what the tools need meanwhile, with room to spare."""

ENDPOINT = "llama-2-7b-chat"
ENVIRONMENT = "local"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Paths of the demo."""

    root: Path
    folder: Path

    @property
    def spec(self) -> Path:
        """The copied spec."""
        return self.folder / "endpoints" / f"{ENDPOINT}.yaml"

    @property
    def environments(self) -> Path:
        """The copied folder of environments."""
        return self.folder / "environments"

    @property
    def aws(self) -> Path:
        """The state of the embedded AWS."""
        return self.folder / "local"

    @property
    def scratch(self) -> Path:
        """The temporary files of the tools."""
        return self.folder / "tmp"

    @property
    def assembly(self) -> Path:
        """Where the CDK CLI synthesizes to."""
        return self.folder / "cdk.out"

    def load(self) -> LoadedSpec:
        """Load the spec as it is now."""
        return load_spec(self.spec, ENVIRONMENT, environments=self.environments)

    def lock(self, *, accept_slo_miss: bool = False) -> Plan:
        """Plan the spec as it is now and write its lock."""
        plan = make_plan(self.load(), accept_slo_miss=accept_slo_miss)
        write_lock(plan, self.spec)
        return plan

    def edit(self, old: str, new: str) -> None:
        """Replace one place of the spec.

        Raises:
            LocalError: SEA606 when the text does not occur exactly once.
        """
        text = self.spec.read_text(encoding="utf-8")
        if text.count(old) != 1:
            message = f"the spec holds {old!r} {text.count(old)} times, not once"
            raise LocalError.of("SEA606", message, where=self.spec.as_posix())
        self.spec.write_text(text.replace(old, new), encoding="utf-8")


def workspace_of(root: Path) -> Workspace:
    """Return the demo's workspace of a checkout, as it may be.

    Raises:
        LocalError: SEA606 when this is no checkout of the repository.
    """
    missing = [name for name in ("app.py", "cdk.json", f"endpoints/{ENDPOINT}.yaml") if not (root / name).is_file()]
    if missing:
        message = f"{', '.join(missing)} not found"
        raise LocalError.of(
            "SEA606", message, where=root.as_posix(), hint="run the demo in a checkout of the repository"
        )
    return Workspace(root, root / ".seatrial" / "demo")


@contextmanager
def only_demo(workspace: Workspace) -> Iterator[None]:
    """Keep every other demo out of a checkout for as long as this one lasts.

    Raises:
        LocalError: SEA611 when another demo runs in it; SEA612 when the lock can't be written.
    """
    path = workspace.folder.with_name("demo.lock")
    with disk_failures(path):
        lock = hold_file_lock(path)
    if lock is None:
        other = path.read_text(encoding="ascii", errors="replace").strip() or "unknown"
        message = f"another demo runs in this checkout (process {other})"
        hint = "wait until it ends, or use another checkout"
        raise LocalError.of("SEA611", message, where=workspace.folder.as_posix(), hint=hint)
    with lock as file:
        with disk_failures(path):
            file.truncate(0)
            file.write(f"{os.getpid()}\n".encode())
        yield


def renew(workspace: Workspace) -> None:
    """Copy the demo's spec and environments into a fresh folder; what an earlier demo left running is stopped first.

    Raises:
        LocalError: SEA601 when that could not be stopped; SEA612 when the folder can't be written.
    """
    if workspace.aws.exists():
        stop_embedded_aws(workspace.aws)
    with disk_failures(workspace.folder):
        if workspace.folder.exists():
            shutil.rmtree(workspace.folder)
        for folder in (workspace.spec.parent, workspace.environments, workspace.scratch):
            folder.mkdir(parents=True)
        shutil.copy(workspace.root / "endpoints" / f"{ENDPOINT}.yaml", workspace.spec)
        for file in (workspace.root / "environments").glob("*.yaml"):
            shutil.copy(file, workspace.environments)


def clear_scratch(workspace: Workspace) -> None:
    """Remove every temporary file; logs, reports and the assembly stay."""
    for folder in (workspace.scratch, server_scratch_folder(workspace.aws)):
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def disk_failures(place: Path) -> Iterator[None]:
    """Turn what the operating system refuses within, such as a write to a full disk, into an error with a rule.

    Raises:
        LocalError: SEA612 with the file and the reason.
    """
    try:
        yield
    except ConnectionError:
        raise
    except OSError as error:
        where = str(error.filename or place)
        hint = "the demo needs write access and free space in .seatrial of the checkout"
        raise LocalError.of("SEA612", error.strerror or f"{error}", where=where, hint=hint) from error


def check_machine(workspace: Workspace) -> None:
    """Check what the demo needs before anything is started: a CDK CLI, folders that can be written, and room.

    Raises:
        LocalError: SEA603 and SEA612, every problem.
    """
    problems = [*_unusable(workspace.folder, "allow writing there, or use another checkout")]
    try:
        cdk_cli(workspace.root)
    except SpecError as error:
        problems[:0] = error.problems
    try:
        for folder in sorted({Path.home(), cache_dir()}):
            problems += _unusable(folder, "set HOME and XDG_CACHE_HOME to writable folders")
    except RuntimeError:
        problems.append(Finding("SEA612", Place("HOME"), "no home folder", "set HOME to a writable folder"))
    if problems:
        raise LocalError(problems)


def _unusable(folder: Path, hint: str) -> Iterator[Finding]:
    """Yield why a folder can't be written; a folder that is not there is made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"seatrial")
        free = shutil.disk_usage(folder).free
    except OSError as error:
        yield Finding("SEA612", Place.at(folder.as_posix()), f"can't be written: {error.strerror}", hint)
        return
    if free < NEEDED_BYTES:
        message = f"{free / MIB:.0f} MiB free; the demo needs {NEEDED_BYTES // MIB} MiB"
        yield Finding("SEA612", Place.at(folder.as_posix()), message, "free disk space")
