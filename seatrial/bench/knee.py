"""Where more load stops paying: two detectors, each named, each with its reason, None when it sees no knee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.bench.result import Knee

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.result import LevelResult

MIN_KNEEDLE_LEVELS = 3
SENSITIVITY = 1.0


def slo_knee(levels: Sequence[LevelResult]) -> Knee:
    """Find the highest level that meets the SLO, with every level below it (levels ascending)."""
    held: LevelResult | None = None
    for level in levels:
        if not level.meets_slo:
            return _slo_knee_before(held, level)
        held = level
    if held is None:
        return Knee(detector="slo", concurrency=None, because="no level was measured")
    because = f"every level meets the SLO up to {held.concurrency} per copy, the highest measured"
    return Knee(detector="slo", concurrency=held.concurrency, because=because)


def _slo_knee_before(held: LevelResult | None, missed: LevelResult) -> Knee:
    because = "; ".join(missed.misses)
    if held is None:
        return Knee(detector="slo", concurrency=None, because=f"the lowest level misses the SLO: {because}")
    return Knee(detector="slo", concurrency=held.concurrency, because=because)


def kneedle_knee(levels: Sequence[LevelResult]) -> Knee:
    """Find where throughput over concurrency bends: Kneedle, for a rising concave curve.

    Satopaa, Albrecht, Irwin and Raghavan, "Finding a 'Kneedle' in a Haystack", ICDCS Workshops 2011: both axes are
    scaled to 0..1; d = y - x; a local maximum of d is a knee once d falls below that maximum - S x the mean step of x
    before it rises to another maximum. S = 1; no smoothing, since levels are few.
    """
    known = [(level.concurrency, level.output_tok_s) for level in levels if level.output_tok_s is not None]
    points = [_Point(concurrency, tok_s) for concurrency, tok_s in known]
    if len(points) < MIN_KNEEDLE_LEVELS:
        because = f"{len(points)} levels with a throughput are too few, {MIN_KNEEDLE_LEVELS} are needed"
        return Knee(detector="kneedle", concurrency=None, because=because)
    index = _first_knee(_differences(points))
    if index is None:
        because = f"throughput does not bend between {points[0].concurrency} and {points[-1].concurrency} per copy"
        return Knee(detector="kneedle", concurrency=None, because=because)
    knee = points[index]
    because = f"throughput bends at {knee.concurrency} per copy with {knee.output_tok_s:.1f} tok/s"
    return Knee(detector="kneedle", concurrency=knee.concurrency, because=because)


@dataclass(frozen=True, slots=True)
class _Point:
    concurrency: int
    output_tok_s: float


def _differences(points: Sequence[_Point]) -> list[float]:
    xs = [float(point.concurrency) for point in points]
    ys = [point.output_tok_s for point in points]
    return [y - x for x, y in zip(_scaled(xs), _scaled(ys), strict=True)]


def _scaled(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 0.0 for value in values]


def _first_knee(differences: Sequence[float]) -> int | None:
    mean_step = 1 / (len(differences) - 1)
    candidate: int | None = None
    for index in range(1, len(differences)):
        before, here = differences[index - 1], differences[index]
        after = differences[index + 1] if index + 1 < len(differences) else here
        if candidate is not None and here < differences[candidate] - SENSITIVITY * mean_step:
            return candidate
        if before < here and after < here:
            candidate = index
    return None
