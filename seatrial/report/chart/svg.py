"""Draws a panel as SVG. Colours and fonts come from the page's style; shapes and dashes differ as well as colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

from seatrial.report.cell import digits
from seatrial.report.chart.scale import LinearScale, Log2Scale
from seatrial.report.chart.symbol import add_symbol

if TYPE_CHECKING:
    from seatrial.report.chart.panel import Band, Bound, Mark, Panel, Series

WIDTH = 340.0
LEFT, RIGHT, BOTTOM = 46.0, 14.0, 38.0
PLOT_HEIGHT = 150.0
ROW = 15.0
LABEL_DISTANCE = 13.0
INSET = 12.0
CHARACTER = 6.1
TICK_DISTANCE = 26.0
FAR_BOUND = 3.0  # a bound past this multiple of the data would flatten the curve: it is named, not drawn


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where things lie on the paper."""

    x: Log2Scale
    y: LinearScale
    top: float
    height: float

    @property
    def base(self) -> float:
        return self.top + PLOT_HEIGHT


def draw(panel: Panel) -> Markup:
    """Return the panel as one `<svg>` element with a title and a description."""
    frame = _frame(panel)
    svg = _root(panel, frame)
    _draw_axes(svg, panel, frame)
    for band in panel.bands:
        _draw_band(svg, band, frame)
    rows = _rows(panel.marks, frame)
    for mark in rows:
        _draw_mark_line(svg, mark, rows, frame)
    for bound in panel.bounds:
        _draw_bound_line(svg, bound, frame)
    for series in panel.series:
        _draw_series(svg, series, panel.unit, frame)
    _draw_bound_labels(svg, panel.bounds, frame)
    for mark in rows:
        _draw_mark_label(svg, mark, rows, frame)
    _draw_key(svg, panel, frame)
    return Markup(tostring(svg, encoding="unicode"))  # noqa: S704 (ElementTree has escaped every text)


def _frame(panel: Panel) -> _Frame:
    values = [y for series in panel.series for _, y in series.known]
    values += [high for band in panel.bands for _, _, high in band.points]
    most = max(values)
    near = [bound.value for bound in panel.bounds if bound.value <= FAR_BOUND * most]
    top = ROW * len(panel.marks) + 6
    concurrencies = [*_concurrencies(panel), *(mark.concurrency for mark in panel.marks)]
    return _Frame(
        x=Log2Scale.around(concurrencies, LEFT + INSET, WIDTH - RIGHT - INSET),
        y=LinearScale.up_to(max([most, *near]), top + PLOT_HEIGHT, top),
        top=top,
        height=top + PLOT_HEIGHT + BOTTOM + ROW * len(_key_rows(panel)),
    )


def _concurrencies(panel: Panel) -> list[int]:
    return [x for series in panel.series for x, _ in series.points]


def _root(panel: Panel, frame: _Frame) -> Element:
    title, description = f"{panel.anchor}-title", f"{panel.anchor}-description"
    svg = Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {WIDTH:g} {frame.height:g}",
            "role": "img",
            "aria-labelledby": f"{title} {description}",
        },
    )
    SubElement(svg, "title", {"id": title}).text = f"{panel.title} ({panel.unit}) by concurrency per copy"
    SubElement(svg, "desc", {"id": description}).text = panel.description
    return svg


def _draw_axes(svg: Element, panel: Panel, frame: _Frame) -> None:
    for tick in frame.y.ticks:
        y = frame.y.at(tick)
        _line(svg, "grid" if tick else "axis", (LEFT, y), (WIDTH - RIGHT, y))
        _text(svg, "tick", LEFT - 6, y + 4, frame.y.label(tick), anchor="end")
    for concurrency in frame.x.ticks(_concurrencies(panel), TICK_DISTANCE):
        x = frame.x.at(concurrency)
        _line(svg, "axis", (x, frame.base), (x, frame.base + 4))
        _text(svg, "tick", x, frame.base + 16, f"{concurrency:,}", anchor="middle")
    middle = (LEFT + WIDTH - RIGHT) / 2
    _text(svg, "tick", middle, frame.base + 32, "concurrency per copy (log₂)", anchor="middle")


def _draw_band(svg: Element, band: Band, frame: _Frame) -> None:
    upper = [_place(frame, x, high) for x, _, high in band.points]
    lower = [_place(frame, x, low) for x, low, _ in reversed(band.points)]
    SubElement(svg, "polygon", {"class": "band", "points": " ".join([*upper, *lower])})


def _draw_series(svg: Element, series: Series, unit: str, frame: _Frame) -> None:
    for run in series.runs:
        points = " ".join(_place(frame, x, y) for x, y in run)
        SubElement(svg, "polyline", {"class": f"curve {series.style}", "points": points})
    for x, y in series.known:
        symbol = add_symbol(svg, series.style, frame.x.at(x), frame.y.at(y))
        SubElement(symbol, "title").text = f"{series.name} at {x}: {digits(y)} {unit}"


def _draw_bound_line(svg: Element, bound: Bound, frame: _Frame) -> None:
    if bound.value <= frame.y.top:
        y = frame.y.at(bound.value)
        _line(svg, "bound", (LEFT, y), (WIDTH - RIGHT, y))


def _draw_bound_labels(svg: Element, bounds: tuple[Bound, ...], frame: _Frame) -> None:
    """Write each label above its line, or below where there is no room, and push down those that would overlap."""
    lowest = frame.top
    for wanted, label in sorted(_label_place(bound, frame) for bound in bounds):
        lowest = max(wanted, lowest)
        _text(svg, "bound-label", LEFT + 4, lowest, label)
        lowest += LABEL_DISTANCE


def _label_place(bound: Bound, frame: _Frame) -> tuple[float, str]:
    if bound.value > frame.y.top:
        return frame.top + LABEL_DISTANCE, f"{bound.label} ↑ above this axis"
    y = frame.y.at(bound.value)
    return (y - 4 if y - frame.top >= ROW else y + LABEL_DISTANCE), bound.label


def _rows(marks: tuple[Mark, ...], frame: _Frame) -> tuple[Mark, ...]:
    """Order the marks from the top row down, so that labels that go left lie above the lines they pass."""
    return tuple(sorted(marks, key=lambda mark: (_fits_right(mark, frame), mark.concurrency)))


def _fits_right(mark: Mark, frame: _Frame) -> bool:
    return frame.x.at(mark.concurrency) + 5 + CHARACTER * len(mark.label) <= WIDTH


def _draw_mark_line(svg: Element, mark: Mark, rows: tuple[Mark, ...], frame: _Frame) -> None:
    x = frame.x.at(mark.concurrency)
    _line(svg, f"mark {mark.kind}", (x, ROW * rows.index(mark) + 5), (x, frame.base))


def _draw_mark_label(svg: Element, mark: Mark, rows: tuple[Mark, ...], frame: _Frame) -> None:
    anchor, gap = ("start", 5) if _fits_right(mark, frame) else ("end", -5)
    x, y = frame.x.at(mark.concurrency) + gap, ROW * rows.index(mark) + 12
    _text(svg, f"mark-label {mark.kind}", x, y, mark.label, anchor=anchor)


def _key_rows(panel: Panel) -> tuple[Series, ...]:
    return panel.series if len(panel.series) > 1 or panel.bands else ()


def _draw_key(svg: Element, panel: Panel, frame: _Frame) -> None:
    for row, series in enumerate(_key_rows(panel)):
        y = frame.base + BOTTOM + ROW * row + 6
        _line(svg, f"curve {series.style}", (LEFT, y), (LEFT + 26, y))
        add_symbol(svg, series.style, LEFT + 13, y)
        band = "".join(f", {band.name}" for band in panel.bands if series.style == "predicted")
        _text(svg, "tick", LEFT + 32, y + 4, series.name + band)


def _place(frame: _Frame, x: int, y: float) -> str:
    return f"{frame.x.at(x):.1f},{frame.y.at(y):.1f}"


def _line(svg: Element, kind: str, start: tuple[float, float], end: tuple[float, float]) -> None:
    places = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}
    SubElement(svg, "line", {"class": kind} | {name: f"{place:.1f}" for name, place in places.items()})


def _text(svg: Element, kind: str, x: float, y: float, text: str, *, anchor: str = "start") -> None:
    place = {"class": kind, "x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    SubElement(svg, "text", place).text = text
