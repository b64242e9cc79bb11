"""How late the client looks: the time between when bytes may have arrived and their timestamp."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from typing import TYPE_CHECKING

from seatrial.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

STEPS_PER_OCTAVE = 16
MOST_POINTS = 4
_FLOOR_S = 1e-6
_ROUNDING = 1e-9


class LagMeter:
    """Keeps three numbers of each turn of the loop; what they mean is worked out when the clock has stopped.

    Bytes that a waiting poll returned arrived when it returned: their lag is the time until their own read. Bytes that
    a poll found without waiting may have arrived at any time since the poll before it returned, which didn't tell of
    them: their lag is counted from there, so it is an upper bound, and it is what a loop without a free moment shows.
    Not in it: the time in which the process was ready to run but had no core, because a process can't see that of
    itself; Linux tells the sum (`run_delay_share`).
    """

    __slots__ = ("_counts", "_delays_s", "_spans_s", "_told_s")

    def __init__(self) -> None:
        self._delays_s = array("d")
        self._spans_s = array("d")
        self._counts = array("L")
        self._told_s = math.inf

    def note(self, told_s: float, done_s: float, count: int, *, waited: bool) -> None:
        """Note a turn.

        Args:
            told_s: When the poll returned.
            done_s: When the last of its descriptors was read.
            count: How many there were.
            waited: Whether the poll had to wait for them.
        """
        if count:
            self._delays_s.append(0.0 if waited else max(0.0, told_s - self._told_s))
            self._spans_s.append(done_s - told_s)
            self._counts.append(count)
        self._told_s = told_s

    @property
    def reads(self) -> int:
        """How many reads were noted."""
        return sum(self._counts)

    def percentile_ms(self, share: float) -> float | None:
        """Return the lag that this share of the reads doesn't exceed, ms, up to 4.4 % too much; None without reads.

        The reads of a turn are taken to be evenly spread over it.
        """
        tally: dict[int, float] = defaultdict(float)
        for delay_s, span_s, count in zip(self._delays_s, self._spans_s, self._counts, strict=True):
            points = min(count, MOST_POINTS)
            for point in range(1, points + 1):
                lag_s = delay_s + span_s * point / points
                tally[math.ceil(math.log2(max(lag_s, _FLOOR_S)) * STEPS_PER_OCTAVE)] += count / points
        return _at_share(tally, share)


def _at_share(tally: Mapping[int, float], share: float) -> float | None:
    left = sum(tally.values()) * share
    for step in sorted(tally):
        left -= tally[step]
        if left <= _ROUNDING:
            return float(2.0 ** (step / STEPS_PER_OCTAVE)) * MS_PER_S
    return None
