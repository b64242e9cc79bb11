"""The event loop of a wave: gives requests to streams, listens to all of them, and looks after those that hang."""

from __future__ import annotations

import time
from collections import deque
from heapq import heappop, heappush
from http import HTTPStatus
from typing import TYPE_CHECKING

from seatrial.bench.backoff import repetition_of
from seatrial.bench.exchange import Errand, Exchange, Inbox
from seatrial.bench.failure import Failure
from seatrial.bench.holding import Holding
from seatrial.bench.lag import LagMeter
from seatrial.bench.stream import Stream
from seatrial.bench.usage import UsageMeter

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.connection import Dial
    from seatrial.bench.watch import Watch
    from seatrial.bench.wave import Wave

CONNECT_TIMEOUT_S = 10.0
SWEEP_INTERVAL_S = 0.1
SENDS_PER_TURN = 16
"""A burst of requests is sent in pieces, so that answers which arrive meanwhile aren't read late."""
MAX_AHEAD_BYTES = 67_108_864
STALE_S = 60.0
"""A request that was written ahead and waited for so long is written anew: AWS takes a signature for five minutes."""
ENOUGH_SHARE = 0.02
TELL_EVERY_S = 5.0  # a terminal takes 20 ms to draw, in which nothing is read: no more than 0.4 % of the time


class Loop:
    """Runs one wave; see `client.run_wave`.

    Attributes:
        exchanges: Those that ended, in order of ending.
        started_s: When the first request could leave.
        now_s: The time of the last look at the clock.
        enough_because: Why it sends no more; empty while it does.
        stopped_because: Why it was given up; empty while it goes on.
        lag: How late it looks.
        usage: What it costs.
    """

    def __init__(
        self,
        wave: Wave,
        write_request: Callable[[int], bytes],
        dial: Dial,
        clock: Callable[[], float],
        watch: Watch[Stream],
    ) -> None:
        self.exchanges: list[Exchange] = []
        self.started_s = self.now_s = 0.0
        self.enough_because = self.stopped_because = ""
        self.lag = LagMeter()
        self.usage = UsageMeter()
        self._wave = wave
        self._write_request = write_request
        self._clock = clock
        self._watch = watch
        holding = Holding(wave.limits)
        self._streams = [Stream(dial, watch, clock, holding) for _ in range(min(wave.streams, wave.requests))]
        self._idle: deque[Stream] = deque()
        self._pausing: list[tuple[float, int, Stream]] = []
        self._written: deque[tuple[float, bytes]] = deque()
        self._ahead_bytes = 0
        self._taken = 0
        self._wanted = wave.requests
        self._durations_s: list[float] = []
        self._ask_again_s = self._tell_again_s = 0.0
        self._next_sweep_s = 0.0

    @property
    def cut(self) -> bool:
        """Whether the deadline ended the wave before every request was over."""
        return len(self.exchanges) < self._wanted

    def connect_all(self) -> None:
        """Open every stream's connection before the clock of the first request starts.

        One that fails is left closed: the stream's first request tries again, and its record tells why.
        """
        for stream in self._streams:
            stream.dial(give_up_s=self._clock() + CONNECT_TIMEOUT_S)
        self.now_s = self._clock()
        while any(stream.opening for stream in self._streams) and self.now_s < self._wave.deadline_s:
            self._listen(SWEEP_INTERVAL_S)
        self._idle.extend(self._streams)

    def write_first(self) -> None:
        """Write the requests that leave first, so that they leave together."""
        while self._write_ahead():
            pass

    def run(self, may_start_s: float) -> None:
        """Send and receive until every request is over or the wave's deadline has come."""
        wave = self._wave
        self.now_s = may_start_s
        self.started_s = may_start_s if wave.start_s is None else max(may_start_s, wave.start_s)
        while self.now_s < min(self.started_s, wave.deadline_s) and not self.stopped_because:
            self._listen(min(SWEEP_INTERVAL_S, self.started_s - self.now_s))
        self.lag, self.usage = LagMeter(), UsageMeter()
        self.usage.sample(self.now_s)
        while self.cut and self.now_s < wave.deadline_s and not self.stopped_because:
            self._send_due()
            self._listen(self._patience_s())
        self.usage.sample(self.now_s)

    def unanswered(self) -> tuple[Exchange, ...]:
        """Give up what is in flight, and return it with what arrived: the deadline has cut the wave."""
        idle = {id(stream) for stream in self._idle}
        return tuple(
            self._cut_short(stream, stream.errand)
            for stream in self._streams
            if stream.errand is not None and id(stream) not in idle
        )

    def _cut_short(self, stream: Stream, errand: Errand) -> Exchange:
        """End a stream's request as unanswered; one that paused before a repetition as it was refused last."""
        stream.fail(Failure("unanswered", "no complete answer when the time was over"))
        if stream.exchange is not None:
            return stream.exchange
        refused = Failure(errand.retried[-1], f"refused {len(errand.retried)} times until the time was over")
        return Exchange(errand.sent_s, self.now_s, Inbox(), refused, errand.index, retried=errand.retried)

    def close(self) -> None:
        """Close every connection; what is in flight is given up."""
        for stream in self._streams:
            stream.hang_up()

    def _index(self, number: int) -> int:
        return self._wave.first_index + number * self._wave.stride

    def _write_ahead(self) -> bool:
        """Write one more request than is needed now, at most one for each stream; tell whether there was one to write.

        Streams that started together often end together: their next requests then leave without being waited for.
        """
        number = self._taken + len(self._written)
        if number >= self._wanted or len(self._written) >= len(self._streams) or self._ahead_bytes > MAX_AHEAD_BYTES:
            return False
        request = self._write_request(self._index(number))
        self._written.append((self._clock(), request))
        self._ahead_bytes += len(request)
        return True

    def _next_request(self, index: int) -> bytes:
        if not self._written:
            return self._write_request(index)
        written_s, request = self._written.popleft()
        self._ahead_bytes -= len(request)
        return request if self.now_s - written_s < STALE_S else self._write_request(index)

    def _send_due(self) -> None:
        while self._pausing and self._pausing[0][0] <= self.now_s:
            _, index, stream = heappop(self._pausing)
            if stream.errand is not None:
                self._start(stream, stream.errand, self._write_request(index))
        for _ in range(SENDS_PER_TURN):
            if not self._idle or self._taken >= self._wanted or self._next_due_s() > self._clock():
                return
            self._start_next()

    def _next_due_s(self) -> float:
        due_s = self._wave.due_s
        return self.started_s if due_s is None else self.started_s + due_s[self._taken]

    def _start_next(self) -> None:
        is_open = self._wave.due_s is not None
        stream = self._idle.pop() if is_open else self._idle.popleft()
        now_s, index = self._clock(), self._index(self._taken)
        due_s = self._next_due_s() if is_open else None
        self._taken += 1
        errand = Errand(index=index, taken_s=now_s, due_s=due_s, sent_s=now_s)
        self._start(stream, errand, self._next_request(index))

    def _start(self, stream: Stream, errand: Errand, request: bytes) -> None:
        stream.start(errand, request, give_up_s=self._clock() + self._wave.timeout_s)
        if stream.exchange is not None:
            self._settle(stream, stream.exchange)

    def _patience_s(self) -> float:
        patience_s = SWEEP_INTERVAL_S
        if self._pausing:
            patience_s = min(patience_s, self._pausing[0][0] - self.now_s)
        if self._idle and self._taken < self._wanted:
            patience_s = min(patience_s, self._next_due_s() - self._clock())
        return max(0.0, patience_s)

    def _listen(self, patience_s: float) -> None:
        ready = self._watch.poll(0.0)
        waited = not ready and not (patience_s > 0 and self._write_ahead())
        if not ready:
            ready = self._watch.poll(patience_s if waited else 0.0)
        told_s = self._clock()
        owners = self._watch.owners
        for descriptor, _ in ready:
            stream = owners[descriptor]
            stream.advance()
            if stream.exchange is not None:
                self._settle(stream, stream.exchange)
        self.now_s = self._clock()
        self.lag.note(told_s, self.now_s, len(ready), waited=waited)
        if self.now_s >= self._next_sweep_s:
            self._sweep()

    def _settle(self, stream: Stream, exchange: Exchange) -> None:
        stream.exchange = None
        if self._repeats(stream, exchange):
            return
        self.exchanges.append(exchange)
        self._idle.append(stream)
        head = exchange.inbox.head
        well = exchange.failure is None and head is not None and head.status == HTTPStatus.OK
        if well and exchange.index >= self._wave.measured_from:
            self._durations_s.append(exchange.ended_s - exchange.sent_s)

    def _repeats(self, stream: Stream, exchange: Exchange) -> bool:
        """Tell whether the request is tried again, and let the stream pause until then.

        A request that would have to wait longer than an attempt may take isn't: its failure stands.
        """
        wanted = repetition_of(exchange, self._wave.max_retries)
        if wanted is None or stream.errand is None:
            return False
        at_s = exchange.ended_s + wanted.pause_s
        if wanted.pause_s > self._wave.timeout_s or at_s >= self._wave.deadline_s:
            return False
        stream.errand.retried += (wanted.error,)
        exchange.inbox.drop()
        heappush(self._pausing, (at_s, exchange.index, stream))
        return True

    def _sweep(self) -> None:
        now_s = self.now_s
        self._next_sweep_s = now_s + SWEEP_INTERVAL_S
        self.usage.sample(now_s)
        self.stopped_because = self._wave.stop() if self._wave.stop is not None else ""
        stall_s = self._wave.stall_timeout_s
        for stream in self._streams:
            if stream.give_up_s <= now_s:
                stream.give_up(self._wave.timeout_s)
            elif stall_s is not None and now_s - stream.silent_since_s() >= stall_s:
                stream.fail(Failure("stalled", f"the answer stopped for {stall_s:g} s"))
            if stream.exchange is not None:
                self._settle(stream, stream.exchange)
        self._ask_enough()
        if self._wave.tell is not None and now_s >= self._tell_again_s:
            self._wave.tell(len(self.exchanges))
            self._tell_again_s = now_s + TELL_EVERY_S

    def _ask_enough(self) -> None:
        wave = self._wave
        if wave.enough is None or self.enough_because or self.now_s < self._ask_again_s or self._taken == self._wanted:
            return
        if len(self._durations_s) < max(1, wave.least_requests):
            return
        began_s = time.perf_counter()
        self.enough_because = wave.enough(self._durations_s)
        self._ask_again_s = self.now_s + (time.perf_counter() - began_s) / ENOUGH_SHARE
        if self.enough_because:
            self._wanted = self._taken
