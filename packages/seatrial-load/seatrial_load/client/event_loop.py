"""The event loop of a wave: gives requests to streams, listens to all of them, and looks after those that hang."""

from __future__ import annotations

import gc
import math
import select
import selectors
import sys
import time
import zlib
from array import array
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, NoReturn, Protocol, TypeAlias, TypeVar

from seatrial_base.units import MIB
from seatrial_load.client.connection import OPEN
from seatrial_load.client.retry import repetition_of
from seatrial_load.decode.failure import Failure, failure_of_malformed, shorten
from seatrial_load.decode.http1 import ProtocolError, ResponseParser, TooLargeError
from seatrial_load.health.client_health import LagMeter, UsageMeter
from seatrial_load.measure.lengths import lengths_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seatrial_load.client.connection import Connection, Dial
    from seatrial_load.decode.failure import ErrorClass
    from seatrial_load.decode.http1 import ResponseHead
    from seatrial_load.documents.request import Load, Workload
    from seatrial_load.documents.stop import Stop

    WriteRequest: TypeAlias = Callable[[int], bytes]


LEAST_ANSWER_BYTES: Final = 8 * MIB
ANSWER_BYTES_PER_TOKEN: Final = 2_048
"""An engine spends 60 to 500 bytes on a token, with log-probabilities some 1,000."""
LEAST_WAVE_BYTES: Final = 128 * MIB
WAVE_BYTES_PER_TOKEN: Final = 192
"""A token of an honest answer is kept in 30 to 130 bytes, folded (`Inbox`)."""
LEAST_TOKENS_PER_REQUEST: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a server may make the client keep; more is cut, and the request has failed with `answer_too_large`.

    Attributes:
        answer_bytes: Bytes of one answer, its head and framing included.
        wave_bytes: Memory of all answers of a wave together.
    """

    answer_bytes: int = LEAST_ANSWER_BYTES
    wave_bytes: int = LEAST_WAVE_BYTES

    def share(self, workers: int) -> Limits:
        """Return the limits of one of several processes."""
        return Limits(answer_bytes=self.answer_bytes, wave_bytes=self.wave_bytes // workers)


LEAST: Final = Limits()
"""Those of a wave of which nothing is known."""


def limits_of(workload: Workload, requests: int) -> Limits:
    """Return the limits for so many requests: they grow with the tokens that are asked for, not with what comes.

    An answer may have 2 KiB for each output token, and at least 8 MiB. All answers together may take 192 bytes of
    memory for each output token (at least 512 tokens a request), and 128 MiB besides.
    """
    tokens = requests * max(workload.output_tokens, LEAST_TOKENS_PER_REQUEST)
    return Limits(
        answer_bytes=max(LEAST_ANSWER_BYTES, lengths_of(workload).output.longest * ANSWER_BYTES_PER_TOKEN),
        wave_bytes=LEAST_WAVE_BYTES + tokens * WAVE_BYTES_PER_TOKEN,
    )


class Holding:
    """What the answers of a wave hold now, against its limits.

    Attributes:
        limits: The limits.
        held_bytes: Memory of all answers, as each inbox counts it.
    """

    __slots__ = ("held_bytes", "limits")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held_bytes = 0

    @property
    def is_tight(self) -> bool:
        """Whether a quarter of the room is taken, so that it pays to fold an answer that is over."""
        return self.held_bytes > self.limits.wave_bytes // 4

    @property
    def is_urgent(self) -> bool:
        """Whether half of the room is taken, so that folding can't wait until nothing arrives."""
        return self.held_bytes > self.limits.wave_bytes // 2


def mib(size_bytes: int) -> str:
    """Write a limit in MiB (2^20 bytes): `8 MiB`."""
    return f"{size_bytes / MIB:,.4g} MiB"


FOLD_BYTES: Final = 65_536
_QUICK: Final = 1  # zlib's least effort: five times smaller all the same, since engines repeat themselves
_ARRIVAL_BYTES: Final = 128  # a tuple, a float and the headers of both it and the bytes
_FOLDED_ARRIVAL_BYTES: Final = 12
_HEADER_BYTES: Final = 200
_LINE_BYTES: Final = 48  # a line may be a token, whose time is kept by the record
_LEAST_TOKEN_BYTES: Final = 20


class _Folded(NamedTuple):
    """Some arrivals of a body: their times, their lengths, and their bytes, compressed."""

    times_s: array[float]
    lengths: array[int]
    packed: bytes


class Inbox:
    """The arrivals of one response: while the clock runs it learns no more than whether the response is over.

    The framing of HTTP is parsed as it comes, some 4 µs for each arrival. Put off until an answer ends, it would cost
    no less, and all at once: answers that end together would hold up the first tokens of the next ones. What the body
    says is read after the wave.

    What a server may send has no end, so what is kept has one: each 64 KiB of a body are folded (compressed at some
    µs a KiB, their times kept), and past the limits of the wave the answer is cut.

    Attributes:
        last_arrival_s: When the last bytes came; 0 before any did.
        received_bytes: All bytes that came, the head and the framing included.
        parser: Reads head and framing.
    """

    __slots__ = (
        "_arrivals",
        "_folded",
        "_holding",
        "_open_bytes",
        "_own_bytes",
        "last_arrival_s",
        "parser",
        "received_bytes",
    )

    def __init__(self, holding: Holding | None = None) -> None:
        self.last_arrival_s = 0.0
        self.parser = ResponseParser()
        self.received_bytes = 0
        self._holding = holding or Holding(LEAST)
        self._arrivals: list[tuple[float, bytes]] = []
        self._folded: list[_Folded] = []
        self._open_bytes = self._own_bytes = 0

    @property
    def head(self) -> ResponseHead | None:
        """Status and headers, once they arrived in full; `Date` among them."""
        return self.parser.head

    @property
    def answering(self) -> bool:
        """Whether a part of the answer's body has arrived: silence before that is a queue, after it a stall."""
        return bool(self._arrivals or self._folded)

    @property
    def body(self) -> Iterator[tuple[float, bytes]]:
        """The body as it came, with the times of arrival; empty when the answer was cut."""
        for times_s, lengths, packed in self._folded:
            data, start = zlib.decompress(packed), 0
            for at_s, length in zip(times_s, lengths, strict=True):
                yield at_s, data[start : start + length]
                start += length
        yield from self._arrivals

    def add(self, at_s: float, data: bytes) -> bool:
        """Keep what arrived; return whether the response is complete.

        Raises:
            ProtocolError: The bytes aren't an HTTP/1.1 response.
            TooLargeError: It has more bytes than an answer may have, or all answers together take too much memory.
        """
        self.last_arrival_s = at_s
        self.received_bytes += len(data)
        holding = self._holding
        if self.received_bytes > holding.limits.answer_bytes:
            self._refuse(f"more than {mib(holding.limits.answer_bytes)}")
        parts = self.parser.feed(data)
        if parts:
            part = parts[0] if len(parts) == 1 else b"".join(parts)
            self._arrivals.append((at_s, part))
            cost_bytes = len(part) + _ARRIVAL_BYTES
            self._open_bytes += cost_bytes
            holding.held_bytes += cost_bytes
            if self._open_bytes > FOLD_BYTES:
                self._fold()
            if holding.held_bytes > holding.limits.wave_bytes:
                self._refuse(f"more than {mib(holding.limits.wave_bytes)} for all answers of the level")
        return self.parser.complete

    def close(self) -> None:
        """Tell that the server closed the connection.

        Raises:
            ProtocolError: The response wasn't over.
        """
        self.parser.close()

    def end(self) -> None:
        """Tell that nothing more is added: what nobody needs any more goes.

        It takes 20 us, or 150 us where the answer is folded: not while other answers arrive (`Loop`).
        """
        self.parser.release()
        headers = self.parser.head.headers if self.parser.head else {}
        self._hold(sum(len(name) + len(value) + _HEADER_BYTES for name, value in headers.items()))
        if self._holding.is_tight:
            self._fold()
        else:
            self._hold(sum([_record_bytes(part) for _, part in self._arrivals]))

    def drop(self) -> None:
        """Let the body go: nobody will read it."""
        self._holding.held_bytes -= self._own_bytes + self._open_bytes
        self._arrivals, self._folded = [], []
        self._open_bytes = self._own_bytes = 0
        self.parser.release()

    def _fold(self) -> None:
        if not self._arrivals:
            return
        data = b"".join([part for _, part in self._arrivals])
        folded = _Folded(
            array("d", [at_s for at_s, _ in self._arrivals]),
            array("I", [len(part) for _, part in self._arrivals]),
            zlib.compress(data, _QUICK),
        )
        self._holding.held_bytes -= self._open_bytes
        self._hold(len(folded.packed) + _FOLDED_ARRIVAL_BYTES * len(folded.times_s) + _record_bytes(data))
        self._folded.append(folded)
        self._arrivals, self._open_bytes = [], 0

    def _hold(self, size_bytes: int) -> None:
        self._own_bytes += size_bytes
        self._holding.held_bytes += size_bytes

    def _refuse(self, because: str) -> NoReturn:
        self.drop()
        raise TooLargeError(because)


def _record_bytes(data: bytes) -> int:
    """Return what the record of an answer will take for the tokens in these bytes at most."""
    return _LINE_BYTES * min(data.count(b"\n"), len(data) // _LEAST_TOKEN_BYTES)


@dataclass(slots=True, kw_only=True)
class Errand:
    """A request on its way, through all its attempts.

    Attributes:
        index: Its number, as the writer of requests knows it.
        taken_s: When a stream took it up.
        due_s: When an open loop has to send it; None in a closed loop.
        sent_s: Just before the first byte of the first attempt; when it was taken up, until then.
        retried: The failures that were repeated, in order.
        answers: What was answered to the earlier turns of its conversation.
        rest: The numbers of its conversation's further turns.
        turn: Which turn of its conversation it is, from 1; 0 of a single request.
    """

    index: int
    taken_s: float
    due_s: float | None = None
    sent_s: float
    retried: tuple[ErrorClass, ...] = ()
    answers: tuple[str, ...] = ()
    rest: range = range(0)
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that is over.

    Attributes:
        sent_s: Just before its first byte was handed to the socket, or the connection attempt when it never was.
        ended_s: When the response was complete, or the request was given up.
        inbox: What arrived, of the last attempt.
        failure: Why the client gave up; None when the response is complete.
        index: The request's number, as the writer of requests knows it.
        due_s: When an open loop had to send it; None in a closed loop.
        taken_s: When a stream took it up: from here to `ended_s` the stream is busy with it, reconnecting included.
        retried: The failures that were repeated before this answer, in order.
        turn: Which turn of its conversation it is, from 1; 0 of a single request.
    """

    sent_s: float
    ended_s: float
    inbox: Inbox
    failure: Failure | None
    index: int = 0
    due_s: float | None = None
    taken_s: float | None = None
    retried: tuple[ErrorClass, ...] = ()
    turn: int = 0


NEVER_S = math.inf
_SENDING = selectors.EVENT_READ | selectors.EVENT_WRITE


class Stream:
    """Carries requests over a connection that it keeps alive, and dials again when there is none.

    Attributes:
        opening: Whether a connection is being opened.
        give_up_s: When to stop waiting; infinite while there is nothing to wait for.
        errand: The request that it carries or carried last; None before the first.
        exchange: The exchange that has just ended, until somebody takes it away.
    """

    __slots__ = (
        "_clock",
        "_connection",
        "_dial",
        "_events",
        "_holding",
        "_inbox",
        "_request",
        "_reused",
        "_unsent",
        "_watch",
        "errand",
        "exchange",
        "give_up_s",
        "opening",
    )

    def __init__(self, dial: Dial, watch: Watch[Stream], clock: Callable[[], float], holding: Holding) -> None:
        self.opening = False
        self.give_up_s = NEVER_S
        self.errand: Errand | None = None
        self.exchange: Exchange | None = None
        self._dial = dial
        self._watch = watch
        self._clock = clock
        self._holding = holding
        self._connection: Connection | None = None
        self._events = 0
        self._reused = False
        self._request: bytes | None = None
        self._unsent: memoryview | None = None
        self._inbox = Inbox(holding)

    def dial(self, *, give_up_s: float) -> None:
        """Start to open a connection."""
        self.give_up_s = give_up_s
        self._reused = False
        try:
            self._connection = self._dial()
            self.opening = True
            self._step()
        except OSError as broken:
            self._break(broken)

    def start(self, errand: Errand, request: bytes, *, give_up_s: float) -> None:
        """Send a request, over a new connection when there is none."""
        self.errand = errand
        self._request = request
        self._inbox = Inbox(self._holding)
        if self._connection is None:
            self.dial(give_up_s=give_up_s)
        else:
            self.give_up_s = give_up_s
            self._reused = True
            self._send_request(request, errand)

    def advance(self) -> None:
        """Do what the connection is ready for; what makes no sense ends the request with a failure."""
        try:
            if self.opening:
                self._step()
            else:
                if self._unsent is not None:
                    self._flush(self._unsent)
                self._receive()
        except OSError as broken:
            self._break(broken)
        except ProtocolError as malformed:
            self.fail(failure_of_malformed(malformed))

    def silent_since_s(self) -> float:
        """Return when the answer that is under way was last heard of; infinite when none is."""
        inbox = self._inbox
        return inbox.last_arrival_s if self._request is not None and inbox.answering else NEVER_S

    def give_up(self, timeout_s: float) -> None:
        """Stop waiting for the connection or the answer, which had so many seconds."""
        if self.opening:
            self.fail(Failure("connection", "connection timed out"))
        else:
            self.fail(Failure("timeout", f"no complete answer within {timeout_s:g} s"))

    def fail(self, failure: Failure) -> None:
        """End the request, if there is one, with a failure, and its connection with it."""
        self.hang_up()
        if self._request is not None:
            self._end(failure)

    def hang_up(self) -> None:
        """Close the connection; one that Ctrl-C interrupts in here is not closed a second time."""
        connection, events = self._connection, self._events
        self._connection, self._events, self.opening, self._unsent = None, 0, False, None
        self.give_up_s = NEVER_S
        if connection is not None:
            if events:
                self._watch.forget(connection.fileno())
            connection.close()

    def _step(self) -> None:
        if self._connection is None:
            return
        event = self._connection.open_step()
        self._wait_for(event or selectors.EVENT_READ)
        if event != OPEN:
            return
        self.opening = False
        if self._request is None or self.errand is None:
            self.give_up_s = NEVER_S
        else:
            self._send_request(self._request, self.errand)

    def _send_request(self, request: bytes, errand: Errand) -> None:
        if not errand.retried:
            errand.sent_s = self._clock()
        try:
            self._flush(memoryview(request))
        except OSError as broken:
            self._break(broken)

    def _flush(self, unsent: memoryview) -> None:
        if self._connection is None:
            return
        rest = unsent[self._connection.send(unsent) :]
        self._unsent = rest if len(rest) else None
        self._wait_for(_SENDING if len(rest) else selectors.EVENT_READ)

    def _receive(self) -> None:
        data = None if self._connection is None else self._connection.receive()
        if data is None:
            return
        at_s = self._clock()
        if self._request is None:
            self.hang_up()
        elif not data:
            self._closed_by_server()
        elif self._inbox.add(at_s, data):
            self._complete(at_s)

    def _complete(self, at_s: float) -> None:
        head = self._inbox.head
        if self._unsent is not None or (head is not None and not head.keeps_alive):
            self.hang_up()
        self._end(None, at_s)

    def _closed_by_server(self) -> None:
        try:
            self._inbox.close()
        except ProtocolError as early:
            self._break(OSError(str(early)))
        else:
            self.hang_up()
            self._end(None)

    def _break(self, broken: OSError) -> None:
        """A kept-alive connection that the server closed in silence is opened again, once; else the request failed.

        The server may have closed it while it was idle, or taken the request and dropped it: nobody can tell, so it
        counts as repeated.
        """
        silent, give_up_s = not self._inbox.received_bytes, self.give_up_s
        was_reused = self._reused
        self.hang_up()
        if self._request is not None and self.errand is not None and was_reused and silent:
            self.errand.retried += ("connection",)
            self.dial(give_up_s=give_up_s)
        elif self._request is not None:
            self._end(Failure("connection", shorten(broken.strerror or str(broken))))

    def _end(self, failure: Failure | None, at_s: float | None = None) -> None:
        errand = self.errand
        if errand is None:
            return
        self.exchange = Exchange(
            errand.sent_s,
            self._clock() if at_s is None else at_s,
            self._inbox,
            failure,
            errand.index,
            errand.due_s,
            errand.taken_s,
            errand.retried,
            errand.turn,
        )
        self._request = None
        self.give_up_s = NEVER_S

    def _wait_for(self, events: int) -> None:
        if self._connection is not None and events != self._events:
            self._watch.set(self._connection.fileno(), events, self)
            self._events = events


CONNECT_TIMEOUT_S = 10.0
SWEEP_INTERVAL_S = 0.1
SENDS_PER_TURN = 16
"""A burst of requests is sent in pieces, so that answers which arrive meanwhile aren't read late."""
MAX_AHEAD_BYTES = 67_108_864
STALE_S = 60.0
"""A request that was written ahead and waited for so long is written anew: AWS takes a signature for five minutes."""
UNREAD_S = 0.005
"""An answer that a further turn waits for is read after so long though others arrive: one after each look."""
ENOUGH_SHARE = 0.02
TELL_EVERY_S = 5.0  # a terminal takes 20 ms to draw, in which nothing is read: no more than 0.4 % of the time


class Loop:
    """Runs one wave; see `client.run_wave`.

    Attributes:
        exchanges: Those that ended, in order of ending.
        started_s: When the first request could leave.
        now_s: The time of the last look at the clock.
        enough_because: Why it sends no more; None while it does.
        stopped: Why it was given up; None while it goes on.
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
        self.enough_because: str | None = None
        self.stopped: Stop | None = None
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
        self._holding = holding
        self._over: deque[Inbox] = deque()
        self._taken = self._opened = 0
        self._waiting: list[tuple[float, int, Errand, bytes]] = []
        self._unread: deque[tuple[Errand, Exchange]] = deque()
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
        while self.now_s < min(self.started_s, wave.deadline_s) and self.stopped is None:
            self._listen(min(SWEEP_INTERVAL_S, self.started_s - self.now_s))
        self.lag, self.usage = LagMeter(), UsageMeter()
        self.usage.sample(self.now_s)
        while self.cut and self.now_s < wave.deadline_s and self.stopped is None:
            self._send_due()
            self._listen(self._patience_s())
        self.usage.sample(self.now_s)
        while self._tidy():
            pass

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
        stream.fail(Failure("unanswered", "no complete answer at the end of the level"))
        if stream.exchange is not None:
            return stream.exchange
        refused = Failure(errand.retried[-1], f"refused {len(errand.retried)} times until the end of the level")
        return Exchange(
            errand.sent_s, self.now_s, Inbox(), refused, errand.index, retried=errand.retried, turn=errand.turn
        )

    def close(self) -> None:
        """Close every connection; what is in flight is given up."""
        for stream in self._streams:
            stream.hang_up()

    def _index(self, number: int) -> int:
        conversations = self._wave.conversations
        if conversations is not None:
            return conversations.numbers[number].start
        return self._wave.first_index + number * self._wave.stride

    def _write_ahead(self) -> bool:
        """Write one more request than is needed now, at most one for each stream; tell whether there was one to write.

        Streams that started together often end together: their next requests then leave without being waited for.
        """
        ahead = len(self._written)
        if self._taken + ahead >= self._wanted or ahead >= len(self._streams) or self._ahead_bytes > MAX_AHEAD_BYTES:
            return False
        request = self._write_request(self._index(self._opened + ahead))
        self._written.append((self._clock(), request))
        self._ahead_bytes += len(request)
        return True

    def _tidy(self) -> bool:
        """End the inbox that is over for the longest time; tell whether there was one.

        Answers that end together would else hold up the first tokens of the next ones: 512 of them by 75 ms.
        """
        if not self._over:
            return False
        self._over.popleft().end()
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
                self._start(stream, stream.errand, self._written_again(index, stream.errand))
        for _ in range(SENDS_PER_TURN):
            if not self._idle or self._taken >= self._wanted:
                return
            if self._waiting and self._waiting[0][0] <= self.now_s:
                self._start_turn(*heappop(self._waiting)[2:])
            elif len(self._idle) <= len(self._unread) or self._next_due_s() > self._clock():
                return
            else:
                self._start_next()

    def _written_again(self, index: int, errand: Errand) -> bytes:
        conversations = self._wave.conversations
        if conversations is None or not errand.answers:
            return self._write_request(index)
        return conversations.write(index, errand.answers)

    def _start_turn(self, errand: Errand, request: bytes) -> None:
        """Send the next turn of a conversation, on the stream that is idle for the longest time."""
        self._taken += 1
        request = request or self._written_again(errand.index, errand)
        errand.taken_s = errand.sent_s = self._clock()
        self._start(self._idle.popleft(), errand, request)

    def _read_answer(self) -> bool:
        """Read the oldest answer that a further turn waits for; tell whether there was one.

        A turn that failed ends its conversation. Answers that end together would else hold up what arrives: their
        streams are kept free instead.
        """
        conversations = self._wave.conversations
        if conversations is None or not self._unread or self._taken >= self._wanted:
            return False
        ended, exchange = self._unread.popleft()
        said = conversations.read(exchange)
        if said is None:
            return True
        index, rest = ended.rest[0], ended.rest[1:]
        at_s = exchange.ended_s + conversations.delay_s(index)
        further = Errand(
            index=index, taken_s=at_s, sent_s=at_s, answers=(*ended.answers, said), rest=rest, turn=ended.turn + 1
        )
        is_soon = at_s - self._clock() < SWEEP_INTERVAL_S
        heappush(self._waiting, (at_s, index, further, self._written_again(index, further) if is_soon else b""))
        return True

    def _next_due_s(self) -> float:
        due_s = self._wave.due_s
        return self.started_s if due_s is None else self.started_s + due_s[self._taken]

    def _start_next(self) -> None:
        is_open = self._wave.due_s is not None
        stream = self._idle.pop() if is_open else self._idle.popleft()
        now_s, index = self._clock(), self._index(self._opened)
        due_s = self._next_due_s() if is_open else None
        errand = Errand(index=index, taken_s=now_s, due_s=due_s, sent_s=now_s)
        if self._wave.conversations is not None:
            errand.turn, errand.rest = 1, self._wave.conversations.numbers[self._opened][1:]
        self._taken += 1
        self._opened += 1
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
            if self._waiting:
                patience_s = min(patience_s, self._waiting[0][0] - self.now_s)
            if len(self._idle) > len(self._unread):
                patience_s = min(patience_s, self._next_due_s() - self._clock())
        return max(0.0, patience_s)

    def _listen(self, patience_s: float) -> None:
        ready = self._watch.poll(0.0)
        waited = not ready and not (patience_s > 0 and (self._read_answer() or self._write_ahead() or self._tidy()))
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
        if self._unread and self.now_s - self._unread[0][1].ended_s > UNREAD_S:
            self._read_answer()
        if self.now_s >= self._next_sweep_s:
            self._sweep()

    def _settle(self, stream: Stream, exchange: Exchange) -> None:
        stream.exchange = None
        if self._repeats(stream, exchange):
            return
        self.exchanges.append(exchange)
        self._over.append(exchange.inbox)
        while self._holding.is_urgent and self._tidy():
            pass
        self._idle.append(stream)
        if stream.errand is not None and stream.errand.rest and exchange.failure is None:
            self._unread.append((stream.errand, exchange))
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
        self.stopped = self._wave.stop() if self._wave.stop is not None else None
        stall_s = self._wave.stall_timeout_s
        for stream in self._streams:
            if stream.give_up_s <= now_s:
                stream.give_up(self._wave.timeout_s)
            elif stall_s is not None and now_s - stream.silent_since_s() >= stall_s:
                stream.fail(Failure("stalled", f"no data for {stall_s:g} s"))
            if stream.exchange is not None:
                self._settle(stream, stream.exchange)
        self._ask_enough()
        if self._wave.tell is not None and now_s >= self._tell_again_s:
            self._wave.tell(len(self.exchanges))
            self._tell_again_s = now_s + TELL_EVERY_S

    def _ask_enough(self) -> None:
        wave = self._wave
        if wave.enough is None or self.enough_because is not None or self._taken == self._wanted:
            return
        if self.now_s < self._ask_again_s or len(self._durations_s) < max(1, wave.least_requests):
            return
        began_s = time.perf_counter()
        self.enough_because = wave.enough(self._durations_s)
        self._ask_again_s = self.now_s + (time.perf_counter() - began_s) / ENOUGH_SHARE
        if self.enough_because is not None:
            self._wanted = self._taken


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveConversations:
    """The conversations of a wave, whose turns wait for the answers before them.

    A user who thinks keeps no stream: another conversation takes it, so that as many requests are in flight as streams
    are asked for.

    Attributes:
        numbers: The numbers of the requests of each conversation, one for each turn, in the order in which they open:
            as many conversations as requests, should every first turn fail.
        delay_s: Tells how long the user thinks before the turn of a number, in seconds.
        write: Gives the bytes of a further turn, by its number and what was answered before.
        read: Returns what an answer says; None where the turn failed. It is called while the clock runs.
    """

    numbers: Sequence[range]
    delay_s: Callable[[int], float]
    write: Callable[[int, tuple[str, ...]], bytes]
    read: Callable[[Exchange], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """One run of the client. Its k-th request has the index first_index + k x stride.

    Attributes:
        streams: Requests kept in flight; in an open loop, the most that may be.
        requests: Requests to send in all.
        timeout_s: An attempt not answered in full by then is given up.
        deadline_s: The whole wave is given up at this time of the clock.
        first_index: The first request's number, as the writer of requests knows it.
        stride: From one request's number to the next one's.
        start_s: Nothing is sent before this time of the clock; None starts as soon as all connections are open.
        due_s: Seconds after the start at which each request must leave, ascending, whatever is in flight; None is the
            closed loop. A request that finds every stream busy leaves late.
        stall_timeout_s: An answer that has begun and then is silent for so long has failed; None waits for the timeout.
        max_retries: How often a request is repeated that was throttled, or whose model wasn't ready.
        measured_from: Requests with a lower index aren't measured: `enough` and `least_requests` don't count them.
        least_requests: `enough` isn't asked before so many measured requests ended well.
        enough: Asked now and then, with the end-to-end seconds of the measured requests that ended well so far, in
            order of ending; a reason ends the sending. Well is HTTP 200 and complete: what the answer
            says is read later. It gets at most 2 % of the time, and is asked between reads, so it should be quick.
        stop: Asked ten times a second; a reason gives the whole wave up at once, in flight or not.
        limits: What a server may make the client keep; several processes share it.
        conversations: The conversations that the requests are turns of; None where they are single ones. What is open
            when all requests are sent is left open.
        tell: Told every five seconds how many requests ended so far, those of all processes that are known.
    """

    streams: int
    requests: int
    timeout_s: float
    deadline_s: float
    first_index: int = 0
    stride: int = 1
    start_s: float | None = None
    due_s: Sequence[float] | None = None
    stall_timeout_s: float | None = None
    max_retries: int = 0
    measured_from: int = 0
    least_requests: int = 0
    enough: Callable[[Sequence[float]], str | None] | None = None
    stop: Callable[[], Stop | None] | None = None
    tell: Callable[[int], None] | None = None
    limits: Limits = LEAST
    conversations: WaveConversations | None = None

    @classmethod
    def of(
        cls,
        load: Load,
        *,
        streams: int,
        requests: int,
        deadline_s: float,
        **others: Any,  # noqa: ANN401 (attributes)
    ) -> Wave:
        """Return a wave with the time limits and retries of a load; `others` are further attributes."""
        return cls(
            streams=streams,
            requests=requests,
            timeout_s=load.request_timeout_s,
            deadline_s=deadline_s,
            stall_timeout_s=load.stall_timeout_s,
            max_retries=load.max_retries,
            **others,
        )

    def share(self, worker: int, workers: int) -> Wave:
        """Return one worker's share: every `workers`-th request, and its part of the streams."""
        talks = self.conversations
        return replace(
            self,
            conversations=None if talks is None else replace(talks, numbers=talks.numbers[worker::workers]),
            streams=len(range(worker, self.streams, workers)),
            requests=len(range(worker, self.requests, workers)),
            first_index=self.first_index + worker * self.stride,
            stride=self.stride * workers,
            limits=self.limits.share(workers),
            due_s=None if self.due_s is None else tuple(self.due_s[worker::workers]),
        )


OwnerT = TypeVar("OwnerT")


class _Poller(Protocol):
    def register(self, descriptor: int, events: int, /) -> object: ...
    def modify(self, descriptor: int, events: int, /) -> object: ...
    def unregister(self, descriptor: int, /) -> object: ...
    def poll(self, timeout_s: float, /) -> list[tuple[int, int]]: ...
    def close(self) -> None: ...


class Watch(Generic[OwnerT]):
    """Watches descriptors, each for one owner; `selectors` would build an object for every event of the hot path.

    Attributes:
        owners: Who owns each watched descriptor.
        poll: Waits at most so many seconds; returns the ready descriptors with their events.
    """

    __slots__ = ("_masks", "_poller", "owners", "poll")

    def __init__(self) -> None:
        self.owners: dict[int, OwnerT] = {}
        self._poller, self._masks = _poller()
        self.poll: Callable[[float], list[tuple[int, int]]] = self._poller.poll

    def set(self, descriptor: int, events: int, owner: OwnerT) -> None:
        """Watch a descriptor for `selectors.EVENT_READ`, `EVENT_WRITE` or both, until `forget`."""
        known = descriptor in self.owners
        self.owners[descriptor] = owner
        (self._poller.modify if known else self._poller.register)(descriptor, self._masks[events])

    def forget(self, descriptor: int) -> None:
        """Watch a descriptor no longer; to be called before it is closed."""
        del self.owners[descriptor]
        self._poller.unregister(descriptor)

    def close(self) -> None:
        """Give back the kernel's object."""
        self._poller.close()


class _SelectorPoller:
    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.register = self._selector.register
        self.modify = self._selector.modify
        self.unregister = self._selector.unregister
        self.close = self._selector.close

    def poll(self, timeout_s: float, /) -> list[tuple[int, int]]:
        return [(key.fd, events) for key, events in self._selector.select(timeout_s)]


def _poller() -> tuple[_Poller, dict[int, int]]:
    if sys.platform == "linux":
        read, write = select.EPOLLIN, select.EPOLLOUT
        return select.epoll(), {
            selectors.EVENT_READ: read,
            selectors.EVENT_WRITE: write,
            selectors.EVENT_READ | selectors.EVENT_WRITE: read | write,
        }
    return _SelectorPoller(), {events: events for events in (1, 2, 3)}


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveResult:
    """What a wave brought.

    Attributes:
        exchanges: Those that ended, in order of ending.
        unanswered: Those that were in flight when the deadline ended the wave, given up then.
        cut: Whether the deadline ended the wave before every request was over.
        started_s: When the first request could leave.
        ended_s: When the wave was over.
        enough_because: Why it sent no more than it did; None when it sent all.
        stopped: Why it was given up; None when it wasn't.
        lag: How late the client looked.
        usage: What it cost.
    """

    exchanges: tuple[Exchange, ...]
    cut: bool
    started_s: float
    ended_s: float
    enough_because: str | None = None
    stopped: Stop | None = None
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
        stopped=loop.stopped,
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
