"""The few SVG elements that a chart is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement

if TYPE_CHECKING:
    from collections.abc import Iterable


def add_line(svg: Element, kind: str, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw a straight line."""
    places = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}
    SubElement(svg, "line", {"class": kind} | {name: f"{place:.1f}" for name, place in places.items()})


def add_text(svg: Element, kind: str, place: tuple[float, float], text: str, *, anchor: str = "start") -> None:
    """Write one line of text."""
    x, y = place
    SubElement(svg, "text", {"class": kind, "x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}).text = text


def add_rect(svg: Element, kind: str, corner: tuple[float, float], other: tuple[float, float]) -> None:
    """Fill the rectangle between two corners."""
    (left, right), (top, bottom) = sorted((corner[0], other[0])), sorted((corner[1], other[1]))
    places = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    SubElement(svg, "rect", {"class": kind} | {name: f"{place:.1f}" for name, place in places.items()})


def written(points: Iterable[tuple[float, float]]) -> str:
    """Write places as the `points` of a polygon or a polyline."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
