"""HTTP/1.1 between our own processes on 127.0.0.1: one request per connection, bodies by length or in chunks.

Why not a library: a token is a chunk, and a chunk must cost microseconds on a laptop that also runs the engine.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

HOST: Final = "127.0.0.1"
NAMES: Final = (HOST, "localhost")
"""What a request to a port of ours may call its host; a page that rebinds a name of its own calls another."""
TOKEN_VARIABLE: Final = "SEATRIAL_ENGINE_TOKEN"  # noqa: S105 (a name)
TOKEN_HEADER: Final = "x-seatrial-engine-token"  # noqa: S105 (a name)
"""What an engine demands of an invocation when its environment has the token."""
LIMIT_BYTES: Final = 2**20
"""The longest head or line that is read; a longer one is an error of the peer."""


class LoopbackError(ConnectionError):
    """The peer broke the connection, or didn't speak HTTP."""


@dataclass(frozen=True, slots=True)
class LoopbackRequest:
    """A request as it was received; the names of its headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """A response whose head has arrived and whose body is still to be read."""

    status: int
    headers: Mapping[str, str]
    reader: asyncio.StreamReader

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives.

        Raises:
            LoopbackError: The peer closed the connection before the end of the body.
        """
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            while True:
                size_line = await self.reader.readline()
                if not size_line.endswith(b"\r\n"):
                    raise LoopbackError("the connection was closed before the last chunk")
                size = int(size_line, 16)
                data = await _exactly(self.reader, size + 2)
                if size == 0:
                    return
                yield data[:-2]
        elif length := int(self.headers.get("content-length", "0")):
            yield await _exactly(self.reader, length)

    async def read(self) -> bytes:
        """Return the whole body.

        Raises:
            LoopbackError: The peer closed the connection before the end of the body.
        """
        return b"".join([chunk async for chunk in self.chunks()])


def foreign_request_reason(headers: Mapping[str, str], port: int) -> str | None:
    """Return why a request to a port of this machine is not answered, or None when it may be.

    A web page can send requests here, but it can neither leave out its `Origin` nor choose the `Host`.
    """
    if "origin" in headers:
        return "Requests of web pages (with an Origin header) are refused."
    if headers.get("host") not in [f"{name}:{port}" for name in NAMES]:
        return f"Host must be {' or '.join(f'{name}:{port}' for name in NAMES)}."
    return None


async def read_request(reader: asyncio.StreamReader) -> LoopbackRequest:
    """Read one request with its body.

    Raises:
        LoopbackError: The client closed the connection before the end of its request.
    """
    first, headers = await _head(reader)
    parts = first.split(" ")
    if len(parts) != 3:  # noqa: PLR2004 (method, path, version)
        raise LoopbackError(f"not an HTTP request: {first!r}")
    body = await _exactly(reader, int(headers.get("content-length", "0")))
    return LoopbackRequest(method=parts[0], path=parts[1], headers=headers, body=body)


@asynccontextmanager
async def exchange(
    port: int, method: str, path: str, *, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> AsyncIterator[Response]:
    """Send a request to a port of this machine; leaving the context closes the connection, whatever is unread.

    Raises:
        OSError: Nothing listens on the port.
        LoopbackError: The server closed the connection before the head of its response.
    """
    reader, writer = await asyncio.open_connection(HOST, port, limit=LIMIT_BYTES)
    try:
        lines = {"host": f"{HOST}:{port}", "connection": "close", **(headers or {}), "content-length": str(len(body))}
        writer.write(_head_bytes(f"{method} {path} HTTP/1.1", lines) + body)
        await writer.drain()
        first, answer = await _head(reader)
        yield Response(status=int(first.split(" ")[1]), headers=answer, reader=reader)
    finally:
        writer.close()


class Reply:
    """The answer to one request: whole by `send`, or in chunks by `begin`, `chunk` and `end`."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.begun = False

    async def send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a whole response."""
        self.begun = True
        lines = {**headers, "content-length": str(len(body)), "connection": "close"}
        self._writer.write(_head_bytes(_status_line(status), lines) + body)
        await self._writer.drain()

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the head of a response whose body follows in chunks."""
        self.begun = True
        lines = {**headers, "transfer-encoding": "chunked", "connection": "close"}
        self._writer.write(_head_bytes(_status_line(status), lines))
        await self._writer.drain()

    async def chunk(self, data: bytes) -> None:
        """Send a chunk; it's on the wire when this returns, or the client reads too slowly."""
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self) -> None:
        """End a response in chunks; without it the client sees a broken stream."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()


def _status_line(status: int) -> str:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"


def _head_bytes(first: str, headers: Mapping[str, str]) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


async def _head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as broken:
        raise LoopbackError("the connection was closed before the end of the head") from broken
    first, *lines = raw.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return first, {name.lower(): value.strip() for name, _, value in pairs}


async def _exactly(reader: asyncio.StreamReader, length: int) -> bytes:
    try:
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError as broken:
        raise LoopbackError("the connection was closed before the end of the body") from broken
