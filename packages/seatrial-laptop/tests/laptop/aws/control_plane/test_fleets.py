from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from seatrial_laptop.aws.control_plane.fleets import (
    NO_HARDWARE,
    Fleet,
    Fleets,
    InstanceRules,
    NoRoom,
    Resources,
    instance_rules,
    needed_resources,
)
from seatrial_laptop.aws.faults import ControlSettings
from seatrial_laptop.aws.runtime.running_copies import CopyFailed


@dataclass
class HandClock:
    """Virtual time that passes when somebody waits for it."""

    s: float = 0.0
    waited: list[float] = field(default_factory=list)

    def now_s(self) -> float:
        return self.s

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.s += seconds


def fleet(
    clock: HandClock, *, accelerators: int | None = 4, most: int = 3, step: int | None = None, **settings: object
) -> Fleet:
    rules = InstanceRules(
        instance_type="ml.g5.12xlarge",
        accelerators=accelerators,
        initial=1,
        least=1,
        most=most,
        idle_s=600.0,
        released_at_once=step,
    )
    made = Fleet(rules, clock, lambda: ControlSettings.model_validate(settings))
    made.grow(1)
    return made


def counts(one: Fleet) -> tuple[int, int]:
    return one.current, one.desired


def test_copies_share_instances_by_their_accelerators() -> None:
    one = fleet(HandClock())
    first = one.reserve("a", Resources(3), 1)
    one.reserve("b", Resources(1), 1)
    assert counts(one) == (1, 1)
    one.reserve("b", Resources(2), 2)
    assert counts(one) == (2, 2)
    first[0].release()
    first[0].release()
    one.reserve("c", Resources(3), 1)
    assert counts(one) == (2, 2)


def test_what_does_not_fit_is_refused_and_nothing_is_kept() -> None:
    one = fleet(HandClock(), most=2)
    one.reserve("a", Resources(4), 1)
    lack = (
        "InsufficientInstanceCapacity: 3 copies of a need 3 instances of ml.g5.12xlarge with the endpoint's other "
        "copies, and its variant has at most 2."
    )
    with pytest.raises(NoRoom, match=re.escape(lack)):
        one.reserve("a", Resources(4), 2)
    assert counts(one) == (1, 1)
    one.reserve("a", Resources(4), 1)
    with pytest.raises(CopyFailed, match=re.escape(NO_HARDWARE)):
        one.reserve("b", Resources(8), 1)
    assert counts(one) == (2, 2)


def test_a_limit_of_capacity_holds_for_new_instances_only() -> None:
    clock = HandClock()
    one = fleet(clock, capacity_limit=1)
    with pytest.raises(CopyFailed, match="its variant has at most 1"):
        one.reserve("a", Resources(4), 2)
    one.reserve("a", Resources(4), 1)
    with pytest.raises(
        CopyFailed, match=r"InsufficientInstanceCapacity: 1 instances of ml\.g5\.12xlarge were asked for"
    ):
        fleet(clock, capacity_limit=0)


def test_an_instance_takes_its_time_to_start() -> None:
    clock = HandClock()
    one = fleet(clock, instance_start_s=240.0)
    one.reserve("a", Resources(4), 1)
    assert clock.waited == [240.0]
    one.reserve("a", Resources(4), 2)
    assert clock.waited == [240.0, 240.0]
    assert counts(one) == (3, 3)


def test_idle_instances_are_released_after_their_time_down_to_the_least() -> None:
    clock = HandClock()
    one = fleet(clock)
    seats = one.reserve("a", Resources(4), 3)
    clock.s = 1_000.0
    one.release_idle(clock.s)
    assert counts(one) == (3, 3)
    for seat in seats:
        seat.release()
    one.release_idle(1_599.0)
    assert counts(one) == (3, 3)
    one.release_idle(1_600.0)
    assert counts(one) == (1, 1)
    one.release_idle(1e9)
    assert counts(one) == (1, 1)


def test_a_step_size_bounds_each_release() -> None:
    clock = HandClock()
    one = fleet(clock, step=1)
    for seat in one.reserve("a", Resources(4), 3):
        seat.release()
    one.release_idle(600.0)
    assert counts(one) == (2, 2)
    one.release_idle(1_199.0)
    assert counts(one) == (2, 2)
    one.release_idle(1_200.0)
    assert counts(one) == (1, 1)


def test_an_unknown_type_takes_any_number() -> None:
    one = fleet(HandClock(), accelerators=None, most=1)
    one.reserve("a", Resources(8), 20)
    assert counts(one) == (1, 1)


def test_other_rules_place_the_copies_anew_or_change_nothing() -> None:
    one = fleet(HandClock())
    one.reserve("a", Resources(2), 4)
    assert counts(one) == (2, 2)
    small = InstanceRules(instance_type="ml.g5.2xlarge", accelerators=1, initial=1, least=1, most=9)
    with pytest.raises(CopyFailed, match=re.escape(NO_HARDWARE)):
        one.change(small, retained=True)
    assert (counts(one), one.rules.instance_type) == ((2, 2), "ml.g5.12xlarge")
    large = InstanceRules(instance_type="ml.g5.48xlarge", accelerators=8, initial=1, least=1, most=1)
    one.change(large, retained=False)
    assert counts(one) == (1, 1)


def test_an_update_retains_the_count_when_it_is_told_to() -> None:
    clock = HandClock()
    fleets = Fleets(clock, ControlSettings)
    scaling = {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 4}
    variant: dict[str, object] = {
        "VariantName": "main",
        "InstanceType": "ml.g5.12xlarge",
        "InitialInstanceCount": 1,
        "ManagedInstanceScaling": scaling,
    }
    fleets.open("chat", variant)
    found = fleets.find("chat", "main")
    assert found is not None
    for seat in found.reserve("a", Resources(4), 3):
        seat.release()
    fleets.open("chat", variant, retained=True)
    assert counts(found) == (3, 3)
    fleets.open("chat", variant)
    assert counts(found) == (1, 1)
    fleets.release_idle(1e6)
    assert counts(found) == (0, 0)
    fleets.close("chat")
    assert fleets.find("chat", "main") is None


def test_a_variant_says_how_many_instances_it_has() -> None:
    plain = instance_rules({"InstanceType": "ml.g5.12xlarge", "InitialInstanceCount": 2})
    assert (plain.accelerators, plain.initial, plain.least, plain.most, plain.idle_s) == (4, 2, 2, 2, 1_200.0)
    scaling = {
        "Status": "ENABLED",
        "MinInstanceCount": 0,
        "MaxInstanceCount": 5,
        "ScaleInPolicy": {"Strategy": "IDLE_RELEASE", "CooldownInMinutes": 5, "MaximumStepSize": 2},
    }
    managed = instance_rules({"InstanceType": "ml.unknown", "ManagedInstanceScaling": scaling})
    assert (managed.accelerators, managed.least, managed.most) == (None, 0, 5)
    assert (managed.idle_s, managed.released_at_once) == (300.0, 2)
    needs = {
        "ComputeResourceRequirements": {
            "NumberOfAcceleratorDevicesRequired": 1.5,
            "NumberOfCpuCoresRequired": 0.5,
            "MinMemoryRequiredInMb": 1024,
        }
    }
    assert needed_resources({"Specification": needs}) == Resources(2, 0.5, 1024)
    assert needed_resources({"Specification": {}}) == Resources()


@pytest.mark.parametrize(
    ("second", "instances"),
    [
        (Resources(1, 36, 1024), 1),
        (Resources(1, 37, 1024), 2),
        (Resources(1, 1, 182_272), 1),
        (Resources(1, 1, 182_273), 2),
    ],
)
def test_virtual_cpus_and_host_memory_count_for_placement(second: Resources, instances: int) -> None:
    """Of an ml.g5.12xlarge 48 virtual CPUs and 183,296 of 196,608 MiB can be reserved."""
    one = catalog_fleet("ml.g5.12xlarge")
    one.reserve("a", Resources(1, 12, 1024), 1)
    one.reserve("b", second, 1)
    assert counts(one) == (instances, instances)


def test_a_copy_that_reserves_too_much_fails_at_once() -> None:
    """What was reported of ml.g5.xlarge (huggingface/skills, July 2026)."""
    one = catalog_fleet("ml.g5.xlarge")
    with pytest.raises(CopyFailed, match=re.escape(NO_HARDWARE)) as refused:
        one.reserve("a", Resources(1, 2, 4096), 1)
    assert not isinstance(refused.value, NoRoom)
    assert one.reserve("a", Resources(1, 2, 1024), 1)


def catalog_fleet(instance_type: str) -> Fleet:
    scaling = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 2}
    made = Fleet(
        instance_rules({"InstanceType": instance_type, "ManagedInstanceScaling": scaling}), HandClock(), ControlSettings
    )
    made.grow(1)
    return made


def test_consolidation_moves_the_copies_of_the_emptiest_instance() -> None:
    clock = HandClock()
    rules = InstanceRules(
        instance_type="ml.g5.12xlarge",
        accelerators=4,
        initial=1,
        least=1,
        most=4,
        idle_s=600.0,
        consolidates=True,
    )
    one = Fleet(rules, clock, ControlSettings)
    one.grow(1)
    big = one.reserve("a", Resources(3), 2)
    small = one.reserve("b", Resources(1), 2)
    assert one.seats() == [2, 2]
    big[0].release()
    clock.s = 100.0
    one.release_idle(clock.s)
    assert one.seats() == [1, 2]
    small[1].release()
    one.release_idle(200.0)
    assert one.seats() == [0, 2]
    one.release_idle(800.0)
    assert one.seats() == [2]
