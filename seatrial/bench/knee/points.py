"""What detectors look at: the valid levels, ascending."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from seatrial.bench.statistic import reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.result import LevelResult
    from seatrial.measure.crossing import Reading


def ascending(levels: Sequence[LevelResult]) -> list[LevelResult]:
    """Return the levels that say something of the endpoint, by concurrency."""
    return sorted((level for level in levels if level.valid), key=attrgetter("concurrency"))


def throughputs(levels: Sequence[LevelResult]) -> list[Reading]:
    """Return the throughput of every valid level that has one; of one concurrency the highest.

    Levels of an open loop are rates: several may have the same number in flight.
    """
    highest: dict[float, Reading] = {}
    for level in ascending(levels):
        found = reading(level, "output_tok_s", "value")
        if found is not None and (found.load not in highest or found.value > highest[found.load].value):
            highest[found.load] = found
    return list(highest.values())
