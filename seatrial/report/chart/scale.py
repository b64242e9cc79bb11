"""From values to places on the paper, and the ticks beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
_THOUSAND = 1_000
_CROWDED = 10_000


@dataclass(frozen=True, slots=True)
class Log2Scale:
    """Concurrency to x: equal steps are equal factors."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float) -> Log2Scale:
        """Return the scale that holds all values; a single one stands in the middle."""
        low, high = min(values), max(values)
        return cls(low / 2, high * 2, start, end) if low == high else cls(low, high, start, end)

    def at(self, value: float) -> float:
        """Return the place of a value."""
        return self.start + (self.end - self.start) * math.log2(value / self.low) / math.log2(self.high / self.low)

    def ticks(self, values: Iterable[float], distance: float) -> tuple[float, ...]:
        """Return the values that can be labelled at least this far apart, the highest always."""
        kept: list[float] = []
        for value in sorted(set(values), reverse=True):
            if not kept or self.at(kept[-1]) - self.at(value) >= distance:
                kept.append(value)
        return tuple(reversed(kept))


@dataclass(frozen=True, slots=True)
class LinearScale:
    """A quantity to its place, from 0 up."""

    top: float
    step: float
    start: float
    end: float

    @classmethod
    def up_to(cls, value: float, start: float, end: float, *, steps: int = 4) -> LinearScale:
        """Return the scale from 0 to the first round tick at or above a value."""
        rough = (value or 1.0) / steps
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(nice * power for nice in _NICE if nice * power >= rough * (1 - 1e-9))
        return cls(step * math.ceil((value or 1.0) / step - 1e-9), step, start, end)

    def at(self, value: float) -> float:
        """Return the place of a value."""
        return self.start + (self.end - self.start) * value / self.top

    @property
    def ticks(self) -> tuple[float, ...]:
        """The round values from 0 to the top."""
        return tuple(index * self.step for index in range(round(self.top / self.step) + 1))

    def label(self, tick: float) -> str:
        """Write a tick with as many decimals as its step has: `0`, `2.5`, `1,500`, `20k`."""
        if self.top >= _CROWDED:
            return f"{tick / _THOUSAND:g}k" if tick else "0"
        if self.step >= 1 and self.step == int(self.step):
            return f"{tick:,.0f}"
        return f"{tick:g}"
