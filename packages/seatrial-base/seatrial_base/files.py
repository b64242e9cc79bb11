"""A user's files: read within a limit, written whole or not at all, locked for as long as a process lives.

A free lock proves that the process that held it is gone.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import shutil
import stat
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Final, Literal

from seatrial_base.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from io import FileIO
    from typing import IO, TextIO


# Specs, locks and results have some KiB; a result of 100 levels has less than one MiB.
MOST_BYTES: Final = 16 * MIB
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
_NOTHING_THERE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
# Of a new file, before the umask.
_PLAIN_MODE: Final = 0o666


def read_file_bytes(path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """Read a regular file whole. A pipe or a device is never waited for, and no more than the limit is read.

    Raises:
        OSError: It can't be read, is no regular file, or has more bytes; `strerror` says which.
    """
    descriptor = _open_regular(path)
    with open(descriptor, "rb") as file:  # noqa: PTH123 (an open descriptor)
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes / MIB:,.4g} MiB", path.as_posix())
    return content


def read_text(path: Path, *, most_bytes: int = MOST_BYTES, errors: str = "strict") -> str:
    """Read a regular file of UTF-8 text whole; its line ends become line feeds.

    Raises:
        OSError: As of `read_bytes`.
        UnicodeDecodeError: It is no UTF-8 text.
    """
    text = read_file_bytes(path, most_bytes=most_bytes).decode("utf-8", errors)
    return io.StringIO(text, newline=None).read() if "\r" in text else text


def check_regular(path: Path) -> None:
    """Refuse what is read line by line but is no regular file: a pipe would block, a device never ends.

    Raises:
        OSError: It can't be read, or is no regular file; `strerror` says which.
    """
    os.close(_open_regular(path))


def _open_regular(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path.as_posix())
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
    raise OSError(errno.EINVAL, f"{kind}, not a regular file", path.as_posix())


def kind_of(path: Path) -> Literal["file", "folder", "other"] | None:
    """Return what a path leads to; None when nothing is there, as at the end of a link to itself.

    `Path.exists`, `is_file` and `is_dir` are false of what can't be looked at since Python 3.14: what does without a
    file that isn't there asks here.

    Raises:
        OSError: It can't be looked at, such as a file in a folder that may not be searched.
    """
    try:
        mode = path.stat().st_mode
    except ValueError:  # a name with a zero byte, which no file has
        return None
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return None
        raise
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def follow_links(path: Path) -> Path:
    """Return the absolute path of what a path leads to through every link, whether it is there or not.

    `Path.resolve` says of a link to itself what the Python says that runs it: a `RuntimeError` before 3.13, since then
    nothing at all.

    Raises:
        OSError: A link leads to itself (`ELOOP`), the name has a zero byte, which no file has (`EINVAL`), or the path
            is relative to a folder that was deleted (`ENOENT`).
    """
    try:
        target = Path(os.path.realpath(path))
    except ValueError as error:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path.as_posix()) from error
    try:
        target.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise
    return target


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path beside a file, to be written; when the block ends well, what it holds takes the file's place.

    A reader sees the old file or the new one, whole. The file keeps its mode, and a new one has what the umask leaves;
    a link stays one, and what it leads to is replaced. When the block fails, the file is as it was and nothing is left
    next to it.

    Raises:
        OSError: The folder can't be written to, or is full, or the path is a link to itself.
    """
    target = follow_links(path)
    scratch = target.with_name(f".{target.name}.{token_hex(4)}.part")
    os.close(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PLAIN_MODE))
    try:
        yield scratch
        if target.exists():
            scratch.chmod(target.stat().st_mode & 0o7777)
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Open a text file that takes the place of another when the block ends well; a device is written to as it is.

    Raises:
        OSError: It can't be written.
    """
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    with replacing(path) as scratch, scratch.open("w", encoding="utf-8", newline="\n") as file:
        yield file


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all; text as UTF-8.

    Raises:
        OSError: It can't be written; it is then as it was.
    """
    with replacing(path) as scratch:
        scratch.write_bytes(content.encode() if isinstance(content, str) else content)


def write_new(path: Path, text: str) -> None:
    """Write a file that isn't there yet, whole or not at all.

    Raises:
        FileExistsError: It is there.
        OSError: It can't be written.
    """
    with ExitStack() as undo:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            undo.callback(path.unlink, missing_ok=True)
            file.write(text)
        undo.pop_all()


def write_together(folder: Path, texts: Mapping[str, str | None]) -> None:
    """Write some files below a folder, all or none; what was replaced comes back if a later one fails.

    Args:
        texts: By the path below the folder; None removes a file. Folders are made as needed, and stay.

    Raises:
        OSError: One can't be written; then none is changed.
    """
    with tempfile.TemporaryDirectory(prefix=".part-", dir=folder) as scratch, ExitStack() as undo:
        made = {name: Path(scratch, f"{number}") for number, name in enumerate(texts)}
        for name, text in texts.items():
            if text is not None:
                made[name].write_text(text, encoding="utf-8", newline="\n")
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
        for name in texts:
            _replace(folder / name, made[name], undo)
        undo.pop_all()


def _replace(path: Path, new: Path, undo: ExitStack) -> None:
    """Put a new file in a file's place, which keeps its mode; a link stays one, and what it leads to is replaced."""
    earlier, place = new.with_suffix(".earlier"), follow_links(path) if new.exists() else path
    try:
        if place.exists():
            shutil.copy2(place, earlier)
            undo.callback(earlier.replace, place)
        else:
            undo.callback(place.unlink, missing_ok=True)
        if new.exists():
            if place.exists():
                new.chmod(place.stat().st_mode & 0o7777)
            new.replace(place)
        else:
            place.unlink()
    except OSError as error:
        error.filename, error.filename2 = path.as_posix(), None  # not that of a file which is gone when it is read
        raise


def write_folder(folder: Path, texts: Mapping[str, str]) -> None:
    """Write a folder of files that isn't there yet, or is empty, whole or not at all.

    Raises:
        OSError: It can't be written, or it holds something.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".part-", dir=folder.parent) as scratch:
        whole = Path(scratch, "whole")
        whole.mkdir()
        for name, text in texts.items():
            (whole / name).write_text(text, encoding="utf-8", newline="\n")
        if folder.exists():
            folder.rmdir()
        shutil.move(whole, folder)


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


# A file system that locks no folders, as some that lie on another machine.
_NO_LOCKS = (errno.ENOLCK, errno.EBADF, errno.ENOTSUP)


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """Keep others from changing a file of this folder while it is read, changed and replaced; wait for them.

    The folder itself is locked, so that nothing is left next to the file; where its file system locks no folders,
    no one waits. Not to be entered twice for one folder.

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

    `shared`: take it beside others who share it, which tells whether somebody holds it alone.
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
