"""Whether a candidate has room beside the copies that serve, as far as accelerators tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.components import Components, ComponentState


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The accelerators of a variant, and what a copy more needs of them.

    Attributes:
        instances: In service.
        most_instances: That it may have.
        accelerators: Of one instance; 0 where it is not known.
        used: By all copies on it.
        leaving: Of these, by copies that are being deleted.
        needed: By the copy.
    """

    instances: int
    most_instances: int
    accelerators: int
    used: int
    leaving: int = 0
    needed: int

    @property
    def is_known(self) -> bool:
        """Whether accelerators tell anything: not of instances without any."""
        return self.accelerators > 0 and self.needed > 0

    @property
    def staying(self) -> int:
        """Accelerators of the copies that are not being deleted."""
        return self.used - self.leaving

    @property
    def is_full(self) -> bool:
        """Whether not even the most instances have accelerators for it. Memory and processors are not looked at."""
        return self.is_known and self.most_instances * self.accelerators - self.staying < self.needed

    @property
    def is_free(self) -> bool:
        """Whether an instance in service surely has room: however copies lie, one has as many free accelerators."""
        free = self.instances * self.accelerators - self.used
        return self.is_known and free > self.instances * (self.needed - 1)

    @property
    def in_words(self) -> str:
        """How much there is, for people."""
        most = self.most_instances * self.accelerators
        return (
            f"{self.most_instances} instances at most have {most} accelerators, copies use {self.staying} of them, "
            f"and one more needs {self.needed}"
        )


def room_beside(
    components: Components, live: ComponentState, *, environment: str, needed: int, accelerators: int
) -> Room:
    """Ask what is used on the variant of a component.

    Args:
        components: The account's components.
        live: The component.
        environment: The environment's name: other components than its own may not be described, and count for nothing.
        needed: Accelerators of a copy more.
        accelerators: Of one instance; 0 where it is not known.

    Raises:
        UnavailableError: It can't be told.
    """
    capacity = components.capacity(live.endpoint_name, live.variant_name)
    names = [name for name in components.on_endpoint(live.endpoint_name) if name.startswith(f"{environment}-")]
    found = (components.describe(name) for name in names)
    on_variant = [each for each in found if each is not None and each.variant_name in {live.variant_name, ""}]
    accelerators_used = [(each.copies * each.accelerators, each.status == "Deleting") for each in on_variant]
    return Room(
        instances=capacity.instances,
        most_instances=capacity.most,
        accelerators=accelerators,
        used=sum(used for used, _ in accelerators_used),
        leaving=sum(used for used, is_leaving in accelerators_used if is_leaving),
        needed=needed,
    )
