"""Packing of several models: what must hold for all, and a few that are counted by hand."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.deployment.packing import (
    ModelCopies,
    Reservable,
    copies_of,
    misfits,
    pack,
    place_guests,
    reservable,
    smallest_type,
)
from seatrial_base.catalog.instances import INSTANCES, find_instance
from tests.sample_plan import sample_plan

if TYPE_CHECKING:
    from random import Random

ROOM = Reservable(accelerators=8, cpu_cores=48.0, memory_mib=24_576)
SIZES = st.builds(
    Reservable,
    accelerators=st.integers(1, 8),
    cpu_cores=st.floats(0.25, 48.0),
    memory_mib=st.integers(128, 24_576),
)
MODELS = st.lists(SIZES, max_size=6).flatmap(
    lambda sizes: st.tuples(
        *(
            st.builds(
                ModelCopies,
                name=st.just(f"model{index}"),
                size=st.just(size),
                planned=st.integers(1, 4),
                most=st.integers(4, 6),
                beside=st.integers(0, 6),
            )
            for index, size in enumerate(sizes)
        )
    )
)


def one(name: str, accelerators: int, planned: int = 1, most: int = 1, beside: int = 0) -> ModelCopies:
    size = Reservable(accelerators=accelerators, cpu_cores=1.0, memory_mib=1024)
    return ModelCopies(name=name, size=size, planned=planned, most=most, beside=beside)


@given(MODELS)
def test_every_copy_is_placed_once_and_no_instance_holds_more_than_it_has(models: tuple[ModelCopies, ...]) -> None:
    sizes = {model.name: model.size for model in models}
    placed = place_guests([(model, model.most) for model in models], ROOM)
    assert Counter(name for names in placed for name in names) == {model.name: model.most for model in models}
    for names in placed:
        assert sum(sizes[name].accelerators for name in names) <= ROOM.accelerators
        assert sum(sizes[name].cpu_cores for name in names) <= ROOM.cpu_cores + 1e-6
        assert sum(sizes[name].memory_mib for name in names) <= ROOM.memory_mib


@given(MODELS, st.randoms())
def test_the_order_of_models_changes_nothing(models: tuple[ModelCopies, ...], random: Random) -> None:
    shuffled = random.sample(models, len(models))
    assert pack(shuffled, ROOM) == pack(models, ROOM)


@given(SIZES, st.integers(0, 8), st.floats(0, 100), st.integers(0, 100_000))
def test_more_capacity_never_refuses_what_less_took(size: Reservable, more: int, cores: float, memory: int) -> None:
    model = ModelCopies(name="a", size=size, planned=1, most=1, beside=0)
    larger = Reservable(
        accelerators=ROOM.accelerators + more, cpu_cores=ROOM.cpu_cores + cores, memory_mib=ROOM.memory_mib + memory
    )
    assert misfits([model], ROOM) == misfits([model], larger) == {}


@given(MODELS)
def test_an_update_and_the_most_copies_need_no_fewer_instances(models: tuple[ModelCopies, ...]) -> None:
    packed = pack(models, ROOM)
    assert packed.max_instances >= max(len(packed.most), len(packed.updating), packed.instance_count)


def test_small_models_fill_what_large_ones_leave() -> None:
    packed = pack([one("small", 1, 2, 4), one("large", 6)], ROOM)
    assert packed.planned == (("large", "small", "small"),)
    assert packed.most == (("large", "small", "small"), ("small", "small"))
    assert (packed.instance_count, packed.max_instances) == (1, 2)


def test_an_update_needs_room_for_old_and_new_copies() -> None:
    packed = pack([one("a", 4, 1, 1, beside=1), one("b", 4, 1, 1, beside=1)], ROOM)
    assert (packed.instance_count, packed.max_instances) == (1, 2)


def test_what_does_not_fit_is_told_per_resource_with_the_type_that_works() -> None:
    instance = find_instance("ml.g5.2xlarge")
    assert instance is not None
    size = Reservable(accelerators=4, cpu_cores=9.0, memory_mib=4096)
    model = ModelCopies(name="a", size=size, planned=1, most=1, beside=0)
    assert misfits([model], reservable(instance)) == {
        "a": ("4 accelerators of 1", "9 vCPUs of 4", "4,096 MiB of host memory of 2,048")
    }
    assert smallest_type([model], instance, INSTANCES.rows) == "ml.g5.12xlarge"
    with pytest.raises(ValueError, match="does not fit"):
        pack([model], reservable(instance))


def test_what_the_planner_reserves_for_a_copy_fits_on_every_instance_type_of_its_own() -> None:
    """A copy of the smallest host memory fits on each type: the planner's share and the packing's agree."""
    for instance in INSTANCES.rows:
        smallest = Reservable(accelerators=1, cpu_cores=0.25, memory_mib=1024)
        assert reservable(instance).holds(smallest), instance.instance_type


def test_a_plan_with_one_copy_is_updated_beside_itself() -> None:
    copies = copies_of(sample_plan(copies_replaced_at_once=None, max_copies=2))
    assert (copies.most, copies.beside) == (2, 2)
