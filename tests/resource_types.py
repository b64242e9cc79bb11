"""Which resource types of a template the catalog has no schema of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seatrial_base.catalog.resource_schemas import WITHOUT_HANDLERS, find_resource_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CUSTOM = "Custom::"


def unknown_types(resources: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the types of resources without a schema and without a reason to have none.

    Add a type to `scripts/build_resource_schemas.py`, and what its handlers need to `handler_conditions.json`.
    """
    types = {f"{resource['Type']}" for resource in resources}
    known = {name for name in types if name in WITHOUT_HANDLERS or find_resource_schema(name)}
    return sorted(name for name in types - known if not name.startswith(CUSTOM))
