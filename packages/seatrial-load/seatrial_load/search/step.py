"""What a search answers: a level to measure, or that it is over; each with its reason, a sentence for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from seatrial_load.model.stop import Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class NextLevel:
    """Measure this concurrency per copy next."""

    concurrency: int
    because: str


Step: TypeAlias = NextLevel | Stop
