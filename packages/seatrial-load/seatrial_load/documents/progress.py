"""The progress of a trial that is not over: the state that another run continues from, and the events for a watcher.

A watcher must return at once, since nothing is received meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial_load.documents.result import (  # noqa: TC001 (likewise)
    ClientCalibration,
    LevelResult,
    LiveProof,
    SearchStep,
    Unmeasured,
    UsersLoad,
)
from seatrial_load.documents.stop import Stop
from seatrial_load.documents.strict_json import read_document, write_document

if TYPE_CHECKING:
    from seatrial_load.documents.result import LevelResult


PROGRESS_VERSION: Literal["1"] = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialProgress:
    """A trial between two levels.

    Attributes:
        started_at: ISO 8601, UTC; also seeds the prompts.
        elapsed_s: Time of the trial so far, over all its runs; pauses between them don't count.
        sent: Requests sent so far: the next one has this number.
        unmeasured: The outcome of the first request, the warm-up and the levels that were cut.
        cut: What these levels had measured by then.
        stopped: Why no further level is measured; None while one may be.
    """

    schema_version: Literal["1"] = PROGRESS_VERSION
    started_at: str
    elapsed_s: float
    sent: int
    live: LiveProof
    levels: tuple[LevelResult, ...] = ()
    search: tuple[SearchStep, ...] = ()
    unmeasured: tuple[Unmeasured, ...] = ()
    engine_note: str = ""
    words_per_token: float | None = None
    clock_offset_s: float | None = None
    client: ClientCalibration | None = None
    stopped: Stop | None = None
    runs: int = 1
    users: UsersLoad | None = None
    cut: tuple[LevelResult, ...] = ()
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"

    @property
    def measured_from_s(self) -> float | None:
        """When the first level started, in seconds since the epoch; None before."""
        return min((level.from_s for level in self.levels if level.from_s is not None), default=None)

    @property
    def measured_to_s(self) -> float | None:
        """When the last level ended."""
        return max((level.to_s for level in self.levels if level.to_s is not None), default=None)

    def with_level_time(self, from_s: float, to_s: float, *, is_cut: bool = False) -> TrialProgress:
        """Return the progress with the time of its last level, in seconds since the epoch, for CloudWatch."""
        *before, last = self.cut if is_cut else self.levels
        timed = (*before, replace(last, from_s=from_s, to_s=to_s))
        return replace(self, cut=timed) if is_cut else replace(self, levels=timed)

    def to_json(self) -> str:
        """Write the progress as one line of JSON."""
        return write_document(self)

    @classmethod
    def from_json(cls, text: str) -> TrialProgress:
        """Read a progress strictly, also one that an earlier release wrote.

        Raises:
            BenchError: SEA501, with every unknown key and wrong type.
        """
        return read_document(cls, text, where="trial progress", retired=_RETIRED)


_RETIRED = frozenset({"measured_from_s", "measured_to_s"})  # levels have their own times since


@dataclass(frozen=True, slots=True, kw_only=True)
class NextLevel:
    """Measure this concurrency per copy next."""

    concurrency: int
    because: str


Step: TypeAlias = NextLevel | Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelStarted:
    """A level begins.

    Attributes:
        concurrency: Requests in flight per copy; of an open loop, the most in flight.
        rate_per_s: What an open loop offers; None in a closed loop.
        requests: Requests of the level at most, ramp included.
    """

    concurrency: int
    rate_per_s: float | None
    streams: int
    requests: int
    because: str
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelAdvanced:
    """The number of requests of the level that ended, as far as known; sent every five seconds."""

    ended: int
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelEnded:
    """A level was measured, whether it is valid or void."""

    level: LevelResult
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialMessage:
    """Something that is no level: the warm-up, the proof, a clock that is wrong."""

    text: str
    elapsed_s: float


TrialEvent: TypeAlias = LevelStarted | LevelAdvanced | LevelEnded | TrialMessage
Watch: TypeAlias = Callable[[TrialEvent], None]


def unwatched(_event: TrialEvent) -> None:
    """Ignore an event."""
