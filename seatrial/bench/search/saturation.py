"""Over-saturation: load that only queues. Throughput hardly grows, so by Little's law latency grows with the load."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from seatrial.bench.search.boundary import Bracket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.result import LevelResult

LEAST_GAIN = 0.2  # of the load's growth, logarithms: twice the load gives less than 15 % more throughput
NEARLY_ALL = 0.93  # of the highest throughput: a level that gives as much is full
APART = math.sqrt(2)  # nearer levels differ by noise as much as by load


@dataclass(frozen=True, slots=True)
class Saturation:
    """Two levels between which throughput hardly grew."""

    below: LevelResult
    above: LevelResult

    @property
    def sentence(self) -> str:
        """The same in words."""
        load = self.above.concurrency / self.below.concurrency
        gain = tok_s(self.above) / tok_s(self.below) - 1
        return (
            f"from {self.below.concurrency} to {self.above.concurrency} per copy, {load:.1f} times the load, "
            f"throughput changed by {gain * 100:+.0f} %: more load only queues"
        )


def saturation(levels: Sequence[LevelResult]) -> Saturation | None:
    """Find the widest pair of levels, ascending, of which the upper one only queues."""
    known = [level for level in levels if tok_s(level) > 0]
    found = [
        Saturation(below, above)
        for below, above in combinations(known, 2)
        if above.concurrency >= below.concurrency * APART and _gain(below, above) < LEAST_GAIN
    ]
    return max(found, key=lambda one: one.above.concurrency / one.below.concurrency, default=None)


def fullness(levels: Sequence[LevelResult]) -> Bracket:
    """Bracket the lowest load that gives nearly all of the highest throughput, levels ascending."""
    highest = max(tok_s(level) for level in levels)
    full = min(level.concurrency for level in levels if tok_s(level) >= NEARLY_ALL * highest)
    return Bracket(max((level.concurrency for level in levels if level.concurrency < full), default=None), full)


def _gain(below: LevelResult, above: LevelResult) -> float:
    """Return the growth of throughput over the growth of load, logarithm over logarithm."""
    return math.log(tok_s(above) / tok_s(below)) / math.log(above.concurrency / below.concurrency)


def tok_s(level: LevelResult) -> float:
    """Return the throughput that levels are compared by: output tokens, or requests where tokens weren't told."""
    return level.requests_per_s or 0.0 if level.output_tok_s is None else level.output_tok_s
