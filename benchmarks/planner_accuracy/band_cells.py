"""How often bands hold rows that they did not come from, in all and cell by cell, as Markdown."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, get_args

from benchmarks.planner_accuracy.compare import MISSING, markdown
from benchmarks.planner_accuracy.earned_bands import (
    INSIDE,
    JUDGED_FACETS,
    Figure,
    coverage,
    error_of,
    is_inside,
    nested,
)
from benchmarks.planner_accuracy.judged import grouped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.planner_accuracy.judged import JudgedRow

    Told = Sequence[tuple[JudgedRow, float]]
    """Rows, each with the band of others."""

FEWEST_ROWS = 10  # of a cell
LEAST, MOST = 0.7, 0.95  # share of a cell's rows inside
WIDEST = 1.5  # times the error that 80 % of a cell's rows are within
_FIGURES: tuple[Figure, ...] = get_args(Figure)


def covered(rows: Sequence[JudgedRow]) -> str:
    """Return how many rows lie inside the bands of others, and in how many cells as many as should."""
    head = ("left out", "figure", "rows inside", "cells", "70 to 95 % inside", "fewer", "more", "band not too wide")
    lines = [
        [kind, figure, *_totals(nested(rows, figure, kind), figure)] for kind in JUDGED_FACETS for figure in _FIGURES
    ]
    return markdown(head, 2, lines)


def by_place(rows: Sequence[JudgedRow]) -> str:
    """Return of each accelerator, engine and degree how its bands hold while lengths are left out."""
    told = {figure: _cells(nested(rows, figure, "lengths")) for figure in _FIGURES}
    names = sorted({name for cells in told.values() for name in cells})
    head = ("accelerator", "engine", "degree", *(f"{figure}: {each}" for figure in _FIGURES for each in _COLUMNS))
    lines = [
        [*name, *(text for figure in _FIGURES for text in _figures(told[figure].get(name, []), figure))]
        for name in names
    ]
    return markdown(head, 3, lines)


_COLUMNS = ("rows", "inside", "median band", "80 % within")


def _figures(told: Told, figure: Figure) -> list[str]:
    share = coverage(told, figure)
    if share is None:
        return [MISSING] * len(_COLUMNS)
    return [str(len(told)), *map(_percent, (share, _width(told), _error(told, figure)))]


def _totals(told: Told, figure: Figure) -> list[str]:
    share, cells = coverage(told, figure), list(_cells(told).values())
    if share is None:
        return [MISSING] * 6
    inside = [sum(is_inside(row, band, figure) for row, band in own) / len(own) for own in cells]
    narrow = sum(_width(own) <= WIDEST * _error(own, figure) for own in cells)
    counts = (
        len(cells),
        sum(LEAST <= one <= MOST for one in inside),
        sum(one < LEAST for one in inside),
        sum(one > MOST for one in inside),
        narrow,
    )
    return [f"{_percent(share)} of {len(told):,}", *map(str, counts)]


def _cells(told: Told) -> dict[tuple[str, ...], list[tuple[JudgedRow, float]]]:
    """Return rows by accelerator, engine and degree, where there are ten or more."""
    bands = {id(row): band for row, band in told}
    groups = grouped(
        (row for row, _ in told), lambda row: (row.accelerator, row.question.engine, str(row.question.tp_degree))
    )
    return {
        tuple(map(str, name)): [(row, bands[id(row)]) for row in own]
        for name, own in groups.items()
        if len(own) >= FEWEST_ROWS
    }


def _width(told: Told) -> float:
    return median(band for _, band in told)


def _error(told: Told, figure: Figure) -> float:
    """Return what 80 % of the rows are off by, as a share, as a band is one."""
    off = sorted(error_of(row, figure) for row, _ in told)
    return off[math.ceil(INSIDE * len(off)) - 1]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
