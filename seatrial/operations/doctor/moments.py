"""Times of answers of AWS."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def moment(document: Mapping[str, object], name: str) -> datetime | None:
    """Return a time of an answer, in UTC where it has no zone; None where there is none."""
    found = document.get(name)
    if not isinstance(found, datetime):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
