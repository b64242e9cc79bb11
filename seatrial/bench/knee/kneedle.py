"""Where throughput over concurrency bends: Kneedle, for a rising concave curve.

Satopaa, Albrecht, Irwin and Raghavan: Finding a "Kneedle" in a Haystack, ICDCS Workshops 2011. Both axes are scaled to
0..1; the knee is the first maximum of d = y - x after which d falls below that maximum - S x the mean step of x before
it rises to another maximum. S = 1, the paper's choice; no smoothing, since levels are few.

The axis of the concurrency is linear, although levels double: a request in flight costs the same whichever it is, and
throughput that rises in proportion to load is then the diagonal, which has no knee. On a logarithmic axis it would be
convex, which the method doesn't cover. The price: on a curve without a corner the knee moves with the highest level,
about with its root. A corner, such as the batch limit's, stays where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.bench.knee.points import throughputs
from seatrial.bench.result import Knee
from seatrial.units import tenths, whole_or_tenths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.result import LevelResult
    from seatrial.measure.crossing import Reading

MIN_LEVELS = 3
SENSITIVITY = 1.0


def kneedle_knee(levels: Sequence[LevelResult]) -> Knee:
    """Find the level at which throughput bends."""
    points = throughputs(levels)
    if len(points) < MIN_LEVELS:
        because = f"{len(points)} levels with a throughput are too few, {MIN_LEVELS} are needed"
        return Knee(detector="kneedle", concurrency=None, because=because)
    knee = bend(points)
    if knee is None:
        because = f"throughput does not bend between {points[0].load:g} and {points[-1].load:g} per copy"
        return Knee(detector="kneedle", concurrency=None, because=because)
    because = f"throughput bends at {whole_or_tenths(knee.load)} per copy with {tenths(knee.value)} tok/s"
    return Knee(detector="kneedle", concurrency=knee.load, because=because)


def bend(points: Sequence[Reading]) -> Reading | None:
    """Return the knee of a curve, ascending; None when there is none or there are too few points."""
    index = _first_knee(_differences(points)) if len(points) >= MIN_LEVELS else None
    return None if index is None else points[index]


def _differences(points: Sequence[Reading]) -> list[float]:
    xs = [float(point.load) for point in points]
    ys = [point.value for point in points]
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
