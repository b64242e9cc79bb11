"""A request that is over, and its response as it came: bytes with their times, kept until the wave is over."""

from __future__ import annotations

import zlib
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from seatrial_base.units import MIB
from seatrial_load.decode.http1 import ResponseParser, TooLargeError
from seatrial_load.measure.lengths import lengths_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_load.decode.failure import ErrorClass, Failure
    from seatrial_load.decode.http1 import ResponseHead
    from seatrial_load.documents.request import Workload


LEAST_ANSWER_BYTES: Final = 8 * MIB
# An engine spends 60 to 500 bytes on a token, with log-probabilities some 1,000.
ANSWER_BYTES_PER_TOKEN: Final = 2_048
LEAST_WAVE_BYTES: Final = 128 * MIB
# A token of an honest answer is kept in 30 to 130 bytes, folded (`Inbox`).
WAVE_BYTES_PER_TOKEN: Final = 192
LEAST_TOKENS_PER_REQUEST: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a server may make the client keep; more is cut, and the request has failed with `answer_too_large`.

    Attributes:
        answer_bytes: Bytes of one response, its head and framing included.
        wave_bytes: Memory of all responses of a wave together.
    """

    answer_bytes: int = LEAST_ANSWER_BYTES
    wave_bytes: int = LEAST_WAVE_BYTES

    def share(self, workers: int) -> Limits:
        """Return the limits of one of several processes."""
        return Limits(answer_bytes=self.answer_bytes, wave_bytes=self.wave_bytes // workers)


# Those of a wave of which nothing is known.
LEAST: Final = Limits()


def limits_of(workload: Workload, requests: int) -> Limits:
    """Return the limits for a number of requests: they grow with the requested tokens, not with those that come.

    A response may have 2 KiB for each output token, and at least 8 MiB. All responses together may take 192 bytes of
    memory for each output token (at least 512 tokens a request), and 128 MiB besides.
    """
    tokens = requests * max(workload.output_tokens, LEAST_TOKENS_PER_REQUEST)
    return Limits(
        answer_bytes=max(LEAST_ANSWER_BYTES, lengths_of(workload).output.longest * ANSWER_BYTES_PER_TOKEN),
        wave_bytes=LEAST_WAVE_BYTES + tokens * WAVE_BYTES_PER_TOKEN,
    )


class Holding:
    """The memory that the responses of a wave hold now, against its limits.

    Attributes:
        held_bytes: Memory of all responses, as each inbox counts it.
    """

    __slots__ = ("held_bytes", "limits")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held_bytes = 0

    @property
    def is_tight(self) -> bool:
        """Whether a quarter of the memory is taken, so that it pays to fold a response that is over."""
        return self.held_bytes > self.limits.wave_bytes // 4

    @property
    def is_urgent(self) -> bool:
        """Whether half of the memory is taken, so that folding can't wait until nothing arrives."""
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

    The framing of HTTP is parsed as it comes, some 4 µs for each arrival. Put off until a response ends, it would cost
    no less, and all at once: responses that end together would hold up the first tokens of the next ones. The body is
    read after the wave.

    A server may send without end, so what is kept has a limit: each 64 KiB of a body are folded (compressed at some
    µs a KiB, their times kept), and past the limits of the wave the response is cut.

    Attributes:
        last_arrival_s: When the last bytes came; 0 before any did.
        received_bytes: All bytes that came, the head and the framing included.
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
        """Whether a part of the body has arrived: silence before that is a queue, after it a stall."""
        return bool(self._arrivals or self._folded)

    @property
    def body(self) -> Iterator[tuple[float, bytes]]:
        """The body as it came, with the times of arrival; empty when the response was cut."""
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
            TooLargeError: It has more bytes than a response may have, or all responses together take too much memory.
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
        """End the response where the server closed the connection.

        Raises:
            ProtocolError: The response wasn't over.
        """
        self.parser.close()

    def end(self) -> None:
        """Release what only parsing needs: nothing more is added.

        It takes 20 us, or 150 us where the body is folded: not while other responses arrive (`Loop`).
        """
        self.parser.release()
        headers = self.parser.head.headers if self.parser.head else {}
        self._hold(sum(len(name) + len(value) + _HEADER_BYTES for name, value in headers.items()))
        if self._holding.is_tight:
            self._fold()
        else:
            self._hold(sum([_record_bytes(part) for _, part in self._arrivals]))

    def drop(self) -> None:
        """Release the body unread."""
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
    """Return the most memory that the record of a response takes for the tokens in these bytes."""
    return _LINE_BYTES * min(data.count(b"\n"), len(data) // _LEAST_TOKEN_BYTES)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that is over.

    Attributes:
        sent_s: Just before its first byte was handed to the socket, or the connection attempt when it never was.
        ended_s: When the response was complete, or the request was given up.
        inbox: The response to the last attempt.
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
