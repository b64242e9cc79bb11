"""A curve drawn with characters: braille dots where the terminal has them, full stops where it is ASCII only.

Nothing is told by colour: levels are dots with their concurrency beside, the knee and the gate carry their letters, the
bound of the SLO is a dashed line.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.text import Text

from seatrial.report.terminal.axis import Axis, linear, linear_or_logarithmic
from seatrial.report.values import digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions

ROWS, WIDEST, NARROWEST = 13, 78, 40  # an odd number of rows has a middle one
_BOUND_IN_VIEW = 3.0  # times the highest value: a bound further up would press the curve to the floor
_BRAILLE = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_Spot = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Dot:
    """One point: its place, the name beside it, and whether its name has precedence."""

    x: float
    y: float
    name: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """One curve over two axes, with an upper bound if there is one; at least one point, all above 0."""

    x_title: str
    y_title: str
    dots: tuple[Dot, ...]
    bound: float | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Draw it as wide as the terminal, in characters that the terminal can show."""
        del console
        for line in draw(self, width=options.max_width, ascii_only=options.ascii_only):
            yield Text(line, no_wrap=True, overflow="crop")

    @property
    def drawn_bound(self) -> tuple[float, ...]:
        """The bound if it lies near enough to be drawn."""
        near = self.bound is not None and self.bound <= _BOUND_IN_VIEW * max(dot.y for dot in self.dots)
        return (self.bound,) if self.bound is not None and near else ()


def draw(plot: Plot, *, width: int, ascii_only: bool) -> list[str]:
    """Return the plot's lines, none longer than the width; one sentence where that is too narrow."""
    if width < NARROWEST:
        return [f"(the plot needs {NARROWEST} columns)"]
    up = linear_or_logarithmic((*(dot.y for dot in plot.dots), *plot.drawn_bound))
    right = linear(dot.x for dot in plot.dots)
    ticks = {row: digits(up.value(1 - row / (ROWS - 1))) for row in (0, ROWS // 2, ROWS - 1)}
    margin = max(map(len, ticks.values())) + 2
    columns = min(width, WIDEST) - margin
    cells = _canvas(plot, up, right, columns, ascii_only=ascii_only)
    wall, tick, corner = ("|", "+", "+") if ascii_only else ("│", "┤", "└")
    body = (
        f"{ticks.get(row, ''):>{margin - 2}} {tick if row in ticks else wall}"
        + "".join(cells.get((column, row), " ") for column in range(columns))
        for row in range(ROWS)
    )
    floor = ("-" if ascii_only else "─") * columns
    lines = (
        f"{plot.y_title}{', logarithmic' if up.logarithmic else ''}",
        *body,
        f"{corner:>{margin}}{floor}",
        f"{'':{margin}}{_scale(right, columns)}",
        f"{plot.x_title:>{margin + columns}}",
    )
    return [line.rstrip()[:width] for line in lines]


def _scale(axis: Axis, columns: int) -> str:
    """Return the ends and the middle of the lower axis, each below its place."""
    end, middle = digits(axis.high), digits(axis.value(0.5))
    start = columns // 2 - len(middle) // 2
    return f"{'0':{start}}{middle}{end:>{columns - start - len(middle)}}"


def _canvas(plot: Plot, up: Axis, right: Axis, columns: int, *, ascii_only: bool) -> dict[_Spot, str]:
    places = [(right.place(dot.x), up.place(dot.y)) for dot in plot.dots]
    spots = [(_cell(x, columns), _cell(1 - y, ROWS)) for x, y in places]
    cells: dict[_Spot, str] = {}
    for bound in plot.drawn_bound:
        row = _cell(1 - up.place(bound), ROWS)
        cells |= {(column, row): "-" if ascii_only else "╌" for column in range(0, columns, 2 if ascii_only else 1)}
    cells |= _stroke(places, columns, ascii_only=ascii_only)
    cells |= dict.fromkeys(spots, "o" if ascii_only else "●")
    taken = set(spots)
    for dot, spot in sorted(zip(plot.dots, spots, strict=True), key=lambda pair: not pair[0].marked):
        name = _named(dot.name, spot, columns, taken)
        cells |= name
        taken |= {(column + by, row) for column, row in name for by in (-1, 0, 1)}
    return cells


def _stroke(places: list[tuple[float, float]], columns: int, *, ascii_only: bool) -> dict[_Spot, str]:
    """Join the points by straight lines."""
    across, down = (1, 1) if ascii_only else (2, 4)
    bits: dict[_Spot, int] = defaultdict(int)
    samples = 4 * (columns + ROWS)
    for (x0, y0), (x1, y1) in pairwise(places):
        for share in (index / samples for index in range(samples + 1)):
            x = _cell(x0 + share * (x1 - x0), columns * across)
            y = _cell(1 - y0 - share * (y1 - y0), ROWS * down)
            bits[x // across, y // down] |= _BRAILLE[x % across][y % down]
    return {spot: "." if ascii_only else chr(0x2800 + pattern) for spot, pattern in bits.items()}


def _named(name: str, spot: _Spot, columns: int, taken: set[_Spot]) -> dict[_Spot, str]:
    """Return the cells of a name beside its point; none when there is no room left."""
    x, y = spot
    starts = ((x - len(name), y - 1), (x - len(name) // 2, y - 1), (x - len(name) - 1, y), (x + 2, y), (x + 1, y + 1))
    for left, row in starts:
        cells = {(left + index, row): letter for index, letter in enumerate(name)}
        if left >= 0 and left + len(name) <= columns and 0 <= row < ROWS and not cells.keys() & taken:
            return cells
    return {}


def _cell(place: float, count: int) -> int:
    return min(count - 1, max(0, round(place * (count - 1))))
