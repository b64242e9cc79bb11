"""From raw exchange to request record: HTTP body, event stream, token lines; every malformation becomes a record."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from seatrial.bench.failure import Failure, failure_of_response, failure_of_type, shorten
from seatrial.bench.record import RequestRecord, TokenSource
from seatrial.bench.wire.event_stream import MEDIA_TYPE, FrameDecoder
from seatrial.bench.wire.protocol_error import ProtocolError
from seatrial.bench.wire.tokens import Completion, TokenReader, read_whole
from seatrial.payload.reader import settled_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.exchange import Exchange, Inbox
    from seatrial.bench.wire.event_stream import Frame

ENGINE_HEADER = "x-seatrial-engine"
_NOTHING = Completion((), finished=False, finished_at_s=None, reported_tokens=None, input_tokens=None,
                      finish_reason=None, failure=None)  # fmt: skip


def record_of(exchange: Exchange, *, stream: bool) -> RequestRecord:
    """Decode an exchange. What the endpoint said about an error outranks how the connection ended.

    Args:
        exchange: A request that is over.
        stream: Whether the answer was asked for as a stream of tokens.
    """
    said, found = _read(exchange.inbox, stream=stream)
    failure = found if found and found.error != "protocol" else exchange.failure or found
    head = exchange.inbox.head
    count, source = (None, None) if failure else output_tokens(said)
    times_s = tuple(event.at_s for event in said.events)
    return RequestRecord(
        sent_s=exchange.sent_s,
        first_token_s=times_s[0] if times_s else None,
        token_times_s=times_s,
        last_token_s=None if failure else times_s[-1] if times_s else said.finished_at_s,
        ended_s=exchange.ended_s,
        input_tokens=said.input_tokens,
        output_tokens=count,
        output_tokens_from=source,
        error=failure.error if failure else None,
        status=head.status if head else None,
        detail=_detail(failure, len(times_s)),
        engine=head.headers.get(ENGINE_HEADER, "") if head else "",
    )


def output_tokens(said: Completion) -> tuple[int | None, TokenSource | None]:
    """Choose the number of generated tokens, and tell whose count it is.

    `settled_count` chooses; an answer that wasn't streamed has only the endpoint's own count.
    """
    events = len(said.events)
    count = settled_count(events, said.reported_tokens)
    if count is None:
        return None, None
    return count, "events" if count == events else "reported"


def _detail(failure: Failure | None, tokens: int) -> str:
    if failure is None:
        return ""
    return shorten(f"{failure.detail} (after {tokens} token events)") if tokens else failure.detail


def _read(inbox: Inbox, *, stream: bool) -> tuple[Completion, Failure | None]:
    """Read what arrived, however little; a protocol failure is returned, not raised."""
    reader = TokenReader()
    try:
        inbox.parse()
        head = inbox.head
        if head is None:
            return _NOTHING, Failure("protocol", "no response arrived")
        if head.status != HTTPStatus.OK:
            body = b"".join(part for _, part in inbox.body)
            return _NOTHING, failure_of_response(head.status, head.headers, body)
        if not stream:
            return _judged(read_whole(inbox.arrival_times_s[-1], b"".join(part for _, part in inbox.body)))
        refused = _read_stream(inbox, reader, framed=MEDIA_TYPE in head.headers.get("content-type", ""))
    except ProtocolError as malformed:
        return reader.completion(), Failure("protocol", shorten(str(malformed)))
    said, failure = _judged(reader.completion())
    return said, refused or failure


def _read_stream(inbox: Inbox, reader: TokenReader, *, framed: bool) -> Failure | None:
    for at_s, part in _unframed(inbox) if framed else inbox.body:
        if isinstance(part, Failure):
            return part
        reader.feed(at_s, part)
    reader.finish(inbox.arrival_times_s[-1])
    return None


def _unframed(inbox: Inbox) -> Iterator[tuple[float, bytes | Failure]]:
    decoder = FrameDecoder()
    for at_s, part in inbox.body:
        for frame in decoder.feed(part):
            yield at_s, _failure_of_frame(frame) or frame.payload
    decoder.finish()


def _failure_of_frame(frame: Frame) -> Failure | None:
    """Read the protocol's own headers: an event, a modeled exception, or an unmodeled error."""
    message = frame.payload.decode(errors="replace")
    match frame.headers.get(":message-type"):
        case "exception":
            return failure_of_type(frame.headers.get(":exception-type", "exception"), message)
        case "error":
            return failure_of_type(
                frame.headers.get(":error-code", "error"), frame.headers.get(":error-message", message)
            )
    return None


def _judged(said: Completion) -> tuple[Completion, Failure | None]:
    if said.failure is None and not said.finished:
        return said, Failure("protocol", "the answer ended before its closing line")
    return said, said.failure
