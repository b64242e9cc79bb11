"""One load from several processes: forked, held at a common barrier, released together, merged afterwards.

`multiprocessing` is no choice: its queues and pools need /dev/shm, which AWS Lambda doesn't have. A fork and a socket
pair work there and everywhere else but on Windows.
"""

from __future__ import annotations

import selectors
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from seatrial.bench.client import run_wave
from seatrial.bench.client_evidence import evidence_of, together
from seatrial.bench.cores import require_descriptors, usable_cores, workers_for
from seatrial.bench.crew_wire import BROKEN, READY, REFUSED, REPORT, SECONDS, WorkerReport, read_report, read_seconds
from seatrial.bench.crew_worker import Worker, fork_worker
from seatrial.bench.decode import record_of
from seatrial.bench.evidence import ClientEvidence
from seatrial.bench.failure import shorten
from seatrial.bench.loop import ENOUGH_SHARE, TELL_EVERY_S
from seatrial.bench.watch import Watch
from seatrial.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.client import WriteRequest
    from seatrial.bench.connection import Dial
    from seatrial.bench.record import RequestRecord
    from seatrial.bench.wave import Wave

DECODE_TIMEOUT_S = 120.0
LISTEN_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CrewOrder:
    """What a crew shall do.

    Attributes:
        wave: The load, all processes together.
        stream: Whether answers are asked for as streams of tokens.
        secret: The key that is sent, to be hidden in what is kept; empty for none.
    """

    wave: Wave
    stream: bool
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrewResult:
    """What a crew brought.

    Attributes:
        records: The requests that ended, in order of ending; and as `unanswered` those that the deadline found
            in flight.
        cut: Whether the deadline ended the load before every request was over.
        started_s: When the first request could leave.
        ended_s: When the last process was done loading.
        enough_because: Why no more were sent; empty when all were.
        evidence: How the client fared.
        lost_because: Which processes came to grief, and what is missing for it; empty when none did. The rest loaded on
            without them, so the load was less than ordered.
        stopped_because: Why the load was given up; empty when it wasn't.
    """

    records: tuple[RequestRecord, ...]
    cut: bool
    started_s: float
    ended_s: float
    enough_because: str
    evidence: ClientEvidence
    lost_because: str = ""
    stopped_because: str = ""

    @property
    def over(self) -> tuple[RequestRecord, ...]:
        """The requests that came to their end by themselves."""
        return tuple(record for record in self.records if record.error != "unanswered")


def load(
    order: CrewOrder,
    write_request: WriteRequest,
    dial_factory: Callable[[], Dial],
    *,
    workers: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> CrewResult:
    """Load with several processes, or in this one.

    Args:
        order: What to do.
        write_request: Gives the bytes of the request with this index; called in the process that sends it.
        dial_factory: Makes what starts connections; called in each process.
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
        return _load_here(order, write_request, dial_factory(), clock)
    crew: list[Worker] = []
    try:
        for number in range(workers):
            share = replace(order, wave=replace(wave.share(number, workers), stop=None, tell=None))
            name = f"process {number + 1} of {workers}"
            crew.append(fork_worker(share, write_request, dial_factory, clock, name=name, elders=crew))
        return _Foreman(wave, crew, clock).result()
    finally:
        for worker in crew:
            worker.end()


def _load_here(order: CrewOrder, write_request: WriteRequest, dial: Dial, clock: Callable[[], float]) -> CrewResult:
    result = run_wave(order.wave, write_request, dial, clock=clock)
    return CrewResult(
        records=tuple(record_of(one, stream=order.stream, secret=order.secret) for one in result.every),
        cut=result.cut,
        started_s=result.started_s,
        ended_s=result.ended_s,
        enough_because=result.enough_because,
        evidence=evidence_of(order.wave, result),
        stopped_because=result.stopped_because,
    )


class _Foreman:
    """Listens to the workers: lets them start together, says when it is enough, takes their reports."""

    def __init__(self, wave: Wave, crew: list[Worker], clock: Callable[[], float]) -> None:
        self._wave = wave
        self._crew = crew
        self._clock = clock
        self._at_work = {worker.channel.fileno(): worker for worker in crew}
        self._awaited = len(crew)
        self._reports: list[WorkerReport] = []
        self._lost: dict[str, str] = {}
        self._seconds: list[float] = []
        self._enough_because = ""
        self._stopped_because = ""
        self._ask_again_s = self._tell_again_s = 0.0

    def result(self) -> CrewResult:
        """Wait for all reports, and merge them."""
        watch: Watch[Worker] = Watch()
        try:
            for worker in self._crew:
                watch.set(worker.channel.fileno(), selectors.EVENT_READ, worker)
            while self._at_work and self._clock() < self._wave.deadline_s + DECODE_TIMEOUT_S and not self._stopped():
                for descriptor, _ in watch.poll(LISTEN_S):
                    self._listen_to(watch.owners[descriptor])
                    if descriptor not in self._at_work:
                        watch.forget(descriptor)
        finally:
            watch.close()
        if self._stopped_because:
            return self._given_up()
        self._lost.update({worker.name: f"{worker.name} never reported" for worker in self._at_work.values()})
        return self._merged()

    def _stopped(self) -> bool:
        if self._wave.tell is not None and self._clock() >= self._tell_again_s:
            self._wave.tell(len(self._seconds))
            self._tell_again_s = self._clock() + TELL_EVERY_S
        self._stopped_because = self._wave.stop() if self._wave.stop is not None else ""
        return bool(self._stopped_because)

    def _given_up(self) -> CrewResult:
        """Return what is left of a load that was given up: that it was."""
        now_s, streams = self._clock(), self._wave.streams
        evidence = ClientEvidence(
            workers=len(self._crew),
            streams=streams,
            receive_lag_p99_ms=None,
            delivered_concurrency=None,
            cpu_share=None,
        )
        return CrewResult(
            records=(),
            cut=True,
            started_s=now_s,
            ended_s=now_s,
            enough_because="",
            evidence=evidence,
            stopped_because=self._stopped_because,
        )

    def _listen_to(self, worker: Worker) -> None:
        frames, closed = worker.listen()
        for kind, content in frames:
            if kind == READY:
                self._one_less_awaited()
            elif kind == SECONDS:
                self._hear_seconds(content)
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
                self._lost[worker.name] = shorten(f"{worker.name} {worker.fate()}")
                if not worker.started:
                    self._one_less_awaited()

    def _one_less_awaited(self) -> None:
        self._awaited -= 1
        if self._awaited:
            return
        start_s = self._clock()
        for worker in self._at_work.values():
            worker.start(start_s)

    def _hear_seconds(self, content: bytes) -> None:
        self._seconds.extend(read_seconds(content))
        wave = self._wave
        if wave.enough is None or self._enough_because or len(self._seconds) < wave.least_requests:
            return
        began_s = self._clock()
        if began_s < self._ask_again_s:
            return
        self._enough_because = wave.enough(self._seconds)
        now_s = self._clock()
        self._ask_again_s = now_s + (now_s - began_s) / ENOUGH_SHARE
        if self._enough_because:
            for worker in self._at_work.values():
                worker.stop()

    def _merged(self) -> CrewResult:
        reports = self._reports
        lost = [self._lost[worker.name] for worker in self._crew if worker.name in self._lost]
        if not reports:
            raise BenchError.of("SEA507", f"no process of the load came home: {'; '.join(lost)}")
        records = sorted((record for report in reports for record in report.records), key=lambda record: record.ended_s)
        return CrewResult(
            records=tuple(records),
            cut=bool(lost) or any(report.cut for report in reports),
            started_s=min(report.started_s for report in reports),
            ended_s=max(report.ended_s for report in reports),
            enough_because=self._enough_because,
            evidence=together([report.evidence for report in reports]),
            lost_because="; ".join(lost),
        )
