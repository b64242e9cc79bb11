from __future__ import annotations

from base64 import b64decode
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from seatrial_cdk.trials.runtime.order import Order
from seatrial_cdk.trials.runtime.outcome import (
    Baseline,
    baseline_of,
    keep_error,
    keep_result,
    keep_untried,
    readable_result,
)
from seatrial_load.documents.result import TrialResult
from seatrial_load.documents.seal import signed_bytes
from tests.constructs.trials.conftest import LATEST, PASSED, RELEASED, TRIAL, refuse

if TYPE_CHECKING:
    from typing import Literal

    from seatrial_cdk.trials.runtime.order import CustomResourceEvent, Manner
    from tests.constructs.trials.conftest import World

TOKEN = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ01234567"


@pytest.fixture
def order(create: CustomResourceEvent) -> Order:
    return Order(create, 1000.0)


def test_no_credential_that_an_endpoint_told_is_kept(world: World, order: Order, passed: TrialResult) -> None:
    told = replace(passed, verdict=replace(passed.verdict, because=f"denied for {TOKEN}"))
    lines = keep_result(world.store, order, told, seal=world.key.seal, bus=world.events, now_s=0.0)
    kept = {key: text for key, text in world.store.texts.items() if "denied for" in text}
    assert {TRIAL, LATEST, PASSED, RELEASED} <= kept.keys()
    assert {key.removesuffix("json") + "md" for key in (TRIAL, LATEST, PASSED, RELEASED)} <= kept.keys()
    assert [key for key, text in world.store.texts.items() if TOKEN in text] == []
    assert TOKEN not in str(world.events.details)
    assert lines
    assert "" not in lines


def test_what_is_kept_is_signed_whole(world: World, order: Order, passed: TrialResult) -> None:
    keep_result(world.store, order, passed, seal=world.key.seal, bus=world.events, now_s=0.0)
    assert world.store.texts[TRIAL] == world.store.texts[PASSED] == world.store.texts[RELEASED]
    kept = world.document(TRIAL)
    result = TrialResult.from_json(world.store.texts[TRIAL])
    assert (result.seal is not None, replace(result, seal=None)) == (True, passed)
    assert result.seal is not None
    assert result.seal.actor.endswith(":execution:seatrial-dev-trials:request-1")
    public, algorithm = world.key.private.public_key(), ec.ECDSA(hashes.SHA256())
    public.verify(b64decode(result.seal.signature), signed_bytes(dict(reversed(kept.items()))), algorithm)
    for edited in (
        {**kept, "duration_s": 61.5},
        {**kept, "seal": {**cast("dict[str, str]", kept["seal"]), "actor": "x"}},
    ):
        with pytest.raises(InvalidSignature):
            public.verify(b64decode(result.seal.signature), signed_bytes(edited), algorithm)


def test_a_trial_whose_result_cannot_be_signed_ends_all_the_same(
    world: World, order: Order, passed: TrialResult
) -> None:
    world.key.denied = True
    lines = keep_result(world.store, order, passed, seal=world.key.seal, bus=world.events, now_s=0.0)
    assert lines[-1] == "not signed: AccessDeniedException"
    assert TrialResult.from_json(world.store.texts[TRIAL]) == passed


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
    keep_result(world.store, order, result, seal=world.key.seal, bus=world.events, now_s=0.0)
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
    keep_result(world.store, replace(order, manner="verify"), result, seal=world.key.seal, bus=world.events, now_s=0.0)
    assert (world.store.texts[PASSED], world.store.texts[RELEASED]) == ("candidate", released)


@pytest.mark.parametrize(
    ("manner", "status", "kept"),
    [
        ("load", "pass", {TRIAL, LATEST, PASSED, RELEASED}),
        ("load", "fail", {TRIAL, LATEST}),
        ("candidate", "pass", {TRIAL, LATEST, PASSED}),
        ("candidate", "fail", {TRIAL, LATEST}),
        ("in_place", "pass", {TRIAL, LATEST, PASSED}),
        ("verify", "pass", {TRIAL, LATEST}),
    ],
)
def test_what_later_deployments_read_depends_on_what_was_loaded(
    world: World,
    order: Order,
    passed: TrialResult,
    manner: Manner,
    status: Literal["pass", "fail"],
    kept: set[str],
) -> None:
    """A candidate is released once it is live; a load beside users is nothing to compare later releases with."""
    result = replace(passed, verdict=replace(passed.verdict, status=status))
    keep_result(world.store, replace(order, manner=manner), result, seal=world.key.seal, bus=world.events, now_s=0.0)
    assert world.store.texts.keys() == kept | {key.removesuffix("json") + "md" for key in kept}


def test_a_verification_takes_the_place_of_nothing_that_was_measured(
    world: World, order: Order, passed: TrialResult
) -> None:
    world.store.write(LATEST, "measured")
    keep_result(world.store, replace(order, manner="verify"), passed, seal=world.key.seal, bus=world.events, now_s=0.0)
    assert (world.store.read(LATEST), world.store.read(RELEASED)) == ("measured", None)


def test_the_document_that_lets_a_deployment_go_on_is_written_last(
    world: World, order: Order, passed: TrialResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    write = world.store.write

    def noted(key: str, text: str) -> None:
        written.append(key)
        write(key, text)

    monkeypatch.setattr(world.store, "write", noted)
    keep_result(world.store, order, passed, seal=world.key.seal, bus=world.events, now_s=0.0)
    assert written[-1] == TRIAL
    assert [key for key in written if key.endswith(".json")] == [LATEST, PASSED, RELEASED, TRIAL]


def test_a_trial_and_an_error_are_announced_once(world: World, order: Order, passed: TrialResult) -> None:
    keep_result(world.store, order, passed, seal=world.key.seal, bus=world.events, now_s=0.0)
    assert len(world.events.details) == 1
    assert keep_error(world.store, order.properties, order.request_id, "SEA504: gone", bus=None) == ""
    assert len(world.events.details) == 1
    assert world.document(TRIAL) == {"error": "SEA504: gone"}
    keep_error(world.store, order.properties, order.request_id, "SEA504: gone", bus=world.events)
    assert len(world.events.details) == 2


def test_an_order_that_loads_nothing_says_so_in_its_document(world: World, order: Order) -> None:
    keep_untried(world.store, order.properties, order.request_id)
    assert world.document(TRIAL) == {"untried": True}


def test_the_baseline_is_what_is_released_under_the_name_that_stays(world: World, passed: TrialResult) -> None:
    assert baseline_of(world.store, "dev-chat") == Baseline(None, "")
    assert passed.request.expected is not None
    world.store.write(RELEASED, passed.to_json())
    assert baseline_of(world.store, "dev-chat") == Baseline(passed, f"s3://results/{PASSED}")
    existing = replace(passed, request=replace(passed.request, expected=None))
    world.store.write(RELEASED, existing.to_json())
    assert baseline_of(world.store, "dev-chat") == Baseline(existing, f"s3://results/{RELEASED}")
    world.store.write(RELEASED, '{"schema_version": "0"}')
    assert baseline_of(world.store, "dev-chat") == Baseline(None, "")


def test_a_result_that_cannot_be_read_is_none(
    world: World, passed: TrialResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.store.write(RELEASED, passed.to_json())
    assert readable_result(world.store, RELEASED) == passed
    monkeypatch.setattr(world.store, "read", refuse)
    assert readable_result(world.store, RELEASED) is None
