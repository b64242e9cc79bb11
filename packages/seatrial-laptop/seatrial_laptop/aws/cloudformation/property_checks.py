"""Properties against the schema of their type, refused with CloudFormation's words.

CloudFormation validates with everit-org/json-schema, whose messages these are. It takes a number or truth value that is
written as a string, and the other way round. Some limits are those of the services' APIs (cfn-lint adds them to the
schemas), which AWS refuses in the handler, with other words. That several problems stand on lines of their own is
reported; that a read-only property counts as extraneous is an assumption.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Final, cast

import jsonschema
import regex  # type: ignore[import-untyped]  # one function of it is called
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from seatrial_base.catalog.resource_types import find_resource_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from seatrial_laptop.aws.json_document import Document

JAVA_TYPES: Final = {
    "array": "JSONArray",
    "boolean": "Boolean",
    "integer": "Integer",
    "null": "Null",
    "number": "Number",
    "object": "JSONObject",
    "string": "String",
}
CONTAINERS: Final[Mapping[str, type]] = {"array": list, "object": dict, "null": type(None)}
NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
# A JSON Schema, and what jsonschema passes to a keyword.
Schema = Any


def property_problem(logical_id: str, resource_type: str, properties: Document) -> str | None:
    """Return why the properties of a resource are refused before its handler runs; `None` when they are not."""
    schema = find_resource_schema(resource_type)
    if schema is None or not schema.permissions:
        return None
    given = _without_system_tags(properties, schema.tag_property)
    problems = [f"#: extraneous key [{name}] is not permitted" for name in schema.read_only if name in given]
    writable = {name: value for name, value in given.items() if name not in schema.read_only}
    problems += [line for error in _validator(resource_type).iter_errors(writable) for line in _lines(error)]
    if not problems:
        return None
    return f"Properties validation failed for resource {logical_id} with message:\n" + "\n".join(
        dict.fromkeys(problems)
    )


def _without_system_tags(properties: Document, tag_property: str) -> Document:
    """Return properties without the tags that CloudFormation adds, whose keys no template may have."""
    written = properties.get(tag_property)
    if isinstance(written, list):
        kept: object = [tag for tag in written if not (isinstance(tag, dict) and _is_system(tag.get("Key")))]
    elif isinstance(written, dict):
        kept = {key: value for key, value in written.items() if not _is_system(key)}
    else:
        return properties
    return {**properties, tag_property: kept}


def _is_system(key: object) -> bool:
    return isinstance(key, str) and key.startswith(("aws:cloudformation:", "aws:servicecatalog:"))


def _lines(error: ValidationError) -> Iterator[str]:
    """Yield everit's messages of a problem; that of a choice among schemas does not explain why none fits."""
    place = "#" + "".join(f"/{part}" for part in error.absolute_path)
    keyword, value, wanted, schema = (
        getattr(error, name) for name in ("validator", "instance", "validator_value", "schema")
    )
    if keyword == "required":
        yield from (f"{place}: required key [{name}] not found" for name in wanted if name not in value)
    elif keyword == "additionalProperties":
        yield from (f"{place}: extraneous key [{name}] is not permitted" for name in _extraneous(schema, value))
    elif keyword in MESSAGES:
        yield f"{place}: {MESSAGES[keyword](value, wanted)}"
    else:
        yield f"{place}: failed validation constraint for keyword [{keyword}]"


MESSAGES: Final[Mapping[str, Callable[[Schema, Schema], str]]] = {
    "type": lambda value, wanted: (
        f"expected type: {JAVA_TYPES[wanted if isinstance(wanted, str) else wanted[0]]}, found: {_java_name(value)}"
    ),
    "minLength": lambda value, wanted: f"expected minLength: {wanted}, actual: {len(value)}",
    "maxLength": lambda value, wanted: f"expected maxLength: {wanted}, actual: {len(value)}",
    "minimum": lambda value, wanted: f"{value} is not greater or equal to {wanted}",
    "maximum": lambda value, wanted: f"{value} is not less or equal to {wanted}",
    "minItems": lambda value, wanted: f"expected minimum item count: {wanted}, found: {len(value)}",
    "maxItems": lambda value, wanted: f"expected maximum item count: {wanted}, found: {len(value)}",
    "uniqueItems": lambda _value, _schema: "array items are not unique",
    "oneOf": lambda _value, _schema: "#: 0 subschemas matched instead of one",
    "anyOf": lambda _value, schema: f"#: no subschema matched out of the total {len(schema)} subschemas",
}


def _java_name(value: object) -> str:
    kinds = ((bool, "Boolean"), (int, "Integer"), (float, "Double"), (str, "String"), (list, "JSONArray"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "Null" if value is None else "JSONObject")


@functools.cache
def _validator(resource_type: str) -> jsonschema.Draft7Validator:
    schema = find_resource_schema(resource_type)
    if schema is None:
        raise KeyError(resource_type)
    made: jsonschema.Draft7Validator = LENIENT(dict(schema.document))
    return made


def _is_a(value: object, kind: str) -> bool:
    """Tell whether a value is of a kind, or becomes one when it is read as it is written."""
    if kind in CONTAINERS:
        return isinstance(value, CONTAINERS[kind])
    if kind == "string":
        return isinstance(value, str | bool | int | float)
    if kind == "boolean":
        return isinstance(value, bool) or str(value).lower() in ("true", "false")
    number = _number(value)
    return number is not None and (kind == "number" or number == int(number))


def _number(value: object) -> float | None:
    """Return the number that a value is, or that a string writes."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    return float(value) if NUMBER.fullmatch(str(value)) else None


HOLDS: Final[Mapping[str, Callable[[Schema, Schema], bool]]] = {
    "type": lambda kinds, value: any(_is_a(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)),
    "minimum": lambda least, value: (number := _number(value)) is None or number >= least,
    "maximum": lambda most, value: (number := _number(value)) is None or number <= most,
    "pattern": lambda pattern, value: not isinstance(value, str) or bool(regex.search(pattern, value)),
    "enum": lambda values, value: value in values or str(value) in [str(allowed) for allowed in values],
}
"""Whether a value keeps to what a schema writes under a keyword, read as leniently as CloudFormation reads it."""


def _checked(keyword: str) -> Callable[..., Iterator[ValidationError]]:
    def check(_validator: Schema, written: Schema, value: Schema, _schema: Schema) -> Iterator[ValidationError]:
        if not HOLDS[keyword](written, value):
            yield ValidationError(keyword)

    return check


def _checked_names(validator: Schema, named: Schema, names: Schema, _schema: Schema) -> Iterator[ValidationError]:
    for pattern, below in named.items() if isinstance(names, dict) else ():
        for name, value in names.items():
            if regex.search(pattern, name):
                yield from validator.descend(value, below, path=name, schema_path=pattern)


def _checked_rest(validator: Schema, rest: Schema, value: Schema, schema: Schema) -> Iterator[ValidationError]:
    names = _extraneous(schema, value) if isinstance(value, dict) else []
    if isinstance(rest, dict):
        for name in names:
            yield from validator.descend(value[name], rest, path=name)
    elif names and not rest:
        yield ValidationError("additionalProperties")


def _extraneous(schema: Schema, value: Schema) -> list[str]:
    """Return the names that a schema neither lists nor has a pattern for."""
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    return [
        name for name in value if name not in known and not any(regex.search(pattern, name) for pattern in patterns)
    ]


LENIENT: Final[Schema] = cast("Callable[..., Schema]", extend)(
    jsonschema.Draft7Validator,
    {
        **{keyword: _checked(keyword) for keyword in HOLDS},
        "patternProperties": _checked_names,
        "additionalProperties": _checked_rest,
    },
)
