"""The style of the terminal's tables: headings, no lines; readable at 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table as RichTable
from rich.text import Text

from seatrial_base.units import UNKNOWN, usd

if TYPE_CHECKING:
    from seatrial_base.table import Table


def table_view(table: Table, *, gap: int = 2) -> RichTable:
    """Return a table for a terminal, without its caption; brackets and colons in its texts are no markup."""
    has_head = any(column.label for column in table.columns)
    view = RichTable(box=None, pad_edge=False, padding=(0, gap, 0, 0), show_header=has_head)
    for column in table.columns:
        view.add_column(
            Text("\n".join(line for line in (column.group, column.label, column.unit) if line)),
            justify="right" if column.kind == "number" else "left",
            overflow="fold",
            vertical="top",
            header_style="dim",
            no_wrap=column.kind == "name",
            max_width=column.width or None,
        )
    for row in table.rows:
        view.add_row(*(Text(cell.plain) for cell in row))
    return view


def heading(text: str) -> Text:
    """Return a heading with a blank line before it."""
    return Text(f"\n{text}", style="bold")


def whole_percent(share: float) -> str:
    """Write a share in whole percent."""
    return f"{share * 100:.0f} %"


def narrow_usd(amount: float | None) -> str:
    """Write an amount of US dollars for a narrow column: cents from ten dollars on, a question mark if unknown."""
    if amount is None:
        return UNKNOWN
    return f"${amount:,.2f}" if 10 <= amount < 1_000 else usd(amount)  # noqa: PLR2004 (dollars)
