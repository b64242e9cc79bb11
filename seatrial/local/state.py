"""What a running embedded AWS leaves on disk, and the lock that says whether it runs.

The process holds an exclusive lock on a file for as long as it lives. So a free lock proves that it's gone, however it
ended, and a held lock proves that the process number in the state is its own: no recycled number is ever signalled.
"""

from __future__ import annotations

import fcntl
import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from seatrial.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import IO

STATE_FILE: Final = "aws.json"
LOCK_FILE: Final = "aws.lock"
LOG_FOLDER: Final = "logs"
AWS_LOG: Final = "aws.log"


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """The process of an embedded AWS and its loopback port."""

    pid: int
    port: int


def hold_lock(state_dir: Path) -> AbstractContextManager[None] | None:
    """Take the lock, to be held while the returned context lasts; None when another process holds it."""
    file = _lock_file(state_dir)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return _held(file)


def write_state(state_dir: Path, process: RunningProcess) -> None:
    """Write who runs; the reader sees the whole file or the one before."""
    write_whole(state_dir / STATE_FILE, json.dumps(asdict(process)))


def running_process(state_dir: Path) -> RunningProcess | None:
    """Return the process that runs with this state, or None when none does."""
    state = state_dir / STATE_FILE
    if not state.exists() or not _is_locked(state_dir):
        return None
    document = json.loads(state.read_text())
    return RunningProcess(pid=int(document["pid"]), port=int(document["port"]))


def scratch_folder(state_dir: Path) -> Path:
    """Return the folder of its temporary files, unpacked Lambda functions among them; emptied when it stops."""
    return state_dir / "tmp"


def aws_log(state_dir: Path) -> Path:
    """Return the log of the embedded AWS; those of the engines lie beside it."""
    return state_dir / LOG_FOLDER / AWS_LOG


def _is_locked(state_dir: Path) -> bool:
    lock = hold_lock(state_dir)
    if lock is None:
        return True
    with lock:
        return False


def _lock_file(state_dir: Path) -> IO[bytes]:
    state_dir.mkdir(parents=True, exist_ok=True)
    return (state_dir / LOCK_FILE).open("ab")


@contextmanager
def _held(file: IO[bytes]) -> Iterator[None]:
    with file:
        yield
