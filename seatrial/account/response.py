"""Fields of an answer of AWS, by type; what an answer lacks is empty."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def rows(answer: Mapping[str, object], name: str) -> Iterator[Mapping[str, object]]:
    """Yield the mappings of a list of an answer; none where there is no such list."""
    found = answer.get(name)
    for row in found if isinstance(found, list) else ():
        if isinstance(row, dict):
            yield row


def text_at(row: Mapping[str, object], name: str) -> str:
    """Return a text of an answer; empty where there is none."""
    return f"{row.get(name) or ''}"


def count(row: Mapping[str, object], name: str) -> int:
    """Return a whole number of an answer; 0 where there is none."""
    found = row.get(name)
    return found if isinstance(found, int) else 0


def mapping(document: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return a mapping of an answer; an empty one where there is none."""
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def number(row: Mapping[str, object], name: str) -> float | None:
    """Return a number of an answer; `None` where there is none."""
    found = row.get(name)
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def moment(document: Mapping[str, object], name: str) -> datetime | None:
    """Return a time of an answer, in UTC where it has no zone; `None` where there is none."""
    found = document.get(name)
    if not isinstance(found, datetime):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
