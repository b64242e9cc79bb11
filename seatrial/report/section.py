"""The parts that a report is made of, with every number already written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.report.cell import Cell
    from seatrial.report.chart.panel import Panel
    from seatrial.report.table import Table


@dataclass(frozen=True, slots=True)
class Fact:
    """A named value outside a table; `aside` says where it holds."""

    name: str
    value: Cell
    aside: str = ""


@dataclass(frozen=True, slots=True)
class Folded:
    """A long text that is opened on demand."""

    summary: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section, its parts in the order they are shown.

    Attributes:
        anchor: The section's id in the page.
        heading: Its heading.
        paragraphs: Sentences before everything else.
        panels: Panels of its figure.
        facts: Named values.
        tables: Its tables.
        remarks: Sentences below the tables, as a list.
        folded: Long texts, closed at first.
    """

    anchor: str
    heading: str
    paragraphs: tuple[str, ...] = ()
    panels: tuple[Panel, ...] = ()
    facts: tuple[Fact, ...] = ()
    tables: tuple[Table, ...] = ()
    remarks: tuple[str, ...] = ()
    folded: tuple[Folded, ...] = ()
