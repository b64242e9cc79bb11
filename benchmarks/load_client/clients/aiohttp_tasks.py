"""aiohttp in as many tasks as streams, signed and decoded by Seatrial's own pieces: only the transport differs."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import time
from datetime import UTC, datetime
from urllib.parse import urlsplit

import aiohttp

from benchmarks.load_client.clients.asking import (
    ACCESS_KEY_ID,
    BODY,
    CA,
    PATH,
    REGION,
    SECRET_ACCESS_KEY,
    SESSION_TOKEN,
    Order,
)
from benchmarks.load_client.measure import Answer, Usage, server_url, tell
from seatrial_load.aws.credentials import Credentials
from seatrial_load.aws.sigv4 import Signer
from seatrial_load.decode.event_stream import FrameDecoder

SIGNER = Signer(Credentials(ACCESS_KEY_ID, SECRET_ACCESS_KEY, SESSION_TOKEN), REGION)


async def load(order: Order, answers: list[Answer]) -> None:
    """Load; a stream's pieces are decoded as they come, as an application would."""
    url = server_url(tls=True)
    left = iter(range(order.requests))
    connector = aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context(cafile=CA))
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as session:

        async def work() -> None:
            for _ in left:
                asked_s = time.monotonic()
                headers = {"Host": urlsplit(url).netloc, "Content-Type": "application/json"}
                signed = SIGNER.signed_headers(PATH, headers, hashlib.sha256(BODY).hexdigest(), datetime.now(UTC))
                pieces: list[tuple[float, bytes]] = []
                decoder = FrameDecoder()
                async with session.post(url + PATH, data=BODY, headers=signed) as response:
                    async for data in response.content.iter_any():
                        at_s = time.monotonic()
                        pieces.extend((at_s, frame.payload) for frame in decoder.feed(data))
                answers.append(Answer(asked_s, pieces))

        await asyncio.gather(*[work() for _ in range(order.streams)])


def main() -> None:
    """Load, and print what it was like."""
    answers: list[Answer] = []
    began = Usage.now()
    asyncio.run(load(Order.given(), answers))
    tell(answers, began, Usage.now())


main()
