"""Packing of the copies of several models on instances of one type.

First-fit decreasing, a bin packing heuristic, by accelerators, then vCPUs, then host memory. The order is total, so the
result does not depend on the order in which models are given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_base.catalog import neuron
from seatrial_base.catalog.instances import SHARE_OF_CPUS, SHARE_OF_MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seatrial.documents.plan import Plan
    from seatrial_base.catalog.instances import Instance

_ROUNDING = 1e-9  # of vCPUs, which are fractions


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservable:
    """What the copies on one instance can reserve, or what one copy reserves.

    Attributes:
        memory_mib: Host memory, in MiB.
    """

    accelerators: int
    cpu_cores: float
    memory_mib: int

    def holds(self, other: Reservable) -> bool:
        """Return whether this is enough of everything."""
        return not any(self.missing(other))

    def missing(self, other: Reservable) -> Iterator[str]:
        """Yield each resource of which this has less than another needs, with both amounts."""
        if other.accelerators > self.accelerators:
            yield f"{other.accelerators} accelerators of {self.accelerators}"
        if other.cpu_cores > self.cpu_cores + _ROUNDING:
            yield f"{other.cpu_cores:g} vCPUs of {self.cpu_cores:g}"
        if other.memory_mib > self.memory_mib:
            yield f"{other.memory_mib:,} MiB of host memory of {self.memory_mib:,}"

    def less(self, other: Reservable) -> Reservable:
        """Return what is left when another has been reserved."""
        return Reservable(
            accelerators=self.accelerators - other.accelerators,
            cpu_cores=self.cpu_cores - other.cpu_cores,
            memory_mib=self.memory_mib - other.memory_mib,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCopies:
    """The copies of one model.

    Attributes:
        size: What a copy reserves.
        planned: Copies at the start.
        most: Copies at most.
        beside: New copies that an update starts in addition to the old ones.
    """

    name: str
    size: Reservable
    planned: int
    most: int
    beside: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """The instances of several models.

    Attributes:
        planned: The models' names on each instance at the planned copies.
        most: The same at the most copies.
        updating: The same at the most copies while every model is updated at once.
    """

    planned: tuple[tuple[str, ...], ...]
    most: tuple[tuple[str, ...], ...]
    updating: tuple[tuple[str, ...], ...]

    @property
    def instance_count(self) -> int:
        """Instances at the start."""
        return len(self.planned)

    @property
    def max_instances(self) -> int:
        """Instances at most, those of an update included; no fewer than at the start."""
        return max(len(self.planned), len(self.most), len(self.updating))


def reservable(instance: Instance) -> Reservable:
    """Return what the copies on one instance can reserve: an assumption for vCPUs, one measured type for memory."""
    return Reservable(
        accelerators=neuron.device_count(instance),
        cpu_cores=instance.vcpus * SHARE_OF_CPUS,
        memory_mib=int(instance.memory_mib * SHARE_OF_MEMORY),
    )


def copies_of(plan: Plan) -> ModelCopies:
    """Return the copies of a plan."""
    most = max(plan.max_copies, plan.copy_count.value)
    size = Reservable(
        accelerators=plan.accelerators_per_copy,
        cpu_cores=plan.cpu_cores_per_copy,
        memory_mib=plan.memory_min_mb.value,
    )
    beside = most if plan.copies_replaced_at_once is None else plan.copies_replaced_at_once
    return ModelCopies(name=plan.endpoint, size=size, planned=plan.copy_count.value, most=most, beside=beside)


def pack(models: Sequence[ModelCopies], room: Reservable) -> Packing:
    """Place the copies of several models on instances: the planned ones, the most, and those of an update.

    Args:
        models: The models; each copy fits on an empty instance (`misfits`).

    Raises:
        ValueError: A copy does not fit on an empty instance.
    """
    return Packing(
        planned=place_guests([(each, each.planned) for each in models], room),
        most=place_guests([(each, each.most) for each in models], room),
        updating=place_guests([(each, each.most + each.beside) for each in models], room),
    )


def place_guests(models: Iterable[tuple[ModelCopies, int]], room: Reservable) -> tuple[tuple[str, ...], ...]:
    """Return the models' names on each instance, a name for each copy.

    Raises:
        ValueError: A copy does not fit on an empty instance.
    """
    placed: list[list[str]] = []
    left: list[Reservable] = []
    for model, count in sorted(models, key=_largest_first):
        first = 0  # equal copies: where one did not fit, the next does not either
        for _ in range(count):
            first = next((at for at in range(first, len(left)) if left[at].holds(model.size)), len(left))
            if first == len(left):
                if not room.holds(model.size):
                    raise ValueError(f"a copy of {model.name} does not fit on an empty instance")
                left.append(room)
                placed.append([])
            left[first] = left[first].less(model.size)
            placed[first].append(model.name)
    return tuple(map(tuple, placed))


def _largest_first(model: tuple[ModelCopies, int]) -> tuple[float, float, float, str]:
    size = model[0].size
    return -size.accelerators, -size.cpu_cores, -size.memory_mib, model[0].name


def misfits(models: Iterable[ModelCopies], room: Reservable) -> dict[str, tuple[str, ...]]:
    """Return what an empty instance lacks for one copy, by the model's name; a model that fits is left out."""
    missing = {each.name: tuple(room.missing(each.size)) for each in models}
    return {name: lacks for name, lacks in missing.items() if lacks}


def smallest_type(models: Sequence[ModelCopies], like: Instance, among: Iterable[Instance]) -> str | None:
    """Return the instance type with the fewest accelerators, then vCPUs, of a kind that holds a copy of each model."""
    fitting = [
        instance
        for instance in among
        if instance.accelerator == like.accelerator and not misfits(models, reservable(instance))
    ]
    size = min(fitting, key=lambda each: (each.accelerator_count, each.vcpus, each.instance_type), default=None)
    return None if size is None else size.instance_type
