"""How many requests a level sends: those that fill the batch, those it measures at least, those it measures at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.bench.bound import requests_needed

if TYPE_CHECKING:
    from seatrial.bench.request import TrialRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSize:
    """The requests of one level, all copies together.

    Attributes:
        streams: Requests in flight.
        ramp: The first requests, which aren't measured.
        least: Measured requests at least.
        most: Measured requests at most.
    """

    streams: int
    ramp: int
    least: int
    most: int

    @property
    def requests(self) -> int:
        """Requests of the level at most, ramp included."""
        return self.ramp + self.most


def level_size(request: TrialRequest, concurrency: int) -> LevelSize:
    """Return the size of a closed-loop level at a concurrency per copy.

    The gate's level measures as many as its objectives need to be proven one way or the other.
    """
    load, streams = request.load, concurrency * request.copy_count
    least = load.requests or load.requests_per_concurrency * streams
    if concurrency == request.gate_concurrency and load.protocol == "seatrial" and load.requests is None:
        least = max(least, requests_needed(request.objectives, request.gate.confidence))
    cap = load.max_requests_per_concurrency or load.requests_per_concurrency
    return LevelSize(
        streams=streams,
        ramp=load.ramp_per_concurrency * streams,
        least=least,
        most=load.requests or max(least, cap * streams),
    )
