"""The course of a level, in bins of equal width from its first sending on: tokens, requests in flight, TTFT."""

from __future__ import annotations

import math
from itertools import zip_longest
from typing import TYPE_CHECKING

from seatrial_load.documents.result import Timeline
from seatrial_load.metrics import request_metrics as metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial_load.decode.response import RequestRecord


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
            # From the first token to the last; all at its end when nothing streamed.
            end_s = record.ended_s if record.last_token_s is None else record.last_token_s
            begin_s = end_s if record.first_token_s is None else record.first_token_s
            for at, share in _shares(begin_s - start_s, end_s - start_s, bin_s, bins):
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
    """Return a timeline with wider bins, each as wide as a whole number of its own."""
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
