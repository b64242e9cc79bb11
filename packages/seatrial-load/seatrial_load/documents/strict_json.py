"""JSON documents of the trial: frozen dataclasses written as they are, read strictly, all problems at once."""

from __future__ import annotations

import dataclasses
import json
import math
import types
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from seatrial_base.errors import BenchError
from seatrial_base.field_facts import defaults_of, facts_of
from seatrial_base.findings import Finding, Place
from seatrial_base.text import json_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import DataclassInstance


RULE = "SEA501"
_WORDS: Mapping[object, str] = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
_WRONG = object()

DocumentT = TypeVar("DocumentT", bound="DataclassInstance")


def write_document(document: DataclassInstance, *, later_defaults: bool = True) -> str:
    """Write a document as one line of JSON, fields in their declared order: equal documents give equal bytes.

    Args:
        later_defaults: Whether fields that came later (`Facts.since`) are written where they have their defaults.
    """
    return json.dumps(_plain(document, later_defaults=later_defaults), separators=(",", ":"), allow_nan=False)


def _plain(value: object, *, later_defaults: bool) -> object:
    # `asdict` would copy every number before.
    if isinstance(value, tuple | list):
        return [_plain(item, later_defaults=later_defaults) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item, later_defaults=later_defaults) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = facts_of(type(value)) if later_defaults else _names_that_differ(value)
        return {name: _plain(getattr(value, name), later_defaults=later_defaults) for name in names}
    return value


def _names_that_differ(document: DataclassInstance) -> Iterator[str]:
    """Yield the fields that a document had from the beginning, and those that came later and have no default."""
    for name, facts in facts_of(type(document)).items():
        if facts.since is None or getattr(document, name) != defaults_of(type(document))[name]:
            yield name


def read_document(kind: type[DocumentT], text: str, *, where: str, retired: frozenset[str] = frozenset()) -> DocumentT:
    """Read a document: every key known, every type right; a whole number is a number too.

    Args:
        retired: Keys at the top that earlier releases wrote; they are not read.

    Raises:
        BenchError: SEA501, with one problem for each key or value that is wrong.
    """
    problems: list[Finding] = []
    try:
        raw = json_document(text, parse_constant=_refuse_constant, object_pairs_hook=_once)
    except ValueError as malformed:
        raise BenchError.of(RULE, f"not JSON: {malformed}", where=where) from malformed
    if isinstance(raw, dict):
        raw = {key: value for key, value in raw.items() if key not in retired}
    document = _Reader(where, problems).read(kind, raw, "")
    if problems or not isinstance(document, kind):
        raise BenchError(problems)
    return document


def not_finite(value: object, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield the path of every number of a document that JSON can't hold, and the number."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path, value
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from not_finite(item, f"{path}[{index}]")
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from not_finite(getattr(value, field.name), _join(path, field.name))


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # Readers of JSON differ in which of two values of a key they take.
    values: dict[str, object] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {key!r} is given twice")
        values[key] = value
    return values


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


@dataclasses.dataclass(frozen=True, slots=True)
class _Reader:
    where: str
    problems: list[Finding]

    def read(self, hint: object, value: object, path: str) -> object:
        """Return the value as the hinted type, or `_WRONG` after noting the problem."""
        origin = get_origin(hint)
        if origin in (Union, types.UnionType):
            (present,) = (option for option in get_args(hint) if option is not types.NoneType)
            return None if value is None else self.read(present, value, path)
        if origin is Literal:
            known = get_args(hint)
            return value if value in known else self._wrong(path, f"one of {', '.join(map(str, known))}", value)
        if origin is tuple:
            return self._read_tuple(hint, value, path)
        if origin is Mapping:
            return self._read_mapping(hint, value, path)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            return self._read_dataclass(hint, value, path)
        return self._read_scalar(hint, value, path)

    def _read_tuple(self, hint: object, value: object, path: str) -> object:
        if not isinstance(value, list):
            return self._wrong(path, "a list", value)
        return tuple(self.read(get_args(hint)[0], item, f"{path}[{index}]") for index, item in enumerate(value))

    def _read_mapping(self, hint: object, value: object, path: str) -> object:
        if not isinstance(value, dict):
            return self._wrong(path, "an object", value)
        return {key: self.read(get_args(hint)[1], item, _join(path, key)) for key, item in value.items()}

    def _read_dataclass(self, kind: type[DataclassInstance], value: object, path: str) -> object:
        if not isinstance(value, dict):
            return self._wrong(path, "an object", value)
        hints = get_type_hints(kind)
        fields = {field.name: field for field in dataclasses.fields(kind)}
        for key in sorted(value.keys() - fields.keys()):
            self._note(_join(path, key), f"unknown key; known are {', '.join(fields)}")
        missing = [name for name in fields if name not in value and name not in defaults_of(kind)]
        for name in missing:
            self._note(_join(path, name), "missing")
        known = {name: self.read(hints[name], value[name], _join(path, name)) for name in fields if name in value}
        return _WRONG if missing or _WRONG in known.values() else kind(**known)

    def _read_scalar(self, hint: object, value: object, path: str) -> object:
        if isinstance(hint, type) and issubclass(hint, StrEnum):
            known = {member.value: member for member in hint}
            return known[value] if value in known else self._wrong(path, f"one of {', '.join(known)}", value)
        if hint is int or hint is float:
            return self._read_number(hint, value, path)
        return value if isinstance(hint, type) and isinstance(value, hint) else self._wrong(path, _WORDS[hint], value)

    def _read_number(self, hint: type[int | float], value: object, path: str) -> object:
        if isinstance(value, int) and not isinstance(value, bool) and (hint is int or abs(value) < 2**1023):
            return hint(value)
        if hint is float and isinstance(value, float) and math.isfinite(value):
            return value
        return self._wrong(path, _WORDS[hint], value)

    def _wrong(self, path: str, expected: str, value: object) -> object:
        self._note(path, f"expected {expected}, got {json.dumps(value)[:60]}")
        return _WRONG

    def _note(self, path: str, message: str) -> None:
        self.problems.append(Finding(RULE, Place.at(self.where, path), message))


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
