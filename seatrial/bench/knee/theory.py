"""What the plan says the knee is: the batch limit, or the bend of the predicted curve where that comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.bench.knee.kneedle import bend
from seatrial.bench.result import Knee
from seatrial.measure.crossing import Reading
from seatrial.units import whole_or_tenths

if TYPE_CHECKING:
    from seatrial.bench.prior import Prior


def theory_knee(prior: Prior) -> Knee:
    """Return the lesser of the batch limit and the knee of the predicted curve; predicted, not measured."""
    found = bend([Reading(load=float(level.concurrency), value=level.output_tok_s) for level in prior.levels])
    limit = prior.batch_limit
    if limit is not None and (found is None or limit <= found.load):
        because = f"one copy batches at most {limit} sequences; predicted, not measured"
        return Knee(detector="theory", concurrency=limit, because=because)
    if found is not None:
        because = f"the predicted throughput bends at {whole_or_tenths(found.load)} per copy; predicted, not measured"
        return Knee(detector="theory", concurrency=found.load, because=because)
    because = "the predicted throughput does not bend" if prior.levels else "the plan predicts nothing"
    return Knee(detector="theory", concurrency=None, because=because)
