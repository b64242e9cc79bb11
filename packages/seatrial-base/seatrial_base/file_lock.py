"""A lock on a file that a process holds for as long as it lives: a free lock proves that the process is gone."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from io import FileIO
    from pathlib import Path
    from typing import IO


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
    if not try_lock(file):
        file.close()
        return None
    return _held(file)


_NO_LOCKS = (errno.ENOLCK, errno.EBADF, errno.ENOTSUP)
"""A file system that locks no folders, as some that lie on another machine."""


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """Keep others from changing a file of this folder while it is read, changed and replaced; wait for them.

    The folder itself is locked, so that nothing is left beside the file; where its file system locks no folders,
    nobody waits. Not to be entered twice for one folder.

    Raises:
        OSError: There is no such folder, or it can't be read.
    """
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
        except OSError as refused:
            if refused.errno not in _NO_LOCKS:
                raise
        yield
    finally:
        os.close(folder)


def try_lock(file: IO[bytes], *, shared: bool = False) -> bool:
    """Take the lock of an open file until it is closed; return whether no other process holds it.

    Args:
        file: The file.
        shared: Take it beside others who share it, which tells whether somebody holds it alone.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _held(file: FileIO) -> Iterator[FileIO]:
    with file:
        yield file
