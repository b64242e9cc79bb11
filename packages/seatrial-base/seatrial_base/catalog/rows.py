"""Reads the catalog's data files: one JSON object a row, one frozen dataclass each."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


Row = TypeVar("Row")

_DATA = Path(__file__).parent / "data"


def read_rows(file: str, row: Callable[..., Row], *, part: str = "rows") -> tuple[Row, ...]:
    """Read one part of a data file; a row's keys are the fields of its class."""
    document = json.loads((_DATA / file).read_text(encoding="utf-8"))
    return tuple(row(**{key: _frozen(value) for key, value in fields.items()}) for fields in document[part])


def read_mapping(file: str, part: str) -> dict[str, str]:
    """Read a part of a data file that maps one text to another."""
    document = json.loads((_DATA / file).read_text(encoding="utf-8"))
    return {str(key): str(value) for key, value in document[part].items()}


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def nearest_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return up to three known names that are written most like this one, best first."""
    return tuple(difflib.get_close_matches(name, known, n=3, cutoff=0.5))
