"""What each metric means: one function each, formula and unit in its docstring. Missing is None, never 0."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from seatrial.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seatrial.bench.record import RequestRecord
    from seatrial.bench.request import Metric, Objective


def ttft_ms(record: RequestRecord) -> float | None:
    """Time to first token, ms: first token received - request sent, at the client; queueing counts."""
    if record.first_token_s is None:
        return None
    return (record.first_token_s - record.sent_s) * MS_PER_S


def e2e_latency_ms(record: RequestRecord) -> float | None:
    """End-to-end latency, ms: last token received - request sent."""
    if record.last_token_s is None:
        return None
    return (record.last_token_s - record.sent_s) * MS_PER_S


def tpot_ms(record: RequestRecord) -> float | None:
    """Time per output token, ms: (end-to-end - TTFT) / (output tokens - 1), as vLLM has it; None for one token."""
    total_ms, first_ms = e2e_latency_ms(record), ttft_ms(record)
    if total_ms is None or first_ms is None or record.output_tokens is None or record.output_tokens <= 1:
        return None
    return (total_ms - first_ms) / (record.output_tokens - 1)


def itl_ms(record: RequestRecord) -> tuple[float, ...]:
    """Inter-token latencies, ms: each gap between token events, to be pooled over requests; an event may bundle."""
    times_s = record.token_times_s
    return tuple((later - earlier) * MS_PER_S for earlier, later in pairwise(times_s))


def ms_per_token(record: RequestRecord) -> float | None:
    """Published tables' "latency (ms/token)", ms: end-to-end latency / output tokens; only to compare with them."""
    total_ms = e2e_latency_ms(record)
    return total_ms / record.output_tokens if total_ms is not None and record.output_tokens else None


def window_s(records: Sequence[RequestRecord]) -> float | None:
    """Measured window, s: first request sent → last request ended, failed ones too; the warm-up isn't among them."""
    if not records:
        return None
    return max(record.ended_s for record in records) - min(record.sent_s for record in records)


def output_tok_s(records: Sequence[RequestRecord]) -> float | None:
    """Output throughput, tokens/s: output tokens of successful requests / measured window, all copies together.

    None when no success told its tokens, or one didn't: a sum with a hole is no sum.
    """
    counts = [record.output_tokens for record in records if record.succeeded]
    known = [count for count in counts if count is not None]
    return _per_s(sum(known), records) if known and len(known) == len(counts) else None


def requests_per_s(records: Sequence[RequestRecord]) -> float | None:
    """Successful requests per second of the measured window."""
    return _per_s(sum(record.succeeded for record in records), records)


def goodput_requests_per_s(records: Sequence[RequestRecord], objectives: Sequence[Objective]) -> float | None:
    """Goodput, 1/s: successful requests that met every per-request objective / measured window."""
    return _per_s(sum(meets_every(record, objectives) for record in records), records)


def error_rate(records: Sequence[RequestRecord]) -> float | None:
    """Share of requests that failed, 0 to 1."""
    return sum(not record.succeeded for record in records) / len(records) if records else None


PER_REQUEST: Mapping[Metric, Callable[[RequestRecord], float | None]] = {
    "ttft_ms": ttft_ms,
    "tpot_ms": tpot_ms,
    "e2e_latency_ms": e2e_latency_ms,
}


def meets_every(record: RequestRecord, objectives: Sequence[Objective]) -> bool:
    """Tell whether a request succeeded within the bound of every objective on latency, whatever its statistic.

    A request of one token has no tpot, so none to miss; any other missing number isn't within a bound.
    """
    return record.succeeded and all(
        _is_within(record, objective) for objective in objectives if objective.metric in PER_REQUEST
    )


def is_met(value: float, objective: Objective) -> bool:
    """Tell whether a value is within an objective's bound; the bound itself is."""
    return value <= objective.bound if objective.sense == "at_most" else value >= objective.bound


def _is_within(record: RequestRecord, objective: Objective) -> bool:
    value = PER_REQUEST[objective.metric](record)
    if value is None:
        return objective.metric == "tpot_ms" and record.output_tokens == 1
    return is_met(value, objective)


def _per_s(count: float, records: Sequence[RequestRecord]) -> float | None:
    seconds = window_s(records)
    return count / seconds if seconds is not None and seconds > 0 and math.isfinite(seconds) else None
