"""A table and its writers: Markdown, CSV, HTML and aligned text; what is missing is a dash with its reason.

The terminal's writer is `seatrial.report.terminal.tables`: it needs rich.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial_base.text import code, escaped, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

DASH = "–"
Tone: TypeAlias = Literal["plain", "good", "bad", "unknown", "code", "strong"]
Kind: TypeAlias = Literal["number", "text", "prose", "name"]
Scalar: TypeAlias = str | float | bool | None
# With these a cell begins that a spreadsheet takes for a formula (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a table or of a list of facts.

    Attributes:
        text: What users read.
        exact: The JSON number that the text rounds; empty when the text is exact.
        missing_because: Why there is no value; empty when there is one.
        tone: How it is set: `good`, `bad` and `unknown` carry a sign as well as a colour.
        low: The lower end of its 95 % interval; None when it has none, or none can be given.
        high: Its upper end.
        lead: What stands before the text, set apart.
        below: Further lines of the same cell.
    """

    text: str
    exact: str = ""
    missing_because: str = ""
    tone: Tone = "plain"
    low: Cell | None = None
    high: Cell | None = None
    lead: str = ""
    below: tuple[Cell, ...] = ()

    @property
    def plain(self) -> str:
        """All of its text, line by line."""
        first = f"{self.lead}: {self.text}" if self.lead else self.text
        return "\n".join((first, *(line.plain for line in self.below)))


@dataclass(frozen=True, slots=True)
class Column:
    """One column: what it holds, in which unit, under which common heading.

    Attributes:
        group: A heading that it shares with its neighbours.
        kind: What it holds: numbers stand to the right, all else to the left; a name is never broken.
        width: Most characters of a line in the terminal; 0 for as many as there is room for.
    """

    label: str
    unit: str = ""
    group: str = ""
    kind: Kind = "number"
    width: int = 0

    @property
    def heading(self) -> str:
        """The label with its unit, for a heading of one line."""
        words = (self.group, self.label.replace("\n", " "), f"({self.unit})" if self.unit else "")
        return " ".join(word for word in words if word)


CONCURRENCY = Column("concurrency", "per copy")


@dataclass(frozen=True, slots=True)
class Table:
    """A table, whatever writes it.

    Attributes:
        columns: What is below each other.
        rows: Cells in the columns' order; the first names the row.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def missing_because(self) -> tuple[str, ...]:
        """Why values are missing, each reason once: a title alone can't be printed or touched."""
        reasons = (cell.missing_because for row in self.rows for cell in row if cell.missing_because)
        return tuple(dict.fromkeys(reasons))


def number_columns(*labels: str) -> tuple[Column, ...]:
    """Return columns of numbers."""
    return tuple(Column(label) for label in labels)


def text_columns(*labels: str) -> tuple[Column, ...]:
    """Return columns of words."""
    return tuple(Column(label, kind="text") for label in labels)


def name_column(label: str) -> Column:
    """Return a column of names, which are never broken."""
    return Column(label, kind="name")


def table_of(columns: Sequence[Column], rows: Iterable[Iterable[Cell | str]], caption: str = "") -> Table:
    """Return a table of cells, or of words as they are."""
    cells = (tuple(Cell(value) if isinstance(value, str) else value for value in row) for row in rows)
    return Table(caption, tuple(columns), tuple(cells))


def record_table(fields: Sequence[str], records: Iterable[Mapping[str, Scalar]]) -> Table:
    """Return a table of records for machines: exact numbers, and nothing where a value is None."""
    columns = tuple(Column(name, kind="text") for name in fields)
    unknown = Cell(DASH, missing_because="unknown")
    values = ([record[name] for name in fields] for record in records)
    rows = (
        tuple(
            unknown if value is None else Cell(str(value), exact="" if isinstance(value, str) else str(value))
            for value in row
        )
        for row in values
    )
    return Table("", columns, tuple(rows))


def markdown_table(table: Table) -> list[str]:
    """Write a table as Markdown, whatever its texts hold; reasons for missing values and notes follow below it."""
    lines = [
        _markdown_row(escaped(column.heading) for column in table.columns),
        _markdown_row("---:" if column.kind == "number" else ":---" for column in table.columns),
        *(_markdown_row(map(_markdown_cell, row)) for row in table.rows),
    ]
    below = [f"{DASH} : {escaped(because)}" for because in table.missing_because]
    below += map(escaped, table.notes)
    return [*lines, "", *"  \n".join(below).split("\n")] if below else lines


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    return "<br>".join((_markdown_line(cell), *map(_markdown_cell, cell.below)))


def _markdown_line(cell: Cell) -> str:
    lead = f"**{escaped(cell.lead)}**: " if cell.lead else ""
    if cell.tone == "code":
        return lead + code(cell.text)
    return lead + (f"**{escaped(cell.text)}**" if cell.tone == "strong" else escaped(cell.text))


def csv_table(table: Table, *, is_guarded: bool = True) -> str:
    """Write a table as CSV with a head: numbers exact, nothing where a value is missing.

    `is_guarded`: set a quote before a text that a spreadsheet would take for a formula.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(column.label for column in table.columns)
    for row in table.rows:
        cells = ((cell, without_formula(cell.plain) if is_guarded else cell.plain) for cell in row)
        writer.writerow("" if cell.missing_because else cell.exact or plain for cell, plain in cells)
    return text.getvalue()


def without_formula(text: str) -> str:
    """Return a cell of CSV with a quote before what a spreadsheet would take for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def aligned_lines(table: Table) -> list[str]:
    """Write a table as lines of text whose columns stand below each other; the head is left out without labels."""
    rows = [tuple(cell.plain.replace("\n", " ") for cell in row) for row in table.rows]
    if any(column.label for column in table.columns):
        rows.insert(0, tuple(column.heading for column in table.columns))
    widths = [max((len(row[index]) for row in rows), default=0) for index in range(len(table.columns))]
    sides = [(str.rjust if column.kind == "number" else str.ljust) for column in table.columns]
    padded = ([side(text, width) for text, width, side in zip(row, widths, sides, strict=True)] for row in rows)
    return ["  ".join(texts).rstrip() for texts in padded]


def html_table(table: Table) -> str:
    """Write a table as HTML, escaped; a narrow page shows each value beside its column's heading."""
    caption = escape(printable(table.caption))
    first, *rest = table.columns
    heads = [f'class="{column.kind}" data-label="{escape(printable(column.heading))}"' for column in rest]
    label = escape(printable(first.heading))
    body = "\n".join(_html_row(label, heads, row) for row in table.rows)
    below = "".join(f"<li>{escape(printable(line))}</li>\n" for line in (*table.missing_because, *table.notes))
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}">\n<table role="table">\n'
        f'<caption><span>{caption}</span></caption>\n<thead role="rowgroup">\n{_html_head(table.columns)}\n</thead>\n'
        f'<tbody role="rowgroup">\n{body}\n</tbody>\n</table>\n</div>'
        + (f'\n<ul class="missing">\n{below}</ul>' if below else "")
    )


def _html_head(columns: Sequence[Column]) -> str:
    """Write one row of headings, or two when columns are grouped."""
    if not any(column.group for column in columns):
        return _html_head_row(_html_heading(column) for column in columns)
    below = _html_head_row(_html_heading(column) for column in columns if column.group)
    return f"{_html_head_row(_group_headings(columns))}\n{below}"


def _html_head_row(headings: Iterable[str]) -> str:
    return "\n".join(('<tr role="row">', *headings, "</tr>"))


def _group_headings(columns: Sequence[Column]) -> Iterator[str]:
    for group, grouped in groupby(columns, key=lambda column: column.group):
        members = list(grouped)
        if group:
            yield _th(group, members[0].unit, f'class="group" scope="colgroup" colspan="{len(members)}" rowspan="1"')
        else:
            yield from (_html_heading(column, rows=2) for column in members)


def _html_heading(column: Column, *, rows: int = 1) -> str:
    unit = "" if column.group else column.unit
    return _th(column.label, unit, f'class="{column.kind}" scope="col" colspan="1" rowspan="{rows}"')


def _th(label: str, unit: str, attributes: str) -> str:
    small = f" <small>{escape(printable(unit))}</small>" if unit else ""
    return f'<th role="columnheader" {attributes}>{escape(printable(label))}{small}</th>'


def _html_row(label: str, heads: Sequence[str], row: Sequence[Cell]) -> str:
    name, *values = row
    cells = [
        f'<th role="rowheader" scope="row" data-label="{label}">{_html_span(name)}</th>',
        *(f'<td role="cell" {head}>{_html_span(cell)}</td>' for head, cell in zip(heads, values, strict=True)),
    ]
    return "\n".join(('<tr role="row">', *cells, "</tr>"))


def _html_span(cell: Cell) -> str:
    return f'<span class="value">{html_cell(cell)}</span>'


def html_cell(cell: Cell) -> str:
    """Write a value as HTML, escaped, its interval in small below it."""
    lead = f"<strong>{escape(printable(cell.lead))}</strong>: " if cell.lead else ""
    interval = _html_interval(cell)
    small = f' <small class="interval">{interval}</small>' if interval else ""
    return "<br>".join((f"{lead}{_html_value(cell)}{small}", *map(html_cell, cell.below)))


def _html_interval(cell: Cell) -> str:
    if cell.low is not None and cell.high is not None:
        return f"{html_cell(cell.low)}–{html_cell(cell.high)}"
    if cell.low is not None:
        return f"≥ {html_cell(cell.low)}"
    return "" if cell.high is None else f"≤ {html_cell(cell.high)}"


def _html_value(cell: Cell) -> str:
    text = escape(printable(cell.text, layout="\n\t"))
    if cell.missing_because:
        return f'<abbr title="{escape(printable(cell.missing_because))}">{DASH}</abbr>'
    if cell.exact:
        return f'<data value="{escape(cell.exact)}">{text}</data>'
    if cell.tone in {"code", "strong"}:
        return f"<{cell.tone}>{text}</{cell.tone}>"
    return text if cell.tone == "plain" else f'<span class="{cell.tone}">{text}</span>'
