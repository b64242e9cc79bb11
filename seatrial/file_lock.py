"""A lock on a file that a process holds for as long as it lives: a free lock proves that the process is gone."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path


def hold_file_lock(path: Path) -> AbstractContextManager[IO[bytes]] | None:
    """Take the exclusive lock of a file, which is made when there is none.

    Returns:
        A context that yields the open file and holds the lock while it lasts; None when another process holds it.

    Raises:
        OSError: The file can't be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return _held(file)


@contextmanager
def _held(file: IO[bytes]) -> Iterator[IO[bytes]]:
    with file:
        yield file
