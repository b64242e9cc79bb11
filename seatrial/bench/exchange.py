"""One request and the raw bytes that answered it. Filled while the clock runs, decoded after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.bench.wire.http1 import ResponseParser

if TYPE_CHECKING:
    from seatrial.bench.failure import Failure
    from seatrial.bench.wire.http1 import ResponseHead

_BLANK_LINE = b"\r\n\r\n"


class Inbox:
    """The arrivals of one response: while the clock runs it learns no more than whether the response is over.

    A chunked response is over only after its empty chunk, which ends with a blank line; so arrivals are only kept
    until one ends that way, and the framing is parsed then.
    """

    __slots__ = ("_parsed", "_tail", "arrival_times_s", "body", "parser", "received")

    def __init__(self) -> None:
        self.arrival_times_s: list[float] = []
        self.received: list[bytes] = []
        self.body: list[tuple[float, bytes]] = []
        self.parser = ResponseParser()
        self._parsed = 0
        self._tail = b""

    @property
    def head(self) -> ResponseHead | None:
        """Status and headers, once they arrived in full."""
        return self.parser.head

    def add(self, at_s: float, data: bytes) -> bool:
        """Keep what arrived; return whether the response is complete.

        Raises:
            ProtocolError: The bytes aren't an HTTP/1.1 response.
        """
        self.arrival_times_s.append(at_s)
        self.received.append(data)
        self._tail = (self._tail + data)[-len(_BLANK_LINE) :] if len(data) < len(_BLANK_LINE) else data[-4:]
        head = self.parser.head
        if head is None or not head.chunked or self._tail == _BLANK_LINE:
            self.parse()
        return self.parser.complete

    def parse(self) -> None:
        """Parse the framing of all that arrived so far.

        Raises:
            ProtocolError: The bytes aren't an HTTP/1.1 response.
        """
        while self._parsed < len(self.received):
            at_s, data = self.arrival_times_s[self._parsed], self.received[self._parsed]
            self._parsed += 1
            self.body.extend((at_s, part) for part in self.parser.feed(data))

    def close(self) -> None:
        """Tell that the server closed the connection.

        Raises:
            ProtocolError: The response wasn't over.
        """
        self.parse()
        self.parser.close()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that is over.

    Attributes:
        sent_s: Just before its first byte was handed to the socket, or the connection attempt when it never was.
        ended_s: When the response was complete, or the request was given up.
        inbox: What arrived.
        failure: Why the client gave up; None when the response is complete.
    """

    sent_s: float
    ended_s: float
    inbox: Inbox
    failure: Failure | None
