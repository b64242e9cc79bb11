"""Other people's ways of measuring, so that their numbers can be compared with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import LevelResult

JUMPSTART_LEVELS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
JUMPSTART_REQUESTS_PER_CONCURRENCY = 3
JUMPSTART_TIMEOUT_S = 60.0


def jumpstart_2024(request: TrialRequest) -> TrialRequest:
    """Return the trial as AWS's article of January 2024 on JumpStart models measured.

    Concurrency doubles from 1 to 512 until a request hits the 60 s limit of an invocation; three requests for each in
    flight, all counted, none before; the whole answer at once; tokens over the whole time of a level; latency in ms per
    output token, 90th percentile. Read from the article and its public harness. Its clients were threads that started
    one after the other (some 30 ms apart); these start at once.
    """
    load = replace(
        request.load,
        concurrency_levels=JUMPSTART_LEVELS,
        ramp_per_concurrency=0,
        requests_per_concurrency=JUMPSTART_REQUESTS_PER_CONCURRENCY,
        max_requests_per_concurrency=None,
        warmup_requests=0,
        request_timeout_s=JUMPSTART_TIMEOUT_S,
        max_retries=0,
        arrival="closed",
        search="sweep",
        protocol="jumpstart-2024",
    )
    return replace(request, load=load, workload=replace(request.workload, stream=False))


def jumpstart_stop(level: LevelResult) -> str:
    """Say that a request hit the time limit, which ends that article's way of measuring; empty when none did."""
    late = level.errors.get("timeout", 0)
    if not late:
        return ""
    return f"{late} of {level.requests} requests hit the limit of {JUMPSTART_TIMEOUT_S:g} s at {level.concurrency}"
