"""What a simulated level comes to: throughput, and percentiles over its measured requests.

Throughput is taken as the trial takes it. With a ramp it is that of the steady window, from the sending of the first
measured request to that of the last: all clients are busy, and every token that comes inside counts, whosever it is.
The tokens of a request come evenly between its first and its last. Without a ramp, or where that window is shorter than
a request, it is that of the whole level, the ramp too: from the first request's sending to the last answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from seatrial.predict.simulation import simulate
from seatrial.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seatrial.predict.copy import Copy
    from seatrial.predict.protocol import Protocol
    from seatrial.predict.simulation import Request

_ROUND_SHARE = 0.9  # of a request's time: as the trial's own window (seatrial.bench.window)


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
        output_tok_s: Output tokens over the steady window, or over the whole level where there is none.
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
    ramp = protocol.ramp(concurrency)
    measured = sorted(requests, key=attrgetter("sent_s"))[ramp:] if ramp else requests
    output, later = copy.output_tokens, copy.output_tokens - 1 or 1
    e2e = [request.last_token_s - request.sent_s for request in measured]
    return Outcome(
        concurrency=concurrency,
        output_tok_s=_steady_tok_s(requests, measured, output) or _whole_tok_s(requests, output),
        ttft_ms=_distribution(_ttft(request) for request in measured),
        tpot_ms=_distribution((request.last_token_s - request.first_token_s) / later for request in measured),
        e2e_latency_ms=_distribution(e2e),
        ms_per_token=_distribution(seconds / output for seconds in e2e),
        late=sum(seconds > timeout_s for seconds in e2e) / len(e2e),
    )


def _whole_tok_s(requests: Sequence[Request], output: int) -> float:
    wall_s = max(request.last_token_s for request in requests) - min(request.sent_s for request in requests)
    return len(requests) * output / wall_s


def _steady_tok_s(requests: Sequence[Request], measured: Sequence[Request], output: int) -> float | None:
    """Return the throughput while all clients were busy; None without a ramp, or in less time than a request takes."""
    if len(measured) == len(requests):
        return None
    opens, closes = measured[0].sent_s, measured[-1].sent_s
    took = sorted(request.last_token_s - request.sent_s for request in measured)
    if closes - opens < _ROUND_SHARE * took[len(took) // 2]:
        return None
    tokens = sum(_tokens_by(request, closes, output) - _tokens_by(request, opens, output) for request in requests)
    return tokens / (closes - opens)


def _tokens_by(request: Request, moment_s: float, output: int) -> float:
    """Return the tokens of a request that were made by a moment; the first is made from the sending on."""
    if moment_s >= request.last_token_s:
        return output
    if moment_s <= request.sent_s:
        return 0.0
    if moment_s < request.first_token_s:
        return (moment_s - request.sent_s) / (request.first_token_s - request.sent_s)
    share = (moment_s - request.first_token_s) / (request.last_token_s - request.first_token_s)
    return 1 + share * (output - 1)


def _ttft(request: Request) -> float:
    return request.first_token_s - request.sent_s


def _distribution(seconds: Iterable[float]) -> Distribution:
    values = sorted(second * MS_PER_S for second in seconds)

    def rank(share: float) -> float:
        return values[math.ceil(share * len(values)) - 1]

    mean = sum(values) / len(values)
    return Distribution(mean, rank(0.5), rank(0.9), rank(0.95), rank(0.99), values[-1])
