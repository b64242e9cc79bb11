"""What a simulated level comes to: throughput and latencies, by the definitions that measure a real one.

Window, shares of requests and percentiles are those of `seatrial.measure`: the same requests, simulated or measured,
give the same numbers. With a ramp throughput is that of the steady window; without one, or where that window is shorter
than a request, it is that of the whole level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from seatrial.measure.distribution import Distribution, percentile
from seatrial.measure.window import MeasuredTime, share_inside, steady_window
from seatrial.predict.simulation import simulate
from seatrial.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seatrial.predict.copy import Copy
    from seatrial.predict.protocol import Protocol
    from seatrial.predict.simulation import Request


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
        output_tok_s=_tok_s(requests, measured, output),
        ttft_ms=_distribution(_ttft(request) for request in measured),
        tpot_ms=_distribution((request.last_token_s - request.first_token_s) / later for request in measured),
        e2e_latency_ms=_distribution(e2e),
        ms_per_token=_distribution(seconds / output for seconds in e2e),
        late=sum(seconds > timeout_s for seconds in e2e) / len(e2e),
    )


def _tok_s(requests: Sequence[Request], measured: Sequence[Request], output: int) -> float:
    time = _measured_time(requests, measured)
    inside = math.fsum(share_inside(request.sent_s, request.last_token_s, time) for request in requests)
    return inside * output / time.length_s


def _measured_time(requests: Sequence[Request], measured: Sequence[Request]) -> MeasuredTime:
    """Return the steady window; the whole level without a ramp, or where the window is shorter than a request."""
    if len(measured) < len(requests):
        seconds = sorted(request.last_token_s - request.sent_s for request in measured)
        if window := steady_window([request.sent_s for request in measured], seconds):
            return window
    opened_s = min(request.sent_s for request in requests)
    return MeasuredTime(kind="whole", opened_s=opened_s, closed_s=max(request.last_token_s for request in requests))


def _ttft(request: Request) -> float:
    return request.first_token_s - request.sent_s


def _distribution(seconds: Iterable[float]) -> Distribution:
    values = sorted(second * MS_PER_S for second in seconds)
    p50, p90, p95, p99 = (percentile(values, percent) for percent in (50, 90, 95, 99))
    mean = math.fsum(values) / len(values)
    return Distribution(count=len(values), mean=mean, p50=p50, p90=p90, p95=p95, p99=p99, max=values[-1])
