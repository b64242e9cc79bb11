"""The full sweep: every listed level, ascending, until more load would teach nothing."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from seatrial.bench.search.step import NextLevel, Step, Stop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.model.request import Load
    from seatrial.bench.model.result import LevelResult

ALL_MEASURED = "every level was measured"
LISTED = "next listed level"


def next_of_sweep(load: Load, levels: Sequence[LevelResult]) -> Step:
    """Return the lowest listed level above the last one, unless there is a reason to stop."""
    if levels and (reason := why_stop(levels)):
        return Stop(because=reason)
    highest = max((level.concurrency for level in levels), default=0)
    following = next((concurrency for concurrency in load.concurrency_levels if concurrency > highest), None)
    return Stop(because=ALL_MEASURED) if following is None else NextLevel(concurrency=following, because=LISTED)


def why_stop(levels: Sequence[LevelResult]) -> str:
    """Say why more load would teach nothing, levels ascending; empty when it would.

    That is so after a level without success, after two levels in a row that each missed the SLO and had less throughput
    than the level before, and after two levels in a row that the client limited.
    """
    last = levels[-1]
    if not last.succeeded:
        return f"no request succeeded at concurrency {last.concurrency} per copy"
    at = f"last at concurrency {last.concurrency} per copy"
    if [level.valid for level in levels[-2:]] == [False, False]:
        return f"the client was the limit twice in a row, {at}: {last.void_because}"
    falling = [not after.meets_slo and _throughput(after) < _throughput(before) for before, after in pairwise(levels)]
    if last.valid and falling[-2:] == [True, True]:
        return f"throughput fell and the SLO was missed twice in a row, {at}"
    return ""


def _throughput(level: LevelResult) -> float:
    return level.requests_per_s or 0.0 if level.output_tok_s is None else level.output_tok_s
