"""The event loop of a wave: gives requests to streams, listens to all of them, and looks after those that hang."""

from __future__ import annotations

import gc
import math
import select
import selectors
import sys
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from heapq import heappop, heappush
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from seatrial_base.field_facts import made_of
from seatrial_load.client.connection import OPEN
from seatrial_load.decode.exchange import LEAST, Exchange, Holding, Inbox
from seatrial_load.decode.failure import Failure, failure_of_malformed, shorten
from seatrial_load.decode.http1 import ProtocolError
from seatrial_load.decode.response import exchange_failure
from seatrial_load.documents.arrivals import rest_s, scatter
from seatrial_load.health.client_health import LagMeter, UsageMeter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seatrial_load.client.connection import Connection, Dial
    from seatrial_load.decode.exchange import Limits
    from seatrial_load.decode.failure import ErrorClass
    from seatrial_load.documents.request import Load
    from seatrial_load.documents.stop import Stop

    WriteRequest: TypeAlias = Callable[[int], bytes]


@dataclass(slots=True, kw_only=True)
class PendingRequest:
    """A request on its way, through all its attempts.

    Attributes:
        index: Its number, as the writer of requests knows it.
        due_s: When an open loop has to send it; None in a closed loop.
        sent_s: Just before the first byte of the first attempt; when it was taken up, until then.
        retried: The failures that were repeated, in order.
        answers: The responses to the earlier turns of its conversation.
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


@dataclass(slots=True)
class OpenSession:
    """A recorded session that goes on: when its turns ended, by number, and how many are in flight and unsent."""

    unsent: int
    in_flight: int = 0
    ended_s: dict[int, float] = field(default_factory=dict)


NEVER_S = math.inf
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_SENDING = _READ | _WRITE


class Stream:
    """Carries requests over a connection that it keeps alive, and dials again when there is none.

    Attributes:
        give_up_s: When to stop waiting; infinite while there is nothing to wait for.
        pending: The request that it carries or carried last; None before the first.
        exchange: The exchange that has just ended, until it is taken away.
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
        "exchange",
        "give_up_s",
        "opening",
        "pending",
    )

    def __init__(self, dial: Dial, watch: Watch[Stream], clock: Callable[[], float], holding: Holding) -> None:
        self.opening = False
        self.give_up_s = NEVER_S
        self.pending: PendingRequest | None = None
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

    def start(self, pending: PendingRequest, request: bytes, *, give_up_s: float) -> None:
        """Send a request, over a new connection when there is none."""
        self.pending = pending
        self._request = request
        self._inbox = Inbox(self._holding)
        if self._connection is None:
            self.dial(give_up_s=give_up_s)
        else:
            self.give_up_s = give_up_s
            self._reused = True
            self._send_request(request, pending)

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
        """Return when the response that is under way last brought bytes; infinite when none is."""
        inbox = self._inbox
        return inbox.last_arrival_s if self._request is not None and inbox.answering else NEVER_S

    def give_up(self, timeout_s: float) -> None:
        """Stop waiting for the connection or the response, which had `timeout_s`."""
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
        if self._request is None or self.pending is None:
            self.give_up_s = NEVER_S
        else:
            self._send_request(self._request, self.pending)

    def _send_request(self, request: bytes, pending: PendingRequest) -> None:
        if not pending.retried:
            pending.sent_s = self._clock()
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
            try:
                self._inbox.close()
            except ProtocolError as early:
                self._break(OSError(str(early)))
            else:
                self.hang_up()
                self._end(None)
        elif self._inbox.add(at_s, data):
            head = self._inbox.head
            if self._unsent is not None or (head is not None and not head.keeps_alive):
                self.hang_up()
            self._end(None, at_s)

    def _break(self, broken: OSError) -> None:
        # A kept-alive connection that the server closed in silence is opened again, once; else the request failed. The
        # server may have closed it while it was idle, or taken the request and dropped it: the client can't know, so it
        # counts as repeated.
        silent, give_up_s = not self._inbox.received_bytes, self.give_up_s
        was_reused = self._reused
        self.hang_up()
        if self._request is not None and self.pending is not None and was_reused and silent:
            self.pending.retried += ("connection",)
            self.dial(give_up_s=give_up_s)
        elif self._request is not None:
            self._end(Failure("connection", shorten(broken.strerror or str(broken))))

    def _end(self, failure: Failure | None, at_s: float | None = None) -> None:
        pending = self.pending
        if pending is None:
            return
        self.exchange = Exchange(
            pending.sent_s,
            self._clock() if at_s is None else at_s,
            self._inbox,
            failure,
            pending.index,
            pending.due_s,
            pending.taken_s,
            pending.retried,
            pending.turn,
        )
        self._request = None
        self.give_up_s = NEVER_S

    def _wait_for(self, events: int) -> None:
        if self._connection is not None and events != self._events:
            self._watch.set(self._connection.fileno(), events, self)
            self._events = events


BASE_S = 0.25
CAP_S = 8.0
REPEATED: tuple[ErrorClass, ...] = ("throttled", "not_ready")


class Repetition(NamedTuple):
    """Why a request is to be repeated, and after which pause."""

    error: ErrorClass
    pause_s: float


def repetition_of(exchange: Exchange, most: int) -> Repetition | None:
    """Return the repetition of a request that was refused for load or for readiness, and not too often; else None."""
    repetitions = sum(error in REPEATED for error in exchange.retried)
    failure = exchange_failure(exchange) if repetitions < most else None
    if failure is None or failure.error not in REPEATED:
        return None
    head = exchange.inbox.head
    retry_after = retry_after_s(head.headers) if head else 0.0
    return Repetition(failure.error, max(backoff_s(exchange.index, repetitions), retry_after))


def backoff_s(index: int, repetitions: int) -> float:
    """Return the wait before the next attempt: 0.25 s, doubled by each repetition, at most 8 s, times 0.5 to 1.

    The factor scatters requests that were refused together ("equal jitter": AWS Architecture Blog, "Exponential
    Backoff And Jitter"); it follows from the request's number, so that the same trial waits alike.
    """
    return min(CAP_S, BASE_S * 2.0 ** min(repetitions, 16)) * (0.5 + scatter(f"{index}:{repetitions}") / 2)


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float:
    """Return the wait that a `Retry-After` names, in seconds or as a date (RFC 9110, section 10.2.3); 0 without one.

    A date is taken relative to the response's own `Date`, so that neither clock need be right.
    """
    text = headers.get("retry-after", "")
    if text.isascii() and text.isdigit():
        return float(text[:9])
    if not text:
        return 0.0
    until = _date(text)
    since = _date(headers.get("date", "")) or now or datetime.now(UTC)
    return max(0.0, (until - since).total_seconds()) if until else 0.0


def _date(text: str) -> datetime | None:
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 (a tenth of the client's start, and rarely needed)

    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


CONNECT_TIMEOUT_S = 10.0
SWEEP_INTERVAL_S = 0.1
# A burst of requests is sent in pieces, so that responses which arrive meanwhile aren't read late.
SENDS_PER_TURN = 16
MAX_AHEAD_BYTES = 67_108_864
# A request that was written ahead and waited this long is written again: AWS takes a signature for five minutes.
STALE_S = 60.0
# A response that a further turn waits for is read after this time though others arrive: one after each poll.
UNREAD_S = 0.005
ENOUGH_SHARE = 0.02
REPORT_EVERY_S = 5.0  # a terminal takes 20 ms to draw, in which nothing is read: no more than 0.4 % of the time


class Loop:
    """Runs one wave; see `client.run_wave`.

    Attributes:
        exchanges: Those that ended, in order of ending.
        started_s: When the first request could leave.
        now_s: When the clock was last read.
        enough_because: Why it sends no more; None while it does.
        stopped: Why it was given up; None while it goes on.
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
        self._resting: list[tuple[float, int, Stream]] = []
        self._written: deque[tuple[float, bytes]] = deque()
        self._ahead_bytes = 0
        self._holding = holding
        self._over: deque[Inbox] = deque()
        self._taken = self._opened = 0
        self._dial = dial
        self._sessions: dict[int, OpenSession] = {}
        self._waiting: list[tuple[float, int, PendingRequest, bytes]] = []
        self._unread: deque[tuple[PendingRequest, Exchange]] = deque()
        self._wanted = wave.requests
        self._durations_s: list[float] = []
        self._ask_again_s = self._report_again_s = 0.0
        self._next_sweep_s = 0.0

    @property
    def cut(self) -> bool:
        """Whether the deadline ended the wave before every request was over."""
        return len(self.exchanges) < self._wanted

    def connect_all(self) -> None:
        """Open every stream's connection before the clock of the first request starts.

        One that fails is left closed: the stream's first request tries again, and its record has the reason.
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
        idle = {id(stream) for stream in (*self._idle, *(stream for _, _, stream in self._resting))}
        return tuple(
            self._cut_short(stream, stream.pending)
            for stream in self._streams
            if stream.pending is not None and id(stream) not in idle
        )

    def _cut_short(self, stream: Stream, pending: PendingRequest) -> Exchange:
        # A request that paused before a repetition ends as it was refused last, not as unanswered.
        stream.fail(Failure("unanswered", "no complete answer at the end of the level"))
        if stream.exchange is not None:
            return stream.exchange
        refused = Failure(pending.retried[-1], f"refused {len(pending.retried)} times until the end of the level")
        return Exchange(
            pending.sent_s, self.now_s, Inbox(), refused, pending.index, retried=pending.retried, turn=pending.turn
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
        """Write one more request than is needed now, at most one a stream; return whether there was one to write.

        Streams that started together often end together: their next requests then leave without being waited for.
        """
        ahead = len(self._written)
        if self._taken + ahead >= self._wanted or ahead >= len(self._streams) or self._ahead_bytes > MAX_AHEAD_BYTES:
            return False
        if (talks := self._wave.conversations) is not None and self._opened + ahead >= len(talks.numbers):
            return False
        request = self._write_request(self._index(self._opened + ahead))
        self._written.append((self._clock(), request))
        self._ahead_bytes += len(request)
        return True

    def _tidy(self) -> bool:
        # Responses that end together would else hold up the first tokens of the next ones: 512 of them by 75 ms. So one
        # inbox ends at a time, the oldest first.
        if not self._over:
            return False
        self._over.popleft().end()
        return True

    def _send_due(self) -> None:
        while self._pausing and self._pausing[0][0] <= self.now_s:
            _, index, stream = heappop(self._pausing)
            if stream.pending is not None:
                self._start(stream, stream.pending, self._written_again(index, stream.pending))
        while self._resting and self._resting[0][0] <= self.now_s:
            self._idle.append(heappop(self._resting)[2])
        for _ in range(SENDS_PER_TURN):
            if self._taken >= self._wanted or not (self._idle or self._grows()):
                return
            if self._waiting and self._waiting[0][0] <= self.now_s:
                _, _, pending, request = heappop(self._waiting)
                if self._wave.recorded is not None and not self._sends(pending):
                    continue
                self._taken += 1
                request = request or self._written_again(pending.index, pending)
                pending.taken_s = pending.sent_s = self._clock()
                self._start(self._idle.popleft(), pending, request)
            elif len(self._idle) <= len(self._unread) or self._next_due_s() > self._clock():
                return
            else:
                self._start_next()

    def _grows(self) -> bool:
        """Give a turn of a session that is due a stream of its own: agents wait for no other's; return whether."""
        is_due = self._wave.recorded is not None and self._waiting and self._waiting[0][0] <= self.now_s
        if not is_due or len(self._streams) >= self._wave.most_streams:
            return False
        self._streams.append(Stream(self._dial, self._watch, self._clock, self._holding))
        self._idle.append(self._streams[-1])
        return True

    def _sends(self, pending: PendingRequest) -> bool:
        """Count a turn of a session as sent; return False where a failure has ended the session."""
        session = self._sessions.get(pending.index - pending.turn + 1)
        if session is None or not session.unsent:
            return False
        session.unsent -= 1
        session.in_flight += 1
        return True

    def _next_turns(self, recorded: RecordedTurns, exchange: Exchange) -> None:
        """Let the turns wait that nothing but this one kept back; a failed one ends its session, and its unsent turns.

        The end of what a turn waits for starts its gap, not the reading of it: no text is needed.
        """
        opening = exchange.index - exchange.turn + 1
        session = self._sessions[opening]
        session.in_flight -= 1
        session.ended_s[exchange.index] = exchange.ended_s
        if exchange_failure(exchange) is not None:
            self._wanted -= session.unsent
            session.unsent = 0
        for number in recorded.after(exchange.index) if session.unsent else ():
            ends_s = [session.ended_s.get(before) for before in recorded.waits(number)]
            known_s = [end_s for end_s in ends_s if end_s is not None]
            if len(known_s) == len(ends_s):
                at_s = max(known_s) + recorded.gap_s(number)
                turn = PendingRequest(index=number, taken_s=at_s, sent_s=at_s, turn=number - opening + 1)
                heappush(self._waiting, (at_s, number, turn, b""))
        if not (session.unsent or session.in_flight):
            del self._sessions[opening]

    def _written_again(self, index: int, pending: PendingRequest) -> bytes:
        conversations = self._wave.conversations
        if conversations is None or not pending.answers:
            return self._write_request(index)
        return conversations.write(index, pending.answers)

    def _read_answer(self) -> bool:
        """Read the oldest response that a further turn waits for; return whether there was one.

        A turn that failed ends its conversation. Responses that end together would else hold up what arrives: their
        streams are kept free instead.
        """
        conversations = self._wave.conversations
        if conversations is None or not self._unread or self._taken >= self._wanted:
            return False
        ended, exchange = self._unread.popleft()
        text = conversations.read(exchange)
        if text is None:
            return True
        index, rest = ended.rest[0], ended.rest[1:]
        at_s = exchange.ended_s + conversations.delay_s(index)
        further = PendingRequest(
            index=index, taken_s=at_s, sent_s=at_s, answers=(*ended.answers, text), rest=rest, turn=ended.turn + 1
        )
        is_soon = at_s - self._clock() < SWEEP_INTERVAL_S
        heappush(self._waiting, (at_s, index, further, self._written_again(index, further) if is_soon else b""))
        return True

    def _next_due_s(self) -> float:
        due_s, starts_s, talks = self._wave.due_s, self._wave.starts_s, self._wave.conversations
        if self._wave.recorded is not None and talks is not None and self._opened >= len(talks.numbers):
            return NEVER_S
        if due_s is not None:
            return self.started_s + due_s[self._opened]
        busy = len(self._streams) - len(self._idle)  # or resting
        if self._wave.recorded is not None:  # the tools of an agent hold its session's place
            busy = len(self._sessions)
            if busy >= self._wave.streams:
                return NEVER_S
        # By number in flight, not by stream: one that is done early must not wait for those that haven't begun.
        return self.started_s + (starts_s[busy] if busy < len(starts_s) else 0.0)

    def _start_next(self) -> None:
        is_open = self._wave.due_s is not None
        stream = self._idle.pop() if is_open else self._idle.popleft()
        now_s, index = self._clock(), self._index(self._opened)
        due_s = self._next_due_s() if is_open else None
        pending = PendingRequest(index=index, taken_s=now_s, due_s=due_s, sent_s=now_s)
        if self._wave.conversations is not None:
            pending.turn, pending.rest = 1, self._wave.conversations.numbers[self._opened][1:]
        if self._wave.recorded is not None:
            self._sessions[index] = OpenSession(unsent=len(pending.rest), in_flight=1)
            pending.rest = range(0)
        self._taken += 1
        self._opened += 1
        request = b""
        if self._written:
            written_s, request = self._written.popleft()
            self._ahead_bytes -= len(request)
            if self.now_s - written_s >= STALE_S:
                request = b""
        self._start(stream, pending, request or self._write_request(index))

    def _start(self, stream: Stream, pending: PendingRequest, request: bytes) -> None:
        stream.start(pending, request, give_up_s=self._clock() + self._wave.timeout_s)
        if stream.exchange is not None:
            self._settle(stream, stream.exchange)

    def _patience_s(self) -> float:
        patience_s = SWEEP_INTERVAL_S
        if self._pausing:
            patience_s = min(patience_s, self._pausing[0][0] - self.now_s)
        if self._resting:
            patience_s = min(patience_s, self._resting[0][0] - self.now_s)
        has_room = self._wave.recorded is not None and len(self._streams) < self._wave.most_streams
        if (self._idle or has_room) and self._taken < self._wanted:
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
        polled_s = self._clock()
        owners = self._watch.owners
        for descriptor, _ in ready:
            stream = owners[descriptor]
            stream.advance()
            if stream.exchange is not None:
                self._settle(stream, stream.exchange)
        self.now_s = self._clock()
        self.lag.note(polled_s, self.now_s, len(ready), waited=waited)
        if self._unread and self.now_s - self._unread[0][1].ended_s > UNREAD_S:
            self._read_answer()
        if self.now_s >= self._next_sweep_s:
            self._sweep()

    def _settle(self, stream: Stream, exchange: Exchange) -> None:
        stream.exchange = None
        if self._repeats(stream, exchange):
            return
        self.exchanges.append(exchange)
        if self._wave.recorded is not None:
            self._next_turns(self._wave.recorded, exchange)
        self._over.append(exchange.inbox)
        while self._holding.is_urgent and self._tidy():
            pass
        rests_s = rest_s(self._wave.rest_share, exchange.index, exchange.ended_s - exchange.sent_s)
        if rests_s > 0:
            heappush(self._resting, (exchange.ended_s + rests_s, exchange.index, stream))
        else:
            self._idle.append(stream)
        if stream.pending is not None and stream.pending.rest and exchange.failure is None:
            self._unread.append((stream.pending, exchange))
        head = exchange.inbox.head
        well = exchange.failure is None and head is not None and head.status == HTTPStatus.OK
        if well and exchange.index >= self._wave.measured_from:
            self._durations_s.append(exchange.ended_s - exchange.sent_s)

    def _repeats(self, stream: Stream, exchange: Exchange) -> bool:
        """Return whether the request is repeated, and let the stream pause until then.

        One that would have to wait longer than an attempt may take isn't repeated: its failure is final.
        """
        wanted = repetition_of(exchange, self._wave.max_retries)
        if wanted is None or stream.pending is None:
            return False
        at_s = exchange.ended_s + wanted.pause_s
        if wanted.pause_s > self._wave.timeout_s or at_s >= self._wave.deadline_s:
            return False
        stream.pending.retried += (wanted.error,)
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
        if self._wave.tell is not None and now_s >= self._report_again_s:
            self._wave.tell(len(self.exchanges))
            self._report_again_s = now_s + REPORT_EVERY_S

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
    """The conversations of a wave, whose turns wait for the responses before them.

    A user who thinks keeps no stream: another conversation takes it, so that as many requests are in flight as there
    are streams.

    Attributes:
        numbers: The numbers of the requests of each conversation, one for each turn, in the order in which they open:
            as many conversations as requests, should every first turn fail.
        delay_s: Returns how long the user thinks before the turn of a number, in seconds.
        write: Returns the bytes of a further turn, by its number and the responses before.
        read: Returns the text of a response; None where the turn failed. It is called while the clock runs.
    """

    numbers: Sequence[range]
    delay_s: Callable[[int], float]
    write: Callable[[int, tuple[str, ...]], bytes]
    read: Callable[[Exchange], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurns:
    """How the turns of a wave's conversations follow each other where a recording has it: sessions of agents.

    A session keeps its place while its tools run: in a closed loop as many sessions go on as there are streams.

    Attributes:
        waits: Returns the numbers of the turns that a turn waits for.
        after: Returns the numbers of the turns that wait for it.
        gap_s: Returns how long after the last of what it waits for a turn leaves, in seconds.
    """

    waits: Callable[[int], Sequence[int]]
    after: Callable[[int], Sequence[int]]
    gap_s: Callable[[int], float]


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
        starts_s: Seconds after the start at which one more request may be in flight, ascending, one for each stream of
            a closed loop; empty lets all be at once.
        rest_share: Longest pause of a stream after a response, as a share of the time that it took; drawn at random.
        stall_timeout_s: A response that has begun and then is silent this long has failed; None waits for the timeout.
        max_retries: How often a request is repeated that was throttled, or whose model wasn't ready.
        measured_from: Requests with a lower index aren't measured: `enough` and `least_requests` don't count them.
        least_requests: Measured requests that must have ended well before `enough` is called.
        enough: Called now and then, with the end-to-end seconds of the measured requests that ended well so far, in
            order of ending; a reason ends the sending. Well is HTTP 200 and complete: the body is read
            later. It gets at most 2 % of the time, and is called between reads, so it should be quick.
        stop: Called ten times a second; a reason gives the whole wave up at once, in flight or not.
        limits: What a server may make the client keep; several processes share it.
        conversations: The conversations that the requests are turns of; None where they are single ones. What is open
            when all requests are sent is left open, except of recorded ones.
        recorded: How their turns follow each other; None where each waits for the response before it.
        most_streams: Streams that recorded turns may have at once.
        tell: Called every five seconds with the number of requests that ended so far, of all known processes.
    """

    streams: int
    requests: int
    timeout_s: float
    deadline_s: float
    first_index: int = 0
    stride: int = 1
    start_s: float | None = None
    due_s: Sequence[float] | None = None
    starts_s: Sequence[float] = ()
    rest_share: float = 0.0
    stall_timeout_s: float | None = None
    max_retries: int = 0
    measured_from: int = 0
    least_requests: int = 0
    enough: Callable[[Sequence[float]], str | None] | None = None
    stop: Callable[[], Stop | None] | None = None
    tell: Callable[[int], None] | None = None
    limits: Limits = LEAST
    conversations: WaveConversations | None = None
    recorded: RecordedTurns | None = None
    most_streams: int = 0

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
        return made_of(
            cls,
            load,
            streams=streams,
            requests=requests,
            timeout_s=load.request_timeout_s,
            deadline_s=deadline_s,
            **others,
        )

    def share(self, worker: int, workers: int) -> Wave:
        """Return one worker's share: every `workers`-th request, and its part of the streams."""
        talks, requests = self.conversations, len(range(worker, self.requests, workers))
        if talks is not None:
            talks = replace(talks, numbers=talks.numbers[worker::workers])
            requests = requests if self.recorded is None else sum(map(len, talks.numbers))
        return replace(
            self,
            conversations=talks,
            most_streams=self.most_streams // workers,
            streams=len(range(worker, self.streams, workers)),
            requests=requests,
            first_index=self.first_index + worker * self.stride,
            stride=self.stride * workers,
            limits=self.limits.share(workers),
            due_s=None if self.due_s is None else tuple(self.due_s[worker::workers]),
            starts_s=tuple(self.starts_s[worker::workers]),
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
        owners: The owner of each watched descriptor.
        poll: Waits at most this many seconds; returns the ready descriptors with their events.
    """

    __slots__ = ("_masks", "_poller", "owners", "poll")

    def __init__(self) -> None:
        self.owners: dict[int, OwnerT] = {}
        if sys.platform == "linux":
            read, write = select.EPOLLIN, select.EPOLLOUT
            self._poller: _Poller = select.epoll()
            self._masks = {_READ: read, _WRITE: write, _READ | _WRITE: read | write}
        else:
            self._poller = _SelectorPoller()
            self._masks = {events: events for events in (_READ, _WRITE, _READ | _WRITE)}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveResult:
    """The outcome of a wave.

    Attributes:
        exchanges: Those that ended, in order of ending.
        unanswered: Those that were in flight when the deadline ended the wave, given up then.
        cut: Whether the deadline ended the wave before every request was over.
        enough_because: Why it sent no more than it did; None when it sent all.
        stopped: Why it was given up; None when it wasn't.
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
        write_request: Returns the bytes of the request with this index, just before it is sent; those of the first
            requests when the connections are open, and again when a request is repeated.
        ready: Called when the wave could start; waits until it may, and returns the time of its start.
    """
    watch: Watch[Stream] = Watch()
    loop = Loop(wave, write_request, dial, clock, watch)
    try:
        loop.connect_all()
        loop.write_first()
        with _no_garbage_collection():
            loop.run(ready() if ready else clock())
        unanswered = loop.unanswered()
    finally:
        loop.close()
        watch.close()
    return made_of(WaveResult, loop, exchanges=tuple(loop.exchanges), unanswered=unanswered, ended_s=loop.now_s)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Keep the collector from walking the growing heap of responses while the clock runs; nothing there is cyclic."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
