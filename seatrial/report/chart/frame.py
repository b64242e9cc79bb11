"""Where things lie on the paper: the size of a panel and its two scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.report.chart.scale import LinearScale, Log2Scale

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.report.chart.panel import Bound, Panel, Series

WIDTH, WIDE = 340.0, 440.0
LEFT, RIGHT, BOTTOM = 46.0, 14.0, 38.0
PLOT_HEIGHT, WIDE_PLOT_HEIGHT = 150.0, 215.0
ROW = 15.0
INSET = 12.0
CHARACTER = 6.1  # width of a letter of the page's labels
FAR_BOUND = 3.0  # a bound past this multiple of the data would flatten the curve: it is named, not drawn


@dataclass(frozen=True, slots=True)
class Frame:
    """Where things lie on the paper."""

    x: Log2Scale | LinearScale
    y: LinearScale
    width: float
    top: float
    base: float
    height: float

    @property
    def right(self) -> float:
        """The plot's right edge."""
        return self.width - RIGHT

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return the place of a point."""
        return self.x.at(x), self.y.at(y)


def frame_of(panel: Panel) -> Frame:
    """Lay out a panel: room above for the labels of its marks, below for its key."""
    width = WIDE if panel.wide else WIDTH
    top = ROW * len(panel.marks) + 6
    base = top + (WIDE_PLOT_HEIGHT if panel.wide else PLOT_HEIGHT)
    return Frame(
        x=_x_scale(panel, width),
        y=LinearScale.up_to(max(_heights(panel)), base, top),
        width=width,
        top=top,
        base=base,
        height=base + BOTTOM + ROW * (len(key_rows(panel)) if not panel.wide else 1),
    )


def key_rows(panel: Panel) -> tuple[Series, ...]:
    """Return the series that need a key: none where there is but one curve."""
    return panel.series if len(panel.series) > 1 or panel.bands else ()


def ticked(panel: Panel) -> list[float]:
    """Return the places that the curves and bands have on the horizontal axis."""
    return [
        *(x for series in panel.series for x, _ in series.points),
        *(x for band in panel.bands for x, _, _ in band.points),
    ]


def _x_scale(panel: Panel, width: float) -> Log2Scale | LinearScale:
    marked = [mark.at for mark in panel.marks]
    if panel.over != "throughput":
        return Log2Scale.around([*ticked(panel), *marked], LEFT + INSET, width - RIGHT - INSET)
    reached = [*(x for series in panel.series for x, _ in series.known), *(box.x_high for box in panel.boxes)]
    near = [at for at in marked if at <= FAR_BOUND * max(reached)]
    return LinearScale.up_to(max([*reached, *near]), LEFT, width - RIGHT, steps=6)


def _heights(panel: Panel) -> Iterator[float]:
    data = [y for series in panel.series for _, y in series.known]
    data += [high for band in panel.bands for _, _, high in band.points]
    data += [box.y_high for box in panel.boxes]
    most = max(data)
    yield most
    yield from (bound.value for bound in _near(panel.bounds, most))


def _near(bounds: tuple[Bound, ...], most: float) -> Iterator[Bound]:
    return (bound for bound in bounds if bound.value <= FAR_BOUND * most)
