"""Facts of CloudFormation resource types: schema, rights of their handlers, what only a new one can have, regions.

A resource type is a handler for each operation. The schema names every IAM action that a handler may call with the
rights of who deploys, and the properties that only a new resource can have. One deployment needs fewer actions: a key
only where a property names one, tags only where they change. Each such condition has its reason, and an action without
a condition is always needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

from seatrial_base.catalog.rows import CatalogTable, Sourced
from seatrial_base.field_facts import made_of

if TYPE_CHECKING:
    from collections.abc import Iterator


CUSTOM = "AWS::CloudFormation::CustomResource"
Handler: TypeAlias = Literal["create", "read", "update", "delete"]
HANDLERS: Final[tuple[Handler, ...]] = ("create", "read", "update", "delete")
# Types that templates have and whose schema names no rights, with the reason.
WITHOUT_HANDLERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "AWS::CDK::Metadata": "names the libraries that a template was made with; CloudFormation makes nothing of it",
        "AWS::CloudFormation::CustomResource": "calls the function that it names: lambda:InvokeFunction of who deploys",
        "AWS::CodeBuild::Project": "is one of the types that the registry has no handlers of",
        "Custom::*": "is a custom resource under a name of its own",
    }
)


@dataclass(frozen=True, slots=True)
class ResourceSchema(Sourced):
    """The schema of one resource type; a path is names joined by dots, with `*` for the items of a list.

    Attributes:
        permissions: The IAM actions that each handler may call.
        create_only: Paths of which any change replaces the resource.
        conditional_create_only: Paths of which some changes replace it.
        read_only: Paths that a template can't give.
        write_only: Paths that CloudFormation never reads back.
        identifier: Paths that identify a resource.
        tag_property: The property of the tags; empty when the type has none.
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


def find_resource_schema(resource_type: str) -> ResourceSchema | None:
    """Return the schema of a type, `None` when the catalog lacks it; a `Custom::…` has none of its own."""
    return RESOURCE_SCHEMAS.get(resource_type)


def _schema(*, resource_type: str, source: str, date: str, schema: dict[str, object]) -> ResourceSchema:
    tagging = schema.get("tagging")
    tags = _path(str(tagging.get("tagProperty", ""))) if isinstance(tagging, dict) and tagging.get("taggable") else ""
    handlers = schema.get("handlers")
    permissions: dict[Handler, tuple[str, ...]] = {}
    for name in HANDLERS:
        handler = handlers.get(name) if isinstance(handlers, dict) else None
        listed = handler.get("permissions") if isinstance(handler, dict) else None
        if isinstance(listed, list):
            permissions[name] = tuple(str(action) for action in listed)
    return ResourceSchema(
        resource_type=resource_type,
        permissions=MappingProxyType(permissions),
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


def _paths(schema: Mapping[str, object], keyword: str) -> tuple[str, ...]:
    listed = schema.get(keyword, [])
    return tuple(sorted(_path(str(pointer)) for pointer in listed)) if isinstance(listed, list) else ()


def _path(pointer: str) -> str:
    return pointer.removeprefix("/properties/").replace("/", ".")


# Sorted by type.
RESOURCE_SCHEMAS: Final = CatalogTable(_schema, "resource_schemas.json", key="resource_type")


@dataclass(frozen=True, slots=True)
class ReplacementRule(Sourced):
    """How one resource type is updated.

    Attributes:
        replaced_by: Paths of which any change replaces the resource, with those of which only some changes do.
        named_by: Paths that give it a name of its own: two resources can't have the same values of them at once.
        unchangeable: Properties of which a change can't be carried out: it neither replaces nor updates.
    """

    resource_type: str
    replaced_by: tuple[str, ...]
    named_by: tuple[str, ...]
    unchangeable: tuple[str, ...]


def find_replacement_rule(resource_type: str) -> ReplacementRule | None:
    """Return the rule of a type, `None` when the catalog lacks it; every `Custom::…` is a custom resource."""
    name = CUSTOM if resource_type.startswith("Custom::") else resource_type
    schema = RESOURCE_SCHEMAS.get(name)
    return _rule(schema, _NAMINGS.get(name)) if schema else None


@cache
def all_replacement_rules() -> tuple[ReplacementRule, ...]:
    """Return the rule of every type whose schema is known, sorted by name."""
    return tuple(_rule(schema, _NAMINGS.get(schema.resource_type)) for schema in RESOURCE_SCHEMAS.rows)


@dataclass(frozen=True, slots=True)
class _Naming(Sourced):
    """What a schema does not tell of a type: its names, and which of its create-only properties are refused."""

    resource_type: str
    named_by: tuple[str, ...]
    unchangeable: tuple[str, ...]


_NAMINGS: Final = CatalogTable(_Naming, "replacement.json", key="resource_type")


def _rule(schema: ResourceSchema, naming: _Naming | None) -> ReplacementRule:
    unchangeable = naming.unchangeable if naming else ()
    fixed = {*schema.create_only, *schema.conditional_create_only} - {*unchangeable}
    named_by = naming.named_by if naming else ()
    replaced_by = tuple(sorted(fixed))
    return made_of(ReplacementRule, schema, replaced_by=replaced_by, named_by=named_by, unchangeable=unchangeable)


INFERENCE_COMPONENT = "AWS::SageMaker::InferenceComponent"


@dataclass(frozen=True, slots=True)
class Availability(Sourced):
    """The regions of one CloudFormation resource type."""

    resource_type: str
    regions: tuple[str, ...]


AVAILABILITY: Final = CatalogTable(Availability, "regions.json", key="resource_type")


def availability(resource_type: str = INFERENCE_COMPONENT) -> Availability:
    """Return the regions of a resource type of the catalog."""
    return AVAILABILITY[resource_type]


EVERY_TYPE: Final = "*"
TAGS: Final = "@tags"
ROLES: Final = "@roles"
KEYS: Final = "@keys"
EMPTY: Final[tuple[object, ...]] = (None, "", [], {})
Value = TypeVar("Value")
Properties: TypeAlias = Mapping[str, object]
When: TypeAlias = Literal["present", "changed", "set", "removed"]


@dataclass(frozen=True, slots=True)
class HandlerCondition:
    """When handlers of one resource type need some of their rights.

    Attributes:
        actions: Patterns of the actions.
        handlers: Whose actions; none for those of every handler.
        properties: Paths, one of which has to hold; `@tags`, `@roles` and `@keys` are the properties of these.
        value: Pattern of the property's value; empty for any.
        when: In an update: the property is `present` before or after, has `changed`, is `set` again, or is `removed`.
            In a creation or deletion: it is present.
        reason: Why.
    """

    resource_type: str
    actions: tuple[str, ...]
    handlers: tuple[Handler, ...]
    properties: tuple[str, ...]
    value: str
    when: When
    reason: str


@dataclass(frozen=True, slots=True)
class AddedRight:
    """An action that a handler needs and its schema does not name."""

    resource_type: str
    handler: Handler
    actions: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class PassedRole:
    """A property that names a role for a service."""

    resource_type: str
    path: str
    service: str


@dataclass(frozen=True, slots=True)
class NamedKey:
    """A property that names a key of AWS KMS."""

    resource_type: str
    path: str


CONDITIONS: Final = CatalogTable(HandlerCondition, "handler_conditions.json#conditions")
# What schemas leave out.
ADDED_RIGHTS: Final = CatalogTable(AddedRight, "handler_conditions.json#added", key="resource_type")
PASSED_ROLES: Final = CatalogTable(PassedRole, "handler_conditions.json#roles", key="resource_type")
NAMED_KEYS: Final = CatalogTable(NamedKey, "handler_conditions.json#keys", key="resource_type")


@cache
def handler_actions(resource_type: str, handler: Handler) -> tuple[str, ...]:
    """Return every action that a handler may call, at the end those that its schema leaves out; none without one."""
    schema = find_resource_schema(resource_type)
    listed = schema.permissions.get(handler, ()) if schema else ()
    added = (row for row in ADDED_RIGHTS.having(resource_type) if row.handler == handler)
    return (*listed, *(action for row in added for action in row.actions if action not in listed))


def needed_actions(resource_type: str, handler: Handler, old: Properties, new: Properties) -> Iterator[str]:
    """Return the actions that a handler needs.

    Args:
        old: The properties before; none in a creation.
        new: The properties after; none in a deletion.
    """
    for action in handler_actions(resource_type, handler):
        for condition in conditions_of(resource_type, handler, action):
            paths = [path for written in condition.properties for path in _condition_paths(written, resource_type)]
            both = ((values_at(old, path), values_at(new, path)) for path in paths)
            if not any(_has(condition, before, after, is_update=bool(old and new)) for before, after in both):
                break
        else:
            yield action


def conditions_of(resource_type: str, handler: Handler, action: str) -> Iterator[HandlerCondition]:
    """Return the conditions of one right; it is needed when all hold."""
    for condition in CONDITIONS.rows:
        if (
            condition.resource_type in (EVERY_TYPE, resource_type)
            and (not condition.handlers or handler in condition.handlers)
            and any(fnmatchcase(action, pattern) for pattern in condition.actions)
        ):
            yield condition


def values_at(properties: Mapping[str, Value], path: str) -> list[Value]:
    """Return the values of a path; `*` stands for each item of a list."""
    first, *rest = path.split(".")
    values = [properties[first]] if first in properties else []
    for name in rest:
        items = (item for value in values if isinstance(value, list) for item in value)
        inner = (value[name] for value in values if isinstance(value, Mapping) and name in value)
        values = [*(items if name == "*" else inner)]
    return values


def _condition_paths(written: str, resource_type: str) -> tuple[str, ...]:
    if written == ROLES:
        return tuple(row.path for row in PASSED_ROLES.having(resource_type))
    if written == KEYS:
        return tuple(row.path for row in NAMED_KEYS.having(resource_type))
    if written != TAGS:
        return (written,)
    schema = find_resource_schema(resource_type)
    return (schema.tag_property,) if schema and schema.tag_property else ()


def _has(condition: HandlerCondition, before: list[object], after: list[object], *, is_update: bool) -> bool:
    pattern = condition.value or "*"
    before, after = ([value for value in values if value not in EMPTY] for values in (before, after))
    fits = any(
        fnmatchcase(f"{value}".lower() if isinstance(value, bool) else f"{value}", pattern)
        for value in (*before, *after)
    )
    if not is_update or condition.when == "present":
        return fits
    changes = {
        "changed": before != after,
        "set": bool(after) and before != after,
        "removed": bool(before) > bool(after),
    }
    return fits and changes[condition.when]
