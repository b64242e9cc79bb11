"""One request on its way through the fault proxy: what a fault may do with it and with its answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import struct
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

from seatrial_laptop.loopback import HOST, exchange
from seatrial_load.aws.credentials import Credentials
from seatrial_load.aws.sigv4 import Signer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from seatrial_laptop.loopback import LoopbackRequest, Response
    from tests.faults.order import Order

HOP_BY_HOP = ("connection", "content-length", "host", "transfer-encoding")


@dataclass(slots=True)
class Passage:
    """A request, the way to its upstream, and the way back to the client."""

    request: LoopbackRequest
    order: Order
    upstream_port: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    by_bytes: bool = False

    @asynccontextmanager
    async def answer(self) -> AsyncIterator[Response]:
        """Pass the request on; leaving the context frees its slot, whatever is unread."""
        kept = {name: value for name, value in self.request.headers.items() if name not in HOP_BY_HOP}
        asked = self.request
        signed = signed_anew(kept, asked.path, asked.body, self.upstream_port)
        async with exchange(self.upstream_port, asked.method, asked.path, body=asked.body, headers=signed) as response:
            yield response

    async def begin(self, response: Response) -> None:
        """Send the head of an answer that goes on in chunks."""
        kept = {name: value for name, value in response.headers.items() if name not in HOP_BY_HOP}
        await self.write(head(response.status, {**kept, "transfer-encoding": "chunked"}))

    async def chunk(self, data: bytes) -> None:
        await self.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        await self.write(b"0\r\n\r\n")

    async def refuse(self, status: int, error_type: str, message: str, **headers: str) -> None:
        """Answer as the service does when it refuses."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        typed = {"x-amzn-errortype": error_type, "content-type": "application/json", **named}
        await self.send(status, json.dumps({"message": message}).encode(), typed)

    async def send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        await self.write(head(status, {**headers, "content-length": str(len(body))}) + body)

    async def write(self, data: bytes) -> None:
        for piece in (data[at : at + 1] for at in range(len(data))) if self.by_bytes else (data,):
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def hold(self) -> None:
        """Send nothing more until the client goes away."""
        await self.reader.read()

    def reset(self) -> None:
        """Break the connection with a TCP reset instead of a farewell."""
        plug: socket.socket = self.writer.get_extra_info("socket")
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


def signed_anew(headers: Mapping[str, str], path: str, body: bytes, port: int) -> dict[str, str]:
    """Sign with the key of the embedded AWS, which knows neither the proxy's port nor the tests' clocks and keys."""
    signature = ("authorization", "x-amz-date", "x-amz-security-token")
    kept = {name: value for name, value in headers.items() if name not in signature}
    key = Credentials(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
    signer = Signer(key, os.environ["AWS_REGION"])
    named = {**kept, "host": f"{HOST}:{port}"}
    return signer.signed_headers(path, named, hashlib.sha256(body).hexdigest(), datetime.now(UTC))


def head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {text}" for name, text in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
