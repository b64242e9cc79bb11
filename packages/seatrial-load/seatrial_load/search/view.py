"""What a search sees: the request, what was measured, what is expected of the rest, and where it may still look."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from seatrial_load.knee.detectors import slo_bracket
from seatrial_load.search.forecast import Forecast, forecast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import LevelResult

NARROW = 0.9  # of a bound: what is above holds, but not by much
APART = 2.0  # as a factor: a wider stretch without a level is worth a look
VOID_MARGIN = 1.25  # a client that was the limit at C isn't asked for more than C / 1.25


class Unsure(NamedTuple):
    """A stretch of loads over which the SLO may be missed, although it holds at its upper end.

    Attributes:
        low: Where it begins.
        high: Where it ends, at a measured level.
        middle: The load halfway, as factors go; it lies strictly between the measured levels around the stretch.
    """

    low: float
    high: int
    middle: int


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a search sees.

    Attributes:
        request: What was asked.
        valid: The levels that say something of the endpoint, ascending.
        void: Those that the client limited, ascending.
        bottom: The lowest concurrency to look at.
        top: The highest one.
        forecast: What is expected of the others.
    """

    request: TrialRequest
    valid: tuple[LevelResult, ...]
    void: tuple[LevelResult, ...]
    bottom: int
    top: int
    forecast: Forecast

    @property
    def measured(self) -> frozenset[int]:
        """Every concurrency that was measured, void levels too."""
        return frozenset(level.concurrency for level in (*self.valid, *self.void))

    @property
    def dead(self) -> tuple[LevelResult, ...]:
        """The levels at which no request succeeded."""
        return tuple(level for level in self.valid if not level.succeeded)

    @property
    def held(self) -> int | None:
        """The highest level that meets the SLO below the level that misses it."""
        held = slo_bracket(self.valid).held
        return None if held is None else held.concurrency

    @property
    def missed(self) -> int | None:
        """The lowest level above it that misses the SLO; where none meets it, the lowest level."""
        missed = slo_bracket(self.valid).missed
        return None if missed is None else missed.concurrency

    @property
    def unsure(self) -> Unsure | None:
        """The lowest wide stretch without a level, below one that holds, over which it is expected to hold narrowly.

        Latency need not rise with load everywhere: a step of the batch may miss the SLO where more load meets it.
        """
        held = self.held or 0
        holding = [level.concurrency for level in self.valid if level.concurrency <= held]
        for low, high in pairwise([self.bottom, *holding]):
            narrow = self.forecast.first_miss(low, high, NARROW)
            if narrow is not None and high > narrow * APART and high > low + 1:
                middle = math.floor(math.sqrt(narrow * high))
                return Unsure(narrow, high, min(max(middle, low + 1), high - 1))
        return None

    @property
    def crossing(self) -> float | None:
        """Where the SLO is expected to be missed first, given what was measured; None where nowhere."""
        held, missed = self.held, self.missed
        if held is not None:
            return self.forecast.first_miss(held, self.top if missed is None else missed)
        if missed is not None:
            return self.forecast.last_hold(self.bottom, missed) if self.forecast.burdens else None
        return self.forecast.first_miss(self.bottom, self.top)


def search_view(request: TrialRequest, levels: Sequence[LevelResult]) -> View:
    """Sort what was measured; a client's own limit lowers the highest concurrency to look at."""
    ordered = sorted(levels, key=attrgetter("concurrency"))
    void = tuple(level for level in ordered if not level.valid)
    bottom, top = request.load.concurrency_levels[0], request.load.concurrency_levels[-1]
    if void:
        top = min(top, int(void[0].concurrency / VOID_MARGIN))
    return View(
        request=request,
        valid=tuple(level for level in ordered if level.valid),
        void=void,
        bottom=bottom,
        top=max(bottom, top),
        forecast=forecast(request, levels),
    )
