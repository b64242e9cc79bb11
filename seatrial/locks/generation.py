"""Counts the endpoints of a spec: what one in service can't change makes another one, with a name of its own.

An inference component stays on its endpoint, and an endpoint in service moves instances and components one after the
other: copies of the old size may not fit on what the new ones need. So another instance type, degree, AMI or volume is
deployed as a second endpoint, which is tried before the traffic moves.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from seatrial.locks.changes import NOT_WRITTEN, change_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.documents.plan import Plan

NOT_IN_PLACE: Mapping[str, str] = MappingProxyType(
    {
        "hosting_kind": "kind of endpoint",
        "instance_type": "instance type",
        "tensor_parallel_degree": "tensor parallel degree",
        "inference_ami_version": "inference AMI",
        "volume_size_gb": "volume size",
        "volume_kms_key_arn": "volume key",
    }
)
"""The fields of a plan that an endpoint in service can't change, as people call them."""


def count_generation(locked: Mapping[str, object] | None, plan: Plan) -> tuple[Plan, tuple[str, ...]]:
    """Return the plan with its generation, and one line where it is another one than the locked plan's.

    Args:
        locked: The plan that was locked before, as it was written; `None` when there was none.
        plan: The plan now.
    """
    if locked is None:
        return plan, ()
    generation, changed = generation_of(locked), list(_changes(locked, plan))
    if not changed:
        return plan.model_copy(update={"generation": generation}), ()
    line = f"{', '.join(changed)}: a second endpoint is made, tried, and then takes the traffic"
    return plan.model_copy(update={"generation": generation + 1}), (line,)


def generation_of(locked: Mapping[str, object] | None) -> int:
    """Return the generation of a locked plan; 1 where it says none, or there is no plan."""
    generation = None if locked is None else locked.get("generation")
    return generation if isinstance(generation, int) and generation >= 1 else 1


def _changes(locked: Mapping[str, object], plan: Plan) -> Iterator[str]:
    document = plan.model_dump(mode="json")
    for name, words in NOT_IN_PLACE.items():
        before, after = (change_text(each.get(name, NOT_WRITTEN.get(name))) for each in (locked, document))
        if before != after:
            yield f"{words} changes from {before} to {after}"
