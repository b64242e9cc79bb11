"""A quantile of errors, where rows count the less, the less they have in common with what is asked."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Key = tuple[object, ...]
"""Parts of a cell, the widest first; as many as the cell is split by."""
_STEP = 1e-9  # a level that is just above a row's own place


@dataclass(frozen=True)
class Group:
    """Rows that have all parts in common, and what was left out of the fit for them.

    Attributes:
        parts: What they have in common.
        left_out: What the fit did not see of them: rows of the same one do not tell of each other.
        errors: Of each row, as shares, ascending.
    """

    parts: Key
    left_out: object
    errors: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a row stands among the rows that may tell of it, by what was left out for those.

    Attributes:
        left_out: What was left out for the row.
        below: Weight of the rows with a smaller error.
        weight: Weight of all rows.
    """

    left_out: object
    below: Mapping[object, float]
    weight: Mapping[object, float]

    def level(self, without: object) -> float | None:
        """Return the share of the weight that lies below, where one more thing is left out; `None` without weight."""
        others = [one for one in self.weight if one not in (self.left_out, without)]
        weight = sum(self.weight[one] for one in others)
        return sum(self.below[one] for one in others) / weight if weight else None


@dataclass(frozen=True)
class Evidence:
    """Groups of rows that tell of each other.

    Attributes:
        groups: The rows.
        per_difference: What a row counts that differs in one part; to the power of the differences where it does in
            more.
        aim: Share of rows that lie within the errors of others.
    """

    groups: tuple[Group, ...]
    per_difference: float
    aim: float

    def share(self, key: Key, without: object = None) -> float:
        """Return the error that the rows of a cell are within.

        Args:
            key: The parts of the cell.
            without: What was left out for the rows that do not tell.
        """
        return self.quantile(key, self.level(without), without)

    def quantile(self, key: Key, level: float, without: object = None) -> float:
        """Return the error below or at which this share of the weight lies, as a cell's rows count.

        Raises:
            ValueError: No row tells.
        """
        weights = [0.0 if group.left_out == without else self._weight(key, group) for group in self.groups]
        most = level * sum(weight * len(group.errors) for weight, group in zip(weights, self.groups, strict=True))
        below = 0.0
        for error, index in self._ascending:
            below += weights[index]
            if below >= most - _STEP and weights[index]:
                return error
        raise ValueError("no row tells of this cell")

    def level(self, without: object = None) -> float:
        """Return the quantile of others' errors that `aim` of the rows lie within."""
        if without not in self._levels:
            self._levels[without] = self._level(without)
        return self._levels[without]

    def _level(self, without: object) -> float:
        standings = (one for one in self._standings if one.left_out != without)
        levels = sorted(level for one in standings if (level := one.level(without)) is not None)
        return min(levels[math.ceil(self.aim * len(levels)) - 1] + _STEP, 1.0) if levels else self.aim

    @cached_property
    def _levels(self) -> dict[object, float]:
        return {}

    @cached_property
    def _ascending(self) -> list[tuple[float, int]]:
        return sorted((error, index) for index, group in enumerate(self.groups) for error in group.errors)

    @cached_property
    def _standings(self) -> list[Standing]:
        return [one for group in self.groups for one in self._standings_of(group)]

    def _standings_of(self, group: Group) -> Iterable[Standing]:
        others: dict[object, list[tuple[float, Sequence[float]]]] = {}
        for other in self.groups:
            if other.left_out != group.left_out:
                others.setdefault(other.left_out, []).append((self._weight(group.parts, other), other.errors))
        weight = {name: sum(each * len(errors) for each, errors in own) for name, own in others.items()}
        for error in group.errors:
            below = {name: sum(w * bisect_left(errors, error) for w, errors in own) for name, own in others.items()}
            yield Standing(group.left_out, below, weight)

    def _weight(self, key: Key, group: Group) -> float:
        return self.per_difference ** sum(part != own for part, own in zip(key, group.parts, strict=False))
