from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_cdk.trial_service.runtime.ownership import Turn, read_turn, take_turn, write_turn

if TYPE_CHECKING:
    from tests.constructs.conftest import DictStore

ENDPOINT = "dev-chat"


def take(store: DictStore, request_id: str, now_s: float) -> Turn:
    return take_turn(store, ENDPOINT, request_id, document=f"{request_id}.json", now_s=now_s)


def test_the_first_request_has_the_turn(store: DictStore) -> None:
    turn = Turn(request_id="create", seen_at_s=100.0, document="create.json", run=1, run_at_s=100.0, restarts=0)
    assert take(store, "create", 100.0) == turn
    assert read_turn(store, ENDPOINT) == turn


def test_the_next_request_takes_it(store: DictStore) -> None:
    take(store, "update", 100.0)
    assert take(store, "rollback", 130.0).request_id == "rollback"


def test_a_request_delivered_twice_keeps_the_run_that_it_has_come_to(store: DictStore) -> None:
    second = take(store, "update", 100.0).next_run(now_s=900.0, restart=False)
    write_turn(store, ENDPOINT, second)
    assert take(store, "update", 901.0) == second


def test_a_late_delivery_never_takes_the_turn_back(store: DictStore) -> None:
    take(store, "update", 100.0)
    rollback = take(store, "rollback", 130.0)
    assert take(store, "update", 140.0) == rollback
    assert read_turn(store, ENDPOINT) == rollback


def test_a_delivery_whose_first_attempt_ended_before_it_took_the_turn_takes_it(store: DictStore) -> None:
    take(store, "create", 90.0)
    store.write("runs/dev-chat/update/seen.json", '{"at_s": 100.0}')
    turn = take(store, "update", 105.0)
    assert (turn.request_id, turn.seen_at_s, turn.run_at_s) == ("update", 100.0, 105.0)


def test_endpoints_have_turns_of_their_own(store: DictStore) -> None:
    take(store, "update", 100.0)
    take_turn(store, "dev-chat-2", "delete", document="", now_s=101.0)
    turn = read_turn(store, ENDPOINT)
    assert turn is not None
    assert turn.request_id == "update"


@pytest.mark.parametrize("restart", [True, False])
def test_a_next_run_is_counted_and_so_is_a_restart(store: DictStore, *, restart: bool) -> None:
    following = take(store, "update", 100.0).next_run(now_s=500.0, restart=restart)
    assert (following.run, following.run_at_s, following.restarts) == (2, 500.0, int(restart))
    assert following.seen_at_s == 100.0


@pytest.mark.parametrize("text", ["{", '{"request": "of another release"}', "[]"])
def test_what_another_release_wrote_is_nobodys_turn(store: DictStore, text: str) -> None:
    store.write("runs/dev-chat/turn.json", text)
    assert read_turn(store, ENDPOINT) is None
