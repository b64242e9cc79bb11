"""The difference of two templates: what CloudFormation does to each resource when one replaces the other."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seatrial_base.catalog import resource_types as replacement
from seatrial_base.catalog.resource_types import find_replacement_rule
from seatrial_lint.cloudformation.intrinsic import is_function, references

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from seatrial_lint.cloudformation.template import Template, TemplateResource

Action = Literal["created", "replaced", "updated", "deleted", "unchanged"]
ORDER: tuple[Action, ...] = ("created", "replaced", "updated", "deleted", "unchanged")


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """One value of a resource that changes.

    Attributes:
        path: As in `ProductionVariants[0].InstanceType`.
        old: The value before; `None` when there was none.
        new: The value after; `None` when there is none.
        follows: Logical ID of the resource that the value is taken from, where only that one changes; else empty.
    """

    path: str
    old: JsonValue
    new: JsonValue
    follows: str = ""

    @property
    def name(self) -> str:
        """The property of the resource that holds the value."""
        return self.path.partition(".")[0].partition("[")[0]


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """The change of one resource.

    Attributes:
        resource_type: After the update, where it changes.
        properties: The values that change; none of a resource that is created or deleted.
        replaced_by: The properties that replace it.
        is_retained: It stays in the account when it is deleted or replaced.
    """

    logical_id: str
    resource_type: str
    action: Action
    properties: tuple[PropertyChange, ...] = ()
    replaced_by: tuple[str, ...] = ()
    is_retained: bool = False

    def changes(self, *names: str) -> bool:
        """Return whether one of these properties changes; a path is names joined by dots."""
        return any(_touches(change.path, name) for change in self.properties for name in names)


@dataclass(frozen=True, slots=True)
class TemplateDiff:
    """An update of a stack.

    Attributes:
        changes: Every resource of both once, by action, then by logical ID.
        outputs: The names of the outputs that change.
    """

    old: Template
    new: Template
    changes: tuple[ResourceChange, ...]
    outputs: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not self.outputs and all(change.action == "unchanged" for change in self.changes)

    def of(self, logical_id: str) -> ResourceChange | None:
        """Return the change of a resource; `None` when neither template has it."""
        return next((change for change in self.changes if change.logical_id == logical_id), None)


def diff_templates(old: Template, new: Template) -> TemplateDiff:
    """Compare two templates of one stack.

    A value that is taken from a resource that is replaced changes too; so does an attribute of a custom resource that
    is called again. This is followed until nothing more changes.
    """
    both = sorted(old.resources.keys() & new.resources.keys())
    direct = {name: tuple(_direct(old.resources[name], new.resources[name])) for name in both}
    changes = {name: _change(name, new.resources[name], direct[name], old.resources[name]) for name in both}
    # A value that follows a replaced resource may itself be of a property that replaces: one pass would miss the
    # second step, so passes go on until one finds nothing new.
    while True:
        followed = {
            name: _change(
                name,
                new.resources[name],
                (*direct[name], *_following(new.resources[name], direct[name], changes)),
                old.resources[name],
            )
            for name in both
        }
        if followed == changes:
            break
        changes = followed
    for name in new.resources.keys() - old.resources.keys():
        changes[name] = ResourceChange(name, new.resources[name].resource_type, "created")
    for name in old.resources.keys() - new.resources.keys():
        kept = old.resources[name].policies.get("DeletionPolicy", "").startswith("Retain")
        changes[name] = ResourceChange(name, old.resources[name].resource_type, "deleted", is_retained=kept)
    outputs = old.outputs.keys() | new.outputs.keys()
    changed = tuple(sorted(name for name in outputs if old.outputs.get(name) != new.outputs.get(name)))
    ordered = sorted(changes.values(), key=lambda change: (ORDER.index(change.action), change.logical_id))
    return TemplateDiff(old, new, tuple(ordered), changed)


def _change(
    name: str, new: TemplateResource, properties: tuple[PropertyChange, ...], old: TemplateResource
) -> ResourceChange:
    rule = find_replacement_rule(new.resource_type)
    replacing = () if rule is None else rule.replaced_by
    by = tuple(path for path in replacing if any(_touches(change.path, path) for change in properties))
    # CloudFormation refuses another type under one logical ID; as "replaced by its type" it is refused with a
    # hint, while as a deletion and a creation it would look possible.
    if new.resource_type != old.resource_type:
        by = ("Type",)
    action: Action = "replaced" if by else "updated" if properties else "unchanged"
    kept = bool(by) and new.policies.get("UpdateReplacePolicy", "") == "Retain"
    return ResourceChange(name, new.resource_type, action, properties, by, kept)


def _touches(changed: str, path: str) -> bool:
    """Return whether a change is of a path, of something within it, or of what it is within."""
    # Replacement rules name properties without indices. The dots at the ends keep `Name` from touching `NameSuffix`.
    at = re.sub(r"\[\d+\]", "", changed)
    return f"{at}.".startswith(f"{path}.") or f"{path}.".startswith(f"{at}.")


def _direct(old: TemplateResource, new: TemplateResource) -> Iterator[PropertyChange]:
    if old.resource_type != new.resource_type:
        yield PropertyChange("Type", old.resource_type, new.resource_type)
    yield from _within("", _by_key(old.properties), _by_key(new.properties))
    for name in sorted(old.policies.keys() | new.policies.keys()):
        if old.policies.get(name) != new.policies.get(name):
            yield PropertyChange(name, old.policies.get(name), new.policies.get(name))


def _by_key(properties: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return properties with the tags by their keys: the order of tags means nothing."""
    return {name: _tags(value) if name == "Tags" else value for name, value in properties.items()}


def _tags(value: JsonValue) -> JsonValue:
    pairs: dict[str, JsonValue] = {}
    for tag in value if isinstance(value, list) else ():
        if not isinstance(tag, dict) or not isinstance(tag.get("Key"), str):
            return value
        pairs[f"{tag['Key']}"] = tag.get("Value")
    return pairs if isinstance(value, list) else value


def _within(path: str, old: JsonValue, new: JsonValue) -> Iterator[PropertyChange]:
    # Python holds `True == 1`, and JSON does not: equal values are compared as they are written, too.
    if old == new and json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True):
        return
    before, after = _document(old), _document(new)
    if isinstance(before, dict) and isinstance(after, dict) and not (is_function(before) or is_function(after)):
        for name in sorted(before.keys() | after.keys()):
            yield from _within(f"{path}.{name}".removeprefix("."), before.get(name), after.get(name))
    # Lists of other lengths are one change: without keys it is unknown which of the elements was added.
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _within(f"{path}[{number}]", one, other)
    else:
        yield PropertyChange(path, old, new)


def _document(value: JsonValue) -> JsonValue:
    """Return the document that a text holds, as a trial's request does; anything else as it is."""
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    try:
        read: JsonValue = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return read


def _following(
    resource: TemplateResource, direct: tuple[PropertyChange, ...], changes: Mapping[str, ResourceChange]
) -> Iterator[PropertyChange]:
    """Yield the values that stay as they are written, but are taken from a resource that becomes another."""
    known = {change.path for change in direct}
    for path, value in _functions("", dict(resource.properties)):
        if path in known:
            continue
        for reference in references(value):
            origin = changes.get(reference.logical_id)
            if origin is None:
                continue
            # An attribute of a custom resource is computed again by each of its updates.
            custom = bool(reference.attribute) and origin.resource_type.startswith(("Custom::", replacement.CUSTOM))
            if origin.action == "replaced" or (origin.action == "updated" and custom):
                yield PropertyChange(path, value, value, follows=origin.logical_id)
                break


def _functions(path: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    if is_function(value):
        yield path, value
    elif isinstance(value, dict):
        for name in sorted(value):
            yield from _functions(f"{path}.{name}".removeprefix("."), value[name])
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _functions(f"{path}[{number}]", one)
