"""What a source says of the rows of a table, and the table with it: facts and dates change, the rest of the text stays.

A source confirms a row, changes it, contradicts it, or does not tell: what it does not tell keeps its date.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from scripts.renewal.sources import Sources

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
Row: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Told:
    """What a source says of a row.

    Attributes:
        facts: The fields that it tells, with their values there.
        source: It, with its version.
    """

    facts: Row
    source: str


@dataclass(frozen=True, slots=True)
class Denied:
    """A fact of a row that the source contradicts in a way that a person must judge.

    Attributes:
        because: What it says, in words.
    """

    because: str


Answer: TypeAlias = Told | Denied | None
"""`None` where the source does not tell."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a command renews.

    Attributes:
        file: Its file in the catalog.
        check: Returns what the sources say of a row of a part.
        name_of: Returns what a row is called on the screen.
    """

    file: str
    check: Callable[[str, Row, Sources], Answer]
    name_of: Callable[[Row], str]


@dataclass(frozen=True, slots=True)
class Renewal:
    """A table as its sources have it.

    Attributes:
        text: The file's text.
        confirmed: Rows that read as before.
        changes: What changed, a line each.
        denied: What a source contradicts, a line each; such a row is kept as it is.
        untold: Where the rows that no source told come from, with how many there are.
    """

    text: str
    confirmed: int
    changes: tuple[str, ...]
    denied: tuple[str, ...]
    untold: Mapping[str, int]


def renewed(text: str, table: Table, sources: Sources, date: str) -> Renewal:
    """Return a table as its sources have it.

    Args:
        text: The file's text, each row on a line of its own.
        table: The table.
        sources: What is asked.
        date: The day of the reading, which every row that was told gets.

    Raises:
        ValueError: A row without source and date, or one that is not on one line.
    """
    confirmed, changes, denied, untold = 0, list[str](), list[str](), dict[str, int]()
    for part, row in rows_of(text):
        answer = table.check(part, row, sources)
        if isinstance(answer, Told):
            facts = {field: _in_order(row.get(field), value) for field, value in answer.facts.items()}
            text = _replaced(text, row, {**row, **facts, "source": answer.source, "date": date})
            lines = [*_changes(table.name_of(row), row, facts)]
            confirmed, changes = confirmed + (not lines), [*changes, *lines]
        elif isinstance(answer, Denied):
            denied.append(f"{table.name_of(row)}: {answer.because}")
        else:
            untold[str(row["source"])] = untold.get(str(row["source"]), 0) + 1
    check_rows(text)
    return Renewal(text, confirmed, tuple(changes), tuple(denied), untold)


def rows_of(text: str) -> Iterator[tuple[str, Row]]:
    """Yield the dated rows of a table, each with the part that it stands in."""
    document: dict[str, object] = json.loads(text)
    for part, rows in document.items():
        if isinstance(rows, list):
            yield from ((part, row) for row in rows if isinstance(row, dict) and "date" in row)


def check_rows(text: str) -> None:
    """Refuse a table with a dated row that says no source, or no day.

    Raises:
        ValueError: With the first one.
    """
    for part, row in rows_of(text):
        if not row.get("source") or len(str(row["date"])) != len("2026-01-01"):
            raise ValueError(f"{part}: a row without source and day: {row}")


def _replaced(text: str, row: Row, new: Row) -> str:
    for ascii_only in (False, True):
        line = json.dumps(row, ensure_ascii=ascii_only)
        if text.count(line) == 1:
            return text.replace(line, json.dumps(new, ensure_ascii=ascii_only))
    raise ValueError(f"not once on a line of its own: {row}")


def _changes(name: str, row: Row, facts: Row) -> Iterator[str]:
    for field, value in facts.items():
        old = row.get(field)
        if old == value:
            continue
        if isinstance(old, list) and isinstance(value, list):
            yield f"{name}: {field}: {_list_change(old, value)}"
        else:
            yield f"{name}: {field}: {old} -> {value}"


def _in_order(old: Json, new: Json) -> Json:
    """Return a list as it stands where the other one has the same values, which have no order."""
    same = isinstance(old, list) and isinstance(new, list) and {*map(str, old)} == {*map(str, new)}
    return old if same else new


def _list_change(old: Sequence[Json], new: Sequence[Json]) -> str:
    words = [f"+{each}" for each in new if each not in old] + [f"-{each}" for each in old if each not in new]
    return " ".join(words)
