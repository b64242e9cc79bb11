"""What a client saw beside what the server did: one line of JSON for each client, all by the same arithmetic.

The neutral server stamps each token with two times of its clock, which is the clients' clock too: "r", when the request
had arrived in full, and "t", when the token was written.
"""

from __future__ import annotations

import json
import os
import re
import resource
import time
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

STAMPS = re.compile(rb'"r": *(\d+),"t": *(\d+)')
NS_PER_S = 1e9
TOKENS = 64


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: when the client asked for it, and each piece with its arrival, in seconds of CLOCK_MONOTONIC."""

    asked_s: float
    pieces: Sequence[tuple[float, bytes]]


@dataclass(frozen=True, slots=True)
class Usage:
    """What this process used so far: CPU, and time in which its threads were ready to run without a core."""

    at_s: float
    cpu_s: float
    run_delay_s: float

    @classmethod
    def now(cls) -> Usage:
        """Look at the process."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        delays_ns = 0
        for task in Path("/proc/self/task").iterdir():
            with suppress(OSError):
                delays_ns += int((task / "schedstat").read_text().split()[1])
        return cls(time.monotonic(), used.ru_utime + used.ru_stime, delays_ns / NS_PER_S)


def tell(answers: Sequence[Answer], began: Usage, ended: Usage, **more: object) -> None:
    """Print what a client's run was like.

    TTFT error: the client's time to first token - the server's, ms. ITL error: what a gap at the client differs from
    the same gap at the server, ms. tok_s: tokens that arrived in the middle half of the time, per second.
    """
    ttft_ms: list[float] = []
    itl_ms: list[float] = []
    times_s: list[float] = []
    for answer in answers:
        tokens = [
            (at_s, int(stamp[1]) / NS_PER_S, int(stamp[2]) / NS_PER_S)
            for at_s, piece in answer.pieces
            for stamp in STAMPS.finditer(piece)
        ]
        if len(tokens) != TOKENS:
            raise SystemExit(f"an answer has {len(tokens)} tokens instead of {TOKENS}")
        first_s, received_s, written_s = tokens[0]
        ttft_ms.append(((first_s - answer.asked_s) - (written_s - received_s)) * 1e3)
        itl_ms.extend(abs((b[0] - a[0]) - (b[2] - a[2])) * 1e3 for a, b in pairwise(tokens))
        times_s.extend(at_s for at_s, _, _ in tokens)
    write(
        tokens=len(times_s),
        tok_s=middle_rate(times_s),
        cpu_s_per_1k=(ended.cpu_s - began.cpu_s) / len(times_s) * 1e3,
        run_delay=(ended.run_delay_s - began.run_delay_s) / (ended.at_s - began.at_s),
        ttft_error_ms=(at(ttft_ms, 0.5), at(ttft_ms, 0.99)),
        itl_error_ms=(at(itl_ms, 0.5), at(itl_ms, 0.99)),
        **more,
    )


def write(**figures: object) -> None:
    """Print one line of JSON, after everything else that this process may have printed."""
    print(json.dumps(figures), flush=True)


def middle_rate(times_s: Sequence[float]) -> float:
    """Return the events per second in the middle half of the time: neither the start nor the end counts."""
    times_s = sorted(times_s)
    first_s, seconds = times_s[0], times_s[-1] - times_s[0]
    inside = bisect_left(times_s, first_s + 0.75 * seconds) - bisect_left(times_s, first_s + 0.25 * seconds)
    return inside / (seconds / 2)


def at(values: Sequence[float], share: float) -> float:
    """Return the value at a share of the sorted values (nearest rank)."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def server_url(*, tls: bool) -> str:
    """Return the server's URL; the ports stand in the environment."""
    return f"https://localhost:{os.environ['TLS_PORT']}" if tls else f"http://127.0.0.1:{os.environ['HTTP_PORT']}"
