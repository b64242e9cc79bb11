"""How an endpoint's variants with models move to new copies: blue/green with shifts of traffic, or rolling.

The share of the traffic that goes to the new copies is the share of new copies among those that serve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_laptop.aws.control_plane.alarm_watch import AlarmWatch
from seatrial_laptop.aws.control_plane.containers import model_container
from seatrial_laptop.aws.control_plane.fleets import pool_with_capacity, pools_of, provision_limit_s
from seatrial_laptop.aws.control_plane.start_times import StartTimes, lack_of_capacity
from seatrial_laptop.aws.json_document import child, text_member, whole
from seatrial_laptop.aws.runtime.copy_process import CopyFailed
from seatrial_laptop.aws.runtime.running_copies import stop_copies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.containers import ContainerSpec
    from seatrial_laptop.aws.control_plane.fleets import InstancePool
    from seatrial_laptop.aws.control_plane.start_times import Meanwhile
    from seatrial_laptop.aws.json_document import Document
    from seatrial_laptop.aws.runtime.copy_process import CopyProcess
    from seatrial_laptop.aws.runtime.running_copies import CopyPlace


Copies = dict["CopyPlace", tuple["CopyProcess", ...]]


@dataclass(frozen=True, slots=True)
class FleetShift:
    """One deployment of an endpoint's variants with models.

    Attributes:
        cloud: Where.
        wanted: What shall run; places that are not named here stop at the end.
        before: The copies that serve now.
        deployment: The DeploymentConfig; empty for blue/green all at once.
    """

    cloud: Cloud
    wanted: Mapping[CopyPlace, WantedVariant]
    before: Mapping[CopyPlace, tuple[CopyProcess, ...]]
    deployment: Document

    def run(self) -> None:
        """Move to the new copies.

        Raises:
            CopyFailed: The old copies serve as before, and no new one is left.
        """
        fresh: Copies = dict.fromkeys(self.wanted, ())
        try:
            if "RollingUpdatePolicy" not in self.deployment:
                self._blue_green(fresh, self.deployment)
            elif len({*self.wanted, *self.before}) > 1:
                self._blue_green(fresh, {})
            else:
                self._roll(fresh)
        except CopyFailed:
            self._return_to_old(fresh)
            raise
        for place in {*self.before, *fresh}:
            self.cloud.running.put(place, fresh.get(place, ()))

    def _blue_green(self, fresh: Copies, deployment: Document) -> None:
        policy = child(deployment, "BlueGreenUpdatePolicy")
        routing = child(policy, "TrafficRoutingConfiguration")
        watch = AlarmWatch(self.cloud, deployment, whole(policy, "MaximumExecutionTimeoutInSeconds"))
        old, new = sum(map(len, self.before.values())), sum(each.copies for each in self.wanted.values())
        check_capacity(self.cloud, old + new)
        if self.before:
            watch.check()
        for place, wanted in self.wanted.items():
            fresh[place] = launch_variant(
                self.cloud, place, wanted, wanted.copies, meanwhile=watch.check if self.before else None
            )
        if not self.before:
            return
        shifts = traffic_shifts(routing, max(each.copies for each in self.wanted.values()) if self.wanted else 1)
        for index, new_copies in enumerate(shifts):
            self._serve(fresh, new_copies)
            if index < len(shifts) - 1:
                watch.wait(whole(routing, "WaitIntervalInSeconds"))
        watch.wait(whole(policy, "TerminationWaitInSeconds"))

    def _roll(self, fresh: Copies) -> None:
        policy = child(self.deployment, "RollingUpdatePolicy")
        watch = AlarmWatch(self.cloud, self.deployment, whole(policy, "MaximumExecutionTimeoutInSeconds"))
        watch.check()
        while any(len(fresh[place]) < wanted.copies for place, wanted in self.wanted.items()):
            for place, wanted in self.wanted.items():
                batch = capacity_count(child(policy, "MaximumBatchSize"), wanted.copies)
                missing = min(batch, wanted.copies - len(fresh[place]))
                fresh[place] += launch_variant(self.cloud, place, wanted, missing, meanwhile=watch.check)
            self._serve(fresh, len)
            watch.wait(whole(policy, "WaitIntervalInSeconds"))

    def _serve(self, fresh: Copies, new_copies: Callable[[tuple[CopyProcess, ...]], int]) -> None:
        """Let some new copies take the place of as many old ones, which wait."""
        for place, copies in fresh.items():
            old, count = self.before.get(place, ()), new_copies(copies)
            total = max(self.wanted[place].copies, 1)
            stays = len(old) - math.ceil(len(old) * count / total)
            serving = old[:stays] + copies[:count]
            self.cloud.running.put(place, serving, standby=old[stays:] + copies[count:])

    def _return_to_old(self, fresh: Copies) -> None:
        unseen = [copy for place, copies in fresh.items() for copy in copies if not self._knows(place, copy)]
        for place in fresh:
            self.cloud.running.put(place, self.before.get(place, ()))
        stop_copies(unseen)

    def _knows(self, place: CopyPlace, copy: CopyProcess) -> bool:
        return copy in self.cloud.running.every_copy(place)


def traffic_shifts(routing: Document, most: int) -> list[Callable[[tuple[CopyProcess, ...]], int]]:
    """Return, for each shift of traffic, how many of the new copies serve after it; `most` is the largest variant."""
    kind = text_member(routing, "Type", "ALL_AT_ONCE")
    if kind == "CANARY":
        size = child(routing, "CanarySize")
        return [lambda copies: capacity_count(size, len(copies)), len]
    if kind == "LINEAR":
        size = child(routing, "LinearStepSize")
        steps = math.ceil(max(most, 1) / max(capacity_count(size, most), 1))
        return [*(_linear(size, step) for step in range(1, steps)), len]
    return [len]


def _linear(size: Document, step: int) -> Callable[[tuple[CopyProcess, ...]], int]:
    return lambda copies: capacity_count(size, len(copies), step)


def capacity_count(size: Document, copies: int, times: int = 1) -> int:
    """Return how many of so many copies a capacity size is, at least one; `times` for several steps of it."""
    value = whole(size, "Value", 1) * times
    if text_member(size, "Type") == "INSTANCE_COUNT":
        return min(value, copies)
    return min(copies, max(1, math.ceil(copies * value / 100)))


@dataclass(frozen=True, slots=True)
class WantedVariant:
    """What a variant runs: a container for each of its instance pools, and how many copies."""

    containers: Mapping[InstancePool, ContainerSpec]
    copies: int
    document: Document


def wanted_variant(cloud: Cloud, variant: Document, copies: int) -> WantedVariant:
    """Return what a variant with a model runs.

    Raises:
        ApiError: ValidationException, there is no such model.
    """
    containers = {pool: model_container(cloud.store, pool.model_name, variant) for pool in pools_of(variant)}
    return WantedVariant(containers, copies, variant)


def launch_variant(
    cloud: Cloud, place: CopyPlace, wanted: WantedVariant, count: int, *, meanwhile: Meanwhile | None = None
) -> tuple[CopyProcess, ...]:
    """Start so many instances of a variant with their copies; they don't serve yet.

    Args:
        cloud: Where.
        place: The variant.
        wanted: What it runs.
        count: How many copies.
        meanwhile: Is called again and again while they start; what it raises ends the wait.

    Raises:
        CopyFailed: There is no capacity, or a copy didn't come into service; none is left.
    """
    if count <= 0:
        return ()
    pool = pool_with_capacity(tuple(wanted.containers), cloud.faults.settings)
    times = StartTimes(cloud.clock, cloud.faults.settings)
    times.await_instances(capacity_s=provision_limit_s(wanted.document), meanwhile=meanwhile)
    times.await_copies(wanted.containers[pool], meanwhile)
    copies = cloud.running.launch(place, wanted.containers[pool], count)
    for copy in copies:
        copy.instance_type = pool.instance_type
    return copies


def check_capacity(cloud: Cloud, count: int) -> None:
    """Refuse more instances than the `capacity_limit` of the control interface allows.

    Raises:
        CopyFailed: InsufficientInstanceCapacity.
    """
    limit = cloud.faults.settings().capacity_limit
    if limit is not None and count > limit:
        raise lack_of_capacity(
            cloud.faults.settings(),
            f"InsufficientInstanceCapacity: {count} instances were asked for, and {limit} can be had.",
        )
