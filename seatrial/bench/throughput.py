"""What one worker's share of a level yielded per second, over its own window; shares add up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.bench import metrics
from seatrial.bench.window import share_inside
from seatrial.measure.distribution import Interval
from seatrial.measure.interval import BOTH_TAILS, rate_interval, ratio_interval
from seatrial.measure.window import Window  # noqa: TC001 (the strict reader resolves the fields' types)
from seatrial.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.load import Arrival
    from seatrial.bench.record import RequestRecord
    from seatrial.bench.request import Objective
    from seatrial.measure.window import MeasuredTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Sums over requests, ramp included, that tell how much their pace differs; a failed one takes time for nothing.

    Attributes:
        requests: How many there are.
        tokens: Their output tokens.
        seconds: Their time from sending to end.
        tokens_squared: Sum of the squares of these tokens.
        seconds_squared: Sum of the squares of these times.
        tokens_by_seconds: Sum of the products of both.
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

    Shares that were loaded side by side add up, though each has its own window: no clock is shared, and a closed loop
    that is steady yields the same over any stretch of it. That holds as far as shares are alike and end together: one
    that goes on while others are over has the endpoint more to itself.

    Attributes:
        window: Over which time it was taken; `whole` if that is so of any share.
        window_s: How long that was; the longest of the shares'.
        answered: Requests answered in full, those of the ramp too.
        output_tok_s: None when nothing was answered, or an answer didn't tell its tokens.
        output_tok_s_slices: The same of each slice of the window.
        total_tok_s: Input and output tokens.
        requests_per_s: None when the window has no length.
        goodput_requests_per_s: Those of them within every per-request objective.
        in_flight: Requests in flight, averaged over the window.
        pace: How much requests differ.
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
    """Take the throughput of requests, ramp included, over a window."""
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
    """Add up the throughput of shares that were loaded side by side, at least one."""
    answering = [share for share in shares if share.answered]
    return Throughput(
        window="steady" if all(share.window == "steady" for share in shares) else "whole",
        window_s=max(share.window_s for share in shares),
        answered=sum(share.answered for share in shares),
        output_tok_s=_sum([share.output_tok_s for share in answering]),
        output_tok_s_slices=_sum_of_slices([share.output_tok_s_slices for share in answering]),
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
    decide how much there is to do, so only batch means tell.

    Args:
        share: The throughput of the whole level.
        request_ms: The median time of a request; None when none succeeded.
        arrival: How requests were timed.

    Returns:
        The interval; None when the level is too short for either.
    """
    if share.output_tok_s is None or request_ms is None:
        return None
    found = [rate_interval(_long_slices(share, request_ms), tail=BOTH_TAILS)]
    if arrival == "closed":
        found.append(_pace_interval(share.pace, share.output_tok_s))
    return max((bounds for bounds in found if bounds.high is not None), key=_width, default=None)


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


def _width(bounds: Interval) -> float:
    return (bounds.high or 0.0) - (bounds.low or 0.0)


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
        in_window=math.fsum(share_inside(record, time) for record in records),
    )


def _added_pace(shares: Sequence[Pace]) -> Pace:
    return Pace(
        requests=sum(share.requests for share in shares),
        tokens=math.fsum(share.tokens for share in shares),
        seconds=math.fsum(share.seconds for share in shares),
        tokens_squared=math.fsum(share.tokens_squared for share in shares),
        seconds_squared=math.fsum(share.seconds_squared for share in shares),
        tokens_by_seconds=math.fsum(share.tokens_by_seconds for share in shares),
        in_window=math.fsum(share.in_window for share in shares),
    )


def _sum(rates: Sequence[float | None]) -> float | None:
    """Add rates; None when there are none or one is unknown: a sum with a hole is no sum."""
    known = [rate for rate in rates if rate is not None]
    return math.fsum(known) if known and len(known) == len(rates) else None


def _sum_of_slices(shares: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """Add the rates slice by slice; none when one share has none (all have equally many, or none)."""
    return tuple(map(math.fsum, zip(*shares, strict=True))) if all(shares) else ()
