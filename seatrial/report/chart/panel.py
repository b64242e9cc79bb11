"""What a panel shows: curves over concurrency, bounds to keep, places to mark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial.report.chart.svg import draw

if TYPE_CHECKING:
    from markupsafe import Markup

Style: TypeAlias = Literal["first", "second", "third", "predicted"]


@dataclass(frozen=True, slots=True)
class Series:
    """One curve; a point without a value leaves a gap, it isn't bridged."""

    name: str
    style: Style
    points: tuple[tuple[int, float | None], ...]

    @property
    def known(self) -> tuple[tuple[int, float], ...]:
        """The points with a value."""
        return tuple((x, y) for x, y in self.points if y is not None)

    @property
    def runs(self) -> tuple[tuple[tuple[int, float], ...], ...]:
        """The known points, in runs without a gap."""
        runs: list[list[tuple[int, float]]] = [[]]
        for x, y in self.points:
            if y is None:
                runs.append([])
            else:
                runs[-1].append((x, y))
        return tuple(tuple(run) for run in runs if run)


@dataclass(frozen=True, slots=True)
class Band:
    """The room between a lower and an upper curve: (concurrency, low, high)."""

    name: str
    points: tuple[tuple[int, float, float], ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """A horizontal line that the curves shall keep to."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line at a concurrency."""

    concurrency: int
    label: str
    kind: Literal["gate", "knee"]


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
        bounds: Lines of the SLO.
        marks: Knees and the gate.
    """

    anchor: str
    title: str
    unit: str
    description: str
    series: tuple[Series, ...]
    bands: tuple[Band, ...] = ()
    bounds: tuple[Bound, ...] = ()
    marks: tuple[Mark, ...] = ()

    @property
    def svg(self) -> Markup:
        """The panel drawn."""
        return draw(self)
