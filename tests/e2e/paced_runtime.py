"""A runtime API whose every answer takes the same time, however busy this machine is: what two loads are compared by.

It speaks the event streams of `InvokeEndpointWithResponseStream`; tokens are not from a model.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.load.conftest import STREAM_HEAD, answer, lmi_lines, part

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Iterator

TOKEN_S = 0.05
"""From token to token: long against what a busy machine adds."""


@dataclass
class PacedRuntime:
    """The API on a free port of the loopback, and the time from token to token of the answers that begin now."""

    token_s: float = TOKEN_S
    server: asyncio.Server = field(init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    @contextmanager
    def answers_of(self, token_s: float) -> Iterator[None]:
        """Answer slower inside the block, so that a load outlasts what is done to it on any machine."""
        self.token_s = token_s
        try:
            yield
        finally:
            self.token_s = TOKEN_S

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(head.lower().partition("content-length:")[2].partition("\r\n")[0])
                tokens = json.loads(await reader.readexactly(length))["parameters"]["max_new_tokens"]
                answers = stream if "invocations-response-stream" in head else whole
                await answers(writer, tokens, self.token_s)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client went away, as clients do
        finally:
            writer.close()


@contextmanager
def paced_runtime() -> Iterator[PacedRuntime]:
    """Serve until the block ends."""
    loop, runtime = asyncio.new_event_loop(), PacedRuntime()
    runtime.server = loop.run_until_complete(asyncio.start_server(runtime.serve, "127.0.0.1", 0, backlog=256))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield runtime
    finally:
        asyncio.run_coroutine_threadsafe(stop(runtime.server), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


async def stream(writer: StreamWriter, tokens: int, token_s: float) -> None:
    clock = asyncio.get_running_loop().time
    started_s = clock()
    writer.write(STREAM_HEAD)
    for number, line in enumerate(lmi_lines(tokens), start=1):
        await asyncio.sleep(started_s + number * token_s - clock())
        writer.write(part(line))
    writer.write(b"0\r\n\r\n")


async def whole(writer: StreamWriter, tokens: int, token_s: float) -> None:
    await asyncio.sleep(tokens * token_s)
    writer.write(answer("200 OK", {"generated_text": "a b", "details": {"generated_tokens": tokens}}))


async def stop(server: asyncio.Server) -> None:
    server.close()
    open_connections = asyncio.all_tasks() - {asyncio.current_task()}
    for task in open_connections:
        task.cancel()
    await asyncio.gather(*open_connections, return_exceptions=True)
