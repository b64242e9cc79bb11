"""A neutral configuration as flat fields and back: `lora.max_rank` instead of a model within a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from seatrial_base.catalog.engine_options import all_engine_options
from seatrial_base.frozen_model import FrozenModel
from seatrial_lint.engines.config import ServingConfig
from seatrial_lint.engines.engine_options import Adapter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Leaf = str | int | float | bool | tuple[Adapter, ...]
Neutral = str | tuple[Adapter, ...]
PRESENT = ""  # the value of a field that is a model of its own, before its members


def flatten(config: ServingConfig) -> dict[str, Leaf]:
    """Return the fields that are set, in the table's order; a sub-model stands before its members with `PRESENT`."""
    return dict(_flat(config, "", (option.name for option in all_engine_options())))


def _flat(model: FrozenModel, prefix: str, names: Iterable[str]) -> Iterator[tuple[str, Leaf]]:
    for name in names:
        value = getattr(model, name, None)
        if isinstance(value, FrozenModel):
            yield prefix + name, PRESENT
            yield from _flat(value, f"{prefix}{name}.", type(value).model_fields)
        elif value is not None:
            yield prefix + name, value


def neutral_text(value: Leaf) -> str:
    """Write a value without an engine's spelling: booleans in lower case, adapters as `name=path,…`."""
    if isinstance(value, tuple):
        return ",".join(f"{adapter.name}={adapter.path}" for adapter in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def unflatten(
    values: Mapping[str, Neutral], extra: Mapping[str, str] | None = None
) -> tuple[ServingConfig, dict[str, str]]:
    """Build a configuration from flat fields.

    Returns:
        The configuration, and for each field that holds no such value, why; those are left out.
    """
    wrong: dict[str, str] = {}
    while True:
        kept = {name: value for name, value in values.items() if name not in wrong}
        try:
            return ServingConfig.model_validate(_nested(kept) | {"extra": dict(extra or {})}), wrong
        except ValidationError as error:
            wrong |= dict(_wrong(error, kept))


def _wrong(error: ValidationError, kept: Mapping[str, Neutral]) -> Iterator[tuple[str, str]]:
    for problem in error.errors():
        path = ".".join(str(part) for part in problem["loc"] if isinstance(part, str))
        concerned = [name for name in kept if name == path or path.startswith(f"{name}.")]
        concerned = concerned or [name for name in kept if name.startswith(path.rpartition(".")[0])]
        for name in concerned:
            yield name, problem["msg"]


def _nested(values: Mapping[str, Neutral]) -> dict[str, object]:
    nested: dict[str, object] = {}
    for name, value in values.items():
        parent, _, member = name.partition(".")
        if not member:
            nested[name] = {} if value == PRESENT and name not in nested else nested.get(name, value)
        else:
            below = nested.setdefault(parent, {})
            if isinstance(below, dict):
                below[member] = value
    return nested
