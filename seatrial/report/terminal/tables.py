"""How every table of the terminal looks: headings, no lines; it stays readable at 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rich.table import Table
from rich.text import Text

from seatrial.report.values import digits
from seatrial_base.units import usd

if TYPE_CHECKING:
    from collections.abc import Iterable

Side = Literal["left", "right"]
UNKNOWN = "?"


def table(*, words: Iterable[str] = (), numbers: Iterable[str] = (), gap: int = 2) -> Table:
    """Return an empty table: columns of words first, to the left, then columns of numbers, to the right.

    Args:
        words: Headings of the columns of words.
        numbers: Headings of the columns of numbers.
        gap: Blanks between two columns.
    """
    made = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    add_columns(made, "left", words)
    add_columns(made, "right", numbers)
    return made


def add_columns(made: Table, side: Side, names: Iterable[str]) -> None:
    """Add columns that are set to one side; a name may have several lines."""
    for name in names:
        made.add_column(name, justify=side, overflow="fold", vertical="top", header_style="dim")


def add_row(made: Table, *cells: str) -> None:
    """Add a row of plain words: brackets and colons in them are no markup."""
    made.add_row(*map(Text, cells))


def heading(text: str) -> Text:
    """Return a heading with a blank line before it."""
    return Text(f"\n{text}", style="bold")


def short(value: float | None, otherwise: str = UNKNOWN) -> str:
    """Write a number with about three digits; something else where it is unknown."""
    return otherwise if value is None else digits(value)


def whole_percent(share: float) -> str:
    """Write a share in whole percent."""
    return f"{share * 100:.0f} %"


def narrow_usd(amount: float | None) -> str:
    """Write an amount of US dollars for a narrow column: cents from ten dollars on, a question mark if unknown."""
    if amount is None:
        return UNKNOWN
    return f"${amount:,.2f}" if 10 <= amount < 1_000 else usd(amount)  # noqa: PLR2004 (dollars)
