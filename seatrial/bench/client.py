"""The load client: one thread, one event loop; while the clock runs it only keeps bytes and times.

A wave sends a number of requests over a number of streams. In a closed loop a stream sends its next request when the
last is over; in an open loop each request has a time at which it must leave. All connections are open, and the first
requests written, before the first leaves. Hot path: take the time, keep the bytes, see whether the answer is over; what
they say is decoded after the wave, so that it can't delay another stream's timestamp. Memory: some 500 bytes per token.
"""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from seatrial.bench.lag import LagMeter
from seatrial.bench.loop import Loop
from seatrial.bench.usage import UsageMeter
from seatrial.bench.watch import Watch
from seatrial.bench.wave import Wave

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial.bench.connection import Dial
    from seatrial.bench.exchange import Exchange
    from seatrial.bench.stream import Stream

    WriteRequest: TypeAlias = Callable[[int], bytes]

__all__ = ["Wave", "WaveResult", "run_wave"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveResult:
    """What a wave brought.

    Attributes:
        exchanges: Those that ended, in order of ending.
        unanswered: Those that were in flight when the deadline ended the wave, given up then.
        cut: Whether the deadline ended the wave before every request was over.
        started_s: When the first request could leave.
        ended_s: When the wave was over.
        enough_because: Why it sent no more than it did; empty when it sent all.
        stopped_because: Why it was given up; empty when it wasn't.
        lag: How late the client looked.
        usage: What it cost.
    """

    exchanges: tuple[Exchange, ...]
    cut: bool
    started_s: float
    ended_s: float
    enough_because: str = ""
    stopped_because: str = ""
    unanswered: tuple[Exchange, ...] = ()
    lag: LagMeter = field(default_factory=LagMeter)
    usage: UsageMeter = field(default_factory=UsageMeter)

    @property
    def every(self) -> tuple[Exchange, ...]:
        """Every request that was sent: those that ended, then those that were given up."""
        return (*self.exchanges, *self.unanswered)


def run_wave(
    wave: Wave,
    write_request: WriteRequest,
    dial: Dial,
    *,
    clock: Callable[[], float] = time.perf_counter,
    ready: Callable[[], float] | None = None,
) -> WaveResult:
    """Run a wave; a failed request is an exchange with a failure.

    Args:
        wave: How many streams and requests, when and until when.
        write_request: Gives the bytes of the request with this index, just before it is sent; those of the first
            requests when the connections are open, and anew when a request is repeated.
        dial: Starts a connection.
        clock: Monotonic seconds.
        ready: Called when the wave could start; waits until it may, and returns the time of its start.
    """
    watch: Watch[Stream] = Watch()
    loop = Loop(wave, write_request, dial, clock, watch)
    try:
        loop.connect_all()
        loop.write_first()
        with _no_garbage_collection():
            loop.run(ready() if ready else clock())
        cut, unanswered = loop.cut, loop.unanswered()
    finally:
        loop.close()
        watch.close()
    return WaveResult(
        exchanges=tuple(loop.exchanges),
        cut=cut,
        unanswered=unanswered,
        started_s=loop.started_s,
        ended_s=loop.now_s,
        enough_because=loop.enough_because,
        stopped_because=loop.stopped_because,
        lag=loop.lag,
        usage=loop.usage,
    )


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Keep the collector from walking the growing heap of answers while the clock runs; nothing there is cyclic."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
