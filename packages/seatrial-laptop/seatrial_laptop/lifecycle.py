"""Start, find and stop the embedded AWS; nothing heavy is imported here."""

from __future__ import annotations

import errno
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from seatrial_base.errors import LocalError
from seatrial_laptop.environment import child_environment, package_root, server_environment, shell_lines, variables
from seatrial_laptop.loopback import HOST
from seatrial_laptop.running import (
    LocalStatus,
    RunningComponent,
    RunningEndpoint,
    silence_hint,
    status_document,
    status_of_document,
)
from seatrial_laptop.state import (
    ACCOUNT,
    LocalAws,
    aws_log,
    hold_lock,
    is_held,
    lock_holder,
    make_private,
    open_private,
    running_process,
    server_scratch_folder,
    was_killed,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "LocalAws",
    "LocalStatus",
    "RunningComponent",
    "RunningEndpoint",
    "child_variables",
    "environment",
    "exports",
    "log_files",
    "read_local_status",
    "running",
    "start_embedded_aws",
    "stop_embedded_aws",
    "was_killed",
]

USUAL_PORT: Final = 4566
OPTIONAL_MODULES: Final = ("ministack", "hypercorn", "xllamacpp", "gguf", "tokenizers", "numpy")
POLL_S: Final = 0.05
START_S: Final = 60.0
STOP_S: Final = 15.0
LAST_LINES: Final = 15
ADDRESS_IN_USE: Final = os.strerror(errno.EADDRINUSE)


def start_embedded_aws(
    *, state_dir: Path, port: int | None = None, account: str | None = None, verbose: bool = False
) -> LocalAws:
    """Start the embedded AWS in the background and wait until it answers; return the running one when there is one.

    Args:
        state_dir: Where its state and logs are kept; one embedded AWS per folder.
        port: The loopback port; None takes 4566 when it's free, else any free one.
        account: The AWS account that it is, twelve digits; None takes that of a running one, else 000000000000.

    Raises:
        LocalError: SEA601, it did not start; SEA603, the optional dependencies are missing; SEA604, the port is taken;
            SEA480, one of another account runs with this folder; SEA607, one runs whose state can't be read.
    """
    local = _running_or_started(state_dir, port, account or ACCOUNT, verbose=verbose)
    if account not in (None, local.account):
        message = f"the embedded AWS of this folder is account {local.account}, not {account}"
        hint = "stop it first (seatrial local down), or give another folder with --state"
        raise LocalError.of("SEA480", message, where=str(state_dir), hint=hint)
    return local


def _running_or_started(state_dir: Path, port: int | None, account: str, *, verbose: bool) -> LocalAws:
    if lock_holder(state_dir) is not None:
        return _await_answer(state_dir, None)
    missing = [name for name in OPTIONAL_MODULES if importlib.util.find_spec(name) is None]
    if missing:
        raise LocalError.of("SEA603", f"missing packages: {', '.join(missing)}", hint="pip install 'seatrial[local]'")
    try:
        return _start(state_dir, _port(port), account, verbose=verbose)
    except LocalError:
        if port is not None or ADDRESS_IN_USE not in _last_lines(state_dir):
            raise
    # Another start took the usual port in the same moment.
    return _start(state_dir, _any_port(), account, verbose=verbose)


def _start(state_dir: Path, port: int, account: str, *, verbose: bool) -> LocalAws:
    # The server works in this folder.
    state_dir = state_dir.absolute()
    log = aws_log(state_dir)
    try:
        make_private(state_dir)
        make_private(log.parent)
    except OSError as error:
        message = f"the state folder can't be created: {error.strerror}"
        raise LocalError.of("SEA601", message, where=log.parent.as_posix(), hint="give another with --state") from error
    where = ["--port", str(port), "--account", account, "--state-dir", str(state_dir)]
    command = [sys.executable, "-m", "seatrial_laptop.aws", *where]
    ours = {"PYTHONPATH": package_root(), "TMPDIR": str(server_scratch_folder(state_dir))}
    with open_private(log, "wb") as output:
        process = subprocess.Popen(
            [*command, *(["--verbose"] if verbose else [])],
            cwd=state_dir,
            env={**server_environment(port, account=account, verbose=verbose), **ours},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        return _await_answer(state_dir, process)
    except BaseException:
        # Ctrl-C too: until its state is written, `stop_embedded_aws` can't find it.
        process.kill()
        process.wait()
        # To hold the lock removes what the dead process left.
        if left := hold_lock(state_dir):
            with left:
                raise
        raise


def stop_embedded_aws(state_dir: Path) -> bool:
    """Stop the embedded AWS and every engine; return whether there was one.

    Raises:
        LocalError: SEA601, it could not be stopped; SEA607, no file has its process number.
    """
    pid = lock_holder(state_dir)
    if pid is None:
        return False
    # SIGTERM lets it stop its engines and clean the folder; one that hangs is killed, and the next start cleans up.
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        # The process has ended meanwhile.
        with suppress(ProcessLookupError):
            os.kill(pid, signal_number)
        deadline = time.monotonic() + STOP_S
        while time.monotonic() < deadline:
            if not _holds(pid, state_dir):
                return True
            time.sleep(POLL_S)
    raise LocalError.of("SEA601", f"the embedded AWS (process {pid}) could not be stopped")


def running(state_dir: Path) -> LocalAws:
    """Return the embedded AWS that runs.

    Raises:
        LocalError: SEA602, none runs; SEA607, its state can't be read.
    """
    process = running_process(state_dir)
    if process is None:
        where = str(state_dir.absolute())
        hint = "start it (seatrial local up), or give another folder with --state"
        raise LocalError.of("SEA602", "no embedded AWS is running with this state folder", where=where, hint=hint)
    return process


def read_local_status(state_dir: Path) -> LocalStatus:
    """Return what runs: the embedded AWS, its endpoints and inference components.

    Raises:
        LocalError: SEA607, one runs, but its state can't be read.
    """
    process = running_process(state_dir)
    document = status_document(process) if process else None
    if process is not None and document is not None:
        return status_of_document(process, document)
    # It may have ended since.
    if is_held(state_dir):
        return LocalStatus(process, state="not answering" if process else "starting")
    return LocalStatus(local=None, state="killed" if was_killed(state_dir) else "not running")


def log_files(state_dir: Path) -> tuple[Path, ...]:
    """Return the logs: the embedded AWS's first, then those of the engines, oldest first."""
    own = aws_log(state_dir)
    engines = [path for path in own.parent.glob("*.log") if path != own]
    engines.sort(key=lambda path: path.stat().st_mtime)
    return (own, *engines) if own.exists() else tuple(engines)


def environment(local: LocalAws) -> dict[str, str]:
    """Return every variable that leads the CLI, CDK and boto3 to the embedded AWS, with its access key."""
    return variables(local)


def exports(local: LocalAws) -> list[str]:
    """Return the lines for a POSIX shell that set `environment` and unset what leads elsewhere."""
    return shell_lines(local)


def child_variables(local: LocalAws) -> dict[str, str]:
    """Return a whole environment for a child process: ours without the user's AWS_* and CDK_*, plus `environment`."""
    return child_environment(local)


def _await_answer(state_dir: Path, started: subprocess.Popen[bytes] | None) -> LocalAws:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        process = running_process(state_dir)
        document = status_document(process) if process else None
        if process and document and document["pid"] == process.pid:
            return process
        if started and started.poll() is not None:
            # Another `start_embedded_aws` was faster.
            if lock_holder(state_dir) is not None:
                return _await_answer(state_dir, None)
            break
        time.sleep(POLL_S)
    if started is None and (pid := lock_holder(state_dir)) is not None:
        raise LocalError.of("SEA601", f"the embedded AWS (process {pid}) does not answer", hint=silence_hint(pid))
    raise LocalError.of("SEA601", f"the embedded AWS did not start; its last lines:\n{_last_lines(state_dir)}")


def _holds(pid: int, state_dir: Path) -> bool:
    try:
        return lock_holder(state_dir) == pid
    except LocalError:
        # The process ends: its files are gone, the lock isn't.
        return True


def _port(requested: int | None) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, requested or USUAL_PORT))
        except OSError:
            if requested is None:
                return _any_port()
            hint = "choose another port, or leave it out for a free one"
            raise LocalError.of("SEA604", f"port {requested} of {HOST} is in use", hint=hint) from None
    return requested or USUAL_PORT


def _any_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port


def _last_lines(state_dir: Path) -> str:
    log = aws_log(state_dir)
    if not log.exists():
        return ""
    with log.open(errors="replace") as lines:
        return "".join(deque(lines, maxlen=LAST_LINES)).strip()
