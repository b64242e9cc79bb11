"""What it means for a plan that no row has a model's family, or that another one stands in for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial.documents.prediction import EXTRAPOLATED
from seatrial_base.catalog.config_json import unplanned_feature

if TYPE_CHECKING:
    from seatrial.documents.prediction import Band
    from seatrial_base.catalog.architecture import Architecture

WIDER: Final = 2  # times; an assumption: no row tells how far off they are


def stand_in_words(architecture: Architecture) -> str:
    """Say which family stands in for which, and what it lacks where that is known; empty for a known family."""
    unknown = architecture.unknown_family
    if unknown is None:
        return ""
    lacking = unplanned_feature(unknown)
    without = f", without {lacking}" if lacking else ""
    return f"{unknown} is unknown, planned as {architecture.family}{without}"


def widened(band: Band, architecture: Architecture) -> Band:
    """Return the band of a deployment: twice as wide for an unknown family or Mamba, unless it was calibrated."""
    words = stand_in_words(architecture)
    doubt = f"The model_type {words}" if words else "No row has Mamba layers" if architecture.state_bytes else ""
    if not doubt or band.points:
        return band
    because = f"{band.because} {doubt}, so the band is {WIDER} times as wide: {EXTRAPOLATED}"
    wider = {"throughput": band.throughput * WIDER, "latency": band.latency * WIDER}
    return band.model_copy(update={**wider, "because": because})
