"""The AWS API: requests checked against botocore's service models, and errors as a service answers them."""

from __future__ import annotations

import functools
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import botocore.session
from botocore.model import ListShape, MapShape, StringShape, StructureShape
from botocore.validate import ParamValidator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from botocore.model import ServiceModel, Shape

    from seatrial_laptop.aws.json_document import Document


class ApiError(Exception):
    """A refusal with its code, message and HTTP status."""

    def __init__(self, code: str, message: str, status: int = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = int(status)


def invalid(message: str) -> ApiError:
    """Return the ValidationException of a control plane."""
    return ApiError("ValidationException", message)


def absent(operation: str) -> ApiError:
    """Return the error of an operation that exists on AWS and not here."""
    return ApiError("InternalFailure", f"the embedded AWS has no {operation}", HTTPStatus.NOT_IMPLEMENTED)


@functools.cache
def service_model(service: str) -> ServiceModel:
    """Return the model of a service, with its own API version."""
    return botocore.session.get_session().get_service_model(service)


def input_shape(service: str, operation: str) -> StructureShape:
    """Return the shape of an operation's request."""
    shape = service_model(service).operation_model(operation).input_shape
    if shape is None:
        raise TypeError(f"{operation} takes no request")
    return shape


def output_members(service: str, operation: str) -> dict[str, Shape]:
    """Return the members of an operation's response."""
    shape = service_model(service).operation_model(operation).output_shape
    return dict(shape.members) if shape else {}


def summary_members(service: str, operation: str, key: str) -> frozenset[str]:
    """Return the members of an entry of the list that an operation's response holds at a key."""
    listed = output_members(service, operation)[key]
    entry = listed.member if isinstance(listed, ListShape) else None
    if not isinstance(entry, StructureShape):
        raise TypeError(f"{operation} holds no list of structures at {key}")
    return frozenset(entry.members)


def check_api_request(service: str, operation: str, request: Document) -> None:
    """Refuse a request that the service's model doesn't allow.

    Raises:
        ApiError: ValidationException, with every problem.
    """
    shape = input_shape(service, operation)
    report = ParamValidator().validate(request, shape)
    problems = [report.generate_report()] if report.has_errors() else []
    problems += [problem for scalar in _scalars(shape, request, "") for problem in _value_problems(*scalar)]
    if problems:
        raise invalid("; ".join(problems))


def coerced(shape: Shape, value: object) -> object:
    """Bring the scalars of a CloudFormation template, which may be strings, to the types of the API's shape."""
    if isinstance(shape, StructureShape) and isinstance(value, dict):
        members = shape.members
        return {key: coerced(members[key], entry) if key in members else entry for key, entry in value.items()}
    if isinstance(shape, ListShape) and isinstance(value, list):
        return [coerced(shape.member, entry) for entry in value]
    if isinstance(shape, MapShape) and isinstance(value, dict):
        return {key: coerced(shape.value, entry) for key, entry in value.items()}
    return _coerced_scalar(shape, value)


def _coerced_scalar(shape: Shape, value: object) -> object:
    if shape.type_name == "string" and isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if not isinstance(value, str):
        return int(value) if shape.type_name in ("integer", "long") and isinstance(value, float) else value
    pattern, read = _WRITTEN.get(shape.type_name, ("", str))
    return read(value) if re.fullmatch(pattern, value) else value


_WHOLE: Final = (r"-?\d+", int)
_FRACTION: Final = (r"-?\d+(\.\d+)?([eE][+-]?\d+)?", float)
_WRITTEN: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "integer": _WHOLE,
    "long": _WHOLE,
    "float": _FRACTION,
    "double": _FRACTION,
    "boolean": (r"(?i)true|false", lambda text: text.lower() == "true"),
}
"""How a scalar of the API's types is written as text, and what reads it."""


def _scalars(shape: Shape, value: object, path: str) -> Iterator[tuple[Shape, object, str]]:
    if isinstance(shape, StructureShape) and isinstance(value, dict):
        for key in value.keys() & shape.members.keys():
            yield from _scalars(shape.members[key], value[key], f"{path}.{key}".lstrip("."))
    elif isinstance(shape, ListShape) and isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _scalars(shape.member, entry, f"{path}.{index + 1}.member")
    elif isinstance(shape, MapShape) and isinstance(value, dict):
        for entry in value.values():
            yield from _scalars(shape.value, entry, f"{path}.value")
    else:
        yield shape, value, path


def _value_problems(shape: Shape, value: object, path: str) -> Iterator[str]:
    if isinstance(shape, StringShape) and isinstance(value, str):
        yield from _string_problems(shape, value, path)
    else:
        # A number or a blob: botocore checks only how small it may be.
        most = shape.metadata.get("max")
        size = len(value) if isinstance(value, bytes) else value
        if isinstance(most, int | float) and isinstance(size, int | float) and size > most:
            kind, fault = ("length", "") if isinstance(value, bytes) else ("value", f"Value '{value}' at ")
            yield f"{fault}'{path}' failed to satisfy constraint: Member must have {kind} less than or equal to {most}"


def _string_problems(shape: StringShape, value: str, path: str) -> Iterator[str]:
    fault = f"Value '{value}' at '{path}' failed to satisfy constraint: Member must satisfy"
    most = shape.metadata.get("max")
    pattern = shape.metadata.get("pattern")
    if shape.enum and value not in shape.enum:
        yield f"{fault} enum value set: [{', '.join(shape.enum[:8])}{', ...' if len(shape.enum) > 8 else ''}]"  # noqa: PLR2004 (an instance type has 277 values)
    if isinstance(most, int) and len(value) > most:
        yield f"{fault} length less than or equal to {most}"
    if isinstance(pattern, str) and not re.fullmatch(python_pattern(pattern), value):
        yield f"{fault} regular expression pattern: {pattern}"


# Java's character classes as the models use them: `Print` and `ASCII` alone or alone in brackets, the rest in brackets.
_CLASSES: Final = (
    (r"\z", r"\Z"),
    (r"[\p{Print}]", r"[\x20-\x7E]"),
    (r"\p{Print}", r"[\x20-\x7E]"),
    (r"\p{ASCII}", r"[\x00-\x7F]"),
    (r"\p{Alnum}", r"A-Za-z0-9"),
    (r"\p{L}", r"\w"),
    (r"\p{M}", r"\w"),
    (r"\p{N}", r"\d"),
    (r"\p{Z}", r"\s"),
    (r"\p{P}", r"!-/:-@\[-`{-~"),
    (r"\p{S}", r"!-/:-@\[-`{-~"),
)


def python_pattern(pattern: str) -> str:
    r"""Spell a pattern of the service models, which are Java's, in Python's way.

    Python has no `\p{...}` classes, and writes the planes past the first without surrogates.
    """
    planes = pattern.replace(r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010FFFF")
    for java, python in _CLASSES:
        planes = planes.replace(java, python)
    return planes
