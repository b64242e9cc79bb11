"""The highest load that meets the SLO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.bench.knee.points import ascending
from seatrial.bench.result import Knee

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.result import LevelResult


def slo_knee(levels: Sequence[LevelResult]) -> Knee:
    """Find the highest level that meets the SLO, with every level below it."""
    held: LevelResult | None = None
    for level in ascending(levels):
        if not level.meets_slo:
            return _knee_before(held, level)
        held = level
    if held is None:
        because = "no level is valid: the client was the limit" if levels else "no level was measured"
        return Knee(detector="slo", concurrency=None, because=because)
    because = f"every level meets the SLO up to {held.concurrency} per copy, the highest measured"
    return Knee(detector="slo", concurrency=held.concurrency, because=because)


def _knee_before(held: LevelResult | None, missed: LevelResult) -> Knee:
    because = "; ".join(missed.misses)
    if held is None:
        return Knee(detector="slo", concurrency=None, because=f"the lowest level misses the SLO: {because}")
    return Knee(detector="slo", concurrency=held.concurrency, because=because)
