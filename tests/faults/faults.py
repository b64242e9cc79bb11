"""The faults, by name. Each says whether the connection may carry another request."""

from __future__ import annotations

import json
import os
import random
import signal
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.faults.passage import Passage

Fault: TypeAlias = "Callable[[Passage], Awaitable[bool]]"
AMZ_DATE = "%Y%m%dT%H%M%SZ"
TOLERANCE = timedelta(minutes=5)
HTML = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n"


async def pass_on(passage: Passage) -> bool:
    return await _relay(passage, lambda _number, data: data)


async def reset(passage: Passage) -> bool:
    """Break the connection in the middle of the answer."""
    await _first_chunks(passage)
    passage.reset()
    return False


async def reset_at_once(passage: Passage) -> bool:
    """Break the connection before the answer, which was asked for."""
    passage.reset()
    return False


async def close(passage: Passage) -> bool:
    """Close the connection politely in the middle of the answer."""
    await _first_chunks(passage)
    return False


async def close_after_head(passage: Passage) -> bool:
    async with passage.answer() as response:
        await passage.begin(response)
    return False


async def stall(passage: Passage) -> bool:
    """Stop in the middle of the answer, and leave the connection open."""
    await _first_chunks(passage)
    await passage.hold()
    return False


async def silence(passage: Passage) -> bool:
    """Take the request and never answer."""
    await passage.hold()
    return False


async def corrupt_frame(passage: Passage) -> bool:
    """Flip one bit of one frame's payload: its length is right, its checksum is not."""
    return await _relay_but_one(passage, lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])


async def random_frame(passage: Passage) -> bool:
    """Send random bytes in the place of one frame."""
    return await _relay_but_one(passage, lambda data: _noise(passage).randbytes(len(data)))


async def random_bytes(passage: Passage) -> bool:
    """Send a line of random bytes in the place of a chunk: not even HTTP goes on, and the connection stays open."""
    await _first_chunks(passage)
    await passage.write(_noise(passage).randbytes(64) + b"\r\n")
    await passage.hold()
    return False


async def random_bytes_and_close(passage: Passage) -> bool:
    await _first_chunks(passage)
    await passage.write(_noise(passage).randbytes(64) + b"\r\n")
    return False


async def drip(passage: Passage) -> bool:
    """Send the whole answer byte by byte."""
    passage.by_bytes = True
    return await pass_on(passage)


async def throttle(passage: Passage) -> bool:
    await passage.refuse(429, "ThrottlingException", "Rate exceeded")
    return True


async def not_ready(passage: Passage) -> bool:
    await passage.refuse(429, "ModelNotReadyException", "Model is not ready to serve")
    return True


async def busy(passage: Passage) -> bool:
    """Refuse as the container does when its queue is full: the service passes its 503 on as a model error."""
    said = {"OriginalStatusCode": 503, "OriginalMessage": "no free slot", "Message": "Received server error (503)"}
    typed = {"x-amzn-errortype": "ModelError", "content-type": "application/json"}
    await passage.send(424, json.dumps(said).encode(), typed)
    return True


async def unavailable(passage: Passage) -> bool:
    """Refuse as the service does for reasons of its own."""
    await passage.refuse(503, "ServiceUnavailable", "The service is currently unavailable.")
    return True


async def html(passage: Passage) -> bool:
    """Answer as a proxy between client and service does: no error type, no JSON."""
    await passage.send(502, HTML, {"content-type": "text/html"})
    return True


async def redirect(passage: Passage) -> bool:
    elsewhere = "https://elsewhere.invalid/endpoints/chat/invocations?X-Amz-Signature=secret"
    await passage.send(307, b"", {"location": elsewhere})
    return True


async def refuse_signature(passage: Passage) -> bool:
    """Refuse as the service does when its clock and the signature's are more than five minutes apart."""
    now, dates = service_time(passage), {"date": format_datetime(service_time(passage), usegmt=True)}
    what = wrong_time(passage.request.headers["x-amz-date"], now)
    await passage.refuse(403, "InvalidSignatureException", what, **dates if passage.order.tells_date else {})
    return True


async def refuse_expired_token(passage: Passage) -> bool:
    await passage.refuse(403, "ExpiredTokenException", "The security token included in the request is expired")
    return True


async def kill(passage: Passage) -> bool:
    """Kill the engine in the middle of an answer, and pass on what the service makes of it."""

    def killed(data: bytes) -> bytes:
        os.kill(passage.order.pid, signal.SIGKILL)
        return data

    return await _relay_but_one(passage, killed)


FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (
        pass_on,
        reset,
        reset_at_once,
        close,
        close_after_head,
        stall,
        silence,
        corrupt_frame,
        random_frame,
        random_bytes,
        random_bytes_and_close,
        drip,
        throttle,
        not_ready,
        busy,
        unavailable,
        html,
        redirect,
        refuse_signature,
        refuse_expired_token,
        kill,
    )
}


def concerns(passage: Passage) -> bool:
    """Tell whether the request is one that the fault is about: the clock's and the token's look at its signature."""
    headers, order = passage.request.headers, passage.order
    if order.fault == "refuse_signature":
        signed = datetime.strptime(headers["x-amz-date"], AMZ_DATE).replace(tzinfo=UTC)
        return abs(service_time(passage) - signed) > TOLERANCE
    if order.fault == "refuse_expired_token":
        return headers.get("x-amz-security-token", "") == order.token
    return True


def wrong_time(signed: str, now: datetime) -> str:
    """Say it in the service's words."""
    its = now.strftime(AMZ_DATE)
    oldest, newest = ((now + turn * TOLERANCE).strftime(AMZ_DATE) for turn in (-1, 1))
    if signed < oldest:
        return f"Signature expired: {signed} is now earlier than {oldest} ({its} - 5 min.)"
    return f"Signature not yet current: {signed} is still later than {newest} ({its} + 5 min.)"


def service_time(passage: Passage) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=passage.order.ahead_s)


async def _relay(passage: Passage, change: Callable[[int, bytes], bytes]) -> bool:
    """Pass the answer on, each chunk (numbered from 1) as a function makes it."""
    async with passage.answer() as response:
        await passage.begin(response)
        number = 0
        async for data in response.chunks():
            number += 1
            await passage.chunk(change(number, data))
    await passage.end()
    return True


async def _relay_but_one(passage: Passage, change: Callable[[bytes], bytes]) -> bool:
    at = passage.order.after_chunks + 1
    return await _relay(passage, lambda number, data: change(data) if number == at else data)


async def _first_chunks(passage: Passage) -> None:
    async with passage.answer() as response:
        await passage.begin(response)
        left = passage.order.after_chunks
        async for data in response.chunks():
            if not left:
                return
            await passage.chunk(data)
            left -= 1


def _noise(passage: Passage) -> random.Random:
    return random.Random(passage.order.seed)  # noqa: S311 (bytes that can be repeated)
