"""Turns what pydantic found into problems with a place, a rule and a hint."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, get_args

from pydantic import BaseModel, ValidationError

from seatrial.errors import Problem
from seatrial.spec.endpoint import MOST_COPIES
from seatrial.spec.model_shape import HINTS as SHAPE_HINTS
from seatrial.spec.shapes import HINTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import ErrorDetails

    from seatrial.model import FrozenModel
    from seatrial.spec.merge import Document
    from seatrial.spec.source import FieldPath

_EXACT = 2**53  # beyond it a float no longer tells whole numbers apart
_TYPE_ERRORS = ("_type", "_parsing", "_from_float", "model_attributes_type")


def validation_problems(error: ValidationError, model: type[FrozenModel], document: Document) -> Iterator[Problem]:
    """Yield one problem per finding of pydantic, placed where the user wrote the value."""
    for found in error.errors(include_url=False):
        path = _written_path(found["loc"])
        parent = path[:-1] if found["type"] in ("missing", "extra_forbidden") else path
        where = document.where(parent if found["type"] == "missing" else path)
        yield Problem(where, document.field(path), *_explain(found, path, model))


def _written_path(loc: tuple[int | str, ...]) -> FieldPath:
    """Drop the names of union members that pydantic puts into a location."""
    return tuple(part for part in loc if isinstance(part, int) or part not in ("str", "int", "float", "bool", "[key]"))


def _explain(found: ErrorDetails, path: FieldPath, model: type[FrozenModel]) -> tuple[str, str, str]:
    kind, value = found["type"], found["input"]
    if kind == "missing":
        return "SEA106", "the field is required", f"add `{path[-1]}: …`"
    if kind == "extra_forbidden":
        return "SEA104", "the field is unknown", _nearest(str(path[-1]), _fields_at(model, path[:-1]))
    message = f"{_lower(found['msg'])}, not {value!r}" if not isinstance(value, dict) else _lower(found["msg"])
    if kind.endswith(_TYPE_ERRORS):
        return "SEA105", message, _type_hint(kind, value)
    if kind == "too_short":
        return "SEA107", "the list is empty", "name at least one, or leave the field out"
    return "SEA107", message, _bound_hint(found, path)


def _lower(message: str) -> str:
    text = message.removeprefix("Input ").removeprefix("String ").removeprefix("Value ")
    return text[:1].lower() + text[1:]


def _bound_hint(found: ErrorDetails, path: FieldPath) -> str:
    context = found.get("ctx", {})
    if path[:2] == ("model", "shape"):
        return SHAPE_HINTS.get(str(path[-1]), "")
    if context.get("le") == MOST_COPIES:
        return f"more than {MOST_COPIES:,} copies are taken for a slip of the hand"
    return HINTS.get(str(context.get("pattern", "")), "")


def _type_hint(kind: str, value: object) -> str:
    if kind == "string_type" and isinstance(value, int | float) and not isinstance(value, bool):
        return "write it as text, in quotes"
    if isinstance(value, bool):
        return "YAML reads yes, no, on and off as true and false: quote the text"
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return f"write it as a whole number: {int(value)}"
    if isinstance(value, str):
        return "write the number without quotes and units"
    return "see the reference of the spec's fields"


def _nearest(name: str, known: tuple[str, ...]) -> str:
    match = difflib.get_close_matches(name, known, n=1)
    return f"did you mean `{match[0]}`?" if match else f"known here: {', '.join(known)}"


def _fields_at(model: type[BaseModel], path: FieldPath) -> tuple[str, ...]:
    current: type[BaseModel] = model
    for part in path:
        field = current.model_fields.get(str(part))
        inner = _model_in(field.annotation) if field else None
        if inner is None:
            return ()
        current = inner
    return tuple(current.model_fields)


def _model_in(annotation: object) -> type[BaseModel] | None:
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None
