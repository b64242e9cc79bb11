"""A running copy: one engine process on its own loopback port, which dies with this process."""

from __future__ import annotations

import http.client
import itertools
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable  # noqa: TC003 (a dataclass's field)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.runtime.artifacts import ArtifactError
from seatrial_laptop.loopback import HOST, TOKEN_VARIABLE
from seatrial_laptop.state import copies_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seatrial_laptop.aws.control_plane.containers import ContainerSpec


POLL_S: Final = 0.05
STOP_S: Final = 5.0
LAST_LINES: Final = 10

_serial = itertools.count(1)


class CopyFailed(Exception):  # noqa: N818 (named after the status)
    """A copy didn't come into service; the message is a sentence and the engine's last lines."""


@dataclass(eq=False, slots=True)
class CopyProcess:
    """A process that serves requests.

    Attributes:
        port: Where it listens.
        process: The engine.
        folder: Its model folder's parent, removed with it.
        log: What it writes; kept.
        token: What it demands with every invocation; nobody else knows it.
        outstanding: Requests sent to it and not answered yet; changed on the event loop only.
        peak: The most of them since the last sample.
        ended: Called once when its process has ended; gives back its place on an instance.
        stopping: Whether it was told to stop.
        instance_type: Of the instance that it runs on; empty when nobody asked for one.
    """

    port: int
    process: subprocess.Popen[bytes]
    folder: Path
    log: Path
    token: str = field(default="", repr=False)
    outstanding: int = 0
    peak: int = 0
    ended: Callable[[], None] = field(default=lambda: None, repr=False)
    stopping: threading.Event = field(default_factory=threading.Event)
    instance_type: str = ""

    def reserve(self) -> None:
        """Count a request that is about to be sent to it."""
        self.outstanding += 1
        self.peak = max(self.peak, self.outstanding)

    def take_peak(self) -> int:
        """Return the most requests in flight since the last call."""
        peak, self.peak = max(self.peak, self.outstanding), self.outstanding
        return peak

    def last_lines(self) -> str:
        """Return the last lines of its log."""
        with self.log.open(errors="replace") as lines:
            return "".join(deque(lines, maxlen=LAST_LINES)).strip()


def start_copy(spec: ContainerSpec, variables: Mapping[str, str], *, name: str, state_dir: Path) -> CopyProcess:
    """Start the process of a copy with these variables beside its container's; it isn't ready yet.

    Raises:
        CopyFailed: The container's files can't be had.
    """
    label = f"{name}-{next(_serial)}"
    folder, log = copies_folder(state_dir) / label, state_dir / "logs" / f"{label}.log"
    model_dir = folder / "model"
    shutil.rmtree(folder, ignore_errors=True)
    model_dir.mkdir(parents=True)
    try:
        spec.fill(model_dir)
    except ArtifactError as error:
        shutil.rmtree(folder)
        raise CopyFailed(str(error)) from error
    port, token = _free_port(), secrets.token_urlsafe(32)
    command = [sys.executable, "-m", "seatrial_laptop.engine", "--image", spec.image, "--model-dir", str(model_dir)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--port", str(port), "--until-stdin-closes"],
            cwd=folder,
            env={**variables, **spec.environment, TOKEN_VARIABLE: token},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return CopyProcess(port=port, process=process, folder=folder, log=log, token=token)


def await_ready(copy: CopyProcess, timeout_s: float) -> None:
    """Wait until a copy answers 200 on /ping.

    Raises:
        CopyFailed: Its process ended, or the time is over.
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if copy.process.poll() is not None:
            raise CopyFailed(
                f"The container ended with status {copy.process.returncode} before it passed the ping health check. "
                f"Its last lines:\n{copy.last_lines()}"
            )
        if _ping(copy.port):
            return
        time.sleep(POLL_S)
    raise CopyFailed(
        "The primary container did not pass the ping health check within "
        f"{timeout_s:g} s. Its last lines:\n{copy.last_lines()}"
    )


def stop_copy(copy: CopyProcess) -> None:
    """End the process of a copy, by force when it doesn't end by itself, and remove its files."""
    copy.stopping.set()
    copy.process.terminate()
    try:
        copy.process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        copy.process.kill()
        copy.process.wait()
    if copy.process.stdin:
        copy.process.stdin.close()
    shutil.rmtree(copy.folder, ignore_errors=True)
    copy.ended()


def watch_copy(copy: CopyProcess, died: Callable[[CopyProcess], None]) -> None:
    """Call `died` once when the process of a copy ends without having been told to."""

    def wait() -> None:
        copy.process.wait()
        if not copy.stopping.is_set():
            died(copy)

    threading.Thread(target=wait, name=f"watch-{copy.port}", daemon=True).start()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port


def _ping(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=1.0)
    try:
        connection.request("GET", "/ping")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()
