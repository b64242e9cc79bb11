"""Facts of CloudFormation resource types: schema, rights of their handlers, what only a new one can have, regions.

A resource type is a handler for each operation. The schema names the IAM actions that each handler may call with the
rights of who deploys, and the properties that only a new resource can have.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from seatrial_base.catalog.rows import CatalogTable

if TYPE_CHECKING:
    from collections.abc import Mapping

CUSTOM = "AWS::CloudFormation::CustomResource"
Handler: TypeAlias = Literal["create", "read", "update", "delete"]
HANDLERS: Final[tuple[Handler, ...]] = ("create", "read", "update", "delete")
WITHOUT_HANDLERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "AWS::CDK::Metadata": "names the libraries that a template was made with; CloudFormation makes nothing of it",
        "AWS::CloudFormation::CustomResource": "calls the function that it names: lambda:InvokeFunction of who deploys",
        "AWS::CodeBuild::Project": "is one of the types that the registry has no handlers of",
        "Custom::*": "is a custom resource under a name of its own",
    }
)
"""Types that templates have and whose schema names no rights, with the reason."""


@dataclass(frozen=True, slots=True)
class ResourceSchema:
    """The schema of one resource type; a path is names joined by dots, with `*` for the items of a list.

    Attributes:
        resource_type: CloudFormation's name of the type.
        permissions: The IAM actions that each handler may call.
        create_only: Paths of which any change replaces the resource.
        conditional_create_only: Paths of which some changes replace it.
        read_only: Paths that a template can't give.
        write_only: Paths that CloudFormation never reads back.
        identifier: Paths that identify a resource.
        tag_property: The property of the tags; empty when the type has none.
        document: The schema as JSON Schema.
        source: Where it was read.
        date: When it was valid.
    """

    resource_type: str
    permissions: Mapping[Handler, tuple[str, ...]]
    create_only: tuple[str, ...]
    conditional_create_only: tuple[str, ...]
    read_only: tuple[str, ...]
    write_only: tuple[str, ...]
    identifier: tuple[str, ...]
    tag_property: str
    document: Mapping[str, object]
    source: str
    date: str


def find_resource_schema(resource_type: str) -> ResourceSchema | None:
    """Return the schema of a type, `None` when the catalog lacks it; a `Custom::…` has none of its own."""
    return RESOURCE_SCHEMAS.get(resource_type)


def _schema(*, resource_type: str, source: str, date: str, schema: dict[str, object]) -> ResourceSchema:
    tagging = schema.get("tagging")
    tags = _path(str(tagging.get("tagProperty", ""))) if isinstance(tagging, dict) and tagging.get("taggable") else ""
    return ResourceSchema(
        resource_type=resource_type,
        permissions=_permissions(schema.get("handlers")),
        create_only=_paths(schema, "createOnlyProperties"),
        conditional_create_only=_paths(schema, "conditionalCreateOnlyProperties"),
        read_only=_paths(schema, "readOnlyProperties"),
        write_only=_paths(schema, "writeOnlyProperties"),
        identifier=_paths(schema, "primaryIdentifier"),
        tag_property=tags,
        document=schema,
        source=source,
        date=date,
    )


def _permissions(handlers: object) -> Mapping[Handler, tuple[str, ...]]:
    found: dict[Handler, tuple[str, ...]] = {}
    for name in HANDLERS:
        handler = handlers.get(name) if isinstance(handlers, dict) else None
        listed = handler.get("permissions") if isinstance(handler, dict) else None
        if isinstance(listed, list):
            found[name] = tuple(str(action) for action in listed)
    return MappingProxyType(found)


def _paths(schema: Mapping[str, object], keyword: str) -> tuple[str, ...]:
    listed = schema.get(keyword, [])
    return tuple(sorted(_path(str(pointer)) for pointer in listed)) if isinstance(listed, list) else ()


def _path(pointer: str) -> str:
    return pointer.removeprefix("/properties/").replace("/", ".")


RESOURCE_SCHEMAS: Final = CatalogTable(_schema, "resource_schemas.json", key="resource_type")
"""Sorted by type."""


@dataclass(frozen=True, slots=True)
class ReplacementRule:
    """How one resource type is updated.

    Attributes:
        resource_type: CloudFormation's name of the type.
        replaced_by: Paths of which any change replaces the resource, with those of which only some changes do.
        named_by: Paths that give it a name of its own: two resources can't have the same values of them at once.
        unchangeable: Properties of which a change can't be carried out: it neither replaces nor updates.
        source: Where the facts were read.
        date: When they were valid.
    """

    resource_type: str
    replaced_by: tuple[str, ...]
    named_by: tuple[str, ...]
    unchangeable: tuple[str, ...]
    source: str
    date: str


def find_replacement_rule(resource_type: str) -> ReplacementRule | None:
    """Return the rule of a type, `None` when the catalog lacks it; every `Custom::…` is a custom resource."""
    return _by_type().get(CUSTOM if resource_type.startswith("Custom::") else resource_type)


@cache
def all_replacement_rules() -> tuple[ReplacementRule, ...]:
    """Return the rule of every type whose schema is known, sorted by name."""
    return tuple(_rule(schema, _NAMINGS.get(schema.resource_type)) for schema in RESOURCE_SCHEMAS.rows)


@dataclass(frozen=True, slots=True)
class _Naming:
    """What a schema does not tell of a type: its names, and which of its create-only properties are refused."""

    resource_type: str
    named_by: tuple[str, ...]
    unchangeable: tuple[str, ...]
    source: str
    date: str


_NAMINGS: Final = CatalogTable(_Naming, "replacement.json", key="resource_type")


def _rule(schema: ResourceSchema, naming: _Naming | None) -> ReplacementRule:
    unchangeable = naming.unchangeable if naming else ()
    fixed = {*schema.create_only, *schema.conditional_create_only} - {*unchangeable}
    return ReplacementRule(
        resource_type=schema.resource_type,
        replaced_by=tuple(sorted(fixed)),
        named_by=naming.named_by if naming else (),
        unchangeable=unchangeable,
        source=schema.source,
        date=schema.date,
    )


@cache
def _by_type() -> dict[str, ReplacementRule]:
    return {rule.resource_type: rule for rule in all_replacement_rules()}


INFERENCE_COMPONENT = "AWS::SageMaker::InferenceComponent"


@dataclass(frozen=True, slots=True)
class Availability:
    """The regions of one CloudFormation resource type.

    Attributes:
        resource_type: Its name.
        regions: The regions that have it, sorted.
        source: Where they were read.
        date: When.
    """

    resource_type: str
    regions: tuple[str, ...]
    source: str
    date: str


AVAILABILITY: Final = CatalogTable(Availability, "regions.json", key="resource_type")


def availability(resource_type: str = INFERENCE_COMPONENT) -> Availability:
    """Return the regions of a resource type of the catalog."""
    return AVAILABILITY[resource_type]
