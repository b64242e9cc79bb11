"""Whether a copy more has room: what is surely full is not tried, what is surely free waits for no instance."""

from __future__ import annotations

import pytest

from seatrial_cdk.trials.runtime.candidate import Room, room_beside
from seatrial_cdk.trials.runtime.components import VariantCapacity
from tests.constructs.conftest import SPECIFICATION, DictComponents, component


def room(instances: int, most: int, accelerators: int, used: int, needed: int) -> Room:
    return Room(instances=instances, most_instances=most, accelerators=accelerators, used=used, needed=needed)


@pytest.mark.parametrize(
    ("found", "is_full", "is_free"),
    [
        pytest.param(room(2, 2, 1, 2, 1), True, False, id="every accelerator is used"),
        pytest.param(room(2, 3, 1, 2, 1), False, False, id="an instance may be added"),
        pytest.param(room(2, 3, 1, 1, 1), False, True, id="an instance is empty"),
        pytest.param(room(1, 1, 8, 4, 4), False, True, id="half an instance is free"),
        pytest.param(room(2, 2, 8, 8, 4), False, True, id="two instances: one has four free at least"),
        pytest.param(room(2, 2, 8, 10, 4), False, False, id="three free on each, perhaps"),
        pytest.param(room(1, 1, 0, 0, 1), False, False, id="the type of the instance is not known"),
        pytest.param(room(1, 1, 4, 0, 0), False, False, id="the copy needs no accelerator"),
    ],
)
def test_accelerators_tell(found: Room, *, is_full: bool, is_free: bool) -> None:
    assert (found.is_full, found.is_free) == (is_full, is_free)


def test_every_copy_of_the_variant_counts_and_one_that_is_being_deleted_makes_room() -> None:
    components = DictComponents(
        {
            "dev-chat-model": component(specification=SPECIFICATION, current_copies=2, desired_copies=3),
            "dev-chat-guest": component("dev-chat-guest", specification=SPECIFICATION),
            "dev-chat-candidate-0": component("dev-chat-candidate-0", specification=SPECIFICATION, status="Deleting"),
            "dev-chat-adapter": component("dev-chat-adapter", specification={"BaseInferenceComponentName": "x"}),
            "dev-talk-model": component("dev-talk-model", specification=SPECIFICATION, endpoint_name="dev-talk"),
            "other": component("other", specification=SPECIFICATION),
        },
        instances=VariantCapacity(4, 5),
    )
    found = room_beside(components, component(), environment="dev", needed=1, accelerators=1)
    assert (found.instances, found.most_instances, found.used, found.leaving) == (4, 5, 5, 1)
    assert not found.is_full


def test_what_was_deleted_meanwhile_or_runs_on_another_variant_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    components = DictComponents(
        {
            "dev-chat-model": component(specification=SPECIFICATION),
            "dev-chat-other": component("dev-chat-other", specification=SPECIFICATION, variant_name="Other"),
            "dev-chat-new": component("dev-chat-new", specification=SPECIFICATION, variant_name=""),
        },
        instances=VariantCapacity(2, 2),
    )
    listed = [*components.on_endpoint("dev-chat"), "dev-chat-gone"]
    monkeypatch.setattr(components, "on_endpoint", lambda _: listed)
    found = room_beside(components, component(), environment="dev", needed=1, accelerators=1)
    assert (found.used, found.leaving, found.needed, found.accelerators) == (2, 0, 1, 1)
    assert found.is_full


def test_the_last_accelerator_is_enough_and_people_are_told_how_many_there_are() -> None:
    leaving = Room(instances=2, most_instances=2, accelerators=4, used=8, leaving=4, needed=4)
    assert (leaving.staying, leaving.is_full, leaving.is_free) == (4, False, False)
    full = Room(instances=2, most_instances=2, accelerators=4, used=5, needed=4)
    assert full.is_full
    assert full.in_words == ("2 instances at most have 8 accelerators, copies use 5 of them, and one more needs 4")
