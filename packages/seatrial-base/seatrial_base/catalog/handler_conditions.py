"""When a resource handler needs a right that its schema names, and on which roles and keys.

A schema names every action that a handler may call; one deployment needs fewer: a key only where a property names one,
tags only where they change. Each condition has its reason, and an action without a condition is always needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

from seatrial_base.catalog.resource_types import find_resource_schema
from seatrial_base.catalog.rows import CatalogTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.catalog.resource_types import Handler

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
        resource_type: The type; `*` for every type.
        actions: Patterns of the actions.
        handlers: Whose actions; none for those of every handler.
        properties: Paths, one of which has to hold; `@tags`, `@roles` and `@keys` are the properties of these.
        value: Pattern of the property's value; empty for any.
        when: In an update: the property is `present` before or after, has `changed`, is `set` anew, or is `removed`.
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
    """An action that a handler needs and its schema does not name.

    Attributes:
        resource_type: The type.
        handler: The handler.
        actions: The actions.
        source: Where this is told.
    """

    resource_type: str
    handler: Handler
    actions: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class PassedRole:
    """A property that names a role for a service.

    Attributes:
        resource_type: The type.
        path: The property.
        service: The service that the role is passed to.
    """

    resource_type: str
    path: str
    service: str


@dataclass(frozen=True, slots=True)
class NamedKey:
    """A property that names a key of AWS KMS.

    Attributes:
        resource_type: The type.
        path: The property.
    """

    resource_type: str
    path: str


CONDITIONS: Final = CatalogTable(HandlerCondition, "handler_conditions.json#conditions")
ADDED_RIGHTS: Final = CatalogTable(AddedRight, "handler_conditions.json#added", key="resource_type")
"""What schemas leave out."""
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
        resource_type: The type.
        handler: The handler.
        old: The properties before; none in a creation.
        new: The properties after; none in a deletion.
    """
    for action in handler_actions(resource_type, handler):
        conditions = [*conditions_of(resource_type, handler, action)]
        if all(_holds(condition, resource_type, old, new) for condition in conditions):
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
    found = [properties[first]] if first in properties else []
    for name in rest:
        found = [value for each in found for value in _below(each, name)]
    return found


def _below(value: Value, name: str) -> list[Value]:
    if name == "*":
        return [*value] if isinstance(value, list) else []
    return [value[name]] if isinstance(value, Mapping) and name in value else []


def _holds(condition: HandlerCondition, resource_type: str, old: Properties, new: Properties) -> bool:
    paths = [path for written in condition.properties for path in _paths(written, resource_type)]
    both = [(values_at(old, path), values_at(new, path)) for path in paths]
    return any(_has(condition, before, after, is_update=bool(old and new)) for before, after in both)


def _paths(written: str, resource_type: str) -> tuple[str, ...]:
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
    fits = any(fnmatchcase(_text(value), pattern) for value in (*before, *after))
    if not is_update or condition.when == "present":
        return fits
    changes = {
        "changed": before != after,
        "set": bool(after) and before != after,
        "removed": bool(before) > bool(after),
    }
    return fits and changes[condition.when]


def _text(value: object) -> str:
    return f"{value}".lower() if isinstance(value, bool) else f"{value}"
