"""What detectors look at: the valid levels, ascending."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.result import LevelResult


class Point(NamedTuple):
    """Throughput at one concurrency per copy; all copies together."""

    concurrency: int
    output_tok_s: float


def ascending(levels: Sequence[LevelResult]) -> list[LevelResult]:
    """Return the levels that say something of the endpoint, by concurrency."""
    return sorted((level for level in levels if level.valid), key=attrgetter("concurrency"))


def throughputs(levels: Sequence[LevelResult]) -> list[Point]:
    """Return the throughput of every valid level that has one; of one concurrency the highest.

    Levels of an open loop are rates: several may have the same number in flight.
    """
    known = ((level.concurrency, level.output_tok_s) for level in ascending(levels))
    highest: dict[int, float] = {}
    for concurrency, tok_s in known:
        if tok_s is not None:
            highest[concurrency] = max(tok_s, highest.get(concurrency, 0.0))
    return [Point(concurrency, tok_s) for concurrency, tok_s in highest.items()]
