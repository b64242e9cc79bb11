"""Intrinsic functions of CloudFormation, evaluated as far as a template tells."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pydantic import JsonValue

SUB = "Fn::Sub"
NO_VALUE = "AWS::NoValue"
# `${!` is a literal `${`.
_REFERENCE_OR_LITERAL = re.compile(r"\$\{(?:!|([^!${}][^${}]*)\})")
LONGEST_TEXT = 2**20
"""Characters; what would be longer, as by variables within variables, stays as it is written."""
_COST_OF_PART = 8


@dataclass(frozen=True, slots=True)
class TemplateScope:
    """What a template's functions are evaluated with.

    Attributes:
        pseudo_parameters: Values of pseudo parameters by name, as `AWS::Region`.
        mappings: The template's section `Mappings`.
    """

    pseudo_parameters: Mapping[str, str] = field(default_factory=dict)
    mappings: JsonValue = None


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a resource or a parameter.

    Attributes:
        attribute: The attribute; empty for `Ref`.
    """

    logical_id: str
    attribute: str


def is_function(value: JsonValue) -> bool:
    """Return whether a value is an intrinsic function, so that only the deployment knows it."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    (name,) = value
    return name == "Ref" or name.startswith("Fn::")


def is_no_value(value: JsonValue) -> bool:
    """Return whether a value is `AWS::NoValue`: CloudFormation leaves out what has it."""
    return value == {"Ref": NO_VALUE}


def evaluate(value: JsonValue, scope: TemplateScope) -> JsonValue:
    """Return a value in which every function that gives a text has one form.

    `Ref`, `Fn::GetAtt`, `Fn::Sub` and `Fn::Join` become the text, or `Fn::Sub` of one text with the references that are
    left; `Fn::Select`, `Fn::Split` and `Fn::FindInMap` become what they give where the template tells. A property with
    `AWS::NoValue` is left out; in a list it stays, so that indices hold. What can't be told stays as it is written.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/intrinsic-function-reference.html
    """
    if isinstance(value, dict):
        if not is_function(value):
            return {name: evaluate(one, scope) for name, one in value.items() if not is_no_value(one)}
        ((name, argument),) = value.items()
        function = _FUNCTIONS.get(name)
        # Once: twice at each depth is exponential.
        below = evaluate(argument, scope)
        known = function(below, scope) if function else None
        return {name: below} if known is None else known
    return [evaluate(one, scope) for one in value] if isinstance(value, list) else value


def _ref(name: JsonValue, scope: TemplateScope) -> JsonValue:
    return _text_of([_Part(name, is_reference=True)], scope) if isinstance(name, str) and name != NO_VALUE else None


def _get_attribute(argument: JsonValue, scope: TemplateScope) -> JsonValue:
    match argument:
        case [str(name), str(attribute)]:
            return _text_of([_Part(f"{name}.{attribute}", is_reference=True)], scope)
        case str(path):
            return _text_of([_Part(path, is_reference=True)], scope)
    return None


def _sub(argument: JsonValue, scope: TemplateScope) -> JsonValue:
    match argument:
        case str(text):
            return _text_of(_parts(text), scope)
        case [str(text), dict(variables)]:
            values = {name: _value_parts(value) for name, value in variables.items()}
            parts = [values.get(part.text, [part]) if part.is_reference else [part] for part in _parts(text)]
            return _joined(parts, scope)
    return None


def _join(argument: JsonValue, scope: TemplateScope) -> JsonValue:
    match argument:
        case [str(separator), [*given]]:
            items = [_value_parts(part) for part in given if not is_no_value(part)]
            between: list[list[_Part] | None] = [[_Part(separator)]] * len(items)
            return _joined([part for pair in zip(between, items, strict=True) for part in pair][1:], scope)
    return None


def _joined(items: Iterable[list[_Part] | None], scope: TemplateScope) -> JsonValue:
    """Return the text of several items; `None` when one of them is no text, or the whole is too long."""
    parts: list[_Part] = []
    length = 0
    for item in items:
        length += 0 if item is None else sum(len(part.text) + _COST_OF_PART for part in item)
        if item is None or length > LONGEST_TEXT:
            return None
        parts += item
    return _text_of(parts, scope)


def _select(argument: JsonValue, scope: TemplateScope) -> JsonValue:  # noqa: ARG001 (as every function)
    match argument:
        case [int() | str() as index, [*items]]:
            return {f"{number}": item for number, item in enumerate(items)}.get(f"{index}")
    return None


def _split(argument: JsonValue, scope: TemplateScope) -> JsonValue:  # noqa: ARG001 (as every function)
    match argument:
        case [str(separator), str(text)] if separator:
            return [*text.split(separator)]
    return None


def _find_in_map(argument: JsonValue, scope: TemplateScope) -> JsonValue:
    if not isinstance(argument, list) or len(argument) != 3:  # noqa: PLR2004 (map, key, second key)
        return None
    value = scope.mappings
    for name in argument:
        value = value.get(name) if isinstance(value, dict) and isinstance(name, str) else None
    return value


_FUNCTIONS: Mapping[str, Callable[[JsonValue, TemplateScope], JsonValue]] = {
    "Ref": _ref,
    "Fn::GetAtt": _get_attribute,
    SUB: _sub,
    "Fn::Join": _join,
    "Fn::Select": _select,
    "Fn::Split": _split,
    "Fn::FindInMap": _find_in_map,
}


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a text: what stands there, or the name of a reference."""

    text: str
    is_reference: bool = False


def _parts(text: str) -> list[_Part]:
    """Return the parts of the text of `Fn::Sub`."""
    parts, end = list[_Part](), 0
    for match in _REFERENCE_OR_LITERAL.finditer(text):
        parts += [_Part(text[end : match.start()]), _Part(match[1] or "${", is_reference=match[1] is not None)]
        end = match.end()
    return [*parts, _Part(text[end:])]


def _text_of(parts: Iterable[_Part], scope: TemplateScope) -> JsonValue:
    """Return a text with the pseudo parameters that are known; as `Fn::Sub` when a reference is left."""
    known = [_known(part, scope) for part in parts]
    groups = [(is_reference, [part.text for part in some]) for is_reference, some in groupby(known, _is_reference)]
    if not any(is_reference for is_reference, _ in groups):
        return "".join(part.text for part in known)
    return {
        SUB: "".join(
            "".join(map(_written, texts)) if of else "".join(texts).replace("${", "${!") for of, texts in groups
        )
    }


def _known(part: _Part, scope: TemplateScope) -> _Part:
    value = scope.pseudo_parameters.get(part.text) if part.is_reference else None
    return part if value is None else _Part(value)


def _is_reference(part: _Part) -> bool:
    return part.is_reference


def _written(name: str) -> str:
    return f"${{{name}}}"


def _value_parts(value: JsonValue) -> list[_Part] | None:
    """Return the parts of an evaluated scalar; `None` of what is no text."""
    match value:
        case {"Fn::Sub": str(text)}:
            return _parts(text)
        case bool():
            return [_Part("true" if value else "false")]
        case str() | int() | float():
            return [_Part(f"{value}")]
    return None


def replace_references(value: JsonValue, replaced: Callable[[Reference], str]) -> str | None:
    """Return an evaluated value as text; `None` when it is no text, or a function that can't be told."""
    match value:
        case str():
            return value
        case {"Fn::Sub": str(text), **rest} if not rest:
            parts = _parts(text)
            return "".join(replaced(_reference(part.text)) if part.is_reference else part.text for part in parts)
    return None


def references(value: JsonValue) -> Iterator[Reference]:
    """Yield every reference within an evaluated value, in order."""
    if isinstance(value, dict):
        text = value.get(SUB)
        template = text[0] if isinstance(text, list) and text else text
        if isinstance(template, str):
            yield from (_reference(part.text) for part in _parts(template) if part.is_reference)
        for one in value.values():
            yield from references(one)
    elif isinstance(value, list):
        for one in value:
            yield from references(one)


def _reference(name: str) -> Reference:
    logical_id, _, attribute = name.partition(".")
    return Reference(logical_id, attribute)
