"""Replacement of copies by an update: of a component batch by batch, of an endpoint with models blue/green or rolling.

New copies start first, then as many old ones get no more requests and stop when theirs have ended. What
fails is rolled back the same way; the component is InService again on its old specification, with a FailureReason. The
share of an endpoint's traffic that goes to the new copies is the share of new copies among those that serve. Between
two steps some time passes, in which no alarm may go off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.alarms import StateValue
from seatrial_laptop.aws.api import invalid
from seatrial_laptop.aws.control_plane.containers import component_container, model_container
from seatrial_laptop.aws.control_plane.fleets import (
    StartTimes,
    lack_of_capacity,
    needed_resources,
    placement,
    pool_with_capacity,
    pools_of,
    provision_limit_s,
)
from seatrial_laptop.aws.control_plane.records import Kind
from seatrial_laptop.aws.json_document import child, children, text_member, whole
from seatrial_laptop.aws.runtime.running_copies import CopyFailed, CopyPlace, stop_copies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.containers import ContainerSpec
    from seatrial_laptop.aws.control_plane.fleets import InstancePool, Meanwhile
    from seatrial_laptop.aws.control_plane.records import Record
    from seatrial_laptop.aws.json_document import Document
    from seatrial_laptop.aws.runtime.running_copies import CopyProcess


LEAST_PERCENT: Final = 5
MOST_PERCENT: Final = 50
Copies = dict["CopyPlace", tuple["CopyProcess", ...]]
WATCH_S: Final = 1.0
"""Virtual seconds between two looks at the alarms."""


class RolledBack(Exception):  # noqa: N818 (named after what happened)
    """The update was rolled back, and the old specification serves; the message is the reason."""


class RollbackFailed(Exception):  # noqa: N818 (named after the status)
    """Neither the new nor the old specification serves with all copies; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Configured:
    """What a component requests: its request, the container (None when its model is gone) and how many copies."""

    request: Document
    spec: ContainerSpec | None
    copies: int


@dataclass(frozen=True, slots=True)
class Rollout:
    """One update of a component, from `old` to `new`.

    Attributes:
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
        """Move to the new specification."""
        wait_s = whole(self._policy, "WaitIntervalInSeconds")
        stale = self._serving()
        fresh: tuple[CopyProcess, ...] = ()
        watch = AlarmWatch(self.cloud, self.deployment, whole(self._policy, "MaximumExecutionTimeoutInSeconds"))
        try:
            watch.check()
            # An update to fewer copies has started all of them before the last old one has left.
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
        """Bring back the old copies, as many as there were, and stop the new ones."""
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
        # Where no new copy ever served, there was nothing to roll back.
        raise RolledBack(f"The update was rolled back. {reason}" if fresh else reason)

    def _launch(self, side: Configured, count: int, meanwhile: Meanwhile | None) -> tuple[CopyProcess, ...]:
        return launch_copies(self.cloud, self.name, side, count, meanwhile=meanwhile) if count > 0 else ()

    def _swap(self, added: Sequence[CopyProcess], leaving: Sequence[CopyProcess], count: int | None) -> None:
        """Let new copies serve, then stop `count` of those that leave; None stops all of them."""
        # In two steps: in between more copies serve than before, never fewer.
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
    """Place copies of a component on instances and start them; they don't serve yet.

    Args:
        meanwhile: Is called again and again while they start; what it raises ends the wait.
    """
    if side.spec is None:
        raise CopyFailed(f"The model of the former specification of {name} was deleted.")
    fleet = cloud.fleets.find(text_member(side.request, "EndpointName"), text_member(side.request, "VariantName"))
    needed, strategy = needed_resources(side.request), placement(side.request)
    seats = fleet.reserve(name, needed, count, strategy=strategy, meanwhile=meanwhile) if fleet else ()
    try:
        StartTimes(cloud.clock, cloud.faults.settings).await_copies(side.spec, meanwhile)
        copies = cloud.running.launch(CopyPlace(name), side.spec, count)
    except BaseException:
        # Whatever ends the start gives the seats back: held by no copy, they would keep out every later copy.
        for seat in seats:
            seat.release()
        raise
    # A variant without a fleet has no seats.
    for copy, seat in zip(copies, seats, strict=False):
        copy.ended, copy.instance_type = seat.release, seat.instance_type
    return copies


def restart_component(cloud: Cloud, component: Record) -> None:
    """Start the copies of a component again on its fleet, then stop those that serve.

    Raises:
        CopyFailed: There is no capacity, or one of them didn't come into service; those that serve go on.
    """
    place = CopyPlace(component.name)
    count = len(cloud.running.copies(place))
    if count:
        spec = component_container(cloud.store, child(component.request, "Specification"))
        wanted = Configured(component.request, spec, count)
        cloud.running.put(place, launch_copies(cloud, component.name, wanted, count))


def update_batch_size(capacity: Document, copies: int) -> int:
    """Return the copies of one batch; a single copy is a batch of its own, and without copies any batch will do.

    Raises:
        ApiError: ValidationException, the batch is less than 5 % or more than 50 % of the copies.
    """
    value = whole(capacity, "Value")
    in_copies = text_member(capacity, "Type") == "COPY_COUNT"
    percent = 100 * value / max(copies, 1) if in_copies else float(value)
    # A single copy is all of itself: within 5 to 50 % it could never be updated.
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
    return value if text_member(capacity, "Type") == "COPY_COUNT" else max(1, math.floor(copies * value / 100))


@dataclass(frozen=True, slots=True)
class FleetShift:
    """One deployment of an endpoint's variants with models.

    Attributes:
        wanted: What shall run; places that are not named here stop at the end.
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
            # `put` stops what served or waited; new copies that did neither yet would be left running.
            known = {place: self.cloud.running.every_copy(place) for place in fresh}
            unseen = [copy for place, copies in fresh.items() for copy in copies if copy not in known[place]]
            for place in fresh:
                self.cloud.running.put(place, self.before.get(place, ()))
            stop_copies(unseen)
            raise
        for place in {*self.before, *fresh}:
            self.cloud.running.put(place, fresh.get(place, ()))

    def _blue_green(self, fresh: Copies, deployment: Document) -> None:
        policy = child(deployment, "BlueGreenUpdatePolicy")
        routing = child(policy, "TrafficRoutingConfiguration")
        watch = AlarmWatch(self.cloud, deployment, whole(policy, "MaximumExecutionTimeoutInSeconds"))
        old, new = sum(map(len, self.before.values())), sum(each.copies for each in self.wanted.values())
        # Blue/green runs both fleets at the same time.
        check_capacity(self.cloud, old + new)
        # A creation heeds no alarm: nothing serves that it could return to.
        if self.before:
            watch.check()
        meanwhile = watch.check if self.before else None
        for place, wanted in self.wanted.items():
            fresh[place] = launch_variant(self.cloud, place, wanted, wanted.copies, meanwhile=meanwhile)
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
            # Rounded up: an old copy leaves with the first part of its share.
            stays = len(old) - math.ceil(len(old) * count / total)
            serving = old[:stays] + copies[:count]
            # Old copies run on without requests, so that a rollback has them at once.
            self.cloud.running.put(place, serving, standby=old[stays:] + copies[count:])


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
    """Return how many of the copies a capacity size is, at least one; `times` for several steps of it."""
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
    """Start `count` instances of a variant with their copies; they don't serve yet.

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
    """Refuse more instances than the `capacity_limit` of the control interface allows."""
    limit = cloud.faults.settings().capacity_limit
    if limit is not None and count > limit:
        raise lack_of_capacity(
            cloud.faults.settings(),
            f"InsufficientInstanceCapacity: {count} instances were asked for, and {limit} can be had.",
        )


class AlarmWatch:
    """The alarms and the execution timeout of one update, which begins now."""

    def __init__(self, cloud: Cloud, deployment: Document, limit_s: int) -> None:
        self._cloud = cloud
        self._alarms = watched_alarms(deployment)
        self._limit_s = limit_s
        self._deadline_s = cloud.clock.now_s() + limit_s if limit_s else None

    def wait(self, seconds: float) -> None:
        """Return after some virtual seconds.

        Raises:
            CopyFailed: An alarm went off, or the update takes too long.
        """
        clock = self._cloud.clock
        end_s = clock.now_s() + seconds
        while True:
            self.check()
            if clock.now_s() >= end_s:
                return
            clock.wait(min(WATCH_S, end_s - clock.now_s()))

    def check(self) -> None:
        """Look once."""
        if self._deadline_s is not None and self._cloud.clock.now_s() > self._deadline_s:
            raise CopyFailed(f"It took more than MaximumExecutionTimeoutInSeconds ({self._limit_s} s).")
        raised = [name for name in self._alarms if self._cloud.alarm_state(name) is StateValue.ALARM]
        if raised:
            raise CopyFailed(f"Alarms in state ALARM: {', '.join(raised)}.")


def watched_alarms(deployment: Document) -> list[str]:
    """Return the names of the alarms that roll an update back."""
    return [
        text_member(alarm, "AlarmName") for alarm in children(child(deployment, "AutoRollbackConfiguration"), "Alarms")
    ]


def check_alarms(cloud: Cloud, deployment: Document, config: Record) -> None:
    """Refuse a deployment that names an alarm which isn't there, or which an execution role may not describe.

    The roles are that of the endpoint configuration, else those of its models: which one SageMaker takes, when it asks
    and how it words a refusal is assumed (developer guide, "Auto-Rollback Configuration and Monitoring", names "your
    IAM execution role").

    Args:
        config: The endpoint configuration that the endpoint has afterwards.
    """
    alarms = watched_alarms(deployment)
    for name in alarms:
        if cloud.alarm_state(name) is None:
            raise invalid(f'Could not find alarm "{name}".')
    roles = {text_member(config.request, "ExecutionRoleArn")}
    if roles == {""}:
        names = [text_member(variant, "ModelName") for variant in children(config.request, "ProductionVariants")]
        models = [cloud.store.find(Kind.MODEL, name) for name in names if name]
        roles = {text_member(model.request, "ExecutionRoleArn") for model in models if model}
    for role in roles if alarms else ():
        if denied := [name for name in alarms if not cloud.reads_alarm(role, name)]:
            raise invalid(f"Role {role} is not authorized to perform cloudwatch:DescribeAlarms on {', '.join(denied)}.")
