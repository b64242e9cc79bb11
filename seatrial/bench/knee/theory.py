"""What the plan says the knee is: the batch limit, or the bend of the predicted curve where that comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.bench.knee.kneedle import bend
from seatrial.bench.knee.points import Point
from seatrial.bench.result import Knee

if TYPE_CHECKING:
    from seatrial.bench.prior import Prior


def theory_knee(prior: Prior) -> Knee:
    """Return the lesser of the batch limit and the knee of the predicted curve; predicted, not measured."""
    found = bend([Point(level.concurrency, level.output_tok_s) for level in prior.levels])
    limit = prior.batch_limit
    if limit is not None and (found is None or limit <= found.concurrency):
        because = f"one copy batches at most {limit} sequences; predicted, not measured"
        return Knee(detector="theory", concurrency=limit, because=because)
    if found is not None:
        because = f"the predicted throughput bends at {found.concurrency} per copy; predicted, not measured"
        return Knee(detector="theory", concurrency=found.concurrency, because=because)
    because = "the predicted throughput does not bend" if prior.levels else "the plan predicts nothing"
    return Knee(detector="theory", concurrency=None, because=because)
