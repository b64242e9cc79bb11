"""What the demo needs of this machine's disks, and what is said when it isn't there."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seatrial_base.errors import LocalError
from seatrial_base.findings import Finding, Place
from seatrial_base.units import MIB
from seatrial_laptop.demo.cdk_cli import cdk_path
from seatrial_laptop.state import cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_laptop.demo.workspace import Workspace

NEEDED_BYTES: Final = 100 * MIB
"""What the demo's folder holds in the end (20 MiB) and what the tools need meanwhile, with room to spare."""


@contextmanager
def disk_failures(place: Path) -> Iterator[None]:
    """Turn what the operating system refuses within, such as a write to a full disk, into an error with a rule.

    Args:
        place: What is named when the operating system names no file.

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
        LocalError: SEA603 and SEA612, every problem found.
    """
    if problems := [*_missing_tools(), *_folder_problems(workspace)]:
        raise LocalError(problems)


def _missing_tools() -> Iterator[Finding]:
    if not cdk_path().is_file():
        yield Finding("SEA603", Place.at(str(cdk_path())), "the CDK CLI is not installed", "run it with: make demo")


def _folder_problems(workspace: Workspace) -> Iterator[Finding]:
    yield from _unusable(workspace.folder, "allow writing there, or use another checkout")
    try:
        folders = {Path.home(), cache_dir()}
    except RuntimeError:
        yield Finding("SEA612", Place("HOME"), "no home folder", "set HOME to a writable folder")
        return
    for folder in sorted(folders):
        yield from _unusable(folder, "set HOME and XDG_CACHE_HOME to writable folders")


def _unusable(folder: Path, hint: str) -> Iterator[Finding]:
    """Say why a folder can't be written; a folder that is not there is made."""
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
