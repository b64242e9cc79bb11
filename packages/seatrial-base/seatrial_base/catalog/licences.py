"""Licences of models by hub id and JumpStart id, as their publishers state them on the hub.

A licence belongs to a repository, not to an architecture: models of one shape may have several, and a copy by another
owner has none that is known here. Where the hub says `other`, the licence is the `license_name` beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from seatrial_base.catalog.rows import read_rows


@dataclass(frozen=True, slots=True)
class Licence:
    """A licence and the models that have it.

    Attributes:
        licence: Its id on the hub.
        models: Patterns of hub ids and JumpStart ids; upper and lower case don't matter.
        source: Where it was read.
        date: When it was entered.
    """

    licence: str
    models: tuple[str, ...]
    source: str
    date: str

    def covers(self, name: str) -> bool:
        """Tell whether a hub id or JumpStart id is among the models."""
        return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in self.models)


@cache
def all_licences() -> tuple[Licence, ...]:
    """Return every row of the table."""
    return read_rows("licences.json", Licence)


def licence_of(name: str) -> str | None:
    """Return the licence of a hub id or JumpStart id; `None` when it is not known."""
    return next((row.licence for row in all_licences() if row.covers(name)), None)
