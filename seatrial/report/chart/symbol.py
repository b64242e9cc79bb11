"""The sign of a curve's points: each style has its own shape, so that colour isn't the only carrier."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement

if TYPE_CHECKING:
    from collections.abc import Mapping

RADIUS = 3.6
_OUTLINES: Mapping[str, tuple[tuple[float, float], ...]] = {
    "second": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "third": ((0, -1.2), (1.2, 1), (-1.2, 1)),
    "predicted": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
}


def add_symbol(svg: Element, style: str, x: float, y: float) -> Element:
    """Draw a circle, square, triangle or hollow diamond around a place, and return it."""
    if style not in _OUTLINES:
        return SubElement(svg, "circle", {"class": f"symbol {style}", "cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "3.6"})
    corners = ((x + RADIUS * right, y + RADIUS * down) for right, down in _OUTLINES[style])
    points = " ".join(f"{corner_x:.1f},{corner_y:.1f}" for corner_x, corner_y in corners)
    return SubElement(svg, "polygon", {"class": f"symbol {style}", "points": points})
