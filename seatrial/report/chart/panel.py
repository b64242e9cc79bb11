"""What a panel shows: curves over concurrency or over throughput, bounds to keep, places to mark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial.report.chart.svg import draw

if TYPE_CHECKING:
    from markupsafe import Markup

Style: TypeAlias = Literal["first", "second", "third", "predicted"]
Point: TypeAlias = tuple[float, float | None]


@dataclass(frozen=True, slots=True)
class Series:
    """One curve; a point without a value leaves a gap, it isn't bridged.

    Attributes:
        name: What it is.
        style: How it is drawn.
        points: (x, y), in the order in which they are joined.
        hollow: The x of the points that are void: drawn hollow, and not joined.
    """

    name: str
    style: Style
    points: tuple[Point, ...]
    hollow: frozenset[float] = frozenset()

    @property
    def known(self) -> tuple[tuple[float, float], ...]:
        """The points with a value."""
        return tuple((x, y) for x, y in self.points if y is not None)

    @property
    def runs(self) -> tuple[tuple[tuple[float, float], ...], ...]:
        """The known points that count, in runs without a gap."""
        runs: list[list[tuple[float, float]]] = [[]]
        for x, y in self.points:
            if y is None or x in self.hollow:
                runs.append([])
            else:
                runs[-1].append((x, y))
        return tuple(tuple(run) for run in runs if run)


@dataclass(frozen=True, slots=True)
class Band:
    """The room between a lower and an upper curve: (x, low, high)."""

    name: str
    points: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True, slots=True)
class Box:
    """The room around one point whose x and y are both uncertain."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float


@dataclass(frozen=True, slots=True)
class Bound:
    """A horizontal line that the curves shall keep to."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line."""

    at: float
    label: str
    kind: Literal["gate", "knee", "bound"]


@dataclass(frozen=True, slots=True)
class Label:
    """A name beside a point; names that matter more are placed first, others only where there is room."""

    x: float
    y: float
    text: str
    kind: Literal["plain", "gate", "knee"] = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel.

    Attributes:
        anchor: Prefix of the ids in its SVG, unique in the page.
        title: What is drawn.
        unit: Of the vertical axis.
        description: The curve in words, for those who don't see it.
        series: The curves; at least one has a point.
        bands: Uncertainty around a curve.
        boxes: Uncertainty around points.
        bounds: Lines of the SLO.
        marks: Knees and the gate.
        labels: Names beside points.
        over: What the horizontal axis is: concurrency per copy or rate offered (logarithmic), or throughput (linear).
        wide: Whether it takes the room of two panels.
    """

    anchor: str
    title: str
    unit: str
    description: str
    series: tuple[Series, ...]
    bands: tuple[Band, ...] = ()
    boxes: tuple[Box, ...] = ()
    bounds: tuple[Bound, ...] = ()
    marks: tuple[Mark, ...] = ()
    labels: tuple[Label, ...] = ()
    over: Literal["concurrency", "rate", "throughput"] = "concurrency"
    wide: bool = False

    @property
    def size(self) -> str:
        """The name of its size, for the page's style."""
        return "wide" if self.wide else "narrow"

    @property
    def svg(self) -> Markup:
        """The panel drawn."""
        return draw(self)
