"""How an inference component moves to another specification: batch by batch, or all copies at once.

New copies start beside the old ones, then as many old ones get no more requests and stop when theirs have ended. What
fails is rolled back the same way; the component is InService again on its old specification, with a FailureReason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.api import invalid
from seatrial_laptop.aws.control_plane.alarm_watch import AlarmWatch
from seatrial_laptop.aws.control_plane.containers import component_container
from seatrial_laptop.aws.control_plane.fleets import needed_accelerators, placement
from seatrial_laptop.aws.control_plane.start_times import StartTimes
from seatrial_laptop.aws.json_document import child, text_member, whole
from seatrial_laptop.aws.runtime.copy_process import CopyFailed
from seatrial_laptop.aws.runtime.running_copies import CopyPlace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.containers import ContainerSpec
    from seatrial_laptop.aws.control_plane.records import Record
    from seatrial_laptop.aws.control_plane.start_times import Meanwhile
    from seatrial_laptop.aws.json_document import Document
    from seatrial_laptop.aws.runtime.copy_process import CopyProcess


LEAST_PERCENT: Final = 5
MOST_PERCENT: Final = 50


class RolledBack(Exception):  # noqa: N818 (named after what happened)
    """The update was rolled back, and the old specification serves; the message says why."""


class RollbackFailed(Exception):  # noqa: N818 (named after the status)
    """Neither the new nor the old specification serves with all copies; the message says why."""


@dataclass(frozen=True, slots=True)
class Configured:
    """What a component asks for: its request, the container (None when its model is gone) and how many copies."""

    request: Document
    spec: ContainerSpec | None
    copies: int


@dataclass(frozen=True, slots=True)
class Rollout:
    """One update of a component, from `old` to `new`.

    Attributes:
        cloud: Where.
        name: The component.
        old: What serves now.
        new: What shall serve.
        batch: How many copies are replaced at a time.
        deployment: The DeploymentConfig of the update; empty for none.
    """

    cloud: Cloud
    name: str
    old: Configured
    new: Configured
    batch: int
    deployment: Document

    def run(self) -> None:
        """Move to the new specification.

        Raises:
            RolledBack: The old specification serves.
            RollbackFailed: Not even that.
        """
        wait_s = whole(self._policy, "WaitIntervalInSeconds")
        stale = self._serving()
        fresh: tuple[CopyProcess, ...] = ()
        watch = AlarmWatch(self.cloud, self.deployment, whole(self._policy, "MaximumExecutionTimeoutInSeconds"))
        try:
            watch.check()
            while len(fresh) < self.new.copies or self._without(fresh):
                added = self._launch(self.new, min(self.batch, self.new.copies - len(fresh)), watch.check)
                fresh += added
                done = len(fresh) >= self.new.copies
                self._swap(added, self._without(fresh), None if done else len(added))
                watch.wait(wait_s)
        except CopyFailed as failure:
            self._roll_back(fresh, len(stale), str(failure))

    @property
    def _policy(self) -> Document:
        return child(self.deployment, "RollingUpdatePolicy")

    @property
    def _place(self) -> CopyPlace:
        return CopyPlace(self.name)

    def _roll_back(self, fresh: Sequence[CopyProcess], copies: int, reason: str) -> None:
        """Bring back the old copies, as many as there were, and stop the new ones.

        Raises:
            RolledBack: It was done.
            RollbackFailed: An old copy did not start; what serves now goes on serving.
        """
        batch = rollback_batch_size(self._policy, copies)
        restored = self._without(fresh)
        try:
            while len(restored) < copies:
                added = self._launch(self.old, min(batch, copies - len(restored)), None)
                restored += added
                left = tuple(copy for copy in self._serving() if copy in fresh)
                self._swap(added, left, None if len(restored) >= copies else len(added))
        except CopyFailed as failure:
            raise RollbackFailed(f"{reason} The rollback failed: {failure}") from failure
        raise RolledBack(f"The update was rolled back. {reason}" if fresh else reason)

    def _launch(self, side: Configured, count: int, meanwhile: Meanwhile | None) -> tuple[CopyProcess, ...]:
        return launch_copies(self.cloud, self.name, side, count, meanwhile=meanwhile) if count > 0 else ()

    def _swap(self, added: Sequence[CopyProcess], leaving: Sequence[CopyProcess], count: int | None) -> None:
        """Let new copies serve, then stop so many of those that leave; None stops all of them."""
        self.cloud.running.put(self._place, (*self._serving(), *added))
        gone = leaving[:count]
        self.cloud.running.put(self._place, tuple(copy for copy in self._serving() if copy not in gone))

    def _serving(self) -> tuple[CopyProcess, ...]:
        return self.cloud.running.copies(self._place)

    def _without(self, fresh: Sequence[CopyProcess]) -> tuple[CopyProcess, ...]:
        return tuple(copy for copy in self._serving() if copy not in fresh)


def launch_copies(
    cloud: Cloud, name: str, side: Configured, count: int, *, meanwhile: Meanwhile | None = None
) -> tuple[CopyProcess, ...]:
    """CopyPlace copies of a component on instances and start them; they don't serve yet.

    Args:
        cloud: Where.
        name: The component.
        side: What they run.
        count: How many.
        meanwhile: Is called again and again while they start; what it raises ends the wait.

    Raises:
        CopyFailed: There is no capacity, or one of them didn't come into service; none is left.
    """
    if side.spec is None:
        raise CopyFailed(f"The model of the former specification of {name} was deleted.")
    fleet = cloud.fleets.find(text_member(side.request, "EndpointName"), text_member(side.request, "VariantName"))
    needed, strategy = needed_accelerators(side.request), placement(side.request)
    seats = fleet.reserve(name, needed, count, strategy=strategy, meanwhile=meanwhile) if fleet else ()
    try:
        StartTimes(cloud.clock, cloud.faults.settings).await_copies(side.spec, meanwhile)
        copies = cloud.running.launch(CopyPlace(name), side.spec, count)
    except BaseException:
        for seat in seats:
            seat.release()
        raise
    for copy, seat in zip(copies, seats, strict=False):
        copy.ended, copy.instance_type = seat.release, seat.instance_type
    return copies


def restart_component(cloud: Cloud, component: Record) -> None:
    """Start the copies of a component anew on its fleet, then stop those that serve.

    Raises:
        CopyFailed: There is no capacity, or one of them didn't come into service; those that serve go on.
    """
    place = CopyPlace(component.name)
    count = len(cloud.running.copies(place))
    if count:
        spec = component_container(cloud.store, child(component.request, "Specification"))
        cloud.running.put(
            place, launch_copies(cloud, component.name, Configured(component.request, spec, count), count)
        )


def update_batch_size(capacity: Document, copies: int) -> int:
    """Return the copies of one batch; a single copy is a batch of its own, and without copies any batch will do.

    Raises:
        ApiError: ValidationException, the batch is less than 5 % or more than 50 % of the copies.
    """
    value = whole(capacity, "Value")
    in_copies = text_member(capacity, "Type") == "COPY_COUNT"
    percent = 100 * value / max(copies, 1) if in_copies else float(value)
    lone = copies == 0 or (copies == 1 and (value == 1 or not in_copies))
    if not lone and not LEAST_PERCENT <= percent <= MOST_PERCENT:
        raise invalid(
            f"MaximumBatchSize must be from {LEAST_PERCENT} % to {MOST_PERCENT} % of the copies of the inference "
            f"component: {value}{'' if in_copies else ' %'} of {copies}."
        )
    return value if in_copies else max(1, math.floor(copies * value / 100))


def rollback_batch_size(policy: Document, copies: int) -> int:
    """Return the copies of one batch of the rollback; all of them when the policy doesn't say."""
    capacity = policy.get("RollbackMaximumBatchSize")
    if not isinstance(capacity, dict):
        return max(copies, 1)
    value = whole(capacity, "Value")
    if text_member(capacity, "Type") == "COPY_COUNT":
        return value
    return max(1, math.floor(copies * value / 100))
