"""What a trial tells while it runs; whoever watches must return at once, since nothing is received meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from seatrial_load.documents.result import LevelResult


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelStarted:
    """A level begins.

    Attributes:
        concurrency: Requests in flight per copy; of an open loop, the most in flight.
        rate_per_s: What an open loop offers; None in a closed loop.
        streams: Connections.
        requests: Requests of the level at most, ramp included.
        because: Why this level.
        elapsed_s: Time of the trial so far.
    """

    concurrency: int
    rate_per_s: float | None
    streams: int
    requests: int
    because: str
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelAdvanced:
    """The level goes on: how many of its requests ended, as far as is known; told every five seconds."""

    ended: int
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelEnded:
    """A level was measured, whether it is valid or void."""

    level: LevelResult
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Something that is no level: the warm-up, the proof, a clock that is wrong."""

    text: str
    elapsed_s: float


TrialEvent: TypeAlias = LevelStarted | LevelAdvanced | LevelEnded | Told
Watch: TypeAlias = Callable[[TrialEvent], None]


def unwatched(_event: TrialEvent) -> None:
    """Let an event pass."""
