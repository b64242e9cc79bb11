"""The predicted knee of one copy: that of its predicted levels, by the definition of a trial."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seatrial.documents.prediction import PredictedKnee
from seatrial_load.documents.result import Knee
from seatrial_load.knee.leading import leading_knee
from seatrial_load.measure.saturation import saturation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seatrial.documents.prediction import PredictedBy
    from seatrial_load.documents.request import TargetKnee
    from seatrial_load.documents.result import Detector
    from seatrial_load.measure.crossing import Reading


class PredictedTarget(NamedTuple):
    """The knee, the target that it gives in requests in flight per copy, and why it leads."""

    knee: PredictedKnee
    concurrency: float
    because: str


def predicted_target(
    throughputs: Sequence[Reading],
    *,
    capacity: int,
    batch_limit: int,
    gate: int,
    target_knee: TargetKnee,
    utilization: float,
) -> PredictedTarget:
    """Return the target that a trial would find if every level were as predicted.

    Args:
        throughputs: Predicted throughput of one copy by concurrency, ascending.
        capacity: Highest concurrency of one copy that is predicted to meet every objective.
        batch_limit: Sequences that the copy batches at once.
        gate: Requests in flight for which a copy is planned.
        target_knee: Which knee sets the target.
        utilization: Target utilization, above 0 and at most 1.
    """
    found = saturation(throughputs)
    saturated = None if found is None else min(found.load, float(batch_limit))
    planned = float(gate if found is None else found.planned(gate, utilization))
    knees = (
        Knee(detector="slo", concurrency=float(capacity), because=""),
        Knee(detector="saturation", concurrency=saturated, because="no level is predicted"),
        Knee(detector="gate", concurrency=planned, because=""),
    )
    leads = leading_knee(knees, has_slo=True, target_knee=target_knee, utilization=utilization)
    knee = leads.knee or knees[0]
    predicted = PredictedKnee(concurrency=max(1, int(knee.concurrency or 1)), detector=_BY[knee.detector])
    return PredictedTarget(predicted, round(leads.target, 1), leads.because)


_BY: Mapping[Detector, PredictedBy] = {"slo": "slo", "saturation": "saturation", "gate": "gate"}
