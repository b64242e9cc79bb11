"""The names in a chart: of bounds, of marks and of points, placed so that none covers another."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from seatrial.report.chart.element import add_line, add_text
from seatrial.report.chart.frame import CHARACTER, LEFT, ROW

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from seatrial.report.chart.frame import Frame
    from seatrial.report.chart.panel import Bound, Label, Mark, Panel

LABEL_DISTANCE = 13.0
ASCENT, DESCENT = 10.0, 3.0
BOLD_CHARACTER = 7.0
FARTHEST = 12
CLEARANCE = 7.0  # between a point and its name
_Rectangle: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom


def draw_bound_lines(svg: Element, bounds: tuple[Bound, ...], frame: Frame) -> None:
    """Draw the bounds that lie within the axis."""
    for bound in bounds:
        if bound.value <= frame.y.top:
            y = frame.y.at(bound.value)
            add_line(svg, "bound", (LEFT, y), (frame.right, y))


def draw_bound_labels(svg: Element, bounds: tuple[Bound, ...], frame: Frame) -> None:
    """Write each label above its line, or below where there is no room, and push down those that would overlap."""
    lowest = frame.top
    for wanted, label in sorted(_bound_place(bound, frame) for bound in bounds):
        lowest = max(wanted, lowest)
        add_text(svg, "bound-label", (LEFT + 4, lowest), label)
        lowest += LABEL_DISTANCE


def _bound_place(bound: Bound, frame: Frame) -> tuple[float, str]:
    if bound.value > frame.y.top:
        return frame.top + LABEL_DISTANCE, f"{bound.label} ↑ above this axis"
    y = frame.y.at(bound.value)
    return (y - 4 if y - frame.top >= ROW else y + LABEL_DISTANCE), bound.label


def ordered_marks(marks: tuple[Mark, ...], frame: Frame) -> tuple[Mark, ...]:
    """Order the marks from the top row down, so that labels that go left lie above the lines they pass."""
    return tuple(sorted(marks, key=lambda mark: (_fits_right(mark, frame), mark.at)))


def _fits_right(mark: Mark, frame: Frame) -> bool:
    return frame.x.at(mark.at) + 5 + CHARACTER * len(mark.label) <= frame.width


def draw_mark_lines(svg: Element, rows: tuple[Mark, ...], frame: Frame) -> None:
    """Draw a vertical line for each mark, up to its label."""
    for row, mark in enumerate(rows):
        x = frame.x.at(mark.at)
        if x <= frame.right:
            add_line(svg, f"mark {mark.kind}", (x, ROW * row + 5), (x, frame.base))


def draw_mark_labels(svg: Element, rows: tuple[Mark, ...], frame: Frame) -> None:
    """Write the marks' labels, each in its own row above the plot."""
    for row, mark in enumerate(rows):
        x, y = frame.x.at(mark.at), ROW * row + 12
        if x > frame.right:
            add_text(svg, f"mark-label {mark.kind}", (frame.right, y), f"{mark.label} → past this axis", anchor="end")
        elif _fits_right(mark, frame):
            add_text(svg, f"mark-label {mark.kind}", (x + 5, y), mark.label)
        else:
            add_text(svg, f"mark-label {mark.kind}", (x - 5, y), mark.label, anchor="end")


def draw_point_labels(svg: Element, panel: Panel, frame: Frame) -> None:
    """Write names beside their points, gate and knees first; a plain name without room is left out."""
    placed = _placed(panel, frame)
    for label, (_, _, _, bottom) in placed:
        x, y = frame.place(label.x, label.y)
        if y - bottom > CLEARANCE + DESCENT:
            add_line(svg, "leader", (x, bottom), (x, y - CLEARANCE / 2))
    for label, (left, _, _, bottom) in placed:
        add_text(svg, f"point-label {label.kind}", (left, bottom - DESCENT), label.text)


def _placed(panel: Panel, frame: Frame) -> list[tuple[Label, _Rectangle]]:
    """Return the labels that have room, each with its rectangle."""
    taken = [_around(frame.place(x, y)) for series in panel.series for x, y in series.known]
    placed: list[tuple[Label, _Rectangle]] = []
    for label in sorted(panel.labels, key=lambda label: label.kind == "plain"):
        places = _candidates(label, frame)
        free = (place for place in places if _inside(place, frame) and not any(_meet(place, one) for one in taken))
        place = next(free, None if label.kind == "plain" else places[-1])
        if place is not None:
            taken.append(place)
            placed.append((label, place))
    return placed


def _candidates(label: Label, frame: Frame) -> tuple[_Rectangle, ...]:
    """Return the rectangles that a name may fill: eight around its point; of a gate or knee, others further above."""
    x, y = frame.place(label.x, label.y)
    letter = CHARACTER if label.kind == "plain" else BOLD_CHARACTER
    width, height = letter * len(label.text), ASCENT + DESCENT
    lefts = x - CLEARANCE - width, x - width / 2, x + CLEARANCE
    tops = y - CLEARANCE - height, y - height / 2, y + CLEARANCE
    order = ((0, 0), (1, 0), (0, 1), (2, 1), (2, 2), (1, 2), (0, 2), (2, 0))
    near = tuple((lefts[a], tops[b], lefts[a] + width, tops[b] + height) for a, b in order)
    if label.kind == "plain":
        return near
    left = min(max(lefts[1], LEFT), frame.width - width)
    above = (tops[0] - height * step for step in range(1, FARTHEST))
    return (*near, *((left, top, left + width, top + height) for top in above))


def _around(place: tuple[float, float]) -> _Rectangle:
    x, y = place
    return x - 4, y - 4, x + 4, y + 4


def _inside(place: _Rectangle, frame: Frame) -> bool:
    left, top, right, bottom = place
    return left >= LEFT and right <= frame.width and top >= 0 and bottom <= frame.base


def _meet(one: _Rectangle, other: _Rectangle) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
