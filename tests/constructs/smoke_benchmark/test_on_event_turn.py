"""Requests that come again, too late, or after one whose trial still runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_cdk.smoke_benchmark.runtime.on_event import respond
from seatrial_cdk.smoke_benchmark.runtime.turn import read_turn, write_turn
from seatrial_cdk.smoke_benchmark.runtime.unavailable import UnavailableError
from tests.constructs.smoke_benchmark.stacks_beside import NOW_S, ROLLBACKS, Stack, UnreadableStore

if TYPE_CHECKING:
    from seatrial.bench.result import TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import CustomResourceEvent
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore


def test_a_request_delivered_again_orders_the_same_run_which_one_function_can_begin(
    create: CustomResourceEvent, store: TrialStore
) -> None:
    stack = Stack("CREATE_IN_PROGRESS")
    first = respond(create, store, stack, now_s=NOW_S)
    assert respond(create, store, stack, now_s=NOW_S + 5.0) == first
    assert [(order["StartedAt"], order["Run"]) for order in stack.orders] == [(NOW_S, 1)] * 2


def test_a_request_delivered_again_in_its_second_run_orders_nothing(
    create: CustomResourceEvent, store: TrialStore
) -> None:
    stack = Stack("CREATE_IN_PROGRESS")
    respond(create, store, stack, now_s=NOW_S)
    turn = read_turn(store, "dev-chat")
    assert turn is not None
    write_turn(store, "dev-chat", turn.next_run(now_s=NOW_S + 900.0, restart=False))
    assert respond(create, store, stack, now_s=NOW_S + 901.0).get("StartedAt") == NOW_S
    assert len(stack.orders) == 1


@pytest.mark.parametrize("status", ROLLBACKS)
def test_the_rollback_of_a_cancelled_update_takes_the_turn_from_its_trial(
    update: CustomResourceEvent, store: TrialStore, status: str
) -> None:
    respond({**update, "RequestId": "forward"}, store, Stack("UPDATE_IN_PROGRESS"), now_s=NOW_S)
    respond({**update, "RequestId": "back"}, store, Stack(status), now_s=NOW_S + 60.0)
    turn = read_turn(store, "dev-chat")
    assert turn is not None
    assert (turn.request_id, turn.document) == ("back", "")
    late = Stack("UPDATE_IN_PROGRESS")
    respond({**update, "RequestId": "forward"}, store, late, now_s=NOW_S + 61.0)
    assert late.orders == []


@pytest.mark.parametrize("status", ROLLBACKS)
def test_a_rollback_makes_what_it_goes_back_to_the_baseline_again(
    update: CustomResourceEvent, store: TrialStore, passed: TrialResult, status: str
) -> None:
    store.write("released/dev-chat/result.json", "of the update that passed before a sibling failed")
    store.write("passed/dev-chat/b/config-2/model-2.json", passed.to_json())
    respond(update, store, Stack(status), now_s=NOW_S)
    assert store.read("released/dev-chat/result.json") == passed.to_json()


def test_a_rollback_to_what_has_never_passed_leaves_the_baseline(
    update: CustomResourceEvent, store: TrialStore
) -> None:
    store.write("released/dev-chat/result.json", "{}")
    respond(update, store, Stack("UPDATE_ROLLBACK_IN_PROGRESS"), now_s=NOW_S)
    assert store.read("released/dev-chat/result.json") == "{}"


def test_a_trial_that_cannot_be_noted_is_not_started(create: CustomResourceEvent) -> None:
    stack = Stack("CREATE_IN_PROGRESS")
    with pytest.raises(UnavailableError, match="SlowDown"):
        respond(create, UnreadableStore(), stack, now_s=NOW_S)
    assert stack.orders == []


def test_another_endpoint_name_is_another_resource(update: CustomResourceEvent, store: TrialStore) -> None:
    update["ResourceProperties"]["EndpointName"] = "dev-talk"
    answer = respond(update, store, Stack("UPDATE_IN_PROGRESS"), now_s=NOW_S)
    assert answer["PhysicalResourceId"] == "smoke-benchmark-dev-talk"


def test_an_older_release_that_is_rolled_back_to_names_no_image(create: CustomResourceEvent, store: TrialStore) -> None:
    del create["ResourceProperties"]["Image"]
    assert respond(create, store, Stack("CREATE_IN_PROGRESS"), now_s=NOW_S).get("StartedAt") == NOW_S


def test_a_run_that_cannot_be_ordered_is_left_to_is_complete(
    create: CustomResourceEvent, store: TrialStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A creation that failed here would get no deletion, and its documents would keep the bucket."""

    def refuse(_: object) -> None:
        raise UnavailableError("starting the trial's runner: TooManyRequestsException")

    stack = Stack("CREATE_IN_PROGRESS")
    monkeypatch.setattr(stack, "start_runner", refuse)
    answer = respond(create, store, stack, now_s=NOW_S)
    assert answer == {"PhysicalResourceId": "smoke-benchmark-dev-chat", "StartedAt": NOW_S}
    assert capsys.readouterr().out == "run 1 is not ordered: starting the trial's runner: TooManyRequestsException\n"
