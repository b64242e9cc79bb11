"""Model architectures by hub id."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from seatrial.catalog.architecture import Architecture
from seatrial.catalog.table import nearest as nearest_names
from seatrial.catalog.table import read_rows

_TUNED = re.compile(r"-(instruct|chat)(?=-|$)")


@dataclass(frozen=True, slots=True)
class _Alias:
    alias: str
    id: str
    max_context: int | None


@cache
def every() -> tuple[Architecture, ...]:
    """Return every architecture of the catalog, sorted by id."""
    return read_rows("models.json", Architecture)


def find(model_id: str) -> Architecture | None:
    """Return the architecture of a hub id, or `None` when the catalog lacks it.

    A tuned model shares the architecture of its base: `-Instruct` and `-Chat` are left out when the id itself is
    unknown (`tiiuae/falcon-40b-instruct`). The aliases of the catalog name the repositories for which that is not
    all, because they were renamed or ship another context length. Upper and lower case don't matter.
    """
    asked = model_id.lower()
    return _look_up(asked) or _look_up(_TUNED.sub("", asked, count=1))


def nearest(model_id: str) -> tuple[str, ...]:
    """Return up to three catalog ids that are written most like this one."""
    return nearest_names(model_id, [architecture.id for architecture in every()])


def _look_up(name: str) -> Architecture | None:
    alias = _aliases().get(name)
    found = _by_id().get(alias.id.lower() if alias else name)
    return replace(found, max_context=alias.max_context) if found and alias and alias.max_context else found


@cache
def _by_id() -> dict[str, Architecture]:
    return {architecture.id.lower(): architecture for architecture in every()}


@cache
def _aliases() -> dict[str, _Alias]:
    return {alias.alias.lower(): alias for alias in read_rows("models.json", _Alias, part="aliases")}
