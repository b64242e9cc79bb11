"""The content of a chart, written in Python, and the library that draws it in the page."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Iterator


Style: TypeAlias = Literal["first", "second", "third", "predicted"]
ABSENT = (
    "No charts: this installation lacks plot.min.js. In a checkout, run “make install” and write the report again. "
    "The tables have every number."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPoint:
    """One measured or predicted value.

    Attributes:
        y: Its value; `None` leaves a gap in the curve.
        hover: The text under the pointer, one fact a line.
        low: Lower end of the interval of `y`; `None` without one.
        x_low: Lower end of the interval of `x`.
        void: Whether the client was the limit: drawn hollow, and not joined.
        label: Name at the point; empty for none.
        strong: Whether the name must be shown; others are left out where there is no room.
    """

    x: float
    y: float | None
    hover: str
    low: float | None = None
    high: float | None = None
    x_low: float | None = None
    x_high: float | None = None
    void: bool = False
    label: str = ""
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One curve.

    Attributes:
        points: In the order in which they are joined.
        shade: Of curves that differ by a number (levels): where between the two ends of the scale, 0 to 1; else None.
        marked: Whether its points are drawn besides the line.
        filled: Whether the area below it is shaded.
    """

    name: str
    points: tuple[ChartPoint, ...]
    style: Style = "first"
    shade: float | None = None
    marked: bool = True
    filled: bool = False

    @property
    def known(self) -> tuple[ChartPoint, ...]:
        """The points with a value."""
        return tuple(point for point in self.points if point.y is not None)


@dataclass(frozen=True, slots=True)
class ChartBand:
    """The room between a lower and an upper curve: (x, low, high)."""

    name: str
    points: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """The room around a curve whose x and y are both uncertain, as a polygon."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Region:
    """Where the SLO is met: up to a bound, or from it on; of the x axis when `upright`."""

    name: str
    bound: float
    sense: Literal["at_most", "at_least"]
    upright: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line with its name above the chart."""

    at: float
    label: str
    kind: Literal["gate", "knee", "level"]


@dataclass(frozen=True, slots=True)
class Dot:
    """A place on a curve that is named though nothing was measured there: a knee between two levels."""

    x: float
    y: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis.

    Attributes:
        label: What it measures, with its unit.
        scale: `log2` for loads that double, `log10` for latencies of all levels, else `linear`.
        ticks: The places of labels; chosen by the page when empty.
        percent: Whether the values are shares, written in percent.
    """

    label: str
    scale: Literal["linear", "log2", "log10"] = "linear"
    ticks: tuple[float, ...] = ()
    percent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart.

    Attributes:
        anchor: Its id in the page, unique there.
        description: The chart in words, for those who don't see it.
        y: The vertical axis; it begins at 0.
        series: The curves; at least one has a point.
        bands: Uncertainty around a curve.
        outlines: Uncertainty around a curve in both directions.
        regions: Where the SLO is met.
        marks: The gate and the knee, or where levels begin.
        dots: Named places on a curve.
        size: `wide` charts take the whole row.
    """

    anchor: str
    title: str
    description: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    bands: tuple[ChartBand, ...] = ()
    outlines: tuple[Outline, ...] = ()
    regions: tuple[Region, ...] = ()
    marks: tuple[Mark, ...] = ()
    dots: tuple[Dot, ...] = ()
    size: Literal["wide", "low", "narrow"] = "narrow"

    @property
    def data(self) -> Markup:
        """The chart as JSON without empty values, fit for a `<script>`: no text in it ends the element."""
        text = json.dumps(asdict(self, dict_factory=_without_empty), separators=(",", ":"), allow_nan=False)
        # Within a script element only `<` can end it; as an escape it is the same JSON.
        return Markup(text.replace("<", "\\u003c"))  # noqa: S704 (no "<" is left)

    @property
    def legend(self) -> Iterator[tuple[str, str, str]]:
        """Each sign: its class in the page's style, its shade in percent, its name."""
        if any(mark.kind == "level" for mark in self.marks):
            return  # one curve, cut at levels that are named above it
        for series in self.series:
            yield (
                "shade" if series.shade is not None else series.style,
                f"{(series.shade or 0) * 100:.0f}%",
                series.name,
            )
        for name in (*(band.name for band in self.bands), *(outline.name for outline in self.outlines)):
            yield "band", "0%", name
        for region in self.regions:
            yield "region", "0%", region.name


def _without_empty(items: list[tuple[str, object]]) -> dict[str, object]:
    return {name: value for name, value in items if value is not None and value is not False and value != ""}


FOLDER = Path(__file__).parent
LIBRARY = FOLDER / "plot.min.js"
SCRIPT = FOLDER / "draw.js"


@cache
def scripts(library: Path = LIBRARY) -> tuple[str, ...]:
    """Return the scripts of the page, the library first; none where the library wasn't built."""
    if not library.is_file():
        return ()
    return tuple(path.read_text(encoding="utf-8") for path in (library, SCRIPT))


def source_hash(script: str) -> str:
    """Return the hash of a script's text, by which a content security policy allows it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
