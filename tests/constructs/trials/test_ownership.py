from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_base.bounds import LONGEST_ORDER_S
from seatrial_cdk.trials.runtime.ownership import (
    CANCELLED,
    MOST_WRITES,
    Owner,
    Ownership,
    first_seen_s,
    read_owner,
    take_if_idle,
    take_ownership,
)
from seatrial_cdk.trials.runtime.store import UnavailableError

if TYPE_CHECKING:
    from tests.constructs.conftest import DictStore

ENDPOINT = "dev-chat"


def take(store: DictStore, request_id: str, now_s: float) -> Owner:
    return take_ownership(store, ENDPOINT, request_id, document=f"{request_id}.json", now_s=now_s)


def test_the_first_request_owns_the_endpoint(store: DictStore) -> None:
    owner = Owner(request_id="create", seen_at_s=100.0, document="create.json")
    assert take(store, "create", 100.0) == owner
    assert read_owner(store, ENDPOINT) == owner


def test_the_next_request_takes_it_and_knows_whose_trial_it_stopped(store: DictStore) -> None:
    take(store, "update", 100.0)
    owner = take(store, "rollback", 130.0)
    assert (owner.request_id, owner.former, owner.former_request) == ("rollback", "update.json", "update")


def test_a_trial_that_was_stopped_is_known_through_a_request_without_one(store: DictStore) -> None:
    take(store, "update", 100.0)
    take_ownership(store, ENDPOINT, "rollback", document="", now_s=110.0)
    owner = take(store, "again", 120.0)
    assert (owner.former, owner.former_request) == ("update.json", "update")


def test_a_request_delivered_twice_changes_nothing(store: DictStore) -> None:
    first = take(store, "update", 100.0)
    assert take(store, "update", 901.0) == first


def test_a_late_delivery_never_takes_the_endpoint_back(store: DictStore) -> None:
    take(store, "update", 100.0)
    rollback = take(store, "rollback", 130.0)
    assert take(store, "update", 140.0) == rollback
    assert read_owner(store, ENDPOINT) == rollback


def test_a_delivery_whose_first_attempt_ended_before_it_took_the_endpoint_takes_it(store: DictStore) -> None:
    take(store, "create", 90.0)
    store.write("runs/dev-chat/update/seen.json", '{"at_s": 100.0}')
    owner = take(store, "update", 105.0)
    assert (owner.request_id, owner.seen_at_s) == ("update", 100.0)


def test_of_two_requests_at_the_same_moment_the_later_one_wins_whoever_writes_first(
    store: DictStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The delete is written between the late update's read and its write: S3 refuses that write."""
    take(store, "create", 90.0)
    read = store.read_versioned
    once = ["delete"]

    def overtaken(key: str) -> object:
        found = read(key)
        if once:
            take(store, once.pop(), 200.0)
        return found

    monkeypatch.setattr(store, "read_versioned", overtaken)
    assert take(store, "update", 100.0).request_id == "delete"


def test_a_writer_that_never_comes_through_gives_up(store: DictStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "replace", lambda *_: False)
    take(store, "create", 90.0)
    with pytest.raises(UnavailableError, match=f"{MOST_WRITES} concurrent writes"):
        take(store, "update", 100.0)


def test_a_writer_that_waits_for_idleness_gives_up_too(store: DictStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "create", lambda *_: False)
    wanted = Owner(request_id="scheduled", seen_at_s=100.0, document="scheduled.json")
    with pytest.raises(UnavailableError, match=f"{MOST_WRITES} concurrent writes"):
        take_if_idle(store, ENDPOINT, wanted, lambda _: False)


def test_endpoints_have_owners_of_their_own(store: DictStore) -> None:
    take(store, "update", 100.0)
    take_ownership(store, "dev-chat-2", "delete", document="", now_s=101.0)
    owner = read_owner(store, ENDPOINT)
    assert owner is not None
    assert owner.request_id == "update"


@pytest.mark.parametrize("text", ["{", '{"request": "of another release"}', "[]"])
def test_what_another_release_wrote_is_nobodys(store: DictStore, text: str) -> None:
    store.write("state/dev-chat/owner.json", text)
    assert read_owner(store, ENDPOINT) is None


def test_the_owner_that_an_older_release_wrote_stays_until_a_later_request(store: DictStore) -> None:
    take(store, "update", 100.0)
    store.texts["runs/dev-chat/owner.json"] = store.texts.pop("state/dev-chat/owner.json")
    found = read_owner(store, ENDPOINT)
    assert found is not None
    assert found.request_id == "update"
    assert take(store, "create", 90.0).request_id == "update", "it came before"
    later = take(store, "delete", 101.0)
    assert (later.request_id, later.former_request) == ("delete", "update")
    assert read_owner(store, ENDPOINT) == later


def test_a_former_trial_whose_document_has_expired_by_now_is_not_waited_for(store: DictStore) -> None:
    take(store, "update", 100.0)
    later = take(store, "delete", 100.0 + LONGEST_ORDER_S)
    assert (later.former, later.former_request) == ("", "")


def test_the_owner_is_looked_at_every_10_s(store: DictStore) -> None:
    now_s = [100.0]
    take(store, "update", 100.0)
    ownership = Ownership(store=store, endpoint_name=ENDPOINT, request_id="update", now_s=lambda: now_s[0])
    assert ownership.should_stop() is None
    take(store, "delete", 101.0)
    told = []
    for now_s[0] in (105.0, 109.0, 110.0):
        told.append(ownership.should_stop())
    assert told == [None, None, CANCELLED]
    assert not ownership.forgotten


def test_documents_that_were_removed_stop_the_trial_too(store: DictStore) -> None:
    ownership = Ownership(store=store, endpoint_name=ENDPOINT, request_id="update", now_s=lambda: 0.0)
    assert ownership.check() == CANCELLED
    assert ownership.forgotten


def test_a_note_that_was_removed_meanwhile_says_now(store: DictStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "create", lambda _key, _text: False)
    assert first_seen_s(store, ENDPOINT, "create", 100.0) == 100.0
