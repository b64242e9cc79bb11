"""A model in a folder of this machine."""

from __future__ import annotations

import os
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.errors import Problem, StageError
from seatrial.stage.source import Source, SourceFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


def read_folder(folder: Path) -> Source:
    """Return the files of a folder and of the folders in it; names that begin with a dot are left out.

    A link to a file is read through, as the hub's cache has them; a link to a folder is not followed.

    Raises:
        StageError: SEA360 when the folder or a file of it can't be read, or there is none.
    """
    found: list[SourceFile] = []
    problems: list[Problem] = []

    def unreadable(error: OSError) -> None:
        problems.append(Problem(str(error.filename), "", "SEA360", f"can't be read: {error.strerror}"))

    for path in _files(folder, unreadable):
        try:
            size_bytes = path.stat().st_size
        except OSError as error:
            unreadable(error)
            continue
        found.append(SourceFile(path.relative_to(folder).as_posix(), size_bytes, None, partial(_lent, path)))
    if problems:
        raise StageError(problems)
    if not found:
        raise StageError.of("SEA360", "the folder holds no file", where=folder.as_posix())
    return Source(folder.resolve().name, None, tuple(sorted(found, key=lambda file: file.name)))


def _lent(path: Path) -> AbstractContextManager[Path]:
    return nullcontext(path)


def _files(folder: Path, unreadable: Callable[[OSError], None]) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(parent) / name for name in names if not name.startswith("."))
