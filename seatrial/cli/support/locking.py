"""Writes a plan into a lock and tells what changed there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seatrial.documents.plan import Plan


def lock_plan(plan: Plan, spec: Path, before: Mapping[str, object] | None) -> tuple[Path, tuple[str, ...]]:
    """Write one lock, and return its path with what changed in it.

    Args:
        plan: The plan.
        spec: The file beside which the lock lies.
        before: The plan that is locked; `None` without one.

    Raises:
        SpecError: SEA403 when there is a lock that can't be read or replaced.
    """
    from seatrial.locks.changes import changes, count_generation, dropped_provenance
    from seatrial.locks.lock_file import write_lock
    from seatrial.locks.pins import keep_digest

    kept, another = count_generation(before, keep_digest(before, plan))
    file = write_lock(kept, spec)
    if before is None:
        return file, ()
    return file, (*another, *changes(before, kept), *dropped_provenance(before.get("promoted")))
