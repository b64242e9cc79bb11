"""The digests of a locked plan: one of the whole and one of each field, so that a change by hand is found and named.

They guard against accidents and against edits that nobody reviewed. They are no signature: who wants to can write them
anew.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial.model import FrozenModel, digest

if TYPE_CHECKING:
    from collections.abc import Mapping


class Seal(FrozenModel):
    """What a plan was when it was written into its lock.

    Attributes:
        plan: Digest of the whole plan, the one that the stack and the report show.
        fields: Digest of each of its fields.
    """

    plan: str
    fields: dict[str, str]


def seal_of(document: Mapping[str, object]) -> Seal:
    """Return the digests of a plan as it is written in JSON."""
    return Seal(plan=_digest(document), fields={name: _digest(value) for name, value in document.items()})


def changed_fields(document: Mapping[str, object], seal: Seal) -> tuple[str, ...]:
    """Return the fields that were changed, added or removed since a plan was written, sorted; empty for none.

    Where the digests themselves were changed, these are among them, as `digests`.
    """
    now = seal_of(document)
    names = {*now.fields, *seal.fields}
    changed = {name for name in names if now.fields.get(name) != seal.fields.get(name)}
    if not changed and now.plan != seal.plan:
        return ("digests",)
    return tuple(sorted(changed))


def _digest(value: object) -> str:
    return digest(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
