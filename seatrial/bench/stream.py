"""One of the client's parallel streams: a connection that carries one request after the other."""

from __future__ import annotations

import math
import selectors
from typing import TYPE_CHECKING

from seatrial.bench.connection import OPEN
from seatrial.bench.exchange import Errand, Exchange, Inbox
from seatrial.bench.failure import Failure, failure_of_malformed, shorten
from seatrial.bench.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.connection import Connection, Dial
    from seatrial.bench.holding import Holding
    from seatrial.bench.watch import Watch

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
            self.fail(Failure("connection", "no connection was made in time"))
        else:
            self.fail(Failure("timeout", f"no complete answer within {timeout_s:g} s"))

    def fail(self, failure: Failure) -> None:
        """End the request, if there is one, with a failure, and its connection with it."""
        self.hang_up()
        if self._request is not None:
            self._end(failure)

    def hang_up(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            if self._events:
                self._watch.forget(self._connection.fileno())
            self._connection.close()
        self._connection, self._events, self.opening, self._unsent = None, 0, False, None
        self.give_up_s = NEVER_S

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
        self._inbox.end()
        self.exchange = Exchange(
            errand.sent_s,
            self._clock() if at_s is None else at_s,
            self._inbox,
            failure,
            errand.index,
            errand.due_s,
            errand.taken_s,
            errand.retried,
        )
        self._request = None
        self.give_up_s = NEVER_S

    def _wait_for(self, events: int) -> None:
        if self._connection is not None and events != self._events:
            self._watch.set(self._connection.fileno(), events, self)
            self._events = events
