from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_cdk.trials.runtime.order import Order
from seatrial_cdk.trials.runtime.outcome import keep_error, keep_result
from tests.constructs.trials.conftest import LATEST, PASSED, RELEASED, TRIAL

if TYPE_CHECKING:
    from typing import Literal

    from seatrial_cdk.trials.runtime.order import CustomResourceEvent
    from seatrial_load.documents.result import TrialResult
    from tests.constructs.trials.conftest import World

TOKEN = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ01234567"


@pytest.fixture
def order(create: CustomResourceEvent) -> Order:
    return Order(create, 1000.0)


def test_no_credential_that_an_endpoint_told_is_kept(world: World, order: Order, passed: TrialResult) -> None:
    told = replace(passed, verdict=replace(passed.verdict, because=f"denied for {TOKEN}"))
    lines = keep_result(world.store, order, told, bus=world.events, now_s=0.0)
    kept = {key: text for key, text in world.store.texts.items() if "denied for" in text}
    assert {TRIAL, LATEST, PASSED, RELEASED} <= kept.keys()
    assert {key.removesuffix("json") + "md" for key in (TRIAL, LATEST, PASSED, RELEASED)} <= kept.keys()
    assert [key for key, text in world.store.texts.items() if TOKEN in text] == []
    assert TOKEN not in str(world.events.details)
    assert lines


def test_no_credential_of_an_error_is_kept(world: World, order: Order) -> None:
    keep_error(world.store, order.properties, order.request_id, f"denied for {TOKEN}", bus=world.events)
    assert "denied for" in world.store.texts[TRIAL]
    assert TOKEN not in world.store.texts[TRIAL]
    assert TOKEN not in str(world.events.details)


@pytest.mark.parametrize("status", ["fail", "inconclusive"])
def test_what_was_not_passed_is_neither_kept_as_passed_nor_released(
    world: World, order: Order, passed: TrialResult, status: Literal["fail", "inconclusive"]
) -> None:
    result = replace(passed, verdict=replace(passed.verdict, status=status))
    keep_result(world.store, order, result, bus=world.events, now_s=0.0)
    assert {TRIAL, LATEST} <= world.store.texts.keys()
    assert {PASSED, RELEASED}.isdisjoint(world.store.texts)


@pytest.mark.parametrize(
    ("status", "released"), [("pass", "candidate"), ("fail", "before"), ("inconclusive", "before")]
)
def test_a_candidate_s_pass_is_released_once_it_is_verified(
    world: World, order: Order, passed: TrialResult, status: Literal["pass", "fail", "inconclusive"], released: str
) -> None:
    world.store.texts |= {PASSED: "candidate", RELEASED: "before"}
    result = replace(passed, verdict=replace(passed.verdict, status=status))
    keep_result(world.store, replace(order, manner="verify"), result, bus=world.events, now_s=0.0)
    assert (world.store.texts[PASSED], world.store.texts[RELEASED]) == ("candidate", released)
