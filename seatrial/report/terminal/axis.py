"""An axis of a terminal's plot: from 0 to a round number, or logarithmic where the values differ by much."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LOGARITHMIC_FROM = 10.0  # highest over lowest: a linear axis would press the low values together
_ROUND = (1.0, 1.2, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)  # each half has at most three digits
_MARGIN = 1.05


@dataclass(frozen=True, slots=True)
class Axis:
    """Places between two values."""

    low: float
    high: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return where a value lies: 0 is the low end, 1 the high one."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, place: float) -> float:
        """Return the value at a place."""
        if self.logarithmic:
            return float(self.low * (self.high / self.low) ** place)
        return self.low + place * (self.high - self.low)


def linear(values: Iterable[float]) -> Axis:
    """Return an axis from 0 to the next round number; to 1 when every value is 0."""
    return Axis(0.0, _round_up(max(values) * _MARGIN))


def linear_or_logarithmic(values: Iterable[float]) -> Axis:
    """Return an axis on which the low values can still be told apart."""
    known = tuple(values)
    low, high = min(known), max(known)
    if low <= 0 or high < LOGARITHMIC_FROM * low:
        return linear(known)
    return Axis(low / _MARGIN**2, high * _MARGIN**2, logarithmic=True)


def _round_up(value: float) -> float:
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in _ROUND if step * power >= value)
