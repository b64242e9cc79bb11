"""One process of the crew: what it does after the fork, and how its parent speaks with it."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from seatrial.bench.client import run_wave
from seatrial.bench.client_evidence import evidence_of
from seatrial.bench.crew_wire import (
    BROKEN,
    READY,
    REFUSED,
    REPORT,
    SECONDS,
    FrameReader,
    WorkerReport,
    frame,
    write_report,
    write_seconds,
)
from seatrial.bench.decode import record_of
from seatrial.errors import BenchError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial.bench.client import WriteRequest
    from seatrial.bench.connection import Dial
    from seatrial.bench.crew import CrewOrder

RECEIVE_BYTES = 1_048_576
STOP = b"\x00"
_START = struct.Struct("!d")


@dataclass(slots=True, kw_only=True)
class Worker:
    """A worker, as its parent sees it.

    Attributes:
        pid: Its process.
        name: What messages call it.
        channel: Our end of the socket pair.
        requests: How many it shall send.
        started: Whether it was told to start.
        reported: Whether its report came.
        broken_because: What went wrong in it, in its own words.
    """

    pid: int
    name: str
    channel: socket.socket
    requests: int
    started: bool = False
    reported: bool = False
    broken_because: str = ""
    _reader: FrameReader = field(default_factory=FrameReader)
    _status: int | None = None

    def listen(self) -> tuple[list[tuple[bytes, bytes]], bool]:
        """Take what it said, and whether it has gone."""
        try:
            data = self.channel.recv(RECEIVE_BYTES)
        except ConnectionError:
            data = b""
        return list(self._reader.feed(data)), not data

    def start(self, start_s: float) -> None:
        """Let it start; one that has gone meanwhile is noticed when we listen."""
        self.started = True
        with suppress(OSError):
            self.channel.sendall(_START.pack(start_s))

    def stop(self) -> None:
        """Let it send no more."""
        with suppress(OSError):
            self.channel.sendall(STOP)

    def fate(self) -> str:
        """Say how it ended, and what is missing for it."""
        self._reap()
        if self.broken_because:
            how = f"failed: {self.broken_because}"
        elif self._status is not None and self._status < 0:
            how = f"was ended by signal {-self._status}"
        else:
            how = f"ended without a report (exit status {self._status})"
        return f"{how}; its {self.requests} requests are missing"

    def end(self) -> None:
        """End the process if it still runs, and forget it; may be called again."""
        self.channel.close()
        if self._status is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._reap()

    def _reap(self) -> None:
        _, status = os.waitpid(self.pid, 0)
        self._status = os.waitstatus_to_exitcode(status)

    @staticmethod
    def problems(content: bytes) -> list[Problem]:
        """Read the problems for which it refuses."""
        return [Problem(**entry) for entry in json.loads(content)]


def fork_worker(
    share: CrewOrder,
    write_request: WriteRequest,
    dial_factory: Callable[[], Dial],
    clock: Callable[[], float],
    *,
    name: str,
    elders: Sequence[Worker],
) -> Worker:
    """Fork a process that loads its share and then ends; Python is its copy of this one, threads are not.

    Args:
        share: Its part of the load.
        write_request: Gives the bytes of a request.
        dial_factory: Makes what starts connections.
        clock: Monotonic seconds.
        name: What messages call it.
        elders: Those forked before, whose channels are not its own.
    """
    ours, theirs = socket.socketpair()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # Python 3.12 warns of threads: the child takes no lock of theirs
        pid = os.fork()
    if pid:
        theirs.close()
        return Worker(pid=pid, name=name, channel=ours, requests=share.wave.requests)
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for channel in (ours, *(elder.channel for elder in elders)):
            channel.close()
        _work(_Parent(theirs), share, write_request, dial_factory, clock)
    finally:
        os._exit(0)


def _work(
    parent: _Parent,
    share: CrewOrder,
    write_request: WriteRequest,
    dial_factory: Callable[[], Dial],
    clock: Callable[[], float],
) -> None:
    wave = replace(share.wave, enough=parent.enough, least_requests=0, stop=parent.gone)
    try:
        result = run_wave(wave, write_request, dial_factory(), clock=clock, ready=parent.ready)
        report = WorkerReport(
            records=tuple(record_of(one, stream=share.stream, secret=share.secret) for one in result.every),
            evidence=evidence_of(wave, result),
            cut=result.cut,
            started_s=result.started_s,
            ended_s=result.ended_s,
        )
        parent.say(REPORT, write_report(report))
    except BenchError as refused:
        parent.say(REFUSED, json.dumps([asdict(problem) for problem in refused.problems]).encode())
    except Exception as broken:  # noqa: BLE001 (the border of a process: whatever broke it is told to its parent)
        parent.say(BROKEN, f"{type(broken).__name__}: {broken}".encode(errors="replace"))


class _Parent:
    """The parent, as a worker sees it. One that has gone ends the worker."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._told = 0

    def say(self, kind: bytes, content: bytes = b"") -> None:
        """Send a frame."""
        self._channel.sendall(frame(kind, content))

    def ready(self) -> float:
        """Tell that the connections are open, and wait for the common start."""
        self.say(READY)
        return float(_START.unpack(self._receive(_START.size, socket.MSG_WAITALL))[0])

    def enough(self, seconds: Sequence[float]) -> str:
        """Tell the new durations; return a reason when the parent said that it is enough."""
        if len(seconds) > self._told:
            self.say(SECONDS, write_seconds(seconds[self._told :]))
            self._told = len(seconds)
        with suppress(BlockingIOError):
            self._receive(len(STOP), socket.MSG_DONTWAIT)
            return "the parent said so"
        return ""

    def gone(self) -> str:
        """Say that the parent has gone, killed perhaps: nobody would end a load that goes on without it."""
        with suppress(BlockingIOError, InterruptedError):
            if not self._channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                return "the parent has gone"
        return ""

    def _receive(self, size: int, flags: int) -> bytes:
        data = self._channel.recv(size, flags)
        if len(data) < size:
            raise EOFError("the parent has gone")
        return data
