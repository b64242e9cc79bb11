"""The JSON schema of a trial's result, made from the dataclasses that hold it and the texts of their fields."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from seatrial_base.field_facts import facts_of
from seatrial_load.documents.result import SCHEMA_VERSION, TrialResult

Schema: TypeAlias = dict[str, object]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SCALARS: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


def result_schema_text() -> str:
    """Return the schema of `TrialResult` as JSON text; its version is the result's `schema_version`."""
    return document_schema_text(TrialResult, f"Trial result, schema {SCHEMA_VERSION}")


def document_schema_text(kind: type, title: str) -> str:
    """Return the schema of a document as JSON text."""
    definitions: dict[str, Schema] = {}
    root = _of_dataclass(kind, definitions)
    schema = {
        "$schema": DRAFT,
        "title": title,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _of_dataclass(kind: type, definitions: dict[str, Schema]) -> Schema:
    """Return an object's schema: every key known, those without a default required."""
    summary, _, section = inspect.cleandoc(kind.__doc__ or "").partition("\nAttributes:\n")
    # The text of a field is its own (`Facts.help`), else that of the docstring's section `Attributes`.
    descriptions = {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(section)}
    descriptions |= {name: facts.help for name, facts in facts_of(kind).items() if facts.help}
    hints, fields = get_type_hints(kind), dataclasses.fields(kind)
    properties = {field.name: _of(hints[field.name], definitions) for field in fields}
    for name in properties.keys() & descriptions.keys():
        properties[name] |= {"description": descriptions[name]}
    required = [
        field.name
        for field in fields
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    return {
        "type": "object",
        "description": " ".join(summary.partition("\n\n")[0].split()),
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }


def _of(hint: object, definitions: dict[str, Schema]) -> Schema:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_of(option, definitions) for option in arguments]}
    if origin is tuple:
        return {"type": "array", "items": _of(arguments[0], definitions)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _of(arguments[1], definitions)}
    if origin is Literal or (isinstance(hint, type) and issubclass(hint, StrEnum)):
        values = [*arguments] if origin is Literal else [member.value for member in cast("type[StrEnum]", hint)]
        return {"const": values[0]} if len(values) == 1 else {"enum": values}
    if not (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        return {"type": "null" if hint is types.NoneType else _SCALARS[hint]}
    # The empty entry comes first: a dataclass that holds itself would be described without end.
    if hint.__name__ not in definitions:
        definitions[hint.__name__] = {}
        definitions[hint.__name__] = _of_dataclass(hint, definitions)
    return {"$ref": f"#/$defs/{hint.__name__}"}
