"""Reads one written value back as neutral fields."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial_lint.engines.engine_options import Adapter
from seatrial_lint.engines.fields import PRESENT

if TYPE_CHECKING:
    from seatrial_base.catalog.engine_options import Spelling
    from seatrial_lint.engines.fields import Neutral


_WHOLE = ("int", "milliseconds", "seconds", "with_running")


def read_value(row: Spelling, text: str) -> dict[str, Neutral] | None:
    """Return the neutral fields that a written value says by one spelling; `None` when it can't be read so."""
    if row.fixed is not None:
        return _fixed(row, text)
    if row.field is None or text in row.unset:
        return {}
    if row.kind == "json":
        return _json(row, row.field, text)
    value = _pairs(row, text) if row.kind.startswith("pair") else _scalar(row, text)
    return None if value is None else {row.field: value, **row.implies}


def _fixed(row: Spelling, text: str) -> dict[str, Neutral] | None:
    same = {row.fixed.lower() if row.fixed else "", *(name.lower() for name in row.reads)}
    if text.lower() not in same:
        return None
    return {row.when: PRESENT} if row.when and "." not in row.when else {}


def _scalar(row: Spelling, text: str) -> str | None:
    shown = text.lower() if row.kind in ("flag", "inverted_flag") else text
    meanings = {written.lower() if shown != text else written: neutral for neutral, written in row.translation.items()}
    meanings |= row.reads
    if meanings or row.leave:
        return meanings.get(text, meanings.get(shown))
    if row.kind == "flag":
        return shown if shown in ("true", "false") else None
    if row.kind in _WHOLE:
        return _whole(text, row.offset)
    return text


def _whole(text: str, offset: int) -> str | None:
    try:
        return str(int(text) - offset)
    except ValueError:
        return None


def _pairs(row: Spelling, text: str) -> tuple[Adapter, ...] | None:
    parts = text.split(",")
    if row.kind == "pairs_json":
        try:
            parts = json.loads(text)
        except (ValueError, RecursionError):
            return None
    if not isinstance(parts, list):
        return None
    try:
        return tuple(_adapter(part) for part in parts)
    except ValueError:
        return None


def _adapter(part: object) -> Adapter:
    name, _, path = str(part).strip().partition("=")
    return Adapter(name=name, path=path)


def _json(row: Spelling, parent: str, text: str) -> dict[str, Neutral] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    beside = {key: value for key, value in document.items() if key != row.wrap}
    inside = document.get(row.wrap, {}) if row.wrap else document
    if not isinstance(inside, dict):
        return None
    names = {written: member for member, written in row.members.items()}
    names |= {alias: names[written] for alias, written in row.reads.items()}
    found = {**({f"^{key}": value for key, value in beside.items()} if row.wrap else {}), **inside}
    if set(found) - set(names) or any(isinstance(value, dict | list) or value is None for value in found.values()):
        return None  # it says more than the neutral field can
    said: dict[str, Neutral] = {f"{parent}.{names[key]}": _text(value) for key, value in found.items()}
    return {parent: PRESENT, **said}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_object(text: str) -> bool:
    """Say whether a text is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
