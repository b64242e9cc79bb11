"""Writes neutral values as an engine spells them: which rows say a configuration, and what must be told."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seatrial_lint.engines.fields import PRESENT, flatten, neutral_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial_base.catalog.engine_options import Absence, Spelling, SpellingTable
    from seatrial_lint.engines.config import ServingConfig
    from seatrial_lint.engines.fields import Leaf

NOTHING = "{}"  # an empty JSON object says nothing


@dataclass(frozen=True, slots=True)
class SpelledConfig:
    """A configuration in an engine's spelling.

    Attributes:
        pairs: Each spelling that is written with its text, in the order of the file.
        notes: Field and what to tell people of it.
        missing: What the engine can't say and would be missed.
    """

    pairs: tuple[tuple[Spelling, str], ...]
    notes: tuple[tuple[str, str], ...]
    missing: tuple[Missing, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """What an engine has no option for.

    Attributes:
        field: The neutral field.
        text: Its value; empty for a sub-model.
        known: The values that the engine does have.
        absence: What the catalog says of it; `None` when it says nothing.
    """

    field: str
    text: str
    known: tuple[str, ...]
    absence: Absence | None


@dataclass(slots=True)
class _Draft:
    texts: dict[int, str] = field(default_factory=dict)  # index of the row to its text
    notes: list[tuple[str, str]] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)


def spell(config: ServingConfig, table: SpellingTable) -> SpelledConfig:
    """Choose for each field that is set the spelling of a dialect and version."""
    flat = flatten(config)
    draft = _Draft()
    for name in flat:
        if not _said_by_parent(name, table):
            _say(name, flat, table, draft)
    _add_fixed(flat, table, draft)
    pairs = tuple((row, draft.texts[index]) for index, row in enumerate(table.rows) if index in draft.texts)
    return SpelledConfig(pairs, tuple(dict.fromkeys(draft.notes)), tuple(draft.missing))


def _say(name: str, flat: Mapping[str, Leaf], table: SpellingTable, draft: _Draft) -> None:
    text = neutral_text(flat[name])
    chosen = [i for i, row in enumerate(table.rows) if _says(row, name, text) and not _is_too_long(row, flat[name])]
    for index in chosen[:1] + [index for index in chosen[1:] if table.rows[index].also]:
        row = table.rows[index]
        note = row.leave.get(text, row.note).replace("{value}", text)
        if note:
            draft.notes.append((name, note))
        if text not in row.leave and (row.key or row.env):
            written = _written(row, name, flat)
            if written != NOTHING:
                draft.texts[index] = written
    if not chosen and not _is_heading(name, flat, table):
        _miss(name, text, table, draft)


def _says(row: Spelling, name: str, text: str) -> bool:
    if row.field != name or row.alias:
        return False
    return text in row.leave or (
        (not row.leave or bool(row.translation)) and (not row.translation or text in row.translation)
    )


def _is_too_long(row: Spelling, value: Leaf) -> bool:
    """Say whether there are several adapters where one can be written."""
    return row.kind == "pair" and isinstance(value, tuple) and len(value) > 1


def _is_heading(name: str, flat: Mapping[str, Leaf], table: SpellingTable) -> bool:
    """Say whether a sub-model has nothing to be written for itself, because its members or a fixed key say it."""
    if flat[name] != PRESENT:
        return False
    return any(row.when == name or (row.field or "").startswith(f"{name}.") for row in table.rows)


def _said_by_parent(name: str, table: SpellingTable) -> bool:
    """Say whether a member is written inside its parent's JSON, or its parent can't be said at all."""
    parent, _, member = name.rpartition(".")
    if not parent:
        return False
    known = [row for row in table.rows if row.field == parent]
    in_json = any(member in row.members for row in known)
    return in_json or not any((row.field or "").startswith(parent) or row.when == parent for row in table.rows)


def _miss(name: str, text: str, table: SpellingTable, draft: _Draft) -> None:
    matching = (row for row in table.absences if row.field == name and (not row.values or text in row.values))
    absence = next(matching, None)
    if absence is None or absence.how == "error":
        rows = (row for row in table.rows if row.field == name and not row.alias)
        known = tuple(dict.fromkeys(value for row in rows for value in (*row.translation, *row.leave)))
        draft.missing.append(Missing(name, text, known, absence))
    elif absence.how == "note":
        draft.notes.append((name, absence.because))


def _written(row: Spelling, name: str, flat: Mapping[str, Leaf]) -> str:
    value = flat[name]
    if row.kind == "json":
        return _json(row, name, flat)
    if isinstance(value, tuple):
        pairs = [f"{adapter.name}={adapter.path}" for adapter in value]
        return json.dumps(pairs, separators=(",", ":")) if row.kind == "pairs_json" else ",".join(pairs)
    text = neutral_text(value)
    if row.kind == "with_running":
        running = flat.get("max_num_seqs")
        return str(int(text) + (running if isinstance(running, int) else 0))
    return str(int(text) + row.offset) if row.offset else row.translation.get(text, text)


def _json(row: Spelling, name: str, flat: Mapping[str, Leaf]) -> str:
    members = {row.members[member]: flat[f"{name}.{member}"] for member in row.members if f"{name}.{member}" in flat}
    if members.get("method") == "draft_model":
        del members["method"]  # the engines' default
    inside = {key: value for key, value in members.items() if not key.startswith("^")}
    beside = {key.removeprefix("^"): value for key, value in members.items() if key.startswith("^")}
    document = {row.wrap: inside} if row.wrap and inside else {} if row.wrap else inside
    return json.dumps(document | beside, separators=(",", ":"))


def _add_fixed(flat: Mapping[str, Leaf], table: SpellingTable, draft: _Draft) -> None:
    taken = {table.rows[index].key or table.rows[index].env for index in draft.texts}
    for index, row in enumerate(table.rows):
        wanted = row.fixed is not None and (row.when is None or row.when in flat)
        if wanted and row.fixed is not None and (row.key or row.env) not in taken:
            draft.texts[index] = row.fixed


def doubled(said: SpelledConfig) -> Iterator[tuple[str, str, str]]:
    """Yield each key that two fields write: the fields and the key."""
    seen: dict[str, str] = {}
    for row, _ in said.pairs:
        key, name = row.key or row.env or "", row.field or ""
        if key in seen:
            yield seen[key], name, key
        seen[key] = name
