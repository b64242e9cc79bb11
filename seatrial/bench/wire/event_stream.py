"""The AWS event stream (`application/vnd.amazon.eventstream`): frames with two checksums, decoded incrementally.

A frame is: total length (4 bytes, big-endian), length of the headers (4), CRC-32 of these eight bytes (4), headers,
payload, CRC-32 of everything before (4). Facts: AWS Smithy specification, "Amazon Event Stream".
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from seatrial.bench.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA_TYPE = "application/vnd.amazon.eventstream"
PRELUDE_BYTES = 12
CRC_BYTES = 4
MAX_HEADERS_BYTES = 131_072
MAX_FRAME_BYTES = 25_165_824 + MAX_HEADERS_BYTES + PRELUDE_BYTES + CRC_BYTES
_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")
_LENGTH = struct.Struct(">H")
_STRING_TYPE = 7
_FIXED_SIZE_BYTES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_SIZED_TYPES = (6, _STRING_TYPE)


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of an event stream; `headers` holds the string headers only (the protocol's own are strings)."""

    headers: Mapping[str, str]
    payload: bytes


class FrameDecoder:
    """Takes an event stream in pieces of any size and returns the frames that each piece completed.

    The frames before a malformed one are returned, however the stream was cut: the malformation is raised by the next
    call.
    """

    __slots__ = ("_buffer", "_malformed", "_wanted_bytes")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._wanted_bytes = PRELUDE_BYTES
        self._malformed: ProtocolError | None = None

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes.

        Raises:
            ProtocolError: A length is impossible, a checksum is wrong, or a header is malformed.
        """
        if self._malformed is not None:
            raise self._malformed
        buffer = data
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < self._wanted_bytes:
                return []
            buffer = bytes(self._buffer)
        frames: list[Frame] = []
        start, total = 0, PRELUDE_BYTES
        try:
            while len(buffer) - start >= PRELUDE_BYTES:
                total, headers_bytes = _prelude(buffer, start)
                if len(buffer) - start < total:
                    break
                frames.append(_frame(buffer, start, total, headers_bytes))
                start, total = start + total, PRELUDE_BYTES
        except ProtocolError as malformed:
            if not frames:
                raise
            self._malformed = malformed
        self._buffer, self._wanted_bytes = bytearray(buffer[start:]), total
        return frames

    def finish(self) -> None:
        """Tell that the stream is over.

        Raises:
            ProtocolError: It ended inside a frame, or at a malformed one.
        """
        if self._malformed is not None:
            raise self._malformed
        if self._buffer:
            raise ProtocolError(f"the event stream ended inside a frame ({len(self._buffer)} bytes of it arrived)")


def encode_frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Write one frame with string headers, both checksums right; for servers that speak the protocol."""
    block = b"".join(_string_header(name, value) for name, value in headers.items())
    lengths = struct.pack(">II", PRELUDE_BYTES + len(block) + len(payload) + CRC_BYTES, len(block))
    frame = lengths + _CRC.pack(zlib.crc32(lengths)) + block + payload
    return frame + _CRC.pack(zlib.crc32(frame))


def _string_header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return bytes([len(key)]) + key + bytes([_STRING_TYPE]) + _LENGTH.pack(len(text)) + text


def _prelude(buffer: bytes, start: int) -> tuple[int, int]:
    total, headers_bytes, crc = _PRELUDE.unpack_from(buffer, start)
    if zlib.crc32(buffer[start : start + 8]) != crc:
        raise ProtocolError("an event frame's prelude fails its checksum")
    if total > MAX_FRAME_BYTES or headers_bytes > min(MAX_HEADERS_BYTES, total - PRELUDE_BYTES - CRC_BYTES):
        raise ProtocolError(f"an event frame claims {total} bytes with {headers_bytes} bytes of headers")
    return total, headers_bytes


def _frame(buffer: bytes, start: int, total: int, headers_bytes: int) -> Frame:
    end = start + total - CRC_BYTES
    if zlib.crc32(buffer[start:end]) != _CRC.unpack_from(buffer, end)[0]:
        raise ProtocolError("an event frame fails its checksum")
    payload_start = start + PRELUDE_BYTES + headers_bytes
    return Frame(_headers(buffer[start + PRELUDE_BYTES : payload_start]), buffer[payload_start:end])


@lru_cache(maxsize=64)
def _headers(block: bytes) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    offset = 0
    try:
        while offset < len(block):
            name, value, offset = _header(block, offset)
            if value is not None:
                headers[name] = value
    except (IndexError, UnicodeDecodeError, struct.error, KeyError) as malformed:
        raise ProtocolError(f"an event frame has malformed headers: {block[:40]!r}") from malformed
    if offset != len(block):
        raise ProtocolError(f"an event frame's headers run past their end: {block[:40]!r}")
    return MappingProxyType(headers)


def _header(block: bytes, offset: int) -> tuple[str, str | None, int]:
    name_end = offset + 1 + block[offset]
    name, kind = block[offset + 1 : name_end].decode(), block[name_end]
    if kind not in _SIZED_TYPES:
        return name, None, name_end + 1 + _FIXED_SIZE_BYTES[kind]
    value_start = name_end + 3
    end = value_start + _LENGTH.unpack_from(block, name_end + 1)[0]
    value = block[value_start:end].decode() if kind == _STRING_TYPE else None
    return name, value, end
