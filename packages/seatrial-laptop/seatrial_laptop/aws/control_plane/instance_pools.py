"""The instance types that a variant may use, in its order of priority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_base.catalog.instances import find_instance
from seatrial_laptop.aws.json_document import children, text, whole
from seatrial_laptop.aws.runtime.copy_process import CopyFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial_laptop.aws.faults import ControlSettings
    from seatrial_laptop.aws.json_document import Document


@dataclass(frozen=True, slots=True)
class InstancePool:
    """One instance type of a variant.

    Attributes:
        instance_type: SageMaker's name.
        accelerators: Of one instance; None for a type that is not in the catalog.
        model_name: The model on instances of this pool; empty for a variant that hosts inference components.
    """

    instance_type: str
    accelerators: int | None = None
    model_name: str = ""

    def takes(self, devices: int) -> bool:
        """Return whether a copy with so many accelerators fits on an empty instance."""
        return self.accelerators is None or devices <= self.accelerators


def pools_of(variant: Document) -> tuple[InstancePool, ...]:
    """Return the pools of a variant, the most wanted first; its InstanceType is a pool of its own."""
    model = text(variant, "ModelName")
    listed = sorted(children(variant, "InstancePools"), key=lambda pool: whole(pool, "Priority", 1))
    if not listed:
        return (_pool(text(variant, "InstanceType"), model),)
    return tuple(_pool(text(pool, "InstanceType"), text(pool, "ModelNameOverride", model)) for pool in listed)


def pool_with_capacity(
    pools: Sequence[InstancePool], settings: Callable[[], ControlSettings], devices: int = 0
) -> InstancePool:
    """Return the first pool that has capacity for a copy with so many accelerators.

    Raises:
        CopyFailed: InsufficientInstanceCapacity, none has.
    """
    lacking = settings().no_capacity
    fitting = [pool for pool in pools if pool.takes(devices)]
    found = next((pool for pool in fitting if pool.instance_type not in lacking), None)
    if found is None:
        types = ", ".join(pool.instance_type for pool in fitting or pools)
        raise CopyFailed(f"InsufficientInstanceCapacity: no instance of {types} can be had.")
    return found


def _pool(instance_type: str, model_name: str) -> InstancePool:
    known = find_instance(instance_type)
    return InstancePool(instance_type, known.accelerator_count if known else None, model_name)
