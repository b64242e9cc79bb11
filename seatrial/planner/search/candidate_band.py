"""How far the predictions for a deployment may be off: the band of its place, or of its own calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.planner.predict.band import band_of
from seatrial.planner.predict.doubts import DATA_PARALLEL, doubted
from seatrial.planner.predict.unknown_family import widened

if TYPE_CHECKING:
    from seatrial.documents.prediction import Band
    from seatrial.planner.search.candidate import Candidate
    from seatrial.planner.search.demand import Demand


def band_for(demand: Demand, engine_version: str, candidate: Candidate) -> Band:
    """Return how far the predictions for a deployment may be off."""
    own = demand.calibrated
    measured = own is not None and own.holds_for(candidate.instance.instance_type, candidate.degree)
    band = band_of(
        demand.engine,
        engine_version,
        demand.architecture,
        candidate.instance,
        degree=candidate.degree,
        quantization=demand.quantization,
        speculation=demand.speculation,
        input_tokens=demand.prompt_tokens,
        calibrated=own.band if own is not None and measured else None,
    )
    doubts = (DATA_PARALLEL,) if candidate.copy.attention_data_parallel_degree > 1 and not band.points else ()
    return doubted(widened(band, demand.architecture), doubts)
