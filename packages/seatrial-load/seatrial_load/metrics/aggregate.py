"""One worker's share of one level, summed up: small enough to ship, and whole when merged with the other shares."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from seatrial_base.field_facts import facts_of
from seatrial_base.units import MS_PER_S
from seatrial_load.documents.arrivals import ARRIVALS
from seatrial_load.documents.distribution import Distribution, Interval
from seatrial_load.documents.request import Arrival  # noqa: TC001 (the strict reader resolves the fields' types)
from seatrial_load.documents.result import ClientEvidence, Timeline, Window
from seatrial_load.documents.stop import Stop  # noqa: TC001 (likewise)
from seatrial_load.documents.strict_json import read_document, write_document
from seatrial_load.health.client_health import together
from seatrial_load.measure.interval import (
    BOTH_TAILS,
    mean_interval,
    percentile,
    percentile_interval,
    rate_interval,
    ratio_interval,
)
from seatrial_load.metrics import request_metrics as metrics
from seatrial_load.metrics.counts import (
    NOTHING_ODD,
    Counts,
    Oddities,
    Tokens,
    added_counts,
    added_oddities,
    added_tokens,
    counts_of,
    oddities_of,
    tokens_of,
)
from seatrial_load.metrics.histogram import PERCENTS, US_PER_MS, Histogram, Milliseconds
from seatrial_load.metrics.request_metrics import has_steady_window, measured_time, record_share_inside, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.request import Objective, PreparedBy
    from seatrial_load.measure.interval import MeasuredTime, Ranked

MOST_BINS = 60
FINEST_S = 1 / 16
DIGITS = 3


def timeline_of(records: Sequence[RequestRecord]) -> Timeline:
    """Return the timeline of a level's requests, ramp and failed ones included, at least one.

    The width is the smallest power of two of a second, 1/16 s or more, that needs at most 60 bins: timelines of shares
    that were loaded at the same time can be merged exactly. It takes one step for each bin that a request spans.
    """
    start_s = min(record.sent_s for record in records)
    length_s = max(record.ended_s for record in records) - start_s
    bin_s = 2.0 ** math.ceil(math.log2(length_s / MOST_BINS)) if length_s > FINEST_S * MOST_BINS else FINEST_S
    bins = max(math.ceil(length_s / bin_s), 1)
    tokens, busy_s = [0.0] * bins, [0.0] * bins
    first_ms: list[list[float]] = [[] for _ in range(bins)]
    for record in records:
        for at, share in _shares(record.sent_s - start_s, record.ended_s - start_s, bin_s, bins):
            busy_s[at] += share * (record.ended_s - record.sent_s)
        if record.succeeded and record.output_tokens:
            for at, share in _shares(*_generation(record, start_s), bin_s, bins):
                tokens[at] += share * record.output_tokens
        if record.succeeded and (ttft_ms := metrics.ttft_ms(record)) is not None:
            first_ms[_bin(record.sent_s - start_s, bin_s, bins)].append(ttft_ms)
    return Timeline(
        bin_s=bin_s,
        output_tokens=_rounded(tokens),
        in_flight=_rounded([busy / bin_s for busy in busy_s]),
        first_tokens=tuple(map(len, first_ms)),
        ttft_ms=tuple(round(math.fsum(some) / len(some), DIGITS) if some else None for some in first_ms),
    )


def _generation(record: RequestRecord, start_s: float) -> tuple[float, float]:
    """Return the times of a request's first and last token; both its end when nothing streamed."""
    end_s = record.ended_s if record.last_token_s is None else record.last_token_s
    return (end_s if record.first_token_s is None else record.first_token_s) - start_s, end_s - start_s


def added_timelines(shares: Sequence[Timeline | None]) -> Timeline | None:
    """Merge the timelines of shares that began together; None when one is missing: their sum is unknown."""
    known = [share for share in shares if share is not None]
    if not known or len(known) < len(shares):
        return None
    bin_s = max(share.bin_s for share in known)
    coarse = [_coarser(share, bin_s) for share in known]
    counts = [share.first_tokens for share in coarse]
    columns = zip(zip_longest(*[share.ttft_ms for share in coarse]), zip_longest(*counts, fillvalue=0), strict=True)
    return Timeline(
        bin_s=bin_s,
        output_tokens=_sums([share.output_tokens for share in coarse]),
        in_flight=_sums([share.in_flight for share in coarse]),
        first_tokens=tuple(sum(column) for column in zip_longest(*counts, fillvalue=0)),
        ttft_ms=tuple(_mean(some, weights) for some, weights in columns),
    )


def _bin(at_s: float, bin_s: float, bins: int) -> int:
    return min(int(at_s / bin_s), bins - 1)


def _shares(from_s: float, to_s: float, bin_s: float, bins: int) -> Iterator[tuple[int, float]]:
    """Yield each bin that a span of time reaches into, with the share of the span inside; of an instant, all of it."""
    first, last = _bin(from_s, bin_s, bins), _bin(to_s, bin_s, bins)
    if first == last:
        yield first, 1.0
        return
    for at in range(first, last + 1):
        begins_s, ends_s = max(from_s, at * bin_s), to_s if at == last else (at + 1) * bin_s
        yield at, (ends_s - begins_s) / (to_s - from_s)


def _coarser(share: Timeline, bin_s: float) -> Timeline:
    step = round(bin_s / share.bin_s)
    if step == 1:
        return share
    starts = range(0, len(share.in_flight), step)
    counts = [share.first_tokens[at : at + step] for at in starts]
    return Timeline(
        bin_s=bin_s,
        output_tokens=_rounded([math.fsum(share.output_tokens[at : at + step]) for at in starts]),
        in_flight=_rounded([math.fsum(share.in_flight[at : at + step]) / step for at in starts]),
        first_tokens=tuple(map(sum, counts)),
        ttft_ms=tuple(_mean(share.ttft_ms[at : at + step], some) for at, some in zip(starts, counts, strict=True)),
    )


def _mean(values: Sequence[float | None], counts: Sequence[int]) -> float | None:
    total = sum(counts)
    weighted = math.fsum(value * count for value, count in zip(values, counts, strict=True) if value is not None)
    return round(weighted / total, DIGITS) if total else None


def _sums(shares: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return _rounded([math.fsum(column) for column in zip_longest(*shares, fillvalue=0.0)])


def _rounded(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(value, DIGITS) for value in values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Measurements in milliseconds: exact sums and extremes, the rest in a histogram.

    Attributes:
        count: How many there are, at least one.
        histogram: All of them, as in `Distribution.histogram`.
    """

    count: int
    total_ms: float
    total_squares_ms2: float
    min_ms: float
    max_ms: float
    histogram: str


def sample_of(values_ms: Sequence[float]) -> Sample | None:
    """Return a sample of measurements; None without any."""
    if not values_ms:
        return None
    histogram = Histogram()
    for value_ms in values_ms:
        histogram.add(value_ms * US_PER_MS)
    return Sample(
        count=len(values_ms),
        total_ms=math.fsum(values_ms),
        total_squares_ms2=math.fsum(value_ms * value_ms for value_ms in values_ms),
        min_ms=min(values_ms),
        max_ms=max(values_ms),
        histogram=histogram.encode(),
    )


def merged(samples: Sequence[Sample | None]) -> Sample | None:
    """Merge samples; None when none has a measurement."""
    known = [sample for sample in samples if sample is not None]
    if len(known) <= 1:
        return known[0] if known else None
    histogram = Histogram()
    for sample in known:
        histogram.merge(Histogram.decode(sample.histogram))
    return Sample(
        count=sum(sample.count for sample in known),
        total_ms=math.fsum(sample.total_ms for sample in known),
        total_squares_ms2=math.fsum(sample.total_squares_ms2 for sample in known),
        min_ms=min(sample.min_ms for sample in known),
        max_ms=max(sample.max_ms for sample in known),
        histogram=histogram.encode(),
    )


def distribution_of(sample: Sample | None, *, independent: bool = True, overtaken: int = 0) -> Distribution | None:
    """Sum up a sample; None without one.

    Count, mean and maximum are exact. Percentiles are interpolated between the closest ranks (`percentile`), with the
    histogram's values: they are within 0.1 % of the exact ones, or within half a microsecond.

    Args:
        independent: Whether they come from different requests. The gaps of one answer don't, so they get no intervals.
        overtaken: Requests without a measurement, which took longer than some that have one: upper bounds hold
            whatever theirs would be.
    """
    if sample is None:
        return None
    ordered = Milliseconds(
        Histogram.decode(sample.histogram).ranked(
            lowest_us=sample.min_ms * US_PER_MS, highest_us=sample.max_ms * US_PER_MS
        )
    )
    return Distribution(
        count=sample.count,
        mean=sample.total_ms / sample.count,
        p50=percentile(ordered, 50),
        p90=percentile(ordered, 90),
        p95=percentile(ordered, 95),
        p99=percentile(ordered, 99),
        max=sample.max_ms,
        intervals=_intervals(sample, ordered, overtaken) if independent else {},
        histogram=sample.histogram,
    )


def _intervals(sample: Sample, ordered: Ranked, overtaken: int) -> dict[str, Interval]:
    mean = sample.total_ms / sample.count
    variance = (sample.total_squares_ms2 - sample.total_ms * mean) / (sample.count - 1) if sample.count > 1 else 0.0
    deviation = math.sqrt(max(variance, 0.0))  # equal values leave a rounding error, which may be below 0
    of_mean = mean_interval(mean=mean, deviation=deviation, count=sample.count, tail=BOTH_TAILS)
    of_percentiles = {
        name: percentile_interval(ordered, percent, tail=BOTH_TAILS) for name, percent in PERCENTS.items()
    }
    if overtaken:
        of_mean, longer = replace(of_mean, high=None), [*map(ordered.__getitem__, range(len(ordered)))]
        longer += [math.inf] * overtaken
        for name, percent in PERCENTS.items():
            high = percentile_interval(longer, percent, tail=BOTH_TAILS).high
            of_percentiles[name] = replace(of_percentiles[name], high=None if high == math.inf else high)
    return {"mean": of_mean, **of_percentiles}


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """The latencies of the measured requests that succeeded, as `metrics` defines them; None where none has one."""

    ttft_ms: Sample | None
    tpot_ms: Sample | None
    itl_ms: Sample | None
    ms_per_token: Sample | None
    e2e_latency_ms: Sample | None
    session_ms: Sample | None = None
    first_turn_ttft_ms: Sample | None = None
    later_turns_ttft_ms: Sample | None = None


def latencies_of(succeeded: Sequence[RequestRecord]) -> Latencies:
    """Measure answered requests."""

    def sample(metric: Callable[[RequestRecord], float | None]) -> Sample | None:
        return sample_of([value for value in map(metric, succeeded) if value is not None])

    return Latencies(
        ttft_ms=sample(metrics.ttft_ms),
        tpot_ms=sample(metrics.tpot_ms),
        itl_ms=sample_of(list(chain.from_iterable(map(metrics.itl_ms, succeeded)))),
        ms_per_token=sample(metrics.ms_per_token),
        e2e_latency_ms=sample(metrics.e2e_latency_ms),
    )


def of_sessions(
    latencies: Latencies, records: Sequence[RequestRecord], succeeded: Sequence[RequestRecord]
) -> Latencies:
    """Add the times of whole sessions, and TTFT by kind of turn of the measured requests that succeeded."""
    first, later = ([one for one in succeeded if (one.turn == 1) is opens] for opens in (True, False))
    return replace(
        latencies,
        session_ms=sample_of([(ends_s - begins_s) * MS_PER_S for begins_s, ends_s in metrics.whole_sessions(records)]),
        first_turn_ttft_ms=latencies_of(first).ttft_ms,
        later_turns_ttft_ms=latencies_of(later).ttft_ms,
    )


def merged_latencies(shares: Sequence[Latencies]) -> Latencies:
    """Merge the latencies of shares."""
    return Latencies(**{name: merged([getattr(share, name) for share in shares]) for name in facts_of(Latencies)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Sums over requests, ramp included, that show how much their pace differs; a failed one takes time for nothing.

    Attributes:
        seconds: Their time from sending to end.
        in_window: How many of them the window holds, each counted by the share of its time inside.
    """

    requests: int
    tokens: float
    seconds: float
    tokens_squared: float
    seconds_squared: float
    tokens_by_seconds: float
    in_window: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Rates over one window.

    Shares that were loaded at the same time add up, though each has its own window: no clock is shared, and a steady
    closed loop yields the same over any part of it. That holds as far as shares are alike and end together: one that
    goes on while others are over has the endpoint more to itself.

    Attributes:
        window: The time over which it was taken; `whole` if that is so of any share.
        window_s: Its length; the longest of the shares'.
        answered: Requests answered in full, those of the ramp too.
        output_tok_s: None when nothing was answered, or an answer didn't report its tokens.
        output_tok_s_slices: The same of each slice of the window.
        goodput_requests_per_s: Those of them within every per-request objective.
    """

    window: Window
    window_s: float
    answered: int
    output_tok_s: float | None
    output_tok_s_slices: tuple[float, ...]
    total_tok_s: float | None
    requests_per_s: float | None
    goodput_requests_per_s: float | None
    in_flight: float | None
    pace: Pace


def throughput_of(records: Sequence[RequestRecord], time: MeasuredTime, objectives: Sequence[Objective]) -> Throughput:
    """Return the throughput of requests, ramp included, over a window."""
    return Throughput(
        window=time.kind,
        window_s=time.length_s,
        answered=sum(record.succeeded for record in records),
        output_tok_s=metrics.output_tok_s(records, time),
        output_tok_s_slices=metrics.output_tok_s_slices(records, time),
        total_tok_s=metrics.total_tok_s(records, time),
        requests_per_s=metrics.requests_per_s(records, time),
        goodput_requests_per_s=metrics.goodput_requests_per_s(records, time, objectives),
        in_flight=metrics.in_flight(records, time),
        pace=_pace(records, time),
    )


def added(shares: Sequence[Throughput]) -> Throughput:
    """Add up the throughput of shares that were loaded at the same time, at least one."""
    answering = [share for share in shares if share.answered]
    slices = [share.output_tok_s_slices for share in answering]
    return Throughput(
        window="steady" if all(share.window == "steady" for share in shares) else "whole",
        window_s=max(share.window_s for share in shares),
        answered=sum(share.answered for share in shares),
        output_tok_s=_sum([share.output_tok_s for share in answering]),
        # Slice by slice; none when one share has none (all have equally many, or none).
        output_tok_s_slices=tuple(map(math.fsum, zip(*slices, strict=True))) if all(slices) else (),
        total_tok_s=_sum([share.total_tok_s for share in answering]),
        requests_per_s=_sum([share.requests_per_s for share in shares]),
        goodput_requests_per_s=_sum([share.goodput_requests_per_s for share in shares]),
        in_flight=_sum([share.in_flight for share in shares]),
        pace=_added_pace([share.pace for share in shares]),
    )


def output_tok_s_interval(share: Throughput, *, request_ms: float | None, arrival: Arrival) -> Interval | None:
    """Bound output throughput with 95 % confidence.

    In a closed loop by how much requests differ (`pace_interval`). Besides, by batch means (`rate_interval`), where the
    window has five slices or more that are each as long as a request: shorter ones see the same requests as their
    neighbours and agree for that reason alone. Of two intervals the wider one counts. In an open loop the arrivals
    decide how much there is to do, so only batch means are valid.

    Returns:
        The interval; None when the level is too short for either.
    """
    if share.output_tok_s is None or request_ms is None:
        return None
    intervals = [rate_interval(_long_slices(share, request_ms), tail=BOTH_TAILS)]
    if not ARRIVALS[arrival].is_open:
        intervals.append(_pace_interval(share.pace, share.output_tok_s))
    known = [bounds for bounds in intervals if bounds.high is not None]
    return max(known, key=lambda bounds: (bounds.high or 0.0) - (bounds.low or 0.0), default=None)


def _long_slices(share: Throughput, request_ms: float) -> tuple[float, ...]:
    """Return the slices if they are as long as a request, else as pairs if those are, else none."""
    slices = share.output_tok_s_slices
    if share.window_s * MS_PER_S >= len(slices) * request_ms:
        return slices
    pairs = tuple((first + second) / 2 for first, second in zip(slices[::2], slices[1::2], strict=True))
    return pairs if share.window_s * MS_PER_S >= len(pairs) * request_ms else ()


def _pace_interval(pace: Pace, tok_s: float) -> Interval:
    if pace.requests < 2 or not pace.tokens or not pace.seconds:  # noqa: PLR2004 (one request doesn't differ)
        return Interval(low=None, high=None)
    tokens, seconds = pace.tokens / pace.requests, pace.seconds / pace.requests
    squares = (
        pace.tokens_squared / tokens**2
        - 2 * pace.tokens_by_seconds / (tokens * seconds)
        + pace.seconds_squared / seconds**2
    )
    deviation = math.sqrt(max(squares, 0.0) / (pace.requests - 1))  # equal requests leave a rounding error
    return ratio_interval(tok_s, relative_deviation=deviation, count=pace.in_window, tail=BOTH_TAILS)


def _pace(records: Sequence[RequestRecord], time: MeasuredTime) -> Pace:
    pairs = [
        (float(record.output_tokens or 0) if record.succeeded else 0.0, record.ended_s - record.sent_s)
        for record in records
    ]
    return Pace(
        requests=len(pairs),
        tokens=math.fsum(tokens for tokens, _ in pairs),
        seconds=math.fsum(seconds for _, seconds in pairs),
        tokens_squared=math.fsum(tokens * tokens for tokens, _ in pairs),
        seconds_squared=math.fsum(seconds * seconds for _, seconds in pairs),
        tokens_by_seconds=math.fsum(tokens * seconds for tokens, seconds in pairs),
        in_window=math.fsum(record_share_inside(record, time) for record in records),
    )


def _added_pace(shares: Sequence[Pace]) -> Pace:
    sums = {name: math.fsum(getattr(share, name) for share in shares) for name in facts_of(Pace) if name != "requests"}
    return Pace(requests=sum(share.requests for share in shares), **sums)


def _sum(rates: Sequence[float | None]) -> float | None:
    # A sum with an unknown part is unknown.
    known = [rate for rate in rates if rate is not None]
    return math.fsum(known) if known and len(known) == len(rates) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelTally:
    """One worker's share of one level, or of several workers'; `level.level_of` makes the level's result of it.

    Attributes:
        concurrency: Requests in flight per copy, of the whole level.
        offered_requests_per_s: What an open loop offered through this worker; None in a closed loop.
        cut: Why it ended before all that it wanted had; None of a whole one.
        overtaken: Requests in flight then that were sent before one that had ended.
    """

    concurrency: int
    arrival: Arrival
    offered_requests_per_s: float | None
    counts: Counts
    throughput: Throughput
    latencies: Latencies
    tokens: Tokens
    client: ClientEvidence | None
    enough_because: str
    timeline: Timeline | None = None
    oddities: Oddities = NOTHING_ODD
    cut: Stop | None = None
    overtaken: int = 0

    def to_json(self) -> str:
        """Write the tally as one line of JSON."""
        return write_document(self)

    @classmethod
    def from_json(cls, text: str) -> LevelTally:
        """Read a tally strictly.

        Raises:
            BenchError: SEA501, with every unknown key and wrong type.
        """
        return read_document(cls, text, where="level tally")


def tally_of(
    records: Sequence[RequestRecord],
    *,
    concurrency: int,
    objectives: Sequence[Objective],
    ramp: int = 0,
    arrival: Arrival = "closed",
    protocol: PreparedBy = "seatrial",
    offered_requests_per_s: float | None = None,
    client: ClientEvidence | None = None,
    enough_because: str = "",
    sessions: int = 0,
) -> LevelTally:
    """Sum up one worker's share of a level.

    Args:
        records: Every request of the share, ramp included, at least one.
        concurrency: Requests in flight per copy, of the whole level.
        ramp: How many of the share's first requests, in the order of their numbers, aren't measured.
        sessions: How many recorded sessions go on at once through this worker; 0 of other requests.
    """
    first, measured = split(records, ramp)
    succeeded = [record for record in measured if record.succeeded]
    counts, latencies = counts_of(first, measured), latencies_of(succeeded)
    if sessions:
        rate = metrics.sessions_per_h(records, sessions)
        counts, latencies = replace(counts, sessions_per_h=rate), of_sessions(latencies, records, succeeded)
    time = measured_time(records, ramp=ramp, steady=has_steady_window(arrival, protocol))
    throughput = throughput_of(records, time, objectives)
    return LevelTally(
        concurrency=concurrency,
        arrival=arrival,
        offered_requests_per_s=offered_requests_per_s,
        counts=counts,
        throughput=throughput,
        latencies=latencies,
        tokens=tokens_of(succeeded),
        client=client,
        enough_because=enough_because,
        timeline=timeline_of(records),
        oddities=oddities_of(succeeded, throughput.in_flight if arrival == "closed" else None),
    )


def merge(tallies: Sequence[LevelTally]) -> LevelTally:
    """Merge the shares of one level, at least one; all are of workers that loaded at the same time."""
    offered = [tally.offered_requests_per_s for tally in tallies if tally.offered_requests_per_s is not None]
    known = [tally.client for tally in tallies if tally.client is not None]
    client = together(known) if known else None
    if client is not None and len(known) < len(tallies):
        client = replace(client, delivered_concurrency=None)  # a sum with an unknown part is unknown
    return LevelTally(
        concurrency=tallies[0].concurrency,
        arrival=tallies[0].arrival,
        offered_requests_per_s=math.fsum(offered) if offered else None,
        counts=added_counts([tally.counts for tally in tallies]),
        throughput=added([tally.throughput for tally in tallies]),
        latencies=merged_latencies([tally.latencies for tally in tallies]),
        tokens=added_tokens([tally.tokens for tally in tallies]),
        client=client,
        enough_because=next((tally.enough_because for tally in tallies if tally.enough_because), ""),
        timeline=added_timelines([tally.timeline for tally in tallies]),
        oddities=added_oddities([tally.oddities for tally in tallies]),
        cut=next((tally.cut for tally in tallies if tally.cut is not None), None),
        overtaken=sum(tally.overtaken for tally in tallies),
    )
