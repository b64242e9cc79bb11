"""One request and the raw bytes that answered it. Filled while the clock runs, decoded after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.bench.wire.http1 import ResponseParser

if TYPE_CHECKING:
    from seatrial.bench.failure import ErrorClass, Failure
    from seatrial.bench.wire.http1 import ResponseHead


class Inbox:
    """The arrivals of one response: while the clock runs it learns no more than whether the response is over.

    The framing of HTTP is parsed as it comes, some 4 µs for each arrival. Put off until an answer ends, it would cost
    no less, and all at once: answers that end together would hold up the first tokens of the next ones. What the body
    says is read after the wave.
    """

    __slots__ = ("arrival_times_s", "body", "parser", "received_bytes")

    def __init__(self) -> None:
        self.arrival_times_s: list[float] = []
        self.body: list[tuple[float, bytes]] = []
        self.parser = ResponseParser()
        self.received_bytes = 0

    @property
    def head(self) -> ResponseHead | None:
        """Status and headers, once they arrived in full; `Date` among them."""
        return self.parser.head

    @property
    def answering(self) -> bool:
        """Whether a part of the answer's body has arrived: silence before that is a queue, after it a stall."""
        return bool(self.body)

    def add(self, at_s: float, data: bytes) -> bool:
        """Keep what arrived; return whether the response is complete.

        Raises:
            ProtocolError: The bytes aren't an HTTP/1.1 response.
        """
        self.arrival_times_s.append(at_s)
        self.received_bytes += len(data)
        for part in self.parser.feed(data):
            self.body.append((at_s, part))
        return self.parser.complete

    def close(self) -> None:
        """Tell that the server closed the connection.

        Raises:
            ProtocolError: The response wasn't over.
        """
        self.parser.close()


@dataclass(slots=True, kw_only=True)
class Errand:
    """A request on its way, through all its attempts.

    Attributes:
        index: Its number, as the writer of requests knows it.
        taken_s: When a stream took it up.
        due_s: When an open loop has to send it; None in a closed loop.
        sent_s: Just before the first byte of the first attempt; when it was taken up, until then.
        retried: The failures that were repeated, in order.
    """

    index: int
    taken_s: float
    due_s: float | None = None
    sent_s: float
    retried: tuple[ErrorClass, ...] = ()


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
    """

    sent_s: float
    ended_s: float
    inbox: Inbox
    failure: Failure | None
    index: int = 0
    due_s: float | None = None
    taken_s: float | None = None
    retried: tuple[ErrorClass, ...] = ()
