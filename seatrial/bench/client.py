"""The load client: one thread, one event loop, closed-loop concurrency; while the clock runs it only keeps bytes.

A wave sends a number of requests over a number of streams; a stream sends its next request when the last is over.
All connections are open before the first request leaves. Hot path: take the time, append the bytes; decoding comes
after the wave, so that it can't delay another stream's timestamp. Memory: some 300 bytes per token of the wave.
"""

from __future__ import annotations

import selectors
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from seatrial.bench.failure import Failure, shorten
from seatrial.bench.stream import Stream
from seatrial.bench.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.connection import Dial
    from seatrial.bench.exchange import Exchange

    WriteRequest: TypeAlias = Callable[[int], bytes]

CONNECT_TIMEOUT_S = 10.0
SWEEP_INTERVAL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """One run of the client.

    Attributes:
        streams: Requests kept in flight.
        requests: Requests to send in all.
        timeout_s: A request not answered in full by then is given up.
        deadline_s: The whole wave is given up at this time of the clock.
    """

    streams: int
    requests: int
    timeout_s: float
    deadline_s: float


@dataclass(frozen=True, slots=True)
class WaveResult:
    """The exchanges that ended, in order of ending, and whether the deadline cut the wave short."""

    exchanges: tuple[Exchange, ...]
    cut: bool


def run_wave(
    wave: Wave, write_request: WriteRequest, dial: Dial, *, clock: Callable[[], float] = time.perf_counter
) -> WaveResult:
    """Run a wave; a failed request is an exchange with a failure.

    Args:
        wave: How many streams and requests, and until when.
        write_request: Gives the bytes of the request with this number, just before it is sent.
        dial: Starts a connection.
        clock: Monotonic seconds.
    """
    with selectors.DefaultSelector() as selector:
        loop = _Loop(wave, write_request, dial, clock, selector)
        try:
            loop.connect_all()
            loop.run()
        finally:
            loop.close()
    return WaveResult(tuple(loop.exchanges), cut=len(loop.exchanges) < wave.requests)


class _Loop:
    def __init__(
        self,
        wave: Wave,
        write_request: WriteRequest,
        dial: Dial,
        clock: Callable[[], float],
        selector: selectors.BaseSelector,
    ) -> None:
        self.exchanges: list[Exchange] = []
        self._wave = wave
        self._write_request = write_request
        self._clock = clock
        self._selector = selector
        self._streams = [Stream(dial, selector, clock) for _ in range(min(wave.streams, wave.requests))]
        self._idle: deque[Stream] = deque()
        self._next_request = 0
        self._next_sweep_s = 0.0

    def connect_all(self) -> None:
        """Open every stream's connection before the clock of the first request starts.

        One that fails is left closed: the stream's first request tries again, and its record tells why.
        """
        for stream in self._streams:
            stream.dial(give_up_s=self._clock() + CONNECT_TIMEOUT_S)
        while any(stream.opening for stream in self._streams) and self._clock() < self._wave.deadline_s:
            for key, _ in self._selector.select(SWEEP_INTERVAL_S):
                key.data.advance()
            self._sweep()
        self._idle.extend(self._streams)

    def run(self) -> None:
        """Send and receive until every request is over or the wave's deadline has come."""
        while len(self.exchanges) < self._wave.requests and self._clock() < self._wave.deadline_s:
            while self._idle and self._next_request < self._wave.requests:
                self._start(self._idle.popleft())
            for key, _ in self._selector.select(SWEEP_INTERVAL_S):
                self._advance(key.data)
            self._sweep()

    def close(self) -> None:
        """Close every connection; what is in flight is given up."""
        for stream in self._streams:
            stream.hang_up()

    def _start(self, stream: Stream) -> None:
        request = self._write_request(self._next_request)
        self._next_request += 1
        stream.start(request, give_up_s=self._clock() + self._wave.timeout_s)
        self._settle(stream)

    def _advance(self, stream: Stream) -> None:
        try:
            stream.advance()
        except ProtocolError as malformed:
            stream.fail(Failure("protocol", shorten(str(malformed))))
        self._settle(stream)

    def _settle(self, stream: Stream) -> None:
        exchange = stream.take_exchange()
        if exchange is not None:
            self.exchanges.append(exchange)
            self._idle.append(stream)

    def _sweep(self) -> None:
        now_s = self._clock()
        if now_s < self._next_sweep_s:
            return
        self._next_sweep_s = now_s + SWEEP_INTERVAL_S
        for stream in self._streams:
            if stream.give_up_s <= now_s:
                stream.give_up()
                self._settle(stream)
