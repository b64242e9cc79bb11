"""The instances of every variant that hosts inference components, and how long they and their copies take to serve.

Copies are placed on instances by their accelerators, virtual CPUs and host memory. Managed instance scaling starts
instances when copies don't fit, and releases those that are idle. An instance type that is not in the catalog takes any
number of copies.

Times are virtual seconds; the faults say how long. An instance needs capacity, its start and the pull of the image,
which no timeout of SageMaker covers. A copy then needs the download of its model and the start of its container, each
with a timeout of its own.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seatrial_base.autoscaling import IDLE_MINUTES
from seatrial_base.catalog.instances import find_instance
from seatrial_laptop.aws.json_document import child, children, number, text_member, whole
from seatrial_laptop.aws.runtime.running_copies import CopyFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seatrial_base.catalog.instances import Instance
    from seatrial_laptop.aws.clock import WaitingClock
    from seatrial_laptop.aws.control_plane.containers import ContainerSpec
    from seatrial_laptop.aws.faults import ControlSettings
    from seatrial_laptop.aws.json_document import Document

    Meanwhile = Callable[[], object]


NEEDED: Final = "NumberOfAcceleratorDevicesRequired"
NO_HARDWARE: Final = (
    "There is not enough hardware resources on the instances for this endpoint to create a copy of the inference "
    "component."
)
"""The FailureReason, at once, of a copy that is larger than an instance (reported: huggingface/skills, 2026-07)."""
_FEWEST_TO_MERGE: Final = 2
"""Instances with copies, of which one can become idle."""
OTHERS_POLL_S: Final = 1.0
"""Virtual seconds between two looks at an instance that another thread has started."""
LOOK_S: Final = 1.0
"""Virtual seconds between two looks at what may end a wait."""
PENDING_POLL_S: Final = 0.05
"""Real seconds between two looks whether there is capacity, where nothing ends the wait: no time is skipped for it."""

# Of the host's memory, for SageMaker: of 16 GiB 4 were refused (ml.g5.xlarge, huggingface/skills, 2026-07), of 32 GiB
# AWS's own examples reserve 8 (ml.g5.2xlarge), of 2,048 GiB 977, with 100 of 192 virtual CPUs (ml.g7e.48xlarge).
KEPT_MIB = 13 * 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRules:
    """The rules of a variant for its instances.

    Attributes:
        accelerators: Of one instance; None for a type that is not in the catalog. Of `pools`, the first.
        least: Instances that stay.
        most: Instances that may run.
        idle_s: Virtual seconds until an idle instance is released.
        released_at_once: Instances that one release ends at most.
        pools: The instance types in the order of their priority; empty for `instance_type` alone.
        consolidates: Whether copies are moved together so that instances become idle.
        capacity_s: Virtual seconds until a lack of capacity fails; 0 for no limit.
    """

    instance_type: str
    accelerators: int | None
    initial: int
    least: int
    most: int
    idle_s: float = IDLE_MINUTES * 60.0
    released_at_once: int | None = None
    pools: tuple[InstancePool, ...] = ()
    consolidates: bool = False
    capacity_s: float = 0.0

    @property
    def choices(self) -> tuple[InstancePool, ...]:
        """The instance types in the order of their priority."""
        alone = None if self.accelerators is None else Resources(self.accelerators, math.inf, math.inf)
        return self.pools or (InstancePool(self.instance_type, alone),)


def instance_rules(variant: Document) -> InstanceRules:
    """Return the rules of a variant for its instances; without managed scaling their number doesn't change."""
    scaling, count = child(variant, "ManagedInstanceScaling"), whole(variant, "InitialInstanceCount", 1)
    pools = pools_of(variant)
    managed = text_member(scaling, "Status") == "ENABLED"
    policy = child(scaling, "ScaleInPolicy")
    return InstanceRules(
        instance_type=pools[0].instance_type,
        accelerators=pools[0].resources.devices if pools[0].resources else None,
        initial=count,
        least=min(count, whole(scaling, "MinInstanceCount", count)) if managed else count,
        most=max(count, whole(scaling, "MaxInstanceCount", count)) if managed else count,
        idle_s=whole(policy, "CooldownInMinutes", IDLE_MINUTES) * 60.0,
        released_at_once=whole(policy, "MaximumStepSize") or None,
        pools=pools,
        consolidates=text_member(policy, "Strategy") == "CONSOLIDATION",
        capacity_s=provision_limit_s(variant),
    )


def provision_limit_s(variant: Document) -> float:
    """Return how long capacity for a variant is waited for, in seconds; 0 when it doesn't say."""
    return float(whole(variant, "VariantInstanceProvisionTimeoutInSeconds"))


def placement(request: Document) -> str:
    """Return the PlacementStrategy of a component: SPREAD, BINPACK, or nothing for the first instance with room."""
    return text_member(child(child(request, "Specification"), "SchedulingConfig"), "PlacementStrategy")


@dataclass(frozen=True, slots=True)
class Resources:
    """What a copy reserves of its instance, or what copies can reserve of an instance.

    Attributes:
        devices: Accelerators.
        cores: Virtual CPUs.
        memory_mib: Host memory, in MiB.
    """

    devices: int = 0
    cores: float = 0.0
    memory_mib: float = 0.0

    def __add__(self, other: Resources) -> Resources:
        """Return what both take together."""
        return Resources(self.devices + other.devices, self.cores + other.cores, self.memory_mib + other.memory_mib)

    def holds(self, wanted: Resources) -> bool:
        """Return whether an instance of which so much can be reserved holds this."""
        return wanted.devices <= self.devices and wanted.cores <= self.cores and wanted.memory_mib <= self.memory_mib


NOTHING: Final = Resources()


def needed_resources(request: Document) -> Resources:
    """Return what one copy of a component reserves."""
    needs = child(child(request, "Specification"), "ComputeResourceRequirements")
    return Resources(
        devices=math.ceil(number(needs, NEEDED)) if NEEDED in needs else 0,
        cores=number(needs, "NumberOfCpuCoresRequired") if "NumberOfCpuCoresRequired" in needs else 0.0,
        memory_mib=whole(needs, "MinMemoryRequiredInMb"),
    )


@dataclass(eq=False, slots=True)
class Seat:
    """What one copy reserves of one instance, until it gives it back."""

    owner: str
    needs: Resources
    give_back: Callable[[Seat], None] = field(repr=False)
    instance_type: str = ""

    def release(self) -> None:
        """Give it back; a second time changes nothing."""
        self.give_back(self)


@dataclass(eq=False, slots=True)
class _Instance:
    idle_since_s: float
    pool: InstancePool
    running: bool = False
    seats: list[Seat] = field(default_factory=list)

    @property
    def used(self) -> Resources:
        """What copies reserve."""
        return sum((seat.needs for seat in self.seats), NOTHING)

    def has_room(self, wanted: Resources) -> bool:
        """Return whether a copy fits with the others."""
        return self.pool.takes(self.used + wanted)


class NoRoom(CopyFailed):
    """Every instance that may run is taken."""


class Fleet:
    """The instances of one variant; threads may share it."""

    def __init__(self, rules: InstanceRules, clock: WaitingClock, settings: Callable[[], ControlSettings]) -> None:
        self.rules = rules
        self._clock = clock
        self._settings = settings
        self._times = StartTimes(clock, settings)
        self._lock = threading.RLock()
        self._instances: list[_Instance] = []

    @property
    def current(self) -> int:
        """The instances that run."""
        with self._lock:
            return sum(instance.running for instance in self._instances)

    @property
    def desired(self) -> int:
        """The instances that run or start."""
        with self._lock:
            return len(self._instances)

    def seats(self) -> list[int]:
        """Return how many copies each instance has."""
        with self._lock:
            return [len(instance.seats) for instance in self._instances]

    def instance_types(self) -> list[str]:
        """Return the type of every instance that runs."""
        with self._lock:
            return [instance.pool.instance_type for instance in self._instances if instance.running]

    def grow(self, count: int) -> None:
        """Start instances until there are `count`, and wait until they run."""
        with self._lock:
            if count > self._most():
                raise lack_of_capacity(
                    self._settings(),
                    f"InsufficientInstanceCapacity: {count} instances of {self.rules.instance_type} were asked for, "
                    f"and {self._most()} can be had.",
                )
            fresh = [self._instance() for _ in range(len(self._instances), count)]
            self._instances += fresh
        self._await(fresh)

    @contextmanager
    def renewal(self) -> Iterator[None]:
        """Start as many instances as there are, let the block place the copies on these, and end the old ones.

        Raises:
            CopyFailed: InsufficientInstanceCapacity, or the block raised it; the old ones stay.
        """
        with self._lock:
            old, limit = list(self._instances), self._settings().capacity_limit
            if limit is not None and 2 * len(old) > limit:
                raise lack_of_capacity(
                    self._settings(),
                    f"InsufficientInstanceCapacity: a new fleet needs {2 * len(old)} instances, {limit} can be had.",
                )
            fresh = [self._instance() for _ in old]
            self._instances = [*old, *fresh]
        try:
            self._await(fresh)
            with self._lock:
                self._instances = fresh
            yield
        except CopyFailed:
            with self._lock:
                self._instances = old
            raise

    def reserve(
        self, owner: str, wanted: Resources, count: int, *, strategy: str = "", meanwhile: Meanwhile | None = None
    ) -> tuple[Seat, ...]:
        """Place copies that reserve `wanted` each, and wait until every instance runs that they need.

        Args:
            strategy: SPREAD, BINPACK, or nothing for the first instance with room.
            meanwhile: Is called again and again while instances start; what it raises ends the wait.

        Raises:
            NoRoom: The instances that may run are taken; none of them was placed.
            CopyFailed: No instance holds one, or InsufficientInstanceCapacity, or `meanwhile` raised it; likewise.
        """
        with self._lock:
            # All copies are placed or none: a part of them would hold seats that are never used.
            before = list(self._instances)
            seats = [Seat(owner, wanted, self._give_back) for _ in range(count)]
            try:
                self._place_all(seats, most=max(self._most(), len(before)), strategy=strategy)
            except CopyFailed:
                for seat in seats:
                    self._give_back(seat)
                self._instances = before
                raise
            fresh = [instance for instance in self._instances if instance not in before]
        try:
            self._await(fresh, meanwhile)
            self._await_others(seats, meanwhile)
        except CopyFailed:
            with self._lock:
                for reserved in seats:
                    self._give_back(reserved)
                # An instance that was started for these copies stays where it runs already, or where
                # others have taken a seat.
                self._instances = [
                    instance
                    for instance in self._instances
                    if instance not in fresh or instance.running or instance.seats
                ]
            raise
        return tuple(seats)

    def _await_others(self, seats: Sequence[Seat], meanwhile: Meanwhile | None) -> None:
        """Wait for the instances that another thread has started."""
        while True:
            with self._lock:
                homes = [instance for instance in self._instances if any(seat in instance.seats for seat in seats)]
                if all(home.running for home in homes):
                    return
            if meanwhile:
                meanwhile()
            self._clock.wait(OTHERS_POLL_S)

    def change(self, rules: InstanceRules, *, retained: bool) -> None:
        """Go on with other rules: the copies are placed again, on as many instances as before when that is retained.

        Raises:
            CopyFailed: InsufficientInstanceCapacity; nothing was changed.
        """
        with self._lock:
            before, old_rules = self._instances, self.rules
            seats = sorted((seat for each in before for seat in each.seats), key=lambda seat: -seat.needs.devices)
            stays = rules.choices == old_rules.choices
            count = len(before) if retained else rules.initial
            self.rules = rules
            try:
                self._replace_all(before[: count if stays else 0], count, seats)
            except CopyFailed:
                self._instances, self.rules = before, old_rules
                raise
            fresh = [instance for instance in self._instances if not instance.running]
        self._await(fresh)

    def release_idle(self, now_s: float) -> None:
        """End the instances that have been idle for long enough, but the least that stay."""
        with self._lock:
            rules = self.rules
            if rules.consolidates:
                self._consolidate(now_s)
            idle = [
                instance
                for instance in self._instances
                if not instance.seats and now_s - instance.idle_since_s >= rules.idle_s
            ]
            spare = max(0, len(self._instances) - rules.least)
            gone = idle[-min(spare, rules.released_at_once or spare, len(idle)) :] if idle and spare else []
            self._instances = [instance for instance in self._instances if instance not in gone]
            if rules.released_at_once and gone:
                for each in idle:
                    each.idle_since_s = now_s

    def _most(self) -> int:
        limit = self._settings().capacity_limit
        return self.rules.most if limit is None else min(self.rules.most, limit)

    def _replace_all(self, kept: Sequence[_Instance], count: int, seats: Sequence[Seat]) -> None:
        """Place copies again on instances that stay and on new ones."""
        now_s = self._clock.now_s()
        new = [self._instance() for _ in range(count - len(kept))]
        self._instances = [*(_Instance(now_s, each.pool, running=True) for each in kept), *new]
        self._place_all(seats, most=max(self._most(), count))

    def _place_all(self, seats: Sequence[Seat], *, most: int, strategy: str = "") -> None:
        """Place copies, with more instances where they don't fit."""
        for seat in seats:
            if not any(pool.takes(seat.needs) for pool in self.rules.choices):
                raise CopyFailed(NO_HARDWARE)
            home = self._home(seat, strategy)
            if home is None:
                home = self._instance(seat.needs)
                self._instances.append(home)
            home.seats.append(seat)
            seat.instance_type = home.pool.instance_type
        if not seats or len(self._instances) <= most:
            return
        owner = seats[0].owner
        held = sum(seat.owner == owner for instance in self._instances for seat in instance.seats)
        # Others hold what the variant may have, or the instances that it may have can't be had.
        failure = NoRoom if len(self._instances) > self.rules.most else CopyFailed
        raise failure(
            self._settings().no_capacity_reason
            or f"InsufficientInstanceCapacity: {held} copies of {owner} need {len(self._instances)} instances of "
            f"{self.rules.instance_type} with the endpoint's other copies, and its variant has at most {self._most()}."
        )

    def _home(self, seat: Seat, strategy: str) -> _Instance | None:
        """Return the instance that takes a copy: spread over all, packed on the fullest, or the first with room."""
        open_ = [instance for instance in self._instances if instance.has_room(seat.needs)]
        if strategy == "SPREAD":
            # First by the copies of the same component, then by the accelerators that are taken.
            return min(
                open_,
                key=lambda home: (sum(held.owner == seat.owner for held in home.seats), home.used.devices),
                default=None,
            )
        if strategy == "BINPACK":
            return max(open_, key=lambda home: home.used.devices, default=None)
        return next(iter(open_), None)

    def _consolidate(self, now_s: float) -> None:
        """Move the copies of the emptiest instance to the others when all of them fit there."""
        taken = (instance for instance in self._instances if instance.seats and instance.running)
        used = sorted(taken, key=lambda each: each.used.devices)
        if len(used) < _FEWEST_TO_MERGE:
            return
        source, others = used[0], used[1:]
        homes = {each: each.used for each in others}
        moves = []
        for seat in source.seats:
            home = next((each for each in others if each.pool.takes(homes[each] + seat.needs)), None)
            if home is None:
                return
            homes[home] += seat.needs
            moves.append((seat, home))
        for seat, home in moves:
            source.seats.remove(seat)
            home.seats.append(seat)
        source.idle_since_s = now_s

    def _give_back(self, seat: Seat) -> None:
        with self._lock:
            for instance in self._instances:
                if seat in instance.seats:
                    instance.seats.remove(seat)
                    instance.idle_since_s = self._clock.now_s()

    def _instance(self, wanted: Resources = NOTHING) -> _Instance:
        """Return a new instance for a copy that reserves this; it doesn't run yet."""
        return _Instance(self._clock.now_s(), pool_with_capacity(self.rules.choices, self._settings, wanted))

    def _await(self, fresh: Sequence[_Instance], meanwhile: Meanwhile | None = None) -> None:
        if fresh:
            self._times.await_instances(capacity_s=self.rules.capacity_s, meanwhile=meanwhile)
        with self._lock:
            for each in fresh:
                each.running, each.idle_since_s = True, self._clock.now_s()


class Fleets:
    """The fleet of every variant without a model of its own."""

    def __init__(self, clock: WaitingClock, settings: Callable[[], ControlSettings]) -> None:
        self._clock = clock
        self._settings = settings
        self._lock = threading.Lock()
        self._fleets: dict[tuple[str, str], Fleet] = {}

    def find(self, endpoint: str, variant: str) -> Fleet | None:
        """Return the fleet of a variant; None for one that hosts a model."""
        with self._lock:
            return self._fleets.get((endpoint, variant))

    def open(self, endpoint: str, variant: Document, *, retained: bool = False) -> None:
        """Start the instances of a new variant, or let those of an old one go on with other rules."""
        key, rules = (endpoint, text_member(variant, "VariantName")), instance_rules(variant)
        fleet = self.find(*key)
        if fleet is not None:
            fleet.change(rules, retained=retained)
            return
        fleet = Fleet(rules, self._clock, self._settings)
        fleet.grow(rules.initial)
        with self._lock:
            self._fleets[key] = fleet

    def close(self, endpoint: str, *, keep: Sequence[str] = ()) -> None:
        """Forget the variants of an endpoint but those that stay."""
        with self._lock:
            gone = [key for key in self._fleets if key[0] == endpoint and key[1] not in keep]
            for key in gone:
                del self._fleets[key]

    def release_idle(self, now_s: float) -> None:
        """End the instances that have been idle for long enough."""
        with self._lock:
            fleets = list(self._fleets.values())
        for fleet in fleets:
            fleet.release_idle(now_s)


@dataclass(frozen=True, slots=True)
class InstancePool:
    """One instance type of a variant.

    Attributes:
        resources: What copies can reserve of one instance; None for a type that is not in the catalog.
        model_name: The model on instances of this pool; empty for a variant that hosts inference components.
    """

    instance_type: str
    resources: Resources | None = None
    model_name: str = ""

    def takes(self, wanted: Resources) -> bool:
        """Return whether an empty instance holds this."""
        return self.resources is None or self.resources.holds(wanted)


def reservable(instance: Instance) -> Resources:
    """Return what copies can reserve of an instance, a guess between what AWS's examples take and what was refused."""
    return Resources(instance.accelerator_count, float(instance.vcpus), max(1_024, instance.memory_mib - KEPT_MIB))


def pools_of(variant: Document) -> tuple[InstancePool, ...]:
    """Return the pools of a variant, the first by priority first; its InstanceType is a pool of its own."""
    model = text_member(variant, "ModelName")
    listed = sorted(children(variant, "InstancePools"), key=lambda pool: whole(pool, "Priority", 1))
    pools = []
    for pool in listed or [variant]:
        instance_type = text_member(pool, "InstanceType")
        known = find_instance(instance_type)
        resources = reservable(known) if known else None
        pools.append(InstancePool(instance_type, resources, text_member(pool, "ModelNameOverride", model)))
    return tuple(pools)


def pool_with_capacity(
    pools: Sequence[InstancePool],
    settings: Callable[[], ControlSettings],
    wanted: Resources = NOTHING,
) -> InstancePool:
    """Return the first pool that has capacity for a copy that reserves this.

    Raises:
        CopyFailed: InsufficientInstanceCapacity, none has.
    """
    lacking = settings().no_capacity
    fitting = [pool for pool in pools if pool.takes(wanted)]
    chosen = next((pool for pool in fitting if pool.instance_type not in lacking), None)
    if chosen is None:
        types = ", ".join(pool.instance_type for pool in fitting or pools)
        raise lack_of_capacity(settings(), f"InsufficientInstanceCapacity: no instance of {types} can be had.")
    return chosen


@dataclass(frozen=True, slots=True)
class StartTimes:
    """Waits for instances and copies."""

    clock: WaitingClock
    settings: Callable[[], ControlSettings]

    def await_instances(self, *, capacity_s: float = 0.0, meanwhile: Meanwhile | None = None) -> None:
        """Return when new instances run and have their image.

        Raises:
            CopyFailed: There was no capacity within that time.
        """
        since_s = self.clock.now_s()
        while self.settings().capacity_pending:
            if capacity_s and self.clock.now_s() - since_s > capacity_s:
                raise lack_of_capacity(
                    self.settings(), f"InsufficientInstanceCapacity: no instance within {capacity_s:g} s."
                )
            if meanwhile is None:
                time.sleep(PENDING_POLL_S)
            else:
                meanwhile()
                self.clock.wait(LOOK_S)
        self._wait(self.settings().start_s, meanwhile)

    def await_copies(self, spec: ContainerSpec, meanwhile: Meanwhile | None = None) -> None:
        """Return when copies have their model and answer the health check.

        Raises:
            CopyFailed: One of the two timeouts is over.
        """
        settings = self.settings()
        late = "Model data download timed out: it took more than ModelDataDownloadTimeoutInSeconds ({} s)."
        self._within(settings.download_s, spec.download_limit_s, late, meanwhile)
        late = "The primary container did not pass the ping health check within {} s."
        self._within(settings.startup_s, spec.startup_limit_s, late, meanwhile)

    def _within(self, seconds: float, limit_s: int | None, message: str, meanwhile: Meanwhile | None) -> None:
        if limit_s is not None and seconds > limit_s:
            self._wait(limit_s, meanwhile)
            raise CopyFailed(message.format(limit_s))
        self._wait(seconds, meanwhile)

    def _wait(self, seconds: float, meanwhile: Meanwhile | None) -> None:
        if meanwhile is None:
            if seconds:
                self.clock.wait(seconds)
            return
        end_s = self.clock.now_s() + seconds
        while (left_s := end_s - self.clock.now_s()) > 0:
            meanwhile()
            self.clock.wait(min(LOOK_S, left_s))


def lack_of_capacity(settings: ControlSettings, usual: str) -> CopyFailed:
    """Return the failure of a lack of capacity, in the words of `no_capacity_reason` where that is set."""
    return CopyFailed(settings.no_capacity_reason or usual)
