"""What `is_complete` does while there is no document: 0 s is when the trial's present run was ordered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialProperties
from seatrial_cdk.smoke_benchmark.runtime.next_run import GOES_ON, NextStep, keep_going
from seatrial_cdk.smoke_benchmark.runtime.turn import Turn, read_turn, write_turn

if TYPE_CHECKING:
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import CustomResourceEvent
    from tests.constructs.conftest import DictStore

ORDERED_S = 1000.0


def turn(store: DictStore, *, request_id: str = "request-1", run: int = 1, restarts: int = 0) -> None:
    present = Turn(
        request_id=request_id,
        seen_at_s=900.0,
        document="trials/dev-chat/b/request-1.json",
        run=run,
        run_at_s=ORDERED_S,
        restarts=restarts,
    )
    write_turn(store, "dev-chat", present)


def lease(store: DictStore, alive_at_s: float, *, run: int = 1, paused: bool = False) -> None:
    text = json.dumps({"alive_at_s": alive_at_s, "paused": paused})
    store.write(f"runs/dev-chat/request-1/run-{run}.json", text)


def step(event: CustomResourceEvent, store: DictStore, *, after_s: float) -> NextStep:
    properties = TrialProperties.of(event["ResourceProperties"])
    return keep_going(event, properties, store, now_s=ORDERED_S + after_s)


def test_a_run_has_90_s_to_begin(create: CustomResourceEvent, store: DictStore) -> None:
    turn(store)
    assert step(create, store, after_s=90.0) == GOES_ON
    assert step(create, store, after_s=91.0) == NextStep(
        order={
            "RequestId": "request-1",
            "ResourceProperties": create["ResourceProperties"],
            "StartedAt": 900.0,
            "Run": 2,
        },
        because="the one before gave no sign of life for 91 s",
    )


def test_a_run_is_dead_after_180_s_without_a_sign_of_life(create: CustomResourceEvent, store: DictStore) -> None:
    turn(store)
    lease(store, ORDERED_S + 500.0)
    assert step(create, store, after_s=680.0) == GOES_ON
    following = step(create, store, after_s=681.0)
    assert following.order is not None
    assert (following.order["Run"], following.because) == (2, "the one before gave no sign of life for 181 s")


def test_the_next_run_is_noted_before_it_is_started(create: CustomResourceEvent, store: DictStore) -> None:
    turn(store)
    lease(store, ORDERED_S)
    step(create, store, after_s=181.0)
    noted = read_turn(store, "dev-chat")
    assert noted is not None
    assert (noted.run, noted.run_at_s, noted.restarts) == (2, ORDERED_S + 181.0, 1)
    assert step(create, store, after_s=182.0) == GOES_ON


def test_after_a_pause_the_next_run_follows_at_once_and_is_no_restart(
    create: CustomResourceEvent, store: DictStore
) -> None:
    turn(store, run=3, restarts=2)
    lease(store, ORDERED_S + 10.0, run=3, paused=True)
    following = step(create, store, after_s=11.0)
    assert following.order is not None
    assert (following.order["Run"], following.because) == (4, "the one before has paused")
    noted = read_turn(store, "dev-chat")
    assert noted is not None
    assert noted.restarts == 2


@pytest.mark.parametrize(("restarts", "goes_on"), [(0, True), (1, True), (2, False)])
def test_a_trial_is_started_again_twice(
    create: CustomResourceEvent, store: DictStore, restarts: int, *, goes_on: bool
) -> None:
    turn(store, run=5, restarts=restarts)
    following = step(create, store, after_s=1000.0)
    assert (following.order is not None) is goes_on
    if not goes_on:
        assert following.because == "its function died 3 times, last in run 5"


def test_a_trial_that_never_gets_further_ends(create: CustomResourceEvent, store: DictStore) -> None:
    turn(store, run=12)
    lease(store, ORDERED_S, run=12, paused=True)
    assert step(create, store, after_s=1.0) == NextStep(
        because="12 runs did not end it: its levels are longer than one function may run"
    )


@pytest.mark.parametrize("other", ["request-2", None])
def test_a_trial_that_no_longer_has_the_turn_is_not_started_again(
    create: CustomResourceEvent, store: DictStore, other: str | None
) -> None:
    if other:
        turn(store, request_id=other)
    assert step(create, store, after_s=1000.0) == NextStep(
        because="CloudFormation made another request before it ended"
    )
