"""One load from several processes: forked, held at a common barrier, released together, merged afterwards.

`multiprocessing` is no choice: its queues and pools need /dev/shm, which AWS Lambda doesn't have. A fork and a socket
pair work there and everywhere else but on Windows.
"""

from __future__ import annotations

import json
import math
import os
import resource
import selectors
import signal
import socket
import struct
import time
import warnings
from array import array
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING

from seatrial_base.errors import BenchError
from seatrial_base.field_facts import made_of
from seatrial_base.findings import Finding, Place
from seatrial_load.client.event_loop import ENOUGH_SHARE, REPORT_EVERY_S, Watch, run_wave
from seatrial_load.decode.failure import shorten
from seatrial_load.decode.response import RequestRecord, record_of
from seatrial_load.decode.timed_answer import ANYTHING
from seatrial_load.documents.result import ClientEvidence
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.health.client_health import evidence_of, together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seatrial_load.client.connection import Dial
    from seatrial_load.client.event_loop import Wave, WriteRequest
    from seatrial_load.decode.exchange import Exchange
    from seatrial_load.decode.timed_answer import AnswerTerms


STREAMS_PER_WORKER = 384
SPARE_DESCRIPTORS = 64
# AWS Lambda gives a function one virtual CPU for each 1,769 MB ("Configure Lambda function memory").
LAMBDA_MIB_PER_CORE = 1_769


def usable_cores(environ: Mapping[str, str] = os.environ) -> int:
    """Return the cores that this process may use; a Lambda function sees more than its memory pays for."""
    seen = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory_mib = environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    return min(seen, math.ceil(int(memory_mib) / LAMBDA_MIB_PER_CORE)) if memory_mib.isdigit() else seen


def workers_for(streams: int, cores: int) -> int:
    """Return how many processes shall load: one for each 384 streams, and never more than there are cores.

    One process takes in what 512 streams of 50 tokens/s send, at some two thirds of a core.
    """
    return min(max(1, cores), math.ceil(streams / STREAMS_PER_WORKER) or 1)


def require_descriptors(streams: int, workers: int, limits: tuple[int, int] | None = None) -> int:
    """Make sure that each process may open its streams, and return the soft limit that this takes.

    The soft limit is raised as far as the hard one allows, as everything that opens many sockets does.

    Args:
        limits: Soft and hard limit of open files; None takes the kernel's, and sets the soft one.

    Raises:
        BenchError: SEA508, the hard limit is too low.
    """
    soft, hard = limits or resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = math.ceil(streams / workers) + SPARE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise BenchError.of(
            "SEA508",
            f"{streams} streams in {workers} {'process' if workers == 1 else 'processes'} need {needed} open files"
            f" each; this machine allows {hard}",
            hint=f"use at most {(hard - SPARE_DESCRIPTORS) * workers} streams, more workers"
            " or more machines, or raise the hard limit (ulimit -Hn)",
            field="load.concurrency_levels",
        )
    if needed > soft != resource.RLIM_INFINITY:
        soft = needed
        if limits is None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    return soft


READY = b"R"
SECONDS = b"S"
REPORT = b"D"
REFUSED = b"E"
BROKEN = b"X"
_FRAME = struct.Struct("!cQ")
_LENGTH = struct.Struct("!Q")
_PLAIN_FIELDS = tuple(field.name for field in fields(RequestRecord) if field.name != "token_times_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """The outcome of one worker's load."""

    records: tuple[RequestRecord, ...]
    evidence: ClientEvidence
    cut: bool
    started_s: float
    ended_s: float


def frame(kind: bytes, content: bytes = b"") -> bytes:
    """Write one frame."""
    return _FRAME.pack(kind, len(content)) + content


class FrameReader:
    """Takes bytes in pieces of any size and returns the frames that they completed."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Take the next bytes."""
        self._buffer += data
        while len(self._buffer) >= _FRAME.size:
            kind, length = _FRAME.unpack_from(self._buffer)
            end = _FRAME.size + length
            if len(self._buffer) < end:
                return
            content = bytes(self._buffer[_FRAME.size : end])
            del self._buffer[:end]
            yield kind, content


def write_report(report: WorkerReport) -> bytes:
    """Write a report."""
    times_s = array("d")
    rows = []
    for record in report.records:
        times_s.extend(record.token_times_s)
        rows.append([len(record.token_times_s), *[getattr(record, name) for name in _PLAIN_FIELDS]])
    head = {"cut": report.cut, "started_s": report.started_s, "ended_s": report.ended_s}
    line = json.dumps({"records": rows, "evidence": asdict(report.evidence), **head}).encode()
    return _LENGTH.pack(len(line)) + line + times_s.tobytes()


def read_report(content: bytes) -> WorkerReport:
    """Read a report; it comes from this very program, so any error in it is a defect."""
    (length,) = _LENGTH.unpack_from(content)
    head = json.loads(content[_LENGTH.size : _LENGTH.size + length])
    times_s = array("d")
    times_s.frombytes(content[_LENGTH.size + length :])
    records: list[RequestRecord] = []
    start = 0
    for count, *values in head.pop("records"):
        end = start + count
        plain = dict(zip(_PLAIN_FIELDS, values, strict=True))
        for name in ("retried", "doubts"):
            plain[name] = tuple(plain[name])
        records.append(RequestRecord(token_times_s=tuple(times_s[start:end]), **plain))
        start = end
    evidence = ClientEvidence(**head.pop("evidence"))
    return WorkerReport(records=tuple(records), evidence=evidence, **head)


def write_seconds(seconds: Sequence[float]) -> bytes:
    """Write durations."""
    return array("d", seconds).tobytes()


def read_seconds(content: bytes) -> array[float]:
    """Read durations."""
    seconds = array("d")
    seconds.frombytes(content)
    return seconds


RECEIVE_BYTES = 1_048_576
STOP = b"\x00"
_START = struct.Struct("!d")
_OF_THE_PARENT = (signal.SIGINT, signal.SIGTERM)  # a child that they reached would unwind its parent's frames


@dataclass(slots=True, kw_only=True)
class Worker:
    """A worker, as its parent sees it.

    Attributes:
        channel: Our end of the socket pair.
        broken_because: Its exception, in words; None without one.
    """

    pid: int
    name: str
    channel: socket.socket
    requests: int
    started: bool = False
    reported: bool = False
    broken_because: str | None = None
    _reader: FrameReader = field(default_factory=FrameReader)
    _status: int | None = None

    def listen(self) -> tuple[list[tuple[bytes, bytes]], bool]:
        """Return the frames that it sent, and whether it has gone."""
        try:
            data = self.channel.recv(RECEIVE_BYTES)
        except ConnectionError:
            data = b""
        return list(self._reader.feed(data)), not data

    def start(self, start_s: float) -> None:
        """Let it start; that one has gone meanwhile shows when its channel is read."""
        self.started = True
        with suppress(OSError):
            self.channel.sendall(_START.pack(start_s))

    def stop(self) -> None:
        """Let it send no more."""
        with suppress(OSError):
            self.channel.sendall(STOP)

    def give_up(self) -> None:
        """Let it report at once, whatever is in flight."""
        with suppress(OSError):
            self.channel.shutdown(socket.SHUT_WR)

    def ending(self) -> str:
        """Return how it ended, and what is missing for it."""
        self._reap()
        if self.broken_because is not None:
            how = f"failed: {self.broken_because}"
        elif self._status is not None and self._status < 0:
            how = f"was killed by signal {-self._status}"
        else:
            how = f"exited without a report (status {self._status})"
        return f"{how}; its {self.requests} requests are lost"

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
    def problems(content: bytes) -> list[Finding]:
        """Read the problems for which it refuses."""
        return [Finding(**{**entry, "place": Place(**entry["place"])}) for entry in json.loads(content)]


def fork_worker(
    share: PoolOrder,
    write_request: WriteRequest,
    dial_factory: Callable[[], Dial],
    clock: Callable[[], float],
    *,
    name: str,
    earlier: Sequence[Worker],
) -> Worker:
    """Fork a process that loads its share and then ends; Python is its copy of this one, threads are not."""
    ours, theirs = socket.socketpair()
    held = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_THE_PARENT)  # until the child ignores them
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns of threads: the child takes no lock of theirs.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
    except OSError:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        raise
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        theirs.close()
        return Worker(pid=pid, name=name, channel=ours, requests=share.wave.requests)
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        for channel in (ours, *(worker.channel for worker in earlier)):
            channel.close()
        _load_share(_Parent(theirs), share, write_request, dial_factory, clock)
    finally:
        os._exit(0)


def _load_share(
    parent: _Parent,
    share: PoolOrder,
    write_request: WriteRequest,
    dial_factory: Callable[[], Dial],
    clock: Callable[[], float],
) -> None:
    wave = replace(share.wave, enough=parent.enough, least_requests=0, stop=parent.gone)
    try:
        result = run_wave(wave, write_request, dial_factory(), clock=clock, ready=parent.ready)
        records = tuple(map(share.record, result.every))
        report = made_of(WorkerReport, result, records=records, evidence=evidence_of(wave, result))
        parent.send(REPORT, write_report(report))
    except BenchError as refused:
        parent.send(REFUSED, json.dumps([asdict(problem) for problem in refused.problems]).encode())
    except Exception as broken:  # noqa: BLE001 (the border of a process: its parent reports whatever broke it)
        parent.send(BROKEN, f"{type(broken).__name__}: {broken}".encode(errors="replace"))


class _Parent:
    """The parent, as a worker sees it. One that has gone ends the worker."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._sent = 0

    def send(self, kind: bytes, content: bytes = b"") -> None:
        """Send a frame."""
        self._channel.sendall(frame(kind, content))

    def ready(self) -> float:
        """Report that the connections are open, and wait for the common start."""
        self.send(READY)
        return float(_START.unpack(self._receive(_START.size, socket.MSG_WAITALL))[0])

    def enough(self, seconds: Sequence[float]) -> str | None:
        """Send the new durations; return a reason when the parent has enough."""
        if len(seconds) > self._sent:
            self.send(SECONDS, write_seconds(seconds[self._sent :]))
            self._sent = len(seconds)
        with suppress(BlockingIOError):
            if self._channel.recv(len(STOP), socket.MSG_DONTWAIT):
                return "the parent has enough"
        return None

    def gone(self) -> Stop | None:
        """Return that the parent has given up, or has gone, killed perhaps: nothing else would end the load."""
        with suppress(BlockingIOError, InterruptedError):
            if not self._channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                return Stop(reason=StopReason.LOAD_FAILED, because="the parent has gone")
        return None

    def _receive(self, size: int, flags: int) -> bytes:
        data = self._channel.recv(size, flags)
        if len(data) < size:
            raise EOFError("the parent has gone")
        return data


DECODE_TIMEOUT_S = 120.0
GIVE_UP_S = 10.0  # until a stopped load's processes have reported
LISTEN_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOrder:
    """The load of a pool.

    Attributes:
        wave: The load, all processes together.
        secret: The key that is sent, to be hidden in what is kept; empty for none.
        terms: Returns the requirements of the request with an index; None where they are unknown.
    """

    wave: Wave
    stream: bool
    secret: str = field(default="", repr=False)
    terms: Callable[[int], AnswerTerms] | None = None

    def record(self, exchange: Exchange) -> RequestRecord:
        """Decode a request that is over."""
        terms = ANYTHING if self.terms is None else self.terms(exchange.index)
        return record_of(exchange, stream=self.stream, secret=self.secret, terms=terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolResult:
    """The outcome of a pool's load.

    Attributes:
        records: The requests that ended, in order of ending; and as `unanswered` those that were in flight at the
            deadline.
        cut: Whether the deadline ended the load before every request was over.
        ended_s: When the last process was done loading.
        enough_because: Why no more were sent; None when all were.
        lost_because: The processes that failed, and what is missing for it; None when none did. The rest loaded on
            without them, so the load was less than ordered.
        stopped: Why the load was given up; None when it wasn't.
    """

    records: tuple[RequestRecord, ...]
    cut: bool
    started_s: float
    ended_s: float
    enough_because: str | None
    evidence: ClientEvidence
    lost_because: str | None = None
    stopped: Stop | None = None

    @property
    def over(self) -> tuple[RequestRecord, ...]:
        """The requests that came to their end by themselves."""
        return tuple(record for record in self.records if record.error != "unanswered")


def load_with_workers(
    order: PoolOrder,
    write_request: WriteRequest,
    dial_factory: Callable[[], Dial],
    *,
    workers: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> PoolResult:
    """Load with several processes, or in this one.

    Args:
        write_request: Returns the bytes of the request with this index; called in the process that sends it.
        workers: Processes; None chooses by the number of streams and of cores.
        clock: Monotonic seconds, the same in all processes.

    Raises:
        BenchError: SEA508, more streams than the machine may open; or what `write_request` raised.
    """
    wave = order.wave
    most = max(1, min(wave.streams, wave.requests))
    workers = min(most, workers or workers_for(wave.streams, usable_cores()))
    require_descriptors(most, workers)
    if workers == 1:
        result = run_wave(order.wave, write_request, dial_factory(), clock=clock)
        records = tuple(map(order.record, result.every))
        return made_of(PoolResult, result, records=records, evidence=evidence_of(order.wave, result))
    pool: list[Worker] = []
    try:
        for number in range(workers):
            share = replace(order, wave=replace(wave.share(number, workers), stop=None, tell=None))
            name = f"process {number + 1} of {workers}"
            pool.append(fork_worker(share, write_request, dial_factory, clock, name=name, earlier=pool))
        return _Supervisor(wave, pool, clock).result()
    finally:
        for worker in pool:
            worker.end()


class _Supervisor:
    """Reads the workers' channels: lets them start together, decides when it is enough, takes their reports."""

    def __init__(self, wave: Wave, pool: list[Worker], clock: Callable[[], float]) -> None:
        self._wave = wave
        self._pool = pool
        self._clock = clock
        self._at_work = {worker.channel.fileno(): worker for worker in pool}
        self._awaited = len(pool)
        self._reports: list[WorkerReport] = []
        self._lost: dict[str, str] = {}
        self._seconds: list[float] = []
        self._enough_because: str | None = None
        self._given_up: Stop | None = None
        self._ask_again_s = self._report_again_s = 0.0

    def result(self) -> PoolResult:
        """Wait for all reports, and merge them."""
        self._listen()
        if self._given_up is not None and not self._reports:
            now_s, streams = self._clock(), self._wave.streams
            evidence = ClientEvidence(
                workers=len(self._pool),
                streams=streams,
                receive_lag_p99_ms=None,
                delivered_concurrency=None,
                cpu_share=None,
            )
            return PoolResult(
                records=(),
                cut=True,
                started_s=now_s,
                ended_s=now_s,
                enough_because=None,
                evidence=evidence,
                stopped=self._given_up,
            )
        self._lost.update({worker.name: f"{worker.name} did not report" for worker in self._at_work.values()})
        reports = self._reports
        lost = [self._lost[worker.name] for worker in self._pool if worker.name in self._lost]
        if not reports:
            raise BenchError.of("SEA507", f"all load workers failed: {'; '.join(lost)}")
        records = sorted((record for report in reports for record in report.records), key=lambda record: record.ended_s)
        return PoolResult(
            records=tuple(records),
            cut=self._given_up is not None or bool(lost) or any(report.cut for report in reports),
            started_s=min(report.started_s for report in reports),
            ended_s=max(report.ended_s for report in reports),
            enough_because=self._enough_because,
            evidence=together([report.evidence for report in reports]),
            lost_because="; ".join(lost) or None,
            stopped=self._given_up,
        )

    def _listen(self) -> None:
        """Read the channels until every worker has gone, or decoding takes too long; less long of a stopped load."""
        wave, watch = self._wave, Watch[Worker]()
        until_s = wave.deadline_s + DECODE_TIMEOUT_S
        try:
            for worker in self._pool:
                watch.set(worker.channel.fileno(), selectors.EVENT_READ, worker)
            while self._at_work and self._clock() < until_s:
                if wave.tell is not None and self._clock() >= self._report_again_s:
                    wave.tell(len(self._seconds))
                    self._report_again_s = self._clock() + REPORT_EVERY_S
                if self._given_up is None and wave.stop is not None and (stop := wave.stop()) is not None:
                    self._given_up, until_s = stop, min(until_s, self._clock() + GIVE_UP_S)
                    for worker in self._at_work.values():
                        worker.give_up()
                for descriptor, _ in watch.poll(LISTEN_S):
                    self._listen_to(watch.owners[descriptor])
                    if descriptor not in self._at_work:
                        watch.forget(descriptor)
        finally:
            watch.close()

    def _listen_to(self, worker: Worker) -> None:
        frames, closed = worker.listen()
        for kind, content in frames:
            if kind == READY:
                self._one_less_awaited()
            elif kind == SECONDS:
                self._add_seconds(content)
            elif kind == REPORT:
                self._reports.append(read_report(content))
                worker.reported = True
            elif kind == REFUSED:
                raise BenchError(worker.problems(content))
            elif kind == BROKEN:
                worker.broken_because = content.decode(errors="replace")
        if closed:
            del self._at_work[worker.channel.fileno()]
            if not worker.reported:
                self._lost[worker.name] = shorten(f"{worker.name} {worker.ending()}")
                if not worker.started:
                    self._one_less_awaited()

    def _one_less_awaited(self) -> None:
        self._awaited -= 1
        if self._awaited:
            return
        start_s = self._clock()
        for worker in self._at_work.values():
            worker.start(start_s)

    def _add_seconds(self, content: bytes) -> None:
        self._seconds.extend(read_seconds(content))
        wave = self._wave
        if wave.enough is None or self._enough_because is not None or len(self._seconds) < wave.least_requests:
            return
        began_s = self._clock()
        if began_s < self._ask_again_s:
            return
        self._enough_because = wave.enough(self._seconds)
        now_s = self._clock()
        self._ask_again_s = now_s + (now_s - began_s) / ENOUGH_SHARE
        if self._enough_because is not None:
            for worker in self._at_work.values():
                worker.stop()
