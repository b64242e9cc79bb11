"""Writes texts and tables as Markdown that shows what it is given and does nothing with it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seatrial.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.report.table import Table
    from seatrial.report.values import Cell

_PUNCTUATION = re.compile(r"[\\`*{}\[\]<>|~#$&]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_LINK = re.compile(r"(?i):(?=//)|(?<=\bwww)\.")
_MENTION = re.compile(r"@(?=\w)")
_UNBROKEN_MENTION = "@\N{WORD JOINER}"


def escaped(text: str) -> str:
    """Write a text that may have come over the network so that Markdown shows it and does nothing with it.

    No markup, no link, no table cell, no mention of a user, one line.
    """
    line = printable(" ".join(text.split()))
    marked = _LINK.sub(r"\\\g<0>", _PUNCTUATION.sub(r"\\\g<0>", line))
    return _MENTION.sub(_UNBROKEN_MENTION, marked)


def markdown_table(table: Table) -> str:
    """Write a table; reasons for missing values follow below it."""
    lines = [
        _line(escaped(column.heading) for column in table.columns),
        _line("---:" if column.kind == "number" else ":---" for column in table.columns),
        *(_line(map(_cell, row)) for row in table.cells),
    ]
    reasons = [f"– : {escaped(because)}" for because in table.missing_because]
    return "\n".join([*lines, "", "  \n".join(reasons)] if reasons else lines)


def _cell(cell: Cell) -> str:
    return escaped(cell.text)


def _line(cells: Iterator[str] | map[str]) -> str:
    return f"| {' | '.join(cells)} |"
