"""From the tally of a level to its result."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial_base.field_facts import made_of
from seatrial_base.units import MS_PER_S
from seatrial_load.documents.arrivals import ARRIVALS
from seatrial_load.documents.request import replays_sessions
from seatrial_load.documents.result import LevelResult
from seatrial_load.measure.interval import BOTH_TAILS, share_interval
from seatrial_load.measure.lengths import conversations_of
from seatrial_load.metrics import request_metrics as metrics
from seatrial_load.metrics.aggregate import distribution_of, output_tok_s_interval, tally_of
from seatrial_load.metrics.counts import doubts_of, percentile_of_lengths
from seatrial_load.slo.evaluate import requests_at_gate
from seatrial_load.slo.verdict import judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.distribution import Interval
    from seatrial_load.documents.request import Arrival, Objective, PreparedBy, TrialRequest
    from seatrial_load.documents.result import ClientEvidence
    from seatrial_load.documents.stop import Void
    from seatrial_load.measure.lengths import Conversations
    from seatrial_load.metrics.aggregate import LevelTally


def level_of_records(
    concurrency: int,
    records: Sequence[RequestRecord],
    objectives: Sequence[Objective],
    *,
    ramp: int = 0,
    arrival: Arrival = "closed",
    protocol: PreparedBy = "seatrial",
    offered_requests_per_s: float | None = None,
    copy_count: int = 1,
    client: ClientEvidence | None = None,
    enough_because: str = "",
    void: Void | None = None,
) -> LevelResult:
    """Compute every metric of a level and judge it: `level_of` its `tally_of`, where one process has all requests.

    Args:
        concurrency: Requests in flight per copy; of an open loop, what is measured takes its place.
    """
    tally = tally_of(
        records,
        concurrency=concurrency,
        objectives=objectives,
        ramp=ramp,
        arrival=arrival,
        protocol=protocol,
        offered_requests_per_s=offered_requests_per_s,
        client=client,
        enough_because=enough_because,
    )
    return level_of(tally, objectives, copy_count=copy_count, void=void)


def level_of(
    tally: LevelTally, objectives: Sequence[Objective], *, copy_count: int = 1, void: Void | None = None
) -> LevelResult:
    """Make the result of a level of its tally, that of one worker or the merged one of all.

    Args:
        objectives: The SLO; the level is judged by its measured values, the verdict needs proof besides.
    """
    counts, tokens, took = tally.counts, tally.tokens, tally.latencies
    in_flight, late = None, tally.overtaken
    e2e_latency_ms = distribution_of(took.e2e_latency_ms, overtaken=late)
    if ARRIVALS[tally.arrival].is_open and tally.throughput.in_flight is not None:
        in_flight = tally.throughput.in_flight / copy_count
    request_ms = None if e2e_latency_ms is None else e2e_latency_ms.p50
    level = made_of(
        LevelResult,
        tally,
        counts,
        tally.throughput,
        concurrency=tally.concurrency if in_flight is None else math.ceil(in_flight),
        first_errors=tuple(counts.first_errors.values()),
        ttft_ms=distribution_of(took.ttft_ms, overtaken=late),
        tpot_ms=None if tally.oddities.hides_pace else distribution_of(took.tpot_ms, overtaken=late),
        itl_ms=distribution_of(took.itl_ms, independent=False),
        ms_per_token=distribution_of(took.ms_per_token, overtaken=late),
        e2e_latency_ms=e2e_latency_ms,
        session_ms=distribution_of(took.session_ms),
        first_turn_ttft_ms=distribution_of(took.first_turn_ttft_ms),
        later_turns_ttft_ms=distribution_of(took.later_turns_ttft_ms),
        output_tok_s_interval=_with_overtaken(
            output_tok_s_interval(tally.throughput, request_ms=request_ms, arrival=tally.arrival), tally
        ),
        error_rate_interval=share_interval(counts.requests - counts.succeeded, counts.requests, tail=BOTH_TAILS),
        input_tokens_mean=_mean(tokens.read, tokens.prompts),
        input_tokens_p50=percentile_of_lengths(tokens.prompt_lengths, 50),
        input_tokens_p95=percentile_of_lengths(tokens.prompt_lengths, 95),
        output_tokens_mean=_mean(tokens.written, tokens.answers),
        output_tokens_p50=percentile_of_lengths(tokens.answer_lengths, 50),
        output_tokens_p95=percentile_of_lengths(tokens.answer_lengths, 95),
        parts_per_token=metrics.parts_per_token(tokens.parts, tokens.written_in_parts),
        cached_share=_mean(tokens.cached, tokens.cacheable),
        meets_slo=False,  # `judged` decides it
        misses=(),
        void=void,
        doubts=doubts_of(tally.oddities),
        convoy_share=None if tally.oddities.convoyed is None else tally.oddities.convoyed / tally.oddities.answered,
        broken_conversations=counts.broken,
        cut="" if tally.cut is None else tally.cut.because,
        in_flight_per_copy=in_flight,
    )
    return judged(level, objectives)


def _with_overtaken(bounds: Interval | None, tally: LevelTally) -> Interval | None:
    # What was in flight when the level was cut had made at most the longest answer's tokens each within the window.
    if bounds is None or bounds.high is None or not tally.overtaken:
        return bounds
    longest = percentile_of_lengths(tally.tokens.answer_lengths, 100) or 0.0
    return replace(bounds, high=bounds.high + tally.overtaken * longest / tally.throughput.window_s)


def with_queue_share(levels: Sequence[LevelResult]) -> tuple[LevelResult, ...]:
    """Return the levels with the share of their TTFT that is waiting, by the lowest valid level that has one.

    A level that the client limited gets none: its TTFT holds the client's own waiting.
    """
    medians = [
        (level.concurrency, level.offered_requests_per_s or 0.0, level.ttft_ms.p50)
        for level in levels
        if level.valid and level.ttft_ms is not None
    ]
    if not medians:
        return tuple(levels)
    _, _, unloaded_ms = min(medians)
    return tuple(
        replace(level, queue_share=metrics.queue_share(unloaded_ms, level.ttft_ms.p50))
        if level.valid and level.ttft_ms is not None
        else level
        for level in levels
    )


def turn_numbers(conversations: Conversations, size: LevelSize, first: int) -> tuple[range, ...]:
    """Return the numbers of a level's requests by conversation, one for each turn.

    As many conversations as requests, should every first turn fail; so the next level's numbers begin after the last.
    """
    numbers, opening = [], first
    for number in range(size.sessions or size.requests):
        turns = conversations.warming(number) if number < size.warming else conversations.turns_of(number)
        numbers.append(range(opening, opening + turns))
        opening += turns
    return tuple(numbers)


def _mean(total: int, count: int) -> float | None:
    return total / count if count else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSize:
    """The requests of one level, all copies together.

    Attributes:
        ramp: The first requests, which aren't measured.
        least: Measured requests at least.
        most: Measured requests at most.
        warming: Conversations that the level begins with, of one turn, of two and so on; 0 of single requests.
        sessions: Recorded sessions that are replayed whole; 0 of other requests.
    """

    streams: int
    ramp: int
    least: int
    most: int
    warming: int = 0
    sessions: int = 0

    @property
    def requests(self) -> int:
        """Requests of the level at most, ramp included."""
        return self.ramp + self.most

    def scheduled(self, due_s: Sequence[float] | None) -> LevelSize:
        """Return the size with the requests of an open loop's schedule, all of them measured; as it is without one."""
        if due_s is None:
            return self
        requests = self.requests if self.sessions else len(due_s)
        return replace(self, ramp=0, least=requests, most=requests)


def _sessions_size(request: TrialRequest, talks: Conversations, streams: int, least: int) -> LevelSize:
    """Return whole sessions: as many as are open at once, and as many again, until they have the least requests.

    At its own times a trace is replayed once.
    """
    if ARRIVALS[request.load.arrival].is_open:
        turns = sum(talks.listed_turns)
        return LevelSize(streams=streams, ramp=0, least=turns, most=turns, sessions=len(talks.listed_turns))
    ramp = round(streams * talks.turns.mean) if request.load.ramp_per_concurrency else 0
    sessions, turns = 0, 0
    while sessions < 2 * streams or turns < ramp + least:
        turns += sum(map(talks.turns_of, range(sessions, sessions + streams)))
        sessions += streams
    ramp = min(ramp, turns - 1)
    return LevelSize(streams=streams, ramp=ramp, least=turns - ramp, most=turns - ramp, sessions=sessions)


def level_size(request: TrialRequest, concurrency: int) -> LevelSize:
    """Return the size of a closed-loop level at a concurrency per copy.

    The gate's level measures as many as its objectives need to be proven one way or the other.
    """
    load, streams = request.load, concurrency * request.copy_count
    least = load.requests or load.requests_per_concurrency * streams
    if concurrency == request.gate_concurrency and load.protocol == "seatrial" and load.requests is None:
        least = max(least, requests_at_gate(request.objectives, request.gate.confidence))
    talks = conversations_of(request.workload)
    if talks is not None and replays_sessions(request.workload):
        return _sessions_size(request, talks, streams, least)
    if talks is not None:
        # While users think others take their streams: as many conversations are open as (think time + time of a
        # request) / time of a request for each stream. That time is the plan's, at the next level that it predicts;
        # without a prediction, the think time is taken.
        delay_s, predicted = talks.mean_delay_s, request.prior.levels
        above = (level for level in predicted if level.concurrency >= concurrency)
        nearest = next(above, predicted[-1] if predicted else None)
        request_s = (nearest.e2e_mean_ms / MS_PER_S if nearest else 0.0) or delay_s
        open_share = 1 + (delay_s / request_s if delay_s else 0.0)
        rounds = max(1, math.ceil((talks.turns.mean - 1) * open_share))
        return LevelSize(
            streams=streams,
            ramp=rounds * streams if request.load.ramp_per_concurrency else 0,
            least=least,
            most=least,
            warming=math.ceil(streams * open_share),
        )
    cap = load.max_requests_per_concurrency or load.requests_per_concurrency
    return LevelSize(
        streams=streams,
        ramp=load.ramp_per_concurrency * streams,
        least=least,
        most=load.requests or max(least, cap * streams),
    )
