"""The AWS event stream (`application/vnd.amazon.eventstream`): frames with two checksums; botocore reads their headers.

A frame is: total length (4 bytes, big-endian), length of the headers (4), CRC-32 of these eight bytes (4), headers,
payload, CRC-32 of everything before (4). Facts: AWS Smithy specification, "Amazon Event Stream".
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from seatrial_load.decode.http1 import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


MEDIA_TYPE = "application/vnd.amazon.eventstream"
_PRELUDE_BYTES = 12
_CRC_BYTES = 4
_LENGTHS = struct.Struct(">II")
_CRC = struct.Struct(">I")
_CRC_AT = 8
_STRING_TYPE = 7


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of an event stream; `headers` holds the string headers only (the protocol's own are strings)."""

    headers: Mapping[str, str]
    payload: bytes


class FrameDecoder:
    """Takes an event stream in pieces of any size and returns the frames that each piece completed.

    The frames before a malformed one are returned, however the stream was cut: the malformation is raised by the next
    call.

    botocore gets the first bytes of a frame as soon as they are here, so that an impossible length is refused at once,
    and the rest when it is whole: botocore copies all it holds with each piece that it gets. A whole frame with
    headers that came before needs no parser: the tokens of an answer come in such frames, and botocore takes 15 us for
    each.
    """

    __slots__ = ("_given_bytes", "_headers", "_held", "_malformed", "_parser")

    def __init__(self) -> None:
        from botocore.eventstream import EventStreamBuffer  # noqa: PLC0415 (costs 40 ms; not every answer is a stream)

        self._parser = EventStreamBuffer()
        self._held = bytearray()
        self._headers: dict[bytes, Mapping[str, str]] = {}
        self._given_bytes = 0
        self._malformed: ProtocolError | None = None

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes.

        Raises:
            ProtocolError: A length is impossible, a checksum is wrong, or a header is malformed.
        """
        if self._malformed is not None:
            raise self._malformed
        self._held += data
        frames: list[Frame] = []
        try:
            frames.extend(self._frames())
        except ProtocolError as malformed:
            if not frames:
                raise
            self._malformed = malformed
        return frames

    def finish(self) -> None:
        """End the stream.

        Raises:
            ProtocolError: It ended inside a frame, or at a malformed one.
        """
        if self._malformed is not None:
            raise self._malformed
        if self._held:
            raise ProtocolError(f"the event stream ended inside a frame ({len(self._held)} bytes of it arrived)")

    def _frames(self) -> Iterator[Frame]:
        from botocore.eventstream import ChecksumMismatch, ParserError  # noqa: PLC0415 (as above)

        try:
            while frame := self._next():
                yield frame
        except ChecksumMismatch as wrong:
            raise ProtocolError("an event frame fails its checksum") from wrong
        except (ParserError, struct.error, LookupError, UnicodeDecodeError) as malformed:
            raise ProtocolError(f"an event frame is malformed: {malformed}") from malformed

    def _next(self) -> Frame | None:
        held = self._held
        if len(held) < _PRELUDE_BYTES:
            return None
        length, headers_length = _LENGTHS.unpack_from(held)
        is_whole = len(held) >= length
        if is_whole and not self._given_bytes and (frame := self._like_one_before(length, headers_length)) is not None:
            del held[:length]
            return frame
        if is_whole or not self._given_bytes:
            self._parser.add_data(bytes(held[self._given_bytes : length if is_whole else _PRELUDE_BYTES]))
            self._given_bytes = _PRELUDE_BYTES
        message = next(self._parser, None)
        if length < _PRELUDE_BYTES + headers_length + _CRC_BYTES:
            raise ProtocolError(f"an event frame claims {length} bytes with {headers_length} bytes of headers")
        if message is None:
            return None
        headers = cast("Mapping[str, object]", message.headers)  # the stubs take it for a number
        strings = {name: value for name, value in headers.items() if isinstance(value, str)}
        self._headers[bytes(held[_PRELUDE_BYTES : _PRELUDE_BYTES + headers_length])] = strings
        del held[:length]
        self._given_bytes = 0
        return Frame(strings, message.payload)

    def _like_one_before(self, length: int, headers_length: int) -> Frame | None:
        """Return the whole frame at the beginning, if its headers are known and both its checksums are right."""
        payload_at = _PRELUDE_BYTES + headers_length
        headers = self._headers.get(bytes(self._held[_PRELUDE_BYTES:payload_at]))
        if headers is None or length < payload_at + _CRC_BYTES:
            return None
        frame = bytes(self._held[:length])
        prelude_crc, crc = _CRC.unpack_from(frame, _CRC_AT)[0], _CRC.unpack_from(frame, length - _CRC_BYTES)[0]
        if zlib.crc32(frame[:_CRC_AT]) != prelude_crc or zlib.crc32(frame[:-_CRC_BYTES]) != crc:
            return None
        return Frame(headers, frame[payload_at:-_CRC_BYTES])


def encode_frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Write one frame with string headers, both checksums right; for servers that speak the protocol."""
    block = b""
    for name, value in headers.items():
        key, text = name.encode(), value.encode()
        block += bytes([len(key)]) + key + bytes([_STRING_TYPE]) + struct.pack(">H", len(text)) + text
    lengths = _LENGTHS.pack(_PRELUDE_BYTES + len(block) + len(payload) + _CRC_BYTES, len(block))
    frame = lengths + _CRC.pack(zlib.crc32(lengths)) + block + payload
    return frame + _CRC.pack(zlib.crc32(frame))
