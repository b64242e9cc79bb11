"""The parts that a report is made of, with every number already written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.report.charts import Chart
    from seatrial_base.table import Cell, Table


@dataclass(frozen=True, slots=True)
class Fact:
    """A named value outside a table; `aside` names its place or condition."""

    name: str
    value: Cell
    aside: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A text to copy."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section, its parts in the order they are shown.

    Attributes:
        anchor: The section's id in the page.
        paragraphs: Sentences before everything else.
        remarks: Sentences below the tables, as a list.
        short: Its name in the navigation; the heading when empty.
        texts: Texts to copy.
        half: Whether it shares a row with another where the page is wide enough.
        detail: Whether it is folded: not needed to decide.
    """

    anchor: str
    heading: str
    short: str = ""
    paragraphs: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    facts: tuple[Fact, ...] = ()
    tables: tuple[Table, ...] = ()
    remarks: tuple[str, ...] = ()
    texts: tuple[Text, ...] = ()
    half: bool = False
    detail: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it has nothing to show."""
        return not any((self.paragraphs, self.charts, self.facts, self.tables, self.remarks, self.texts))
