"""What the role that deploys needs for each resource type: the tables of `docs/reference/handlers.md`."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial_base.catalog.resource_types import (
    ADDED_RIGHTS,
    HANDLERS,
    KEYS,
    RESOURCE_SCHEMAS,
    ROLES,
    TAGS,
    WITHOUT_HANDLERS,
    conditions_of,
    find_replacement_rule,
    handler_actions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seatrial_base.catalog.resource_types import HandlerCondition, ResourceSchema

    Table = Callable[[tuple[str, ...], Iterable[tuple[str, ...]]], str]

LAUNCH_ROLE = Path(__file__).resolve().parents[1] / "constructs" / "seatrial_cdk" / "vending" / "launch_role.py"
WORDS = {TAGS: "tags", ROLES: "a role", KEYS: "a key"}
IN_UPDATES = {
    "present": "",
    "changed": "; in an update, changed",
    "set": "; in an update, set to another value",
    "removed": "; in an update, removed",
}


def handlers_text(table: Table) -> str:
    """Return a section for each resource type: what replaces it, and a row for each right."""
    return "\n\n".join(_section(schema, table) for schema in RESOURCE_SCHEMAS.rows if schema.permissions)


def types_without_handlers_text(table: Table) -> str:
    """Return the types that name no rights, with the reason."""
    return table(("type", "reason"), ((f"`{name}`", reason) for name, reason in WITHOUT_HANDLERS.items()))


def left_out_text(table: Table) -> str:
    """Return what a handler of a product's types lists and the launch role may not do, read from its source."""
    module = ast.parse(LAUNCH_ROLE.read_text(encoding="utf-8"))
    (value,) = [
        node.value
        for node in module.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "NOT_ALLOWED"
    ]
    if not isinstance(value, ast.Call):
        raise TypeError("NOT_ALLOWED is no MappingProxyType")
    reasons: dict[str, str] = ast.literal_eval(value.args[0])
    return table(("action", "reason"), ((f"`{action}`", reason) for action, reason in reasons.items()))


def _section(schema: ResourceSchema, table: Table) -> str:
    rule = find_replacement_rule(schema.resource_type)
    fixed = ", ".join(f"`{path}`" for path in rule.replaced_by) if rule else ""
    head = ("action", "handlers", "only where", "why")
    parts = [f"### {schema.resource_type}", f"Replaced by {fixed}." if fixed else "No property replaces it."]
    return "\n\n".join([*parts, table(head, _rows(schema.resource_type))])


def _rows(resource_type: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each right; handlers with the same conditions share one."""
    found: dict[tuple[str, tuple[HandlerCondition, ...]], list[str]] = {}
    for handler in HANDLERS:
        for action in handler_actions(resource_type, handler):
            found.setdefault((action, tuple(conditions_of(resource_type, handler, action))), []).append(handler)
    added = {
        action: row.source for row in ADDED_RIGHTS.rows if row.resource_type == resource_type for action in row.actions
    }
    for (action, conditions), handlers in sorted(found.items(), key=lambda item: item[0][0]):
        reasons = [condition.reason for condition in conditions]
        reasons += [f"not in the schema: {added[action]}"] if action in added else []
        where = " and ".join(_where(condition) for condition in conditions)
        yield f"`{action}`", ", ".join(handlers), where, "; ".join(reasons)


def _where(condition: HandlerCondition) -> str:
    named = " or ".join(WORDS.get(path, f"`{path}`") for path in condition.properties)
    return f"{named}{f' is `{condition.value}`' if condition.value else ''}{IN_UPDATES[condition.when]}"
