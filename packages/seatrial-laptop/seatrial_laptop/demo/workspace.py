"""The folder that the demo works in: a copy of the spec and environment, which it edits as a user would."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.locks.lock_file import write_lock
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from seatrial_base.errors import LocalError
from seatrial_base.file_lock import hold_file_lock
from seatrial_laptop.demo.disk import disk_failures
from seatrial_laptop.lifecycle import down
from seatrial_laptop.state import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec

ENDPOINT = "llama-2-7b-chat"
ENVIRONMENT = "local"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Paths of the demo.

    Attributes:
        root: The repository.
        folder: The demo's own folder below it.
    """

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
        """Load the spec as it stands now."""
        return load_spec(self.spec, ENVIRONMENT, environments=self.environments)

    def lock(self, *, accept_slo_miss: bool = False) -> Plan:
        """Plan the spec as it stands now and write its lock."""
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
        down(workspace.aws)
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
    for folder in (workspace.scratch, scratch_folder(workspace.aws)):
        shutil.rmtree(folder, ignore_errors=True)
