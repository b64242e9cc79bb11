"""The load that saturates the endpoint: the highest throughput over that of one request in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.bench.knee.points import throughputs
from seatrial.bench.result import Knee
from seatrial.measure.saturation import saturation
from seatrial.units import tenths, whole_or_tenths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.result import LevelResult


def saturation_knee(levels: Sequence[LevelResult]) -> Knee:
    """Find the load at which the unloaded pace would give the highest throughput (`measure.saturation`).

    Levels with a failed request don't count: what an endpoint gives while it refuses is not what it can keep.
    """
    clean = [level for level in levels if level.succeeded == level.requests]
    found = saturation(throughputs(clean))
    if found is None:
        because = "no level without an error has a throughput" if levels else "no level was measured"
        return Knee(detector="saturation", concurrency=None, because=because)
    at = whole_or_tenths(found.load)
    low, high = (f"{tenths(one.value)} tok/s at {whole_or_tenths(one.load)}" for one in (found.lowest, found.highest))
    because = (
        f"at the pace of {low} per copy the highest throughput, {high}, takes {at} requests in flight"
        if found.is_reached
        else f"throughput grows in proportion to the load up to {at} per copy, the highest level without an error"
    )
    return Knee(detector="saturation", concurrency=found.load, because=because, interval=found.interval)
