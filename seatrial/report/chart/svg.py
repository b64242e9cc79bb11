"""Draws a panel as SVG. Colours and fonts come from the page's style; shapes and dashes differ as well as colours."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

from seatrial.report.cell import digits
from seatrial.report.chart.element import add_line, add_rect, add_text, written
from seatrial.report.chart.frame import BOTTOM, LEFT, ROW, frame_of, key_rows, ticked
from seatrial.report.chart.label import (
    draw_bound_labels,
    draw_bound_lines,
    draw_mark_labels,
    draw_mark_lines,
    draw_point_labels,
    ordered_marks,
)
from seatrial.report.chart.scale import LinearScale
from seatrial.report.chart.symbol import add_symbol

if TYPE_CHECKING:
    from seatrial.report.chart.frame import Frame
    from seatrial.report.chart.panel import Panel, Series

TICK_DISTANCE = 26.0
KEY_WIDTH = 128.0
AXES = {
    "concurrency": "concurrency per copy (log₂)",
    "rate": "offered load (requests/s, log₂)",
    "throughput": "output throughput (tok/s)",
}
OVER = {"concurrency": "concurrency per copy", "rate": "offered load", "throughput": "output throughput"}


def draw(panel: Panel) -> Markup:
    """Return the panel as one `<svg>` element with a title and a description."""
    frame = frame_of(panel)
    svg = _root(panel, frame)
    _draw_axes(svg, panel, frame)
    _draw_uncertainty(svg, panel, frame)
    rows = ordered_marks(panel.marks, frame)
    draw_mark_lines(svg, rows, frame)
    draw_bound_lines(svg, panel.bounds, frame)
    for series in reversed(panel.series):
        _draw_series(svg, series, panel, frame)
    draw_point_labels(svg, panel, frame)
    draw_bound_labels(svg, panel.bounds, frame)
    draw_mark_labels(svg, rows, frame)
    _draw_key(svg, panel, frame)
    return Markup(tostring(svg, encoding="unicode"))  # noqa: S704 (ElementTree has escaped every text)


def _root(panel: Panel, frame: Frame) -> Element:
    title, description = f"{panel.anchor}-title", f"{panel.anchor}-description"
    svg = Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": panel.size,
            "viewBox": f"0 0 {frame.width:g} {frame.height:g}",
            "role": "img",
            "aria-labelledby": f"{title} {description}",
        },
    )
    SubElement(svg, "title", {"id": title}).text = f"{panel.title} ({panel.unit}) by {OVER[panel.over]}"
    SubElement(svg, "desc", {"id": description}).text = panel.description
    return svg


def _draw_axes(svg: Element, panel: Panel, frame: Frame) -> None:
    for tick in frame.y.ticks:
        y = frame.y.at(tick)
        add_line(svg, "grid" if tick else "axis", (LEFT, y), (frame.right, y))
        add_text(svg, "tick", (LEFT - 6, y + 4), frame.y.label(tick), anchor="end")
    for value, label in _x_ticks(panel, frame):
        x = frame.x.at(value)
        add_line(svg, "axis", (x, frame.base), (x, frame.base + 4))
        add_text(svg, "tick", (x, frame.base + 16), label, anchor="middle")
    middle = (LEFT + frame.right) / 2
    add_text(svg, "tick", (middle, frame.base + 32), AXES[panel.over], anchor="middle")


def _x_ticks(panel: Panel, frame: Frame) -> list[tuple[float, str]]:
    if isinstance(frame.x, LinearScale):
        return [(tick, frame.x.label(tick)) for tick in frame.x.ticks]
    return [(tick, f"{tick:,g}") for tick in frame.x.ticks(ticked(panel), TICK_DISTANCE)]


def _draw_uncertainty(svg: Element, panel: Panel, frame: Frame) -> None:
    for band in panel.bands:
        upper = [frame.place(x, high) for x, _, high in band.points]
        lower = [frame.place(x, low) for x, low, _ in reversed(band.points)]
        SubElement(svg, "polygon", {"class": "band", "points": written((*upper, *lower))})
    shade = SubElement(svg, "g", {"class": "band"}) if panel.boxes else svg
    for box in panel.boxes:
        add_rect(shade, "box", frame.place(box.x_low, box.y_low), frame.place(box.x_high, box.y_high))


def _draw_series(svg: Element, series: Series, panel: Panel, frame: Frame) -> None:
    for run in series.runs:
        points = written(frame.place(x, y) for x, y in run)
        SubElement(svg, "polyline", {"class": f"curve {series.style}", "points": points})
    for x, y in series.known:
        void = x in series.hollow
        symbol = add_symbol(svg, series.style, frame.place(x, y), hollow=void)
        at = f"{digits(x)} tok/s" if panel.over == "throughput" else f"{x:,g}"
        SubElement(symbol, "title").text = f"{series.name} at {at}: {digits(y)} {panel.unit}{', void' if void else ''}"


def _draw_key(svg: Element, panel: Panel, frame: Frame) -> None:
    """Name the curves, below each other; in a wide panel beside each other."""
    for index, series in enumerate(key_rows(panel)):
        x = LEFT + (KEY_WIDTH * index if panel.wide else 0)
        y = frame.base + BOTTOM + (0 if panel.wide else ROW * index) + 6
        add_line(svg, f"curve {series.style}", (x, y), (x + 26, y))
        add_symbol(svg, series.style, (x + 13, y))
        band = "".join(f", {band.name}" for band in panel.bands if series.style == "predicted")
        add_text(svg, "tick", (x + 32, y + 4), series.name + band)
