"""One whole answer of a container."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.runtime.telemetry import Invocation
from seatrial_laptop.loopback import TOKEN_HEADER, exchange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_laptop.aws.runtime.copy_process import CopyProcess


INVOCATIONS: Final = "/invocations"


@dataclass(frozen=True, slots=True)
class ContainerAnswer:
    """What a container answered.

    Attributes:
        status: Its status; 0 without a whole answer.
        body: The answer, or why there is none.
        content_type: Of the answer.
        engine: What the local engine calls itself.
        first_chunk_at_s: When the first chunk of a stream came; None without one.
    """

    status: int
    body: bytes = b""
    content_type: str = "application/octet-stream"
    engine: str = ""
    first_chunk_at_s: float | None = None

    @property
    def is_good(self) -> bool:
        """Whether the container answered without an error."""
        return HTTPStatus.OK <= self.status < HTTPStatus.BAD_REQUEST


def forwarded_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of an invocation that reach the container."""
    return {
        name: value
        for name, value in headers.items()
        if name in ("content-type", "accept") or name.startswith("x-amzn-sagemaker-")
    }


async def ask_container(
    copy: CopyProcess, headers: Mapping[str, str], body: bytes, limit_s: float, path: str = INVOCATIONS
) -> ContainerAnswer:
    """Return the whole answer of a copy, or why there is none after so many seconds."""
    allowed = {**headers, TOKEN_HEADER: copy.token}
    try:
        async with asyncio.timeout(limit_s):
            async with exchange(copy.port, "POST", path, body=body, headers=allowed) as response:
                answer = await response.read()
    except TimeoutError:
        return ContainerAnswer(0, f"Your invocation timed out after {limit_s:g} s.".encode())
    except OSError as broken:
        return ContainerAnswer(0, f"The container broke the connection: {broken}".encode())
    kind = response.headers.get("content-type", "application/octet-stream")
    return ContainerAnswer(response.status, answer, kind, response.headers.get("x-seatrial-engine", ""))


async def measured_call(
    copy: CopyProcess,
    headers: Mapping[str, str],
    body: bytes,
    limit_s: float,
    *,
    arrived_s: float,
    path: str = INVOCATIONS,
) -> tuple[ContainerAnswer, Invocation]:
    """Return the answer of a copy and what it tells the metrics; `arrived_s` is when the request came."""
    in_flight, asked_s = copy.outstanding, time.monotonic()
    answer = await ask_container(copy, headers, body, limit_s, path)
    told = Invocation(
        status=answer.status,
        model_s=time.monotonic() - asked_s,
        overhead_s=asked_s - arrived_s,
        in_flight=in_flight,
    )
    return answer, told
