"""Requests of a level, written out by rule, and how workers share them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_load.decode.response import RequestRecord
from seatrial_load.metrics.aggregate import LevelTally, tally_of
from tests.constructs.conftest import OBJECTIVE

if TYPE_CHECKING:
    from collections.abc import Sequence

CONCURRENCY = 8


def records(count: int) -> list[RequestRecord]:
    """Return requests of 10 tokens each: eight in flight, first tokens from 0.2 s on, every seventh failed."""
    return [_record(index) for index in range(count)]


def tally(shared: Sequence[RequestRecord]) -> LevelTally:
    return tally_of(shared, concurrency=CONCURRENCY, objectives=(OBJECTIVE,))


def _record(index: int) -> RequestRecord:
    sent_s = (index // CONCURRENCY) * 2.0
    first_s = sent_s + 0.2 + 0.01 * index
    times = tuple(first_s + 0.05 * token for token in range(10))
    failed = index % 7 == 6
    return RequestRecord(
        sent_s=sent_s,
        first_token_s=None if failed else first_s,
        token_times_s=() if failed else times,
        last_token_s=None if failed else times[-1],
        ended_s=times[-1],
        input_tokens=None if failed else 48,
        output_tokens=None if failed else 10,
        output_tokens_from=None if failed else "events",
        error="throttled" if failed else None,
        status=429 if failed else 200,
        detail="slow down" if failed else "",
        index=index,
    )
