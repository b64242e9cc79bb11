"""The metrics of requests: a function each, with formula and unit in its docstring. Missing is None, never 0."""

from __future__ import annotations

import math
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

from seatrial_base.units import MS_PER_S, S_PER_HOUR
from seatrial_load.documents.arrivals import ARRIVALS
from seatrial_load.measure.interval import SLICES, MeasuredTime, share_by, share_inside, steady_window
from seatrial_load.slo.evaluate import is_met

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.request import Arrival, Metric, Objective, PreparedBy


# 20,000 tokens/s of one answer: no engine makes them so fast, only a buffer gives them out.
FASTEST_TPOT_MS = 0.05
# Of an answer that took less time a token as a whole, nothing worth measuring is hidden.
LEAST_HIDDEN_MS = 5.0


def counted_from_s(record: RequestRecord) -> float:
    """Return the time that a request's latencies count from: when an open loop had to send it, else when it was sent.

    A client that waits for a free connection would else leave the queue out of the latencies, which Gil Tene calls
    coordinated omission.
    """
    return record.sent_s if record.due_s is None else min(record.due_s, record.sent_s)


def ttft_ms(record: RequestRecord) -> float | None:
    """Time to first token, ms: first token received - request sent, or due, at the client; queueing counts."""
    if record.first_token_s is None:
        return None
    return (record.first_token_s - counted_from_s(record)) * MS_PER_S


def e2e_latency_ms(record: RequestRecord) -> float | None:
    """End-to-end latency, ms: last token received - request sent, or due."""
    if record.last_token_s is None:
        return None
    return (record.last_token_s - counted_from_s(record)) * MS_PER_S


def tpot_ms(record: RequestRecord) -> float | None:
    """Time per output token, ms: (end-to-end - TTFT) / (output tokens - 1), as vLLM has it; None for one token."""
    total_ms, first_ms = e2e_latency_ms(record), ttft_ms(record)
    if total_ms is None or first_ms is None or record.output_tokens is None or record.output_tokens <= 1:
        return None
    return (total_ms - first_ms) / (record.output_tokens - 1)


def is_burst(record: RequestRecord) -> bool:
    """Return whether an answer of several tokens was streamed and arrived at one instant.

    An engine that announces itself as local is left out: it shares its cores with the client and with the embedded AWS
    between them, so a scheduler that is late makes one instant of an answer that is fast anyway.
    """
    if record.engine:
        return False
    per_token_ms, whole_ms = tpot_ms(record), ms_per_token(record)
    return per_token_ms is not None and per_token_ms < FASTEST_TPOT_MS and (whole_ms or 0.0) >= LEAST_HIDDEN_MS


def itl_ms(record: RequestRecord) -> tuple[float, ...]:
    """Inter-token latencies, ms: each gap between token events, to be pooled over requests; an event may bundle."""
    times_s = record.token_times_s
    return tuple((later - earlier) * MS_PER_S for earlier, later in pairwise(times_s))


def ms_per_token(record: RequestRecord) -> float | None:
    """Published tables' "latency (ms/token)", ms: end-to-end latency / output tokens; only to compare with them."""
    total_ms = e2e_latency_ms(record)
    return total_ms / record.output_tokens if total_ms is not None and record.output_tokens else None


def output_tok_s(records: Sequence[RequestRecord], time: MeasuredTime) -> float | None:
    """Output throughput, tokens/s: output tokens of successful requests in the window / window, all copies together.

    Requests count by the share of their time inside (`window.share_by`), the ramp's too. None when no success reported
    its tokens, or one didn't: a sum with an unknown part is unknown.
    """
    answered = [record for record in records if record.succeeded]
    if not answered or any(record.output_tokens is None for record in answered):
        return None
    return _per_s(answered, time, lambda record: record.output_tokens or 0)


def total_tok_s(records: Sequence[RequestRecord], time: MeasuredTime) -> float | None:
    """Total throughput, tokens/s: input and output tokens of successful requests in the window / window.

    None when a success didn't report one of its counts.
    """
    answered = [record for record in records if record.succeeded]
    written = output_tok_s(answered, time)
    read = _per_s(answered, time, lambda record: record.input_tokens or 0)
    if written is None or read is None or any(record.input_tokens is None for record in answered):
        return None
    return written + read


def output_tok_s_slices(records: Sequence[RequestRecord], time: MeasuredTime) -> tuple[float, ...]:
    """Output throughput of each slice of the window, tokens/s; none where the window has no throughput."""
    if output_tok_s(records, time) is None:
        return ()
    answered = [(record.output_tokens or 0, record) for record in records if record.succeeded]
    totals = [
        math.fsum(tokens * record_share_by(record, edge_s) for tokens, record in answered) for edge_s in time.edges_s()
    ]
    return tuple((after - before) * SLICES / time.length_s for before, after in pairwise(totals))


def requests_per_s(records: Sequence[RequestRecord], time: MeasuredTime) -> float | None:
    """Successful requests per second of the window, each counted by the share of its time inside."""
    return _per_s([record for record in records if record.succeeded], time, lambda _: 1)


def goodput_requests_per_s(
    records: Sequence[RequestRecord], time: MeasuredTime, objectives: Sequence[Objective]
) -> float | None:
    """Goodput, 1/s: those of them that met every per-request objective."""
    return _per_s([record for record in records if meets_every(record, objectives)], time, lambda _: 1)


def in_flight(records: Sequence[RequestRecord], time: MeasuredTime) -> float | None:
    """Requests in flight, failed ones too, averaged over the window: their seconds inside / window."""
    return _per_s(records, time, lambda record: record.ended_s - record.sent_s)


def parts_per_token(parts: int, tokens: int) -> float | None:
    """Pieces on the wire per output token, of the streamed answers with a count: 1 is a piece a token."""
    return parts / tokens if tokens else None


def queue_share(unloaded_ttft_p50_ms: float, ttft_p50_ms: float) -> float | None:
    """Share of the median TTFT spent waiting for other requests, 0 to 1: 1 - median TTFT unloaded / median TTFT.

    The lowest level represents the unloaded engine. A level with a lower TTFT than that one doesn't wait: 0.
    """
    return max(1 - unloaded_ttft_p50_ms / ttft_p50_ms, 0.0) if ttft_p50_ms > 0 else None


def error_rate(records: Sequence[RequestRecord]) -> float | None:
    """Share of requests that failed, 0 to 1."""
    return sum(not record.succeeded for record in records) / len(records) if records else None


PER_REQUEST: Mapping[Metric, Callable[[RequestRecord], float | None]] = {
    "ttft_ms": ttft_ms,
    "tpot_ms": tpot_ms,
    "e2e_latency_ms": e2e_latency_ms,
}


def meets_every(record: RequestRecord, objectives: Sequence[Objective]) -> bool:
    """Return whether a request succeeded within the bound of every objective on latency, whatever its statistic.

    A request of one token has no tpot, so none to miss; any other missing number isn't within a bound.
    """
    return record.succeeded and all(
        _is_within(record, objective) for objective in objectives if objective.metric in PER_REQUEST
    )


def _is_within(record: RequestRecord, objective: Objective) -> bool:
    value = PER_REQUEST[objective.metric](record)
    if value is None:
        return objective.metric == "tpot_ms" and record.output_tokens == 1
    return is_met(value, objective)


def _per_s(
    records: Sequence[RequestRecord], time: MeasuredTime, amount: Callable[[RequestRecord], float]
) -> float | None:
    """Sum up an amount of each request, by the share of its time inside the window, per second."""
    if time.length_s <= 0:
        return None
    return math.fsum(amount(record) * record_share_inside(record, time) for record in records) / time.length_s


def has_steady_window(arrival: Arrival, protocol: PreparedBy) -> bool:
    """Return whether throughput is to be taken while all streams are busy.

    An open loop has no such time: it is as busy as what was offered makes it. The published protocol (jumpstart-2024)
    takes the whole level, so its numbers compare with the published ones only if we do, too.
    """
    return not ARRIVALS[arrival].is_open and protocol == "seatrial"


def split(records: Sequence[RequestRecord], ramp: int) -> tuple[Sequence[RequestRecord], Sequence[RequestRecord]]:
    """Part the first `ramp` requests, in their order, from those whose latencies count."""
    ordered = sorted(records, key=attrgetter("order"))
    return ordered[:ramp], ordered[ramp:]


def measured_time(records: Sequence[RequestRecord], *, ramp: int, steady: bool) -> MeasuredTime:
    """Choose the time over which a level's throughput is taken: the steady window, else the whole level.

    The whole level has the ramp in it, with its slow start and end.
    """
    _, measured = split(records, ramp)
    seconds = sorted(record.ended_s - record.sent_s for record in measured if record.succeeded)
    window = steady_window([record.sent_s for record in measured], seconds) if steady else None
    return window or MeasuredTime(
        kind="whole",
        opened_s=min(record.sent_s if record.due_s is None else min(record.due_s, record.sent_s) for record in records),
        closed_s=max(record.ended_s for record in records),
    )


def record_share_by(record: RequestRecord, at_s: float) -> float:
    """Return how much of a request was done by a time, 0 to 1."""
    return share_by(record.sent_s, record.ended_s, at_s)


def record_share_inside(record: RequestRecord, time: MeasuredTime) -> float:
    """Return the share of a request's time within a window, 0 to 1."""
    return share_inside(record.sent_s, record.ended_s, time)


def whole_sessions(records: Sequence[RequestRecord]) -> list[tuple[float, float]]:
    """Return beginning and end of each recorded session without a failed turn, in order of their beginnings."""
    sessions: dict[int, list[RequestRecord]] = {}
    for record in records:
        sessions.setdefault(record.index - record.turn + 1, []).append(record)
    whole = [turns for turns in sessions.values() if all(turn.succeeded for turn in turns)]
    return sorted((min(map(counted_from_s, turns)), max(turn.ended_s for turn in turns)) for turns in whole)


def sessions_per_h(records: Sequence[RequestRecord], at_once: int) -> float | None:
    """Sessions per hour: those that took the place of another one / the time from the first to the last beginning.

    Each of them began where one ended, and until the last began all places were taken; at a trace's own times, or of
    few sessions, it is those that ended / the whole time.
    """
    whole = whole_sessions(records)
    if not whole:
        return None
    began_s = [begins_s for begins_s, _ in whole]
    span_s, count = began_s[-1] - began_s[0], len(whole) - at_once
    if count <= 0 or span_s <= 0:
        span_s, count = max(ends_s for _, ends_s in whole) - began_s[0], len(whole)
    return count * S_PER_HOUR / span_s if span_s > 0 else None
