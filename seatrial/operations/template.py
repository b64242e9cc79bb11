"""A CloudFormation template as far as an update depends on it, with every reference in one form."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import JsonValue, TypeAdapter, ValidationError

from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SUB = "Fn::Sub"
_HINT = "give a template as `cdk synth` writes it (cdk.out/STACK.template.json)"
_REFERENCE = re.compile(r"\$\{([^!}][^}]*)\}")
_OBJECT = TypeAdapter(dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class TemplateResource:
    """One resource.

    Attributes:
        resource_type: CloudFormation's name of its type.
        properties: Its properties; intrinsic functions as `normalised` writes them.
        policies: What becomes of it when it is deleted or replaced, by the attribute that says so.
    """

    resource_type: str
    properties: Mapping[str, JsonValue]
    policies: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StackTemplate:
    """A template.

    Attributes:
        resources: Its resources by logical ID.
        outputs: Its outputs by name.
    """

    resources: Mapping[str, TemplateResource]
    outputs: Mapping[str, JsonValue] = field(default_factory=dict)


EMPTY = StackTemplate({})
"""The template of a stack that is not there."""


def template_of(text: str, *, where: str, region: str = "", account: str | None = None) -> StackTemplate:
    """Read a template from JSON.

    Args:
        text: The template.
        where: What it is called in messages.
        region: Stands for the pseudo parameter AWS::Region, and tells AWS::Partition; empty leaves both as they are.
        account: Stands for AWS::AccountId, likewise.

    Raises:
        SpecError: SEA451 when it is no JSON or no template.
    """
    try:
        document = _OBJECT.validate_python(json.loads(text))
        resources = _OBJECT.validate_python(document["Resources"])
        outputs = _OBJECT.validate_python(document.get("Outputs", {}))
        pseudo = {"AWS::Region": region, "AWS::AccountId": account or "", "AWS::Partition": _partition(region)}
        known = {name: value for name, value in pseudo.items() if value}
        return StackTemplate(
            {name: _resource(resource, known) for name, resource in resources.items()},
            {name: normalised(value, known) for name, value in outputs.items()},
        )
    except (ValueError, KeyError, RecursionError) as error:
        raise SpecError.of(
            "SEA451", f"not a CloudFormation template: {_why(error)}", where=where, hint=_HINT
        ) from error


def _partition(region: str) -> str:
    """Return the partition of a region where its name tells it, else nothing (botocore, endpoints.json, 1.43)."""
    for beginning, partition in (("cn-", "aws-cn"), ("us-gov-", "aws-us-gov")):
        if region.startswith(beginning):
            return partition
    return "" if not region or region.startswith(("us-iso", "eu-iso", "eusc-")) else "aws"


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "a part of it is no mapping"
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return "it is nested too deeply" if isinstance(error, RecursionError) else f"{error}"


def _resource(document: JsonValue, pseudo: Mapping[str, str]) -> TemplateResource:
    resource = _OBJECT.validate_python(document)
    properties = _OBJECT.validate_python(resource.get("Properties", {}))
    return TemplateResource(
        f"{resource['Type']}",
        {name: normalised(value, pseudo) for name, value in properties.items()},
        {name: f"{resource[name]}" for name in ("DeletionPolicy", "UpdateReplacePolicy") if name in resource},
    )


def normalised(value: JsonValue, pseudo: Mapping[str, str]) -> JsonValue:
    """Return a value in which references have one form: what resolves to the same text is written the same.

    `Ref`, `Fn::GetAtt`, `Fn::Sub` and an `Fn::Join` without a separator become `Fn::Sub` of one text, or the text
    itself where all of it is known.

    Args:
        value: A value of a template.
        pseudo: What pseudo parameters stand for, by their names.
    """
    if isinstance(value, list):
        return [normalised(one, pseudo) for one in value]
    if not isinstance(value, dict):
        return value
    text = _text(value, pseudo)
    if text is None:
        return {name: normalised(one, pseudo) for name, one in value.items()}
    known = _REFERENCE.sub(lambda found: pseudo.get(found[1], found[0]), text)
    return {SUB: known} if _REFERENCE.search(known) else known.replace("${!", "${")


def _text(value: Mapping[str, JsonValue], pseudo: Mapping[str, str]) -> str | None:
    """Return an intrinsic function as the text of `Fn::Sub`; `None` of anything else."""
    match value:
        case {"Ref": str(name), **rest} if not rest:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [str(name), str(attribute)], **rest} if not rest:
            return f"${{{name}.{attribute}}}"
        case {"Fn::GetAtt": str(path), **rest} if not rest:
            return f"${{{path}}}"
        case {"Fn::Sub": str(text), **rest} if not rest:
            return text
        case {"Fn::Join": ["", list(parts)], **rest} if not rest:
            texts = [_part(normalised(part, pseudo)) for part in parts]
            return None if None in texts else "".join(text or "" for text in texts)
    return None


def _part(value: JsonValue) -> str | None:
    if isinstance(value, str):
        return value.replace("${", "${!")
    return f"{value[SUB]}" if isinstance(value, dict) and isinstance(value.get(SUB), str) else None


def is_intrinsic(value: JsonValue) -> bool:
    """Tell whether a value is an intrinsic function."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref"))


@dataclass(frozen=True, slots=True)
class Reference:
    """What a value takes from another resource.

    Attributes:
        logical_id: The resource.
        attribute: Its attribute; empty for the resource's reference (`Ref`).
    """

    logical_id: str
    attribute: str


def references(value: JsonValue) -> Iterator[Reference]:
    """Yield every reference within a value, in order."""
    if isinstance(value, dict):
        text = value.get(SUB)
        template = text[0] if isinstance(text, list) and text else text
        if isinstance(template, str):
            for name in _REFERENCE.findall(template):
                logical_id, _, attribute = name.partition(".")
                yield Reference(logical_id, attribute)
        for one in value.values():
            yield from references(one)
    elif isinstance(value, list):
        for one in value:
            yield from references(one)
