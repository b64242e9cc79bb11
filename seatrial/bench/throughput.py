"""What one worker's share of a level yielded per second, over its own window; shares add up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.bench import metrics
from seatrial.bench.result import Window  # noqa: TC001 (the strict reader resolves the fields' types)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.record import RequestRecord
    from seatrial.bench.request import Objective
    from seatrial.bench.window import MeasuredTime


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
    )


def _sum(rates: Sequence[float | None]) -> float | None:
    """Add rates; None when there are none or one is unknown: a sum with a hole is no sum."""
    known = [rate for rate in rates if rate is not None]
    return math.fsum(known) if known and len(known) == len(rates) else None


def _sum_of_slices(shares: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """Add the rates slice by slice; none when one share has none (all have equally many, or none)."""
    return tuple(map(math.fsum, zip(*shares, strict=True))) if all(shares) else ()
