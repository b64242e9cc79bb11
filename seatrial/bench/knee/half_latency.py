"""The queueing rule: the load at which half of the latency is waiting for other requests.

Kleinrock's power, throughput / latency, is highest where one more percent of load adds as much latency as throughput
(Power and deterministic rules of thumb for probabilistic problems in computer communications, ICC 1979). For M/M/1, and
for any endpoint whose latency grows linearly with the requests in flight, that is where latency is twice the unloaded
one. The rule is this factor two, which needs no slope and so stands noise.

It isn't Patel's half-latency rule (SIGMETRICS PER 43(2), 2015), for which latency is twice its own mean over all
throughputs below: that mean depends on how densely the levels lie. An endpoint that batches without slowing down up to
a limit reaches twice the latency at twice the limit: `kneedle` and `two_segment` find the limit itself.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from seatrial.bench.knee.points import ascending
from seatrial.bench.result import Knee
from seatrial.units import tenths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.result import LevelResult

LATENCY_RATIO = 2.0
MIN_LEVELS = 2


def half_latency_knee(levels: Sequence[LevelResult]) -> Knee:
    """Find the highest level whose mean latency is at most twice the lowest level's, with every level below it."""
    known = [(level.concurrency, level.e2e_latency_ms.mean) for level in ascending(levels) if level.e2e_latency_ms]
    if len(known) < MIN_LEVELS:
        because = f"{len(known)} levels with a latency are too few, {MIN_LEVELS} are needed"
        return Knee(detector="half_latency", concurrency=None, because=because)
    (lowest, unloaded_ms), (highest, _) = known[0], known[-1]
    within = [concurrency for concurrency, _ in takewhile(lambda one: one[1] <= LATENCY_RATIO * unloaded_ms, known)]
    twice = f"twice the {tenths(unloaded_ms)} ms at {lowest} per copy"
    if len(within) == len(known):
        because = f"the mean latency stays within {twice} up to {highest} per copy, the highest measured"
        return Knee(detector="half_latency", concurrency=None, because=because)
    above, above_ms = known[len(within)]
    because = f"the mean latency at {above} per copy, {tenths(above_ms)} ms, is above {twice}"
    return Knee(detector="half_latency", concurrency=within[-1], because=because)
