"""The sign of a curve's points: each style has its own shape, so that colour isn't the only carrier."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement

from seatrial.report.chart.element import written

if TYPE_CHECKING:
    from collections.abc import Mapping

RADIUS = 3.6
_OUTLINES: Mapping[str, tuple[tuple[float, float], ...]] = {
    "second": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "third": ((0, -1.2), (1.2, 1), (-1.2, 1)),
    "predicted": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
}


def add_symbol(svg: Element, style: str, place: tuple[float, float], *, hollow: bool = False) -> Element:
    """Draw a circle, square, triangle or diamond around a place, and return it; a void point's is hollow."""
    x, y = place
    kind = f"symbol {style}{' void' if hollow else ''}"
    if style not in _OUTLINES:
        return SubElement(svg, "circle", {"class": kind, "cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": f"{RADIUS}"})
    corners = ((x + RADIUS * right, y + RADIUS * down) for right, down in _OUTLINES[style])
    return SubElement(svg, "polygon", {"class": kind, "points": written(corners)})
