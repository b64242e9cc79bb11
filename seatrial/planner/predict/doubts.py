"""What no row was fitted on, or was taken for another thing than what was asked: the band is wider for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.documents.prediction import Band

DATA_PARALLEL = "Attention data parallelism was not fitted"
_WIDER = 1.5  # times the band; an assumption


def doubted(band: Band, doubts: tuple[str, ...]) -> Band:
    """Return the band of what is in doubt: 1.5 times as wide and not measured; the same without doubts.

    Args:
        band: The band.
        doubts: What is in doubt, in words without a full stop.
    """
    if not doubts:
        return band
    wider = {"throughput": _WIDER * band.throughput, "latency": _WIDER * band.latency}
    because = f"{band.because} {'; '.join(doubts)}."
    return band.model_copy(update={**wider, "measured": False, "because": because})
