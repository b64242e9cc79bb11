"""Whether boto3 reads the same answer: the very bytes that this client received, through botocore's own parser."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial.bench.evidence import CrossCheck
from seatrial.bench.wire.event_stream import MEDIA_TYPE, FrameDecoder
from seatrial.bench.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from botocore.model import Shape
    from botocore.parsers import ResponseParser

    from seatrial.bench.exchange import Exchange
    from seatrial.bench.request import Target

OPERATION = "InvokeEndpointWithResponseStream"
_Event: TypeAlias = tuple[Literal["payload", "error", "refused"], bytes]


def cross_check(target: Target, exchange: Exchange) -> CrossCheck:
    """Compare both readings of one streamed answer, event by event.

    Args:
        target: What was asked; botocore has no parser for the answers of other servers than SageMaker's.
        exchange: A request that is over.
    """
    head = exchange.inbox.head
    if target.kind != "sagemaker":
        return _not_made("boto3 doesn't speak to this kind of server")
    if head is None or MEDIA_TYPE not in head.headers.get("content-type", ""):
        return _not_made("the answer is not an event stream")
    if exchange.failure is not None and exchange.failure.error == "answer_too_large":
        return _not_made(f"the answer was cut: {exchange.failure.detail}")
    return compare([part for _, part in exchange.inbox.body])


def compare(parts: Sequence[bytes]) -> CrossCheck:
    """Compare both readings of an event stream that arrived in these parts."""
    try:
        theirs = list(_theirs(parts))
    except ImportError as missing:
        return _not_made(f"botocore is not installed: {missing}")
    return verdict_of(list(_ours(parts)), theirs)


def verdict_of(ours: Sequence[_Event], theirs: Sequence[_Event]) -> CrossCheck:
    """Say whether two readings are the same, and where they differ first.

    Words about bytes that make no sense are each parser's own: there it counts only that both refuse them.
    """
    for place, (our, their) in enumerate(zip(ours, theirs, strict=False), start=1):
        if our[0] != their[0] or (our[0] != "refused" and our[1] != their[1]):
            because = f"event {place} differs: {_told(our)} here, {_told(their)} in boto3's parser"
            return CrossCheck(agreed=False, because=because)
    if len(ours) != len(theirs):
        because = f"{len(ours)} events here, {len(theirs)} in boto3's parser"
        return CrossCheck(agreed=False, because=because)
    payload_bytes = sum(len(data) for kind, data in ours if kind == "payload")
    because = f"{len(ours)} events with {payload_bytes:,} bytes of payload, the same in boto3's parser"
    return CrossCheck(agreed=True, because=because)


def _ours(parts: Sequence[bytes]) -> Iterator[_Event]:
    decoder = FrameDecoder()
    try:
        for part in parts:
            for frame in decoder.feed(part):
                if frame.headers.get(":message-type") == "event":
                    yield "payload", frame.payload
                    continue
                yield "error", _error_name(frame.headers.get(":exception-type") or frame.headers.get(":error-code"))
                return
        decoder.finish()
    except ProtocolError as malformed:
        yield "refused", str(malformed).encode()


def _theirs(parts: Sequence[bytes]) -> Iterator[_Event]:
    from botocore import exceptions  # noqa: PLC0415 (costs half a second; once a trial)
    from botocore.eventstream import ParserError  # noqa: PLC0415 (likewise)

    parser, shape = _parser_of_boto3()
    body = _Pieces(parts)
    answer = {"status_code": 200, "headers": {}, "body": body, "context": {"operation_name": OPERATION}}
    parsed = parser.parse(answer, shape)
    try:
        for event in parsed["Body"]:
            yield "payload", event["PayloadPart"].get("Bytes", b"")
    except exceptions.EventStreamError as told:
        yield "error", _error_name(str(told.response["Error"].get("Code", "")))
        return
    except ParserError as malformed:
        yield "refused", str(malformed).encode()
        return
    if body.rest:
        yield "refused", b"the stream ended inside a frame"


@cache
def _parser_of_boto3() -> tuple[ResponseParser, Shape]:
    from botocore import parsers, session  # noqa: PLC0415 (likewise)

    model = session.Session().get_service_model("sagemaker-runtime")
    parser = parsers.create_parser(str(model.metadata["protocol"]))
    return parser, model.shape_for(f"{OPERATION}Output")


class _Pieces:
    """What botocore reads a body from; remembers how much of the last frame is missing."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self._parts = parts
        self.rest = 0

    def stream(self) -> Iterator[bytes]:
        unread = b""
        for part in self._parts:
            unread += part
            while len(unread) >= 4 and len(unread) >= (total := int.from_bytes(unread[:4], "big")) > 0:  # noqa: PLR2004 (the length field)
                unread = unread[total:]
            self.rest = len(unread)
            yield part


def _error_name(name: str | None) -> bytes:
    return (name or "").encode()


def _told(event: _Event) -> str:
    kind, data = event
    return f"{len(data)} bytes of payload" if kind == "payload" else f"{kind} ({data[:60].decode(errors='replace')})"


def _not_made(because: str) -> CrossCheck:
    return CrossCheck(agreed=None, because=f"not made: {because}")
