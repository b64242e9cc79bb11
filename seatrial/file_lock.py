"""A lock on a file that a process holds for as long as it lives: a free lock proves that the process is gone."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from io import FileIO
    from pathlib import Path


def hold_file_lock(path: Path) -> AbstractContextManager[FileIO] | None:
    """Take the exclusive lock of a file, which is made when there is none.

    Returns:
        A context that yields the open, unbuffered file and holds the lock while it lasts; None when another process
        holds it.

    Raises:
        OSError: The file can't be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+b", buffering=0)  # a write that fails is not tried again when the file is closed
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return _held(file)


@contextmanager
def _held(file: FileIO) -> Iterator[FileIO]:
    with file:
        yield file
