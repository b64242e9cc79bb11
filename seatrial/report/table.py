"""A table: a caption, columns that may stand in groups, rows whose first cell names the row."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from seatrial.report.values import Cell


@dataclass(frozen=True, slots=True)
class Column:
    """One column: what it holds, in which unit, under which common heading."""

    label: str
    unit: str = ""
    group: str = ""
    kind: Literal["number", "text", "prose"] = "number"

    @property
    def heading(self) -> str:
        """The label with its unit, for a heading of one line."""
        words = (self.group, self.label, f"({self.unit})" if self.unit else "")
        return " ".join(word for word in words if word)


CONCURRENCY = Column("concurrency", "per copy")


@dataclass(frozen=True, slots=True)
class Heading:
    """One cell of the table's head."""

    label: str
    unit: str
    kind: str
    scope: Literal["col", "colgroup"]
    columns: int = 1
    rows: int = 1


@dataclass(frozen=True, slots=True)
class Value:
    """One cell of the body with its column's kind and heading: a narrow page shows them beside each other."""

    kind: str
    label: str
    cell: Cell


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of the body: its name and the heading of that, then its values."""

    label: str
    name: Cell
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table as both the page and the Markdown show it."""

    caption: str
    columns: tuple[Column, ...]
    cells: tuple[tuple[Cell, ...], ...]

    @property
    def head(self) -> tuple[tuple[Heading, ...], ...]:
        """One row of headings, or two when columns are grouped."""
        if not any(column.group for column in self.columns):
            return (tuple(_heading(column) for column in self.columns),)
        return self._group_headings(), tuple(_heading(column) for column in self.columns if column.group)

    def _group_headings(self) -> tuple[Heading, ...]:
        headings: list[Heading] = []
        for group, members in groupby(self.columns, key=lambda column: column.group):
            columns = tuple(members)
            if group:
                headings.append(Heading(group, columns[0].unit, "group", "colgroup", columns=len(columns)))
            else:
                headings += [_heading(column, rows=2) for column in columns]
        return tuple(headings)

    @property
    def rows(self) -> tuple[TableRow, ...]:
        """The body."""
        first, *rest = self.columns
        return tuple(
            TableRow(
                first.heading,
                name,
                tuple(Value(column.kind, column.heading, cell) for column, cell in zip(rest, cells, strict=True)),
            )
            for name, *cells in self.cells
        )

    @property
    def missing_because(self) -> tuple[str, ...]:
        """Why values are missing, each reason once: a title alone can't be printed or touched."""
        reasons = (cell.missing_because for row in self.cells for cell in row if cell.missing_because)
        return tuple(dict.fromkeys(reasons))


def _heading(column: Column, *, rows: int = 1) -> Heading:
    unit = "" if column.group else column.unit
    return Heading(column.label, unit, column.kind, "col", rows=rows)
