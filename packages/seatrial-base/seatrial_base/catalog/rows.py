"""Reads the catalog's data files: one JSON object a row, one frozen dataclass each."""

from __future__ import annotations

import difflib
import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


Row = TypeVar("Row")

_DATA = Path(__file__).parent / "data"


def catalog_rows(file: str, row: Callable[..., Row], *, part: str = "rows") -> tuple[Row, ...]:
    """Read one part of a data file; a row's keys are the fields of its class."""
    rows = _document(file)[part]
    if not isinstance(rows, list):
        raise TypeError(f"{file}: {part} is no list of rows")
    return tuple(read_row(row, fields) for fields in rows)


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
