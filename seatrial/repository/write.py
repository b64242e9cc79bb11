"""Writes a team's repository: all of its files, or, after a problem, none."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seatrial.locks.lock_file import write_lock
from seatrial.planner.planner import make_plan
from seatrial.repository.render import EXAMPLE, repository_files
from seatrial.specs.load import load_spec
from seatrial_base.errors import SpecError
from seatrial_base.files import follow_links
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seatrial.repository.answers import Answers

GIT_FOLDER: Final = ".git"
_OWN: Final = ("endpoints/", "environments/")
"""What belongs to the team once there is anything of it: no example is added to a repository in use."""


@dataclass(frozen=True, slots=True)
class WrittenRepository:
    """What was done with a folder, by the paths of files in it.

    Attributes:
        written: New files.
        kept: Files that are there with another text; they were not touched.
    """

    written: tuple[str, ...]
    kept: tuple[str, ...]


def write_repository(folder: Path, answers: Answers, *, update: bool = False) -> WrittenRepository:
    """Write a team's repository into an empty folder, or add what is absent.

    Args:
        folder: Made if it isn't there. A folder with nothing but `.git` is empty.
        answers: What the team answered.
        update: Add the files that are absent, and keep every other one.

    Raises:
        SpecError: SEA481, the folder isn't empty; SEA482, an answer is wrong; SEA101, a file can't be written. Then
            nothing is written.
    """
    answers.check()
    if not update and _is_used(folder):
        hint = "name another folder, or add what is absent: --update"
        raise SpecError.of("SEA481", "the folder is not empty", where=folder.as_posix(), hint=hint)
    own = {path for path in _OWN if any((folder / path).glob("*.yaml"))}
    try:
        with tempfile.TemporaryDirectory() as scratch:
            files = {
                path: text
                for path, text in _with_locks(repository_files(answers), Path(scratch), answers).items()
                if not path.startswith(tuple(own))
            }
        there = {path: _text(folder / path) for path in files}
        new = {path: text for path, text in files.items() if there[path] is None}
        _refuse_outside(folder, new)
        _write(folder, new)
    except OSError as error:
        message = f"can't be written: {error.strerror}"
        raise SpecError.of("SEA101", message, where=str(error.filename or folder)) from error
    return WrittenRepository(tuple(sorted(new)), tuple(sorted(set(files) - new.keys() - _same(files, there))))


def _refuse_outside(folder: Path, paths: Iterable[str]) -> None:
    """Refuse to write through a link that leads out of the folder.

    Raises:
        SpecError: SEA101, with every such file.
    """
    home = follow_links(folder)
    outside = [path for path in sorted(paths) if not follow_links((folder / path).parent).is_relative_to(home)]
    if outside:
        message, hint = "a link leads out of the folder", "replace the link by a folder"
        raise SpecError(Finding("SEA101", Place.at((folder / path).as_posix()), message, hint) for path in outside)


def _is_used(folder: Path) -> bool:
    if folder.is_dir():
        return any(path.name != GIT_FOLDER for path in folder.iterdir())
    return folder.exists() or folder.is_symlink()


def _with_locks(files: Mapping[str, str], scratch: Path, answers: Answers) -> dict[str, str]:
    """Return the files with the lock of the example, planned for every environment."""
    _write(scratch, {path: text for path, text in files.items() if path.startswith(_OWN)})
    spec = scratch / EXAMPLE
    lock = spec
    for target in answers.targets:
        lock = write_lock(make_plan(load_spec(spec, target.name, environments=scratch / "environments")), spec)
    return {**files, lock.relative_to(scratch).as_posix(): lock.read_text(encoding="utf-8")}


def _same(files: Mapping[str, str], there: Mapping[str, str | None]) -> set[str]:
    return {path for path, text in files.items() if there[path] == text}


def _text(file: Path) -> str | None:
    """Return a file's text; None when there is none. What is no text differs from every text."""
    if not (file.exists() or file.is_symlink()):
        return None
    try:
        return file.read_text(encoding="utf-8")
    except (UnicodeDecodeError, IsADirectoryError):
        return ""


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write new files; when one can't be written, none is left, nor a folder made for them."""
    made: list[Path] = []
    try:
        for path, text in files.items():
            file = folder / path
            made += _made_folders(file.parent)
            with file.open("x", encoding="utf-8") as new:  # who wrote it meanwhile keeps it
                made.append(file)
                new.write(text)
    except BaseException:
        for path_made in reversed(made):
            with suppress(OSError):
                path_made.rmdir() if path_made.is_dir() else path_made.unlink()
        raise


def _made_folders(folder: Path) -> list[Path]:
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir()
    return missing[::-1]
