"""Files of a running embedded AWS, and the lock that proves that it runs.

The process holds an exclusive lock on a file for as long as it lives, with its process number in it. So a free lock
proves that it's gone, however it ended, and a held lock proves that the number in it is its own: no recycled number is
ever signalled.

    aws.lock    the lock and the process number of its holder
    aws.json    process number, port and access key; a leftover of a process that was killed when the lock is free
    logs/       of the embedded AWS and its engines; kept
    tmp/        temporary files, unpacked Lambda functions and their home; removed
    copies/     the model folders of running engines; removed

Every file is for its owner alone (0600, folders 0700). Stacks, buckets and endpoints live in memory only.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seatrial_base.errors import LocalError
from seatrial_base.files import follow_links, kind_of, try_lock
from seatrial_laptop.loopback import HOST

if TYPE_CHECKING:
    from types import TracebackType
    from typing import IO, Literal, Self


REGION: Final = "us-east-1"
ACCOUNT: Final = "000000000000"
"""The account of an embedded AWS that is started without another one."""

STATE_FILE: Final = "aws.json"
LOCK_FILE: Final = "aws.lock"
LOG_FOLDER: Final = "logs"
SCRATCH_FOLDER: Final = "tmp"
COPIES_FOLDER: Final = "copies"
AWS_LOG: Final = "aws.log"
OWNER_ONLY: Final = 0o600
FOLDER_OF_OWNER: Final = 0o700
STARTING_S: Final = 0.5
"""How long lock and state may differ: a process that starts takes the one and then writes the other."""
PATIENCE_S: Final = 1.0
"""How long a start waits for the lock: a check whether it is held holds it for an instant."""
POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class LocalAws:
    """A running embedded AWS: process, loopback port, account, and the key of its user, who may do everything on it."""

    pid: int
    port: int
    access_key_id: str
    secret_access_key: str = field(repr=False)
    account: str = ACCOUNT

    @property
    def endpoint_url(self) -> str:
        """The address of every service."""
        return f"http://{HOST}:{self.port}"

    @property
    def region(self) -> str:
        """Its only region."""
        return REGION


class StateLock:
    """The held lock of a state folder, and what the process wrote there; released when the context ends."""

    def __init__(self, state_dir: Path, file: IO[bytes]) -> None:
        self._state_dir = state_dir
        self._file = file
        self._written = b""

    def __enter__(self) -> Self:
        """Go on holding it."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Release it."""
        self._file.close()

    def write_state(self, process: LocalAws) -> None:
        """Write who runs, readable by its owner only; the reader sees the whole file or none."""
        self._written = json.dumps(asdict(process)).encode()
        part = self._state_dir / f"{STATE_FILE}.part"
        part.unlink(missing_ok=True)
        with open_private(part, "xb") as file:
            file.write(self._written)
        part.replace(self._state_dir / STATE_FILE)

    def is_ours(self) -> bool:
        """Return whether the folder still leads to this process: the same lock file, the state as it was written."""
        try:
            there, held = (self._state_dir / LOCK_FILE).stat(), os.fstat(self._file.fileno())
            return os.path.samestat(there, held) and (self._state_dir / STATE_FILE).read_bytes() == self._written
        except OSError:
            return False

    def clean(self) -> None:
        """Remove what ends with this process; the logs stay."""
        end_leftovers(self._state_dir)


def hold_lock(state_dir: Path) -> StateLock | None:
    """Take the lock for this process, and remove what an earlier one left; None when another process holds it.

    Raises:
        OSError: The folder or its files can't be made.
    """
    make_private(state_dir)
    file = open_private(state_dir / LOCK_FILE, "ab")
    with ExitStack() as on_failure:
        on_failure.callback(file.close)
        deadline = time.monotonic() + PATIENCE_S
        while not try_lock(file):
            if time.monotonic() > deadline:
                return None
            time.sleep(POLL_S)
        end_leftovers(state_dir)
        file.truncate(0)
        file.write(str(os.getpid()).encode())
        file.flush()
        on_failure.pop_all()
    return StateLock(state_dir, file)


def lock_holder(state_dir: Path) -> int | None:
    """Return the number of the process that holds the lock, or None when none does.

    Raises:
        LocalError: SEA607, a process holds it and no file has its number.
    """
    if not is_held(state_dir):
        return None
    pid = _number_in(state_dir / LOCK_FILE)
    # An embedded AWS of an earlier version writes it into its state only.
    if pid is None:
        state = _read_state(state_dir)
        pid = state.pid if state else None
    if pid is None:
        raise _unreadable(state_dir)
    return pid


def running_process(state_dir: Path) -> LocalAws | None:
    """Return the process that runs with this state, or None when none does, or it has only begun to start.

    Raises:
        LocalError: SEA607, one runs, but the state isn't what it wrote.
    """
    path, deadline = state_dir / STATE_FILE, time.monotonic() + STARTING_S
    while kind_of(path) and is_held(state_dir):
        state = _read_state(state_dir)
        if state and _number_in(state_dir / LOCK_FILE) == state.pid:
            return state
        if time.monotonic() > deadline:
            raise _unreadable(state_dir)
        time.sleep(POLL_S)
    return None


def was_killed(state_dir: Path) -> bool:
    """Return whether the last embedded AWS of this folder ended without being stopped."""
    return kind_of(state_dir / STATE_FILE) is not None and not is_held(state_dir)


def end_leftovers(state_dir: Path) -> None:
    """End what a process left running in its scratch folders, and remove them with its state; the lock is held."""
    for folder in (server_scratch_folder(state_dir), copies_folder(state_dir)):
        _end_processes_in(folder)
        shutil.rmtree(folder, ignore_errors=True)
    (state_dir / STATE_FILE).unlink(missing_ok=True)


def make_private(folder: Path) -> None:
    """Make a folder for its owner only; one that is there already keeps its mode, unless we made it.

    Raises:
        OSError: It can't be made.
    """
    made_by_us = not folder.exists() or (folder / LOCK_FILE).exists()
    folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_OF_OWNER)
    if made_by_us:
        folder.chmod(FOLDER_OF_OWNER)


def open_private(path: Path, mode: Literal["ab", "wb", "xb"]) -> IO[bytes]:
    """Open a file for writing that its owner alone can read.

    Raises:
        OSError: It can't be opened.
    """
    # Path.open takes no opener.
    return open(path, mode, opener=_private)


def server_scratch_folder(state_dir: Path) -> Path:
    """Return the folder of its temporary files, unpacked Lambda functions among them; emptied when it stops."""
    return state_dir / SCRATCH_FOLDER


def copies_folder(state_dir: Path) -> Path:
    """Return the folder of the model folders of the engines that run; emptied when it stops."""
    return state_dir / COPIES_FOLDER


def aws_log(state_dir: Path) -> Path:
    """Return the log of the embedded AWS; those of the engines are in the same folder."""
    return state_dir / LOG_FOLDER / AWS_LOG


def is_held(state_dir: Path) -> bool:
    """Return whether a process holds the lock of a state folder.

    Raises:
        LocalError: SEA607, the lock file can't be read.
    """
    try:
        file = (state_dir / LOCK_FILE).open("rb")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise LocalError.of("SEA607", f"{LOCK_FILE} can't be read: {error.strerror}", where=str(state_dir)) from error
    with file:
        return not try_lock(file, shared=True)


def _private(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, OWNER_ONLY)
    os.fchmod(descriptor, OWNER_ONLY)
    return descriptor


def _read_state(state_dir: Path) -> LocalAws | None:
    """Return the content of the state file, or None when it isn't what a process wrote."""
    try:
        document = json.loads((state_dir / STATE_FILE).read_bytes())
        pid, port = int(document["pid"]), int(document["port"])
        key_id, secret = document.get("access_key_id", ""), document.get("secret_access_key", "")
        # An embedded AWS of an earlier version writes none.
        account = document.get("account", ACCOUNT)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return LocalAws(pid, port, str(key_id), str(secret), str(account)) if pid > 1 else None


def _number_in(path: Path) -> int | None:
    try:
        number = int(path.read_bytes())
    except (OSError, ValueError):
        return None
    return number if number > 1 else None


def _unreadable(state_dir: Path) -> LocalError:
    message = f"an embedded AWS is running, but {STATE_FILE} was changed"
    hint = "it stops within seconds; otherwise run: seatrial local down"
    return LocalError.of("SEA607", message, where=str(state_dir), hint=hint)


def _end_processes_in(folder: Path) -> None:
    """Kill our processes that work in a folder and name it in their command line: engines and Lambda functions."""
    names = [os.fsencode(path) + b"/" for path in (folder.absolute(), follow_links(folder))]
    # None on a system without /proc.
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command, works_in = (process / "cmdline").read_bytes(), (process / "cwd").readlink()
            if works_in.is_relative_to(follow_links(folder)) and any(name in command for name in names):
                os.kill(int(process.name), signal.SIGKILL)


def cache_dir() -> Path:
    """Return the folder of cached weights: `$XDG_CACHE_HOME/seatrial`, by default `~/.cache/seatrial`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seatrial"
