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
Schema = Any  # a JSON Schema, and what jsonschema passes to a keyword


def property_problem(logical_id: str, resource_type: str, properties: Document) -> str | None:
    """Return why the properties of a resource are refused before its handler runs; `None` when they are not.

    Args:
        logical_id: The resource, which the message names.
        resource_type: Its type; one without a schema is not checked.
        properties: Its properties, resolved.
    """
    schema = find_resource_schema(resource_type)
    if schema is None or not schema.permissions:
        return None
    given = _without_system_tags(properties, schema.tag_property)
    told = [f"#: extraneous key [{name}] is not permitted" for name in schema.read_only if name in given]
    writable = {name: value for name, value in given.items() if name not in schema.read_only}
    told += [line for error in _validator(resource_type).iter_errors(writable) for line in _lines(error)]
    if not told:
        return None
    return f"Properties validation failed for resource {logical_id} with message:\n" + "\n".join(dict.fromkeys(told))


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
    """Yield what everit says of a problem; that of a choice among schemas does not tell why none fits."""
    place = "#" + "".join(f"/{part}" for part in error.absolute_path)
    keyword, found, asked, schema = (
        getattr(error, name) for name in ("validator", "instance", "validator_value", "schema")
    )
    if keyword == "required":
        yield from (f"{place}: required key [{name}] not found" for name in asked if name not in found)
    elif keyword == "additionalProperties":
        yield from (f"{place}: extraneous key [{name}] is not permitted" for name in _extraneous(schema, found))
    elif keyword in MESSAGES:
        yield f"{place}: {MESSAGES[keyword](found, asked)}"
    else:
        yield f"{place}: failed validation constraint for keyword [{keyword}]"


MESSAGES: Final[Mapping[str, Callable[[Schema, Schema], str]]] = {
    "type": lambda found, asked: f"expected type: {_java_type(asked)}, found: {_java_name(found)}",
    "minLength": lambda found, asked: f"expected minLength: {asked}, actual: {len(found)}",
    "maxLength": lambda found, asked: f"expected maxLength: {asked}, actual: {len(found)}",
    "minimum": lambda found, asked: f"{found} is not greater or equal to {asked}",
    "maximum": lambda found, asked: f"{found} is not less or equal to {asked}",
    "minItems": lambda found, asked: f"expected minimum item count: {asked}, found: {len(found)}",
    "maxItems": lambda found, asked: f"expected maximum item count: {asked}, found: {len(found)}",
    "uniqueItems": lambda _found, _asked: "array items are not unique",
    "oneOf": lambda _found, _asked: "#: 0 subschemas matched instead of one",
    "anyOf": lambda _found, asked: f"#: no subschema matched out of the total {len(asked)} subschemas",
}


def _java_type(asked: Schema) -> str:
    return JAVA_TYPES[asked if isinstance(asked, str) else asked[0]]


def _java_name(found: object) -> str:
    kinds = ((bool, "Boolean"), (int, "Integer"), (float, "Double"), (str, "String"), (list, "JSONArray"))
    return next((name for kind, name in kinds if isinstance(found, kind)), "Null" if found is None else "JSONObject")


@functools.cache
def _validator(resource_type: str) -> jsonschema.Draft7Validator:
    schema = find_resource_schema(resource_type)
    if schema is None:
        raise KeyError(resource_type)
    made: jsonschema.Draft7Validator = LENIENT(dict(schema.document))
    return made


def _checked_type(_validator: Schema, asked: Schema, found: Schema, _schema: Schema) -> Iterator[ValidationError]:
    kinds = [asked] if isinstance(asked, str) else asked
    if not any(_is_a(found, kind) for kind in kinds):
        yield ValidationError("type")


def _is_a(found: object, kind: str) -> bool:
    """Tell whether a value is of a kind, or becomes one when it is read as it is written."""
    if kind in CONTAINERS:
        return isinstance(found, CONTAINERS[kind])
    if kind == "string":
        return isinstance(found, str | bool | int | float)
    if kind == "boolean":
        return isinstance(found, bool) or str(found).lower() in ("true", "false")
    number = _number(found)
    return number is not None and (kind == "number" or number == int(number))


def _number(found: object) -> float | None:
    """Return the number that a value is, or that a string writes."""
    if isinstance(found, bool) or not isinstance(found, int | float | str):
        return None
    return float(found) if NUMBER.fullmatch(str(found)) else None


def _checked_minimum(_validator: Schema, least: Schema, found: Schema, _schema: Schema) -> Iterator[ValidationError]:
    if (number := _number(found)) is not None and number < least:
        yield ValidationError("minimum")


def _checked_maximum(_validator: Schema, most: Schema, found: Schema, _schema: Schema) -> Iterator[ValidationError]:
    if (number := _number(found)) is not None and number > most:
        yield ValidationError("maximum")


def _checked_pattern(_validator: Schema, pattern: Schema, found: Schema, _schema: Schema) -> Iterator[ValidationError]:
    if isinstance(found, str) and not regex.search(pattern, found):
        yield ValidationError("pattern")


def _checked_names(validator: Schema, named: Schema, found: Schema, _schema: Schema) -> Iterator[ValidationError]:
    for pattern, below in named.items() if isinstance(found, dict) else ():
        for name, value in found.items():
            if regex.search(pattern, name):
                yield from validator.descend(value, below, path=name, schema_path=pattern)


def _checked_rest(validator: Schema, rest: Schema, found: Schema, schema: Schema) -> Iterator[ValidationError]:
    names = _extraneous(schema, found) if isinstance(found, dict) else []
    if isinstance(rest, dict):
        for name in names:
            yield from validator.descend(found[name], rest, path=name)
    elif names and not rest:
        yield ValidationError("additionalProperties")


def _extraneous(schema: Schema, found: Schema) -> list[str]:
    """Return the names that a schema neither lists nor has a pattern for."""
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    return [name for name in found if name not in known and not any(regex.search(each, name) for each in patterns)]


def _checked_enum(_validator: Schema, values: Schema, found: Schema, _schema: Schema) -> Iterator[ValidationError]:
    if found not in values and str(found) not in [str(value) for value in values]:
        yield ValidationError("enum")


LENIENT: Final[Schema] = cast("Callable[..., Schema]", extend)(
    jsonschema.Draft7Validator,
    {
        "type": _checked_type,
        "minimum": _checked_minimum,
        "maximum": _checked_maximum,
        "pattern": _checked_pattern,
        "enum": _checked_enum,
        "patternProperties": _checked_names,
        "additionalProperties": _checked_rest,
    },
)
