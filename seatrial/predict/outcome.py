"""What a simulated level comes to: throughput over its whole time, percentiles over its requests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.predict.simulation import simulate
from seatrial.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial.predict.copy import Copy
    from seatrial.predict.protocol import Protocol
    from seatrial.predict.simulation import Request


@dataclass(frozen=True, slots=True)
class Distribution:
    """One latency over the requests of a level, in milliseconds; percentiles by nearest rank."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    highest: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one copy is predicted to do at one concurrency; simulated, not measured.

    Attributes:
        concurrency: Requests in flight on the copy.
        output_tok_s: Output tokens over the time from the first request to the last answer.
        ttft_ms: Time to first token, queueing included.
        tpot_ms: Time per output token after the first.
        e2e_latency_ms: Request sent to last token.
        ms_per_token: End-to-end latency over output tokens.
        late: Share of the requests that take longer than the given time.
    """

    concurrency: int
    output_tok_s: float
    ttft_ms: Distribution
    tpot_ms: Distribution
    e2e_latency_ms: Distribution
    ms_per_token: Distribution
    late: float


def outcome(copy: Copy, concurrency: int, protocol: Protocol, timeout_s: float = math.inf) -> Outcome:
    """Simulate one level.

    Args:
        copy: The copy.
        concurrency: Clients of the closed loop.
        protocol: How they send.
        timeout_s: Time after which a request counts as late: 60 s is SageMaker's bound of an invocation.
    """
    requests = simulate(copy, concurrency, protocol)
    output, later = copy.output_tokens, copy.output_tokens - 1 or 1
    e2e = [request.last_token_s - request.sent_s for request in requests]
    wall_s = max(request.last_token_s for request in requests) - min(request.sent_s for request in requests)
    return Outcome(
        concurrency=concurrency,
        output_tok_s=len(requests) * output / wall_s,
        ttft_ms=_distribution(_ttft(request) for request in requests),
        tpot_ms=_distribution((request.last_token_s - request.first_token_s) / later for request in requests),
        e2e_latency_ms=_distribution(e2e),
        ms_per_token=_distribution(seconds / output for seconds in e2e),
        late=sum(seconds > timeout_s for seconds in e2e) / len(e2e),
    )


def _ttft(request: Request) -> float:
    return request.first_token_s - request.sent_s


def _distribution(seconds: Iterable[float]) -> Distribution:
    values = sorted(second * MS_PER_S for second in seconds)

    def rank(share: float) -> float:
        return values[math.ceil(share * len(values)) - 1]

    mean = sum(values) / len(values)
    return Distribution(mean, rank(0.5), rank(0.9), rank(0.95), rank(0.99), values[-1])
