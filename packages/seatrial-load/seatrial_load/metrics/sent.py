"""The load of a trial, in words: the requested lengths and arrivals, and the measured ones."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from seatrial_base.units import MS_PER_S, short, whole_or_tenths
from seatrial_load.documents.arrivals import arrivals_of
from seatrial_load.documents.request import replays_sessions
from seatrial_load.measure.lengths import conversations_of, lengths_of, planned_cached_share, shared_share
from seatrial_load.slo.verdict import gate_rate_per_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial_load.documents.request import Load, Workload
    from seatrial_load.documents.result import LevelResult, TrialResult

CONVOY = 0.25  # of a level's requests: fewer meet by chance, and part again
QUEUEING = "latencies count from when a request was due: they hold the queue"


def prefix_words(workload: Workload) -> str:
    """Return the requested shared prefix; empty without one."""
    if not workload.shared_prefix_tokens:
        return ""
    groups = "" if workload.prefix_groups == 1 else f" in {workload.prefix_groups:,} groups"
    shared = f"{workload.shared_prefix_tokens:,} shared prefix tokens{groups}"
    if conversations_of(workload) is not None:
        return f"{shared} of a first turn"
    share = shared_share(lengths_of(workload), workload.shared_prefix_tokens) * 100
    return f"{shared} ({share:.0f} % of the prompt tokens)"


def conversation_words(workload: Workload) -> str:
    """Return the requested conversations; empty of single requests."""
    conversations = conversations_of(workload)
    if conversations is None:
        return ""
    spread = f" ± {whole_or_tenths(conversations.turns.stddev)}" if conversations.turns.stddev else ""
    kind, pause = ("sessions", "tools") if replays_sessions(workload) else ("conversations", "thought")
    delay = f", {short(conversations.mean_delay_s)} s of {pause} between" if conversations.mean_delay_s else ""
    return f"{kind} of {whole_or_tenths(conversations.turns.mean)}{spread} turns{delay}"


def omission_words(workload: Workload) -> str:
    """Return what requests leave to the server that they else fix; empty where they fix it."""
    words = (
        "answers of the text's own length" if workload.omits_ignore_eos else "",
        "the server's temperature" if workload.omits_temperature else "",
        "tokens counted by parts" if workload.omits_stream_options else "",
    )
    return ", ".join(filter(None, words))


def arrival_words(load: Load) -> str:
    """Return how requests were timed, in words."""
    arrivals = arrivals_of(load)
    start = "spread" if load.start == "spread" else "common"
    return arrivals.description if arrivals.is_open else f"{arrivals.description}, {start} start"


def start_words(level: LevelResult, load: Load) -> str:
    """Return how the first requests of a level began."""
    if level.is_open:
        return "at the rate"
    return f"spread over {short(level.spread_s)} s" if level.spread_s else load.start


def random_arrivals_lines(result: TrialResult) -> Iterator[str]:
    """Yield TTFT at random arrivals of the gate's throughput, or how to measure it; nothing without a bound on TTFT."""
    rate = gate_rate_per_s(result.request, result.levels)
    seen = result.random_arrivals
    if rate is None:
        return
    if seen is None:
        measures = f"`--rate {short(rate)}`, or `trial.rates` of a spec, measures it"
        yield f"TTFT at random arrivals of the gate's throughput was not measured: {measures}"
        return
    off = f", {seen.apart * 100:.0f} % from what the gate answered" if seen.source == "measured" else ""
    yield (
        f"TTFT at random arrivals of the gate's throughput, {seen.source}: mean {short(seen.ttft_ms.mean)} ms, p95 "
        f"{short(seen.ttft_ms.p95)} ms at {short(seen.rate_per_s)} requests/s{off}"
    )


def convoy_lines(levels: Iterable[LevelResult]) -> Iterator[str]:
    """Yield that clients moved in step, of the level where most requests did; nothing where few did."""
    shares = [(level.convoy_share, level.place) for level in levels if level.valid and level.convoy_share is not None]
    for share, place in sorted(shares, reverse=True)[:1]:
        if share >= CONVOY:
            yield (
                f"convoy: {share * 100:.0f} % of the requests at {place} were sent within one step of the engine of "
                "several others; users who come one by one wait less for their first token"
            )


def sent_lines(result: TrialResult) -> Iterator[str]:
    """Yield the request, and what the largest level got but for a closed loop of requests of one length."""
    work, load = result.request.workload, result.request.load
    if result.request.manner == "verify":
        return
    is_open = arrivals_of(load).is_open
    talks = conversation_words(work)
    omitted = omission_words(work)
    words = lengths_of(work).words + (" a turn" if talks else "")
    requested = (words, omitted, talks, prefix_words(work), arrival_words(load), QUEUEING if is_open else "")
    yield f"sent: {'; '.join(part for part in requested if part)}"
    if not (is_open or talks or work.shared_prefix_tokens or omitted) and lengths_of(work).are_fixed:
        return
    counted = sorted((level for level in result.levels if level.succeeded), key=lambda level: -level.succeeded)
    for level in islice(counted, 1):
        is_timed = level.offered_requests_per_s is not None and level.duration_s
        rate = f"{level.requests:,} requests at {short(level.offered_requests_per_s)}/s" if is_timed else ""
        parts = (_realised("input", level.input_tokens_mean, level.input_tokens_p50, level.input_tokens_p95),
                 _realised("output", level.output_tokens_mean, level.output_tokens_p50, level.output_tokens_p95),
                 rate, broken_words(level))  # fmt: skip
        if realised := "; ".join(part for part in parts if part):
            yield f"of {level.succeeded:,} answered requests: {realised}"


def cache_lines(result: TrialResult) -> Iterator[str]:
    """Yield how much of the prompts came from a cache where that was most; nothing where no endpoint reported it."""
    shares = [(level.cached_share, level.place) for level in result.levels if level.cached_share is not None]
    planned = planned_cached_share(result.request.workload)
    for share, place in sorted(shares, reverse=True)[:1]:
        shared = "" if planned is None else f"; the workload shares {planned * 100:.0f} %"
        yield f"cache: {share * 100:.0f} % of the prompt tokens came from it at {place}{shared}"


def overload_lines(result: TrialResult) -> Iterator[str]:
    """Yield what load beyond the knee did; nothing where it was not tried."""
    if result.overload is not None:
        yield f"overload: {result.overload.status}: {result.overload.because}"


def session_lines(result: TrialResult) -> Iterator[str]:
    """Yield the replayed sessions of each level: how many an hour, their time and cost, TTFT by kind of turn."""
    usd_per_hour = result.request.usd_per_hour_per_copy
    for level in result.levels:
        if level.sessions_per_h is None or level.session_ms is None:
            continue
        copies = result.request.copy_count
        cost = "" if usd_per_hour is None else f", {usd_per_hour * copies / level.sessions_per_h:.4f} USD each"
        ttft = "; ".join(
            f"TTFT of {turns} p50 {ttft_ms.p50:,.0f} ms, p95 {ttft_ms.p95:,.0f} ms"
            for turns, ttft_ms in (
                ("first turns", level.first_turn_ttft_ms),
                ("later turns", level.later_turns_ttft_ms),
            )
            if ttft_ms is not None
        )
        yield (
            f"sessions at {level.place}: {short(level.sessions_per_h)} an hour{cost}, "
            f"p50 {short(level.session_ms.p50 / MS_PER_S)} s, p95 {short(level.session_ms.p95 / MS_PER_S)} s; {ttft}"
        )


def _realised(name: str, mean: float | None, median: float | None, p95: float | None) -> str:
    if mean is None or median is None or p95 is None:
        return ""
    return f"{name} mean {whole_or_tenths(mean)}, p50 {whole_or_tenths(median)}, p95 {whole_or_tenths(p95)} tokens"


def broken_words(level: LevelResult) -> str:
    """Return how many conversations a failed turn ended; empty for none."""
    broken = level.broken_conversations
    return f"{broken:,} of {max(level.conversations, broken):,} conversations ended by a failed turn" if broken else ""
