"""An incremental HTTP/1.1 response parser: status, headers, and a body by length, in chunks, or until the close.

Facts: RFC 9112 (body length rules in section 6.3, chunked coding in section 7.1).
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class ProtocolError(ValueError):
    """The bytes are not what their format promises."""


class TooLargeError(ProtocolError):
    """The answer, or a line of it, is larger than its limit, which the message names."""


MAX_HEAD_BYTES = 65_536
MAX_HEADERS = 256
MAX_INTERIM = 16
MAX_LINE_BYTES = 1_024
_HEX_DIGITS = frozenset(string.hexdigits.encode())
_STATUS_DIGITS = 3
_MAX_LENGTH_DIGITS = 15


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The status and the headers of a response, header names in lower case."""

    status: int
    headers: Mapping[str, str]

    @property
    def keeps_alive(self) -> bool:
        """Whether the server lets the next request use the same connection."""
        return "close" not in self.headers.get("connection", "").lower()

    @property
    def chunked(self) -> bool:
        """Whether the body comes in chunks, so that only its terminator ends it."""
        return "chunked" in self.headers.get("transfer-encoding", "").lower()


class ResponseParser:
    """Takes one response in pieces of any size; `feed` returns the parts of the body that a piece completed.

    The reading state is the method that reads next; a method returns False when it needs more bytes.

    Attributes:
        head: Status and headers, once they arrived in full.
    """

    __slots__ = ("_buffer", "_interim", "_offset", "_read_next", "_remaining", "complete", "head")

    def __init__(self) -> None:
        self.head: ResponseHead | None = None
        self.complete = False
        self._buffer = b""
        self._offset = 0
        self._interim = 0
        self._remaining = 0
        self._read_next: Callable[[list[bytes]], bool] = self._read_head

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes and return the body parts in them.

        Raises:
            ProtocolError: The bytes aren't an HTTP/1.1 response, or go on after its end.
        """
        self._buffer = self._buffer[self._offset :] + data
        self._offset = 0
        body: list[bytes] = []
        while not self.complete and self._read_next(body):
            pass
        if self.complete and self._unread():
            raise ProtocolError(f"{self._unread()} bytes follow the end of the response")
        return body

    def release(self) -> None:
        """Drop the bytes that were not read: nothing more is fed."""
        self._buffer, self._offset = b"", 0

    def close(self) -> None:
        """End the response where the server closed the connection, which ends a body without length.

        Raises:
            ProtocolError: The response wasn't over.
        """
        if self._read_next == self._read_until_close:
            self._finish()
        if not self.complete:
            raise ProtocolError("the connection was closed in the middle of the response")

    def _finish(self) -> bool:
        self.complete = True
        self._read_next = _read_nothing
        return False

    def _unread(self) -> int:
        return len(self._buffer) - self._offset

    def _read_head(self, _body: list[bytes]) -> bool:
        start = self._buffer[self._offset : self._offset + len(b"HTTP/1.")]
        if not b"HTTP/1.".startswith(start):
            raise ProtocolError(f"not an HTTP/1 response: {self._buffer[:40]!r}")
        block = self._take_through(b"\r\n\r\n", MAX_HEAD_BYTES)
        if block is None:
            return False
        head = parse_head(block)
        if head.status < HTTPStatus.OK:
            self._interim += 1
            if self._interim > MAX_INTERIM:
                raise ProtocolError(f"more than {MAX_INTERIM} interim responses, and no final one")
            return True
        self.head = head
        length = head.headers.get("content-length") or "0"
        if head.chunked:
            self._read_next = self._read_chunk_size
        elif "content-length" not in head.headers and head.status not in (
            HTTPStatus.NO_CONTENT,
            HTTPStatus.NOT_MODIFIED,
        ):
            self._read_next = self._read_until_close
        elif not (length.isascii() and length.isdigit() and len(length) <= _MAX_LENGTH_DIGITS):
            raise ProtocolError(f"not a content length: {length[:40]!r}")
        else:
            self._remaining = int(length)
            self._read_next = self._read_by_length
        return True

    def _read_by_length(self, body: list[bytes]) -> bool:
        self._take_data(body)
        return self._remaining == 0 and self._finish()

    def _read_until_close(self, body: list[bytes]) -> bool:
        self._remaining = self._unread()
        self._take_data(body)
        return False

    def _read_chunk_size(self, _body: list[bytes]) -> bool:
        line = self._take_through(b"\r\n", MAX_LINE_BYTES)
        if line is None:
            return False
        digits = line.partition(b";")[0].strip()
        if not digits or not _HEX_DIGITS.issuperset(digits):
            raise ProtocolError(f"not a chunk size: {line[:40]!r}")
        self._remaining = int(digits, 16)
        self._read_next = self._read_chunk if self._remaining else self._read_trailer
        return True

    def _read_chunk(self, body: list[bytes]) -> bool:
        self._take_data(body)
        if self._remaining or self._unread() < len(b"\r\n"):
            return False
        end = self._buffer[self._offset : self._offset + 2]
        if end != b"\r\n":
            raise ProtocolError(f"a chunk ends with {end!r}, not with CRLF")
        self._offset += 2
        self._read_next = self._read_chunk_size
        return True

    def _read_trailer(self, _body: list[bytes]) -> bool:
        line = self._take_through(b"\r\n", MAX_LINE_BYTES)
        return self._finish() if line == b"" else line is not None

    def _take_data(self, body: list[bytes]) -> None:
        part = self._buffer[self._offset : self._offset + self._remaining]
        if part:
            body.append(part)
            self._offset += len(part)
            self._remaining -= len(part)

    def _take_through(self, end: bytes, limit_bytes: int) -> bytes | None:
        at = self._buffer.find(end, self._offset)
        if (self._unread() if at < 0 else at - self._offset) > limit_bytes:
            raise ProtocolError(f"no {end!r} within {limit_bytes} bytes: {self._buffer[self._offset :][:40]!r}")
        if at < 0:
            return None
        taken = self._buffer[self._offset : at]
        self._offset = at + len(end)
        return taken


def parse_head(block: bytes) -> ResponseHead:
    """Parse a status line and headers, without the empty line that ends them.

    Raises:
        ProtocolError: The status line or a header is malformed.
    """
    status_line, *lines = block.decode("latin-1").split("\r\n")
    status = status_line.partition(" ")[2].partition(" ")[0]
    if not (status.isascii() and status.isdigit() and len(status) == _STATUS_DIGITS):
        raise ProtocolError(f"not a status line: {status_line[:80]!r}")
    if len(lines) > MAX_HEADERS:
        raise ProtocolError(f"{len(lines)} headers are more than {MAX_HEADERS}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise ProtocolError(f"not a header: {line[:80]!r}")
        key, value = name.strip().lower(), value.strip()
        if key == "content-length" and headers.get(key, value) != value:
            raise ProtocolError(f"two content lengths: {headers[key][:40]!r} and {value[:40]!r}")
        headers[key] = value
    return ResponseHead(int(status), headers)


def _read_nothing(_body: list[bytes]) -> bool:
    return False
