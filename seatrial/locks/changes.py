"""What a new plan decides otherwise than the one that was locked before."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from seatrial.locks.compiled import compiled_anew

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.documents.plan import Plan


# What says who made the plan, why, and what is predicted: no decision.
_NO_DECISION = frozenset(
    {
        "schema_version",
        "spec_digest",
        "memory",
        "curve",
        "uncertainty",
        "band",
        "knee",
        "regime",
        "cost",
        "pareto",
        "rejected",
        "warnings",
        "adopted",
        "promoted",
        "unpriced",
        "probe",
        "proposals",
    }
)

_NONE = "none"
NOT_WRITTEN: Mapping[str, object] = MappingProxyType({"generation": 1, "hosting_kind": "inference_component"})
"""The values of a plan that it does not write, for lines about changes."""


@dataclass(frozen=True, slots=True)
class DecisionChange:
    """A field of a plan that differs.

    Attributes:
        field: Its name.
        old: The value before; `none` where there was none.
        new: The value after; `none` where there is none.
        because: Why it is the new value; empty where the plan says no reason.
    """

    field: str
    old: str
    new: str
    because: str


def decision_changes(old: Mapping[str, object], new: Mapping[str, object]) -> tuple[DecisionChange, ...]:
    """Return the decisions that differ between two plans as they are written, and the cost.

    Args:
        old: The plan before; empty for none.
        new: The plan after; empty for none.
    """
    before, after = dict(_decisions(old)) if old else {}, dict(_decisions(new)) if new else {}
    return tuple(
        DecisionChange(name, before.get(name, _NONE), after.get(name, _NONE), _because(new.get(name)))
        for name in dict.fromkeys((*after, *before))
        if before.get(name, _NONE) != after.get(name, _NONE)
    )


def _because(field: object) -> str:
    because = field.get("because") if isinstance(field, dict) else None
    return because if isinstance(because, str) else ""


def changes(old: Mapping[str, object], new: Plan) -> tuple[str, ...]:
    """Return one line for each decision that differs, as `max_copies: 2 -> 4`, for the cost, and for what is compiled.

    Args:
        old: The plan that was locked, as it was written; another release may have had other fields.
        new: The plan now.
    """
    written = new.model_dump(mode="json")
    lines = [f"{one.field}: {one.old} -> {one.new}" for one in decision_changes(old, written)]
    if lines:
        lines += compiled_anew(old, written)
        return tuple(lines)
    return ("unchanged",) if old == new.model_dump(mode="json") else ("no decision changed, only texts or predictions",)


def _decisions(plan: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, field in {**NOT_WRITTEN, **plan}.items():
        if name not in _NO_DECISION:
            yield name, change_text(field)
    cost = plan.get("cost")
    if isinstance(cost, dict):
        yield "usd_per_hour", change_text(cost.get("usd_per_hour"))


def dropped_provenance(before: object) -> tuple[str, ...]:
    """Return a line that says that the plan is no longer the promoted one; none where it had no provenance."""
    if before is None:
        return ()
    return ("promoted: dropped, since the plan is no longer the one that was promoted; run `seatrial promote` again",)


def change_text(field: object) -> str:
    """Return the value of a plan's field as people read it; of a decision without its reason."""
    value = field["value"] if isinstance(field, dict) and "value" in field else field
    if isinstance(value, dict) and "uri" in value:
        value = value["uri"]
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return _NONE if value is None else str(value)
