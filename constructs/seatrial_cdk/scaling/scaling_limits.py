"""Between which counts something is scaled, and when the limits change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zoneinfo import available_timezones

from aws_cdk import Annotations, Token

from seatrial.specs.scaling import expression_error
from seatrial_cdk.place import TOKEN_MARKER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constructs import Construct

DEFAULT_SCALE_OUT_COOLDOWN_S, DEFAULT_SCALE_IN_COOLDOWN_S = 60, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledCapacity:
    """Other limits from some time on: a scheduled action of Application Auto Scaling.

    Attributes:
        name: Unique within the scaling.
        schedule: As `cron(0 20 * * ? *)`, `rate(1 day)` or `at(2027-01-01T00:00:00)`.
        timezone: IANA name, as `Europe/Berlin`; default: UTC.
        min_capacity: Fewest copies or instances from then on; default: as before.
        max_capacity: Most of them; default: as before.
    """

    name: str
    schedule: str
    timezone: str | None = None
    min_capacity: int | None = None
    max_capacity: int | None = None

    def errors(self) -> Iterator[str]:
        """Yield what Application Auto Scaling would refuse of the time."""
        if TOKEN_MARKER not in self.schedule and (wrong := expression_error(self.schedule)) is not None:
            yield f"schedule {self.name}: {self.schedule} {wrong}."
        known = available_timezones()
        if self.timezone is not None and known and self.timezone not in known and TOKEN_MARKER not in self.timezone:
            yield f"schedule {self.name}: the time zone {self.timezone} is unknown. Give a name as Europe/Berlin."


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingLimits:
    """How many copies or instances there may be, and how fast their number changes.

    Attributes:
        min_capacity: Fewest of them; 0 where the kind of endpoint can scale to zero.
        max_capacity: Most of them.
        scale_out_cooldown_s: Time after a scale-out until the next one, in seconds.
        scale_in_cooldown_s: Time after a scale-in until the next one, in seconds.
        schedules: Other limits from some time on.
        scale_in_protection: Target tracking adds and never removes; only schedules, or people, remove.
    """

    min_capacity: int = 1
    max_capacity: int = 1
    scale_out_cooldown_s: int = DEFAULT_SCALE_OUT_COOLDOWN_S
    scale_in_cooldown_s: int = DEFAULT_SCALE_IN_COOLDOWN_S
    schedules: tuple[ScheduledCapacity, ...] = ()
    scale_in_protection: bool = False

    @property
    def goes_to_zero(self) -> bool:
        """Whether there may be none at some time."""
        return 0 in (self.min_capacity, *(each.min_capacity for each in self.schedules))

    def annotate(self, scope: Construct) -> None:
        """Report every contradiction as an error of the CDK: SEA444."""
        for error in self._errors():
            Annotations.of(scope).add_error(f"SEA444: {error}")

    def _errors(self) -> Iterator[str]:
        yield from _reversed("the limits", self.min_capacity, self.max_capacity)
        names = [each.name for each in self.schedules]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"two schedules are called {name}. Give each a name of its own."
        for each in self.schedules:
            if each.min_capacity is None and each.max_capacity is None:
                yield f"schedule {each.name} changes nothing. Give it min_capacity or max_capacity."
            yield from each.errors()
            low = self.min_capacity if each.min_capacity is None else each.min_capacity
            high = self.max_capacity if each.max_capacity is None else each.max_capacity
            yield from _reversed(f"schedule {each.name}", low, high)


def _reversed(what: str, low: int, high: int) -> Iterator[str]:
    """Yield limits in the wrong order; tokens are not known yet."""
    if low >= 0 and high >= 1 and low <= high:
        return
    if Token.is_unresolved(low) or Token.is_unresolved(high):
        return
    if low < 0 or high < 1:
        yield f"{what}: {low} to {high}. The lowest is at least 0, the highest at least 1."
    else:
        yield f"{what}: the lowest, {low}, exceeds the highest, {high}."
