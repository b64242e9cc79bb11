"""The copies behind every inference component and every variant.

A copy is one engine process on its own loopback port, which dies with this process.
"""

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
from collections import defaultdict, deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.runtime.artifacts import ArtifactError
from seatrial_laptop.loopback import HOST, TOKEN_VARIABLE
from seatrial_laptop.state import copies_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from seatrial_laptop.aws.control_plane.containers import ContainerSpec


DRAIN_S: Final = 30.0
"""How long the requests in flight on a copy may take when it is to stop; real seconds."""
DRAIN_POLL_S: Final = 0.02
POLL_S: Final = 0.05
STOP_S: Final = 5.0
LAST_LINES: Final = 10

_serial = itertools.count(1)


@dataclass(frozen=True, slots=True)
class CopyPlace:
    """Where copies serve: an inference component (no variant), or a variant of an endpoint."""

    owner: str
    variant: str = ""

    @property
    def label(self) -> str:
        """A name for files."""
        return f"{self.owner}-{self.variant}" if self.variant else self.owner


@dataclass(frozen=True, slots=True)
class Preference:
    """Which copy a request prefers: the one of a number, counted around, while it has less than `most` requests."""

    number: int
    most: int


class RunningCopies:
    """Starts, swaps and stops the copies of every place.

    Args:
        died: Called with the place and a sentence when a copy ends by itself.
    """

    def __init__(self, state_dir: Path, variables: Mapping[str, str], died: Callable[[CopyPlace, str], None]) -> None:
        self._state_dir = state_dir
        self._variables = variables
        self._died = died
        self._lock = threading.Lock()
        self._copies: dict[CopyPlace, tuple[CopyProcess, ...]] = {}
        self._standby: dict[CopyPlace, tuple[CopyProcess, ...]] = {}
        self._peaks: dict[CopyPlace, float] = {}
        self._draining: set[CopyProcess] = set()
        self._closed = threading.Event()
        self._logs: dict[Path, CopyPlace] = {}
        self._listeners: list[Callable[[CopyPlace], object]] = []

    def tell_ended(self, listener: Callable[[CopyPlace], object]) -> None:
        """Call a listener with a place whose copies have ended for good, before what they wrote is forgotten."""
        with self._lock:
            self._listeners.append(listener)

    def keep_log(self, place: CopyPlace, log: Path) -> None:
        """Remember what a copy of a place writes, until the place is deleted."""
        with self._lock:
            self._logs[log] = place

    def logs(self) -> list[tuple[CopyPlace, Path]]:
        """Return what every copy wrote, also of those that ended, unless its place was deleted."""
        with self._lock:
            return [(place, log) for log, place in self._logs.items() if log.exists()]

    def copies(self, place: CopyPlace) -> tuple[CopyProcess, ...]:
        """Return the copies that serve a place."""
        with self._lock:
            return self._copies.get(place, ())

    def every_copy(self, place: CopyPlace) -> set[CopyProcess]:
        """Return the copies of a place, those on standby too."""
        with self._lock:
            return {*self._copies.get(place, ()), *self._standby.get(place, ())}

    def places(self) -> list[CopyPlace]:
        """Return every place that has copies."""
        with self._lock:
            return [place for place, copies in self._copies.items() if copies]

    def known_places(self) -> set[CopyPlace]:
        """Return every place that has copies or had some, and was not deleted."""
        with self._lock:
            return {*self._copies, *self._logs.values()}

    def reserve(self, place: CopyPlace, preference: Preference | None = None) -> CopyProcess | None:
        """Return the preferred copy, or the one with the least outstanding requests, or None when there is no copy.

        It has one more request then. A copy that was reserved is not stopped before its request has ended. Call it on
        the event loop only.
        """
        with self._lock:
            # Counted under the lock of the swaps: else the copy could be stopped between its choice and its count.
            copies = self._copies.get(place, ())
            copy = min(copies, key=lambda each: each.outstanding, default=None)
            if preference and copies:
                wanted = copies[preference.number % len(copies)]
                copy = wanted if wanted.outstanding < preference.most else copy
            if copy:
                copy.outstanding += 1
                self._peaks[place] = max(self._peaks.get(place, 0.0), _in_flight(place, copies))
        return copy

    def take_peak(self, place: CopyPlace) -> float:
        """Return the most requests in flight since the last call: of a component per copy, of a variant on one."""
        with self._lock:
            now = _in_flight(place, self._copies.get(place, ()))
            peak, self._peaks[place] = max(self._peaks.get(place, 0.0), now), now
        return peak

    def launch(self, place: CopyPlace, spec: ContainerSpec, count: int) -> tuple[CopyProcess, ...]:
        """Start copies and wait until all are ready; they don't serve yet.

        Raises:
            CopyFailed: One of them didn't come into service; all of them were stopped.
        """
        started: list[CopyProcess] = []
        try:
            for _ in range(count):
                copy = start_copy(spec, self._variables, name=place.label, state_dir=self._state_dir)
                self.keep_log(place, copy.log)
                started.append(copy)
            for copy in started:
                await_ready(copy, spec.health_timeout_s)
        except CopyFailed:
            stop_copies(started)
            raise
        except OSError as error:
            stop_copies(started)
            raise CopyFailed(f"The container's process could not be started: {error}") from error
        return tuple(started)

    def put(self, place: CopyPlace, copies: tuple[CopyProcess, ...], *, standby: tuple[CopyProcess, ...] = ()) -> None:
        """Let these copies serve a place, and stop those that did when their requests in flight have ended.

        Copies on standby get no requests and go on running until the next call.
        """
        with self._lock:
            before = {*self._copies.pop(place, ()), *self._standby.pop(place, ())}
            # What was in flight per copy was so for another number of copies.
            self._peaks.pop(place, None)
            # A copy that comes into service after `close` would outlive this process: it is stopped, not kept.
            closed = self._closed.is_set()
            if copies and not closed:
                self._copies[place] = copies
            if standby and not closed:
                self._standby[place] = standby
        kept = {*copies, *standby}
        # Those that were here before are watched already: watched twice, their end would be reported twice.
        for copy in kept - before:
            watch_copy(copy, lambda dead: self._lose(place, dead))
        self._drain(kept | before if closed else before - kept)

    def delete(self, place: CopyPlace) -> None:
        """Stop the copies of a place that is deleted, let what they wrote be published, and forget it."""
        self.put(place, ())
        # Before the logs are forgotten: the last lines are still to be published.
        for listener in self._listeners:
            listener(place)
        with self._lock:
            self._logs = {log: each for log, each in self._logs.items() if each != place}

    def close(self) -> None:
        """Stop every copy, now and later, whatever they answer."""
        with self._lock:
            self._closed.set()
            held = (*self._copies.values(), *self._standby.values())
            every = [copy for copies in held for copy in copies] + list(self._draining)
            self._copies.clear()
            self._standby.clear()
        stop_copies(every)

    def _drain(self, copies: set[CopyProcess]) -> None:
        """Stop copies that get no more requests, each when its last one has ended or after `DRAIN_S`."""
        with self._lock:
            self._draining |= copies
        deadline = time.monotonic() + DRAIN_S
        while any(copy.outstanding for copy in copies) and time.monotonic() < deadline:
            # `close` stops every copy whatever it answers, and requests are not waited for any more.
            if self._closed.wait(DRAIN_POLL_S):
                break
        stop_copies(copies)
        with self._lock:
            self._draining -= copies

    def _lose(self, place: CopyPlace, dead: CopyProcess) -> None:
        with self._lock:
            left = tuple(copy for copy in self._copies.get(place, ()) if copy is not dead)
            self._copies[place] = left
            self._standby[place] = tuple(copy for copy in self._standby.get(place, ()) if copy is not dead)
        dead.ended()
        sentence = f"A copy's container ended with status {dead.process.returncode}. Its last lines:"
        self._died(place, f"{sentence}\n{dead.last_lines()}")


def _in_flight(place: CopyPlace, copies: Sequence[CopyProcess]) -> float:
    """Return the requests in flight as their metric counts them: normalized by the copies of a component."""
    outstanding = [copy.outstanding for copy in copies]
    return max(outstanding, default=0) if place.variant else sum(outstanding) / max(len(outstanding), 1)


def stop_copies(copies: Iterable[CopyProcess]) -> None:
    """Stop copies, in parallel."""
    every = list(copies)
    if every:
        with ThreadPoolExecutor(max_workers=len(every)) as pool:
            list(pool.map(stop_copy, every))


@dataclass(slots=True)
class TrafficSplit:
    """The traffic of each variant so far; the event loop gives, other threads only forget."""

    _credit: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    _sampled: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))

    def pick(self, endpoint: str, weights: Mapping[str, float]) -> str:
        """Return the variant whose turn it is; without any weight all have the same."""
        # Each request adds the weights to the credits, and the one that is chosen pays for all. So the shares
        # hold within a few requests; a draw by chance would need hundreds.
        shares = weights if any(weights.values()) else dict.fromkeys(weights, 1.0)
        for name, weight in shares.items():
            self._credit[endpoint, name] += weight
        chosen = max(shares, key=lambda name: self._credit[endpoint, name] if shares[name] else float("-inf"))
        self._credit[endpoint, chosen] -= sum(shares.values())
        return chosen

    def samples(self, endpoint: str, purpose: str, share: float) -> bool:
        """Return whether this request is one of the share (0 to 1) that is sampled for a purpose."""
        key = (endpoint, purpose)
        self._sampled[key] += min(max(share, 0.0), 1.0)
        # Ten times 0.1 is a little less than 1 in floating point.
        if self._sampled[key] < 1.0 - 1e-9:
            return False
        self._sampled[key] -= 1.0
        return True

    def forget(self, endpoint: str) -> None:
        """Start again: the endpoint was deleted, or its weights were changed."""
        for counts in (self._credit, self._sampled):
            for key in [key for key in list(counts) if key[0] == endpoint]:
                counts.pop(key, None)


class CopyFailed(Exception):  # noqa: N818 (named after the status)
    """A copy didn't come into service; the message is a sentence and the engine's last lines."""


@dataclass(eq=False, slots=True)
class CopyProcess:
    """A process that serves requests.

    Attributes:
        folder: Its model folder's parent, removed with it.
        token: What it demands with every invocation; only this process knows it.
        outstanding: Requests sent to it and not answered yet; changed on the event loop only.
        ended: Called once when its process has ended; gives back its place on an instance.
        stopping: Whether its stop was requested.
        instance_type: Of the instance that it runs on; empty when none was requested.
    """

    port: int
    process: subprocess.Popen[bytes]
    folder: Path
    log: Path
    token: str = field(default="", repr=False)
    outstanding: int = 0
    ended: Callable[[], None] = field(default=lambda: None, repr=False)
    stopping: threading.Event = field(default_factory=threading.Event)
    instance_type: str = ""

    def last_lines(self) -> str:
        """Return the last lines of its log."""
        with self.log.open(errors="replace") as lines:
            return "".join(deque(lines, maxlen=LAST_LINES)).strip()


def start_copy(spec: ContainerSpec, variables: Mapping[str, str], *, name: str, state_dir: Path) -> CopyProcess:
    """Start the process of a copy with these variables and its container's; it isn't ready yet.

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
            # The token comes last: no variable of the container replaces it.
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
    """Call `died` once when the process of a copy ends by itself."""

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
