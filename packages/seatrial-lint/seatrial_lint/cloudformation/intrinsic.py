"""Intrinsic functions of CloudFormation, evaluated as far as a template tells."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain, groupby
from operator import attrgetter
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

    `pseudo_parameters`: values of pseudo parameters by name, as `AWS::Region`.
    """

    pseudo_parameters: Mapping[str, str] = field(default_factory=dict)
    mappings: JsonValue = None


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a resource or a parameter.

    `attribute`: the attribute; empty for `Ref`.
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
    `AWS::NoValue` is left out; in a list it stays, so that indices hold. What is unknown stays as it is written.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/intrinsic-function-reference.html
    """
    if isinstance(value, dict):
        if not is_function(value):
            return {name: evaluate(below, scope) for name, below in value.items() if not is_no_value(below)}
        ((name, argument),) = value.items()
        # Once: twice at each depth is exponential.
        below = evaluate(argument, scope)
        known = _result(name, below, scope)
        return {name: below} if known is None else known
    return [evaluate(item, scope) for item in value] if isinstance(value, list) else value


def _result(name: str, argument: JsonValue, scope: TemplateScope) -> JsonValue:
    """Return what a function of evaluated arguments gives; `None` where the template does not tell."""
    result: JsonValue = None
    match name, argument:
        case "Ref", str(target) if target != NO_VALUE:
            result = _text_of([_Part(target, is_reference=True)], scope)
        case "Fn::GetAtt", [str(target), str(attribute)]:
            result = _text_of([_Part(f"{target}.{attribute}", is_reference=True)], scope)
        case "Fn::GetAtt", str(path):
            result = _text_of([_Part(path, is_reference=True)], scope)
        case "Fn::Sub", str(text):
            result = _text_of(_parts(text), scope)
        case "Fn::Sub", [str(text), dict(variables)]:
            result = _joined(_named_parts(text, variables), scope)
        case "Fn::Join", [str(separator), [*items]]:
            texts = [_value_parts(item) for item in items if not is_no_value(item)]
            between = ([_Part(separator)] if index else [] for index in range(len(texts)))
            result = _joined(chain.from_iterable(zip(between, texts, strict=True)), scope)
        case "Fn::Select", [int() | str() as index, [*items]]:
            result = {f"{number}": item for number, item in enumerate(items)}.get(f"{index}")
        case "Fn::Split", [str(separator), str(text)] if separator:
            result = [*text.split(separator)]
        case "Fn::FindInMap", [_, _, _]:
            result = reduce(_member, argument, scope.mappings)
    return result


def _named_parts(text: str, variables: Mapping[str, JsonValue]) -> Iterator[list[_Part] | None]:
    values = {variable: _value_parts(value) for variable, value in variables.items()}
    for part in _parts(text):
        yield values.get(part.text, [part]) if part.is_reference else [part]


def _member(value: JsonValue, name: JsonValue) -> JsonValue:
    return value.get(name) if isinstance(value, dict) and isinstance(name, str) else None


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


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a text: what is there, or the name of a reference."""

    text: str
    is_reference: bool = False


def _parts(text: str) -> list[_Part]:
    parts, end = list[_Part](), 0
    for match in _REFERENCE_OR_LITERAL.finditer(text):
        parts += [_Part(text[end : match.start()]), _Part(match[1] or "${", is_reference=match[1] is not None)]
        end = match.end()
    return [*parts, _Part(text[end:])]


def _text_of(parts: Iterable[_Part], scope: TemplateScope) -> JsonValue:
    """Return a text with the pseudo parameters that are known; as `Fn::Sub` when a reference is left."""
    pseudo = scope.pseudo_parameters
    known = [_Part(pseudo[part.text]) if part.is_reference and part.text in pseudo else part for part in parts]
    groups = groupby(known, key=attrgetter("is_reference"))
    texts = [(is_reference, [part.text for part in group]) for is_reference, group in groups]
    if not any(is_reference for is_reference, _ in texts):
        return "".join(part.text for part in known)
    # Neighbouring texts are escaped as one: `$` at the end of one and `{` of the next are no reference.
    return {
        SUB: "".join(
            "".join(f"${{{name}}}" for name in some) if is_reference else "".join(some).replace("${", "${!")
            for is_reference, some in texts
        )
    }


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
    """Return an evaluated value as text; `None` when it is no text, or a function that is unknown."""
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
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from references(below)


def _reference(name: str) -> Reference:
    logical_id, _, attribute = name.partition(".")
    return Reference(logical_id, attribute)
