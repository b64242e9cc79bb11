"""Between a load that is good and one that is not: how to close in on the highest good one.

Loads differ by factors, so everything is measured in factors: a bracket is closed when its ends differ by at most
`CLOSE`, or by at most `TRUSTED` where the crossing is expected close to the good end. Where a crossing is expected, the
next levels lie just below and just above it; where none is, or where expectation has failed often enough, the bracket
is halved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

CLOSE = 1.1  # ends that differ by this factor or less: the highest good load is known within 10 %
TRUSTED = 1.2  # ends that differ by this factor or less, with the crossing expected within `CLOSE` of the good one
FARTHEST = 8.0  # most that one level may lie outside of what was measured, as a factor: load above the knee costs time
DOUBLE = 2.0
BESIDE = math.sqrt(CLOSE)  # the first look is so far below an expected crossing
BEYOND = 1.2  # the second one so far above the first: a miss there closes the bracket
CREEP = 1.3  # a step by less than this, after which the end still isn't found, has crept: the next is its square
PATIENCE = 5  # levels near a bracket after which an expectation isn't asked any more
NEAR = 1.6  # a level is near a bracket within this factor of an end


@dataclass(frozen=True, slots=True)
class Bracket:
    """The highest load that is good, and the lowest above it that isn't; None is not known yet."""

    good: int | None
    bad: int | None

    @property
    def is_narrow(self) -> bool:
        """Whether the ends themselves are near enough: within `CLOSE`, or no load lies between."""
        return self.good is not None and self.bad is not None and self.bad <= max(self.good + 1, self.good * CLOSE)

    def is_closed(self, crossing: float | None) -> bool:
        """Whether the highest good load is known well enough: by both ends, or by what is expected between them."""
        if self.good is None or self.bad is None or crossing is None:
            return self.is_narrow
        return self.is_narrow or (self.bad <= self.good * TRUSTED and crossing <= self.good * CLOSE)


def between(bracket: Bracket, bottom: int, top: int, crossing: float | None, measured: Collection[int]) -> int | None:
    """Choose the load to measure next; None when the bracket is closed or the range ends.

    Args:
        bracket: What is known.
        bottom: The lowest load to look at.
        top: The highest.
        crossing: Where good loads are expected to end; None when they aren't expected to, or nothing is expected.
        measured: Every load that was measured.
    """
    good, bad = bracket.good, bracket.bad
    if good is not None and bad is not None:
        return None if bracket.is_closed(crossing) else _inside(good, bad, crossing, measured)
    if good is not None:
        return _above(good, top, crossing, measured)
    return _below(bad, bottom, crossing, measured) if bad is not None else None


def _inside(good: int, bad: int, crossing: float | None, measured: Collection[int]) -> int:
    middle = math.sqrt(good * bad)
    tried = sum(good / NEAR <= one <= bad * NEAR for one in measured)
    if crossing is None or not good < crossing <= bad * BESIDE or tried > PATIENCE:
        return _strictly(middle, good, bad)
    below = min(crossing, bad) / BESIDE
    wanted = below if below > good * math.sqrt(BESIDE) else good * BEYOND
    nearest = max((one for one in measured if one < good), default=0)
    crept = good * _stride(good / nearest) if nearest else 0.0
    return _strictly(min(max(wanted, crept), max(middle, wanted)), good, bad)


def _strictly(wanted: float, good: int, bad: int) -> int:
    return min(max(math.floor(wanted), good + 1), bad - 1)


def _above(good: int, top: int, crossing: float | None, measured: Collection[int]) -> int | None:
    if good >= top:
        return None
    expected = good * DOUBLE if crossing is None else min(crossing / BESIDE, good * FARTHEST)
    nearest = max((one for one in measured if one < good), default=0)
    stride = _stride(good / nearest) if nearest else CLOSE
    if expected <= good * math.sqrt(BESIDE):
        expected = good * BEYOND
    return min(top, max(good + 1, math.floor(max(expected, good * stride))))


def _below(bad: int, bottom: int, crossing: float | None, measured: Collection[int]) -> int | None:
    if bad <= bottom:
        return None
    believed = crossing is not None and crossing <= bad * BESIDE
    expected = max(crossing / BESIDE, bad / FARTHEST) if crossing is not None and believed else bad / DOUBLE
    nearest = min((one for one in measured if one > bad), default=0)
    stride = _stride(nearest / bad) if nearest else CLOSE
    return max(bottom, min(bad - 1, math.floor(min(expected, bad / stride))))


def _stride(last: float) -> float:
    """Return the least factor of the next step outward: an expectation that keeps falling short isn't crept after."""
    return max(CLOSE, last * last) if last <= CREEP else CLOSE
