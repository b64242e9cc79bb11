"""The tables of the catalog: one JSON object a row in a data file, one frozen dataclass each."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping


Row = TypeVar("Row")

_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sourced:
    """A row that somebody can check: where it was read, and on which day (`2026-11-02`)."""

    source: str
    date: str


class CatalogTable(Generic[Row]):
    """The rows of one or several parts of data files, read when somebody first looks at them.

    Reading them at import would cost every command all tables: some are megabytes.

    Args:
        row: What makes a row of its fields, which are the keys of an object: its class, as a rule.
        places: The files, each with the name of its part where that is not `rows`: `neuron.json#chips`.
        key: The field by which a row is found, or what returns that of a row; a field of several values finds it by
            each of them.
    """

    def __init__(
        self, row: Callable[..., Row], *places: str, key: str | Callable[[Row], Hashable] | None = None
    ) -> None:
        self._row = row
        self._places = places
        self._key = key

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Every row, in the order of the files."""
        return tuple(read_row(self._row, fields) for place in self._places for fields in _part(place))

    def having(self, key: Hashable) -> tuple[Row, ...]:
        """Return the rows with a key, in their order."""
        return self._by_key.get(key, ())

    def get(self, key: Hashable) -> Row | None:
        """Return the first row with a key; `None` where there is none."""
        return next(iter(self.having(key)), None)

    def __getitem__(self, key: Hashable) -> Row:
        return self._by_key[key][0]

    def __contains__(self, key: Hashable) -> bool:
        return key in self._by_key

    @cached_property
    def _by_key(self) -> Mapping[Hashable, tuple[Row, ...]]:
        by_key: dict[Hashable, list[Row]] = {}
        for row in self.rows:
            own = getattr(row, self._key) if isinstance(self._key, str) else self._key(row) if self._key else ()
            for key in own if isinstance(self._key, str) and isinstance(own, tuple) else (own,):
                by_key.setdefault(key, []).append(row)
        return {key: tuple(rows) for key, rows in by_key.items()}


def _part(place: str) -> list[Mapping[str, object]]:
    file, _, part = place.partition("#")
    rows = _document(file)[part or "rows"]
    if not isinstance(rows, list):
        raise TypeError(f"{place} is no list of rows")
    return rows


def read_row(row: Callable[..., Row], fields: Mapping[str, object]) -> Row:
    """Make one row of its fields; a list becomes a tuple."""
    return row(**{key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()})


def read_mapping(file: str, part: str) -> dict[str, str]:
    """Read a part of a data file that maps one text to another."""
    mapping = _document(file)[part]
    if not isinstance(mapping, dict):
        raise TypeError(f"{file}: {part} is no mapping")
    return {str(key): str(value) for key, value in mapping.items()}


@lru_cache(maxsize=2)  # a file of several parts is read part by part
def _document(file: str) -> dict[str, object]:
    document: dict[str, object] = json.loads((_DATA / file).read_text(encoding="utf-8"))
    return document


def nearest_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return up to three known names that are written most like this one, best first."""
    return tuple(difflib.get_close_matches(name, known, n=3, cutoff=0.5))
