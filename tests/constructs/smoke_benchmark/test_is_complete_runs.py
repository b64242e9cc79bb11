"""What `is_complete` does while a trial runs, and for the verdicts that may stay."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest

from seatrial_cdk.smoke_benchmark.runtime.is_complete import (
    TrialNotPassedError,
    respond,
)
from seatrial_cdk.smoke_benchmark.runtime.turn import read_turn, take_turn
from tests.constructs.smoke_benchmark.waiting import BEFORE, KEY, NOTE, PAUSE, REPORT, STARTED_S, URI, Starter, beside

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.result import TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import CustomResourceEvent
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore
    from tests.constructs.conftest import DictScaling


def test_a_paused_trial_goes_on_in_the_next_run(
    started: CustomResourceEvent, store: TrialStore, scaling: DictScaling, capsys: pytest.CaptureFixture[str]
) -> None:
    store.write("runs/dev-chat/request-1/run-1.json", '{"alive_at_s": 1300.0, "paused": true}')
    starter = Starter()
    assert respond(started, beside(store, scaling, starter), now_s=1310.0) == {"IsComplete": False}
    (order,) = starter.orders
    assert (order["RequestId"], order["StartedAt"], order["Run"]) == ("request-1", STARTED_S, 2)
    assert order["ResourceProperties"] == started["ResourceProperties"]
    assert scaling.calls == []
    assert capsys.readouterr().out == "run 2: the one before has paused\n"


def test_a_trial_that_was_started_again_twice_and_died_rolls_back(
    started: CustomResourceEvent, store: TrialStore, scaling: DictScaling
) -> None:
    store.write(PAUSE, NOTE)
    starter, now_s = Starter(), STARTED_S
    store.write("runs/dev-chat/request-1/run-1.json", json.dumps({"alive_at_s": STARTED_S, "paused": False}))
    for silence_s in (181.0, 91.0):
        now_s += silence_s
        assert respond(started, beside(store, scaling, starter), now_s=now_s) == {"IsComplete": False}
    with pytest.raises(TrialNotPassedError) as raised:
        respond(started, beside(store, scaling, starter), now_s=now_s + 91.0)
    assert str(raised.value) == (
        "The sea trial of dev-chat could not be made: its function died 3 times, last in run 3 (result: unknown)"
    )
    assert [order["Run"] for order in starter.orders] == [2, 3]
    assert scaling.states == {"dev-chat-model": BEFORE}


def test_a_trial_that_another_request_has_replaced_is_started_no_more(
    started: CustomResourceEvent, store: TrialStore, scaling: DictScaling
) -> None:
    take_turn(store, "dev-chat", "rollback-1", document="", now_s=STARTED_S + 60.0)
    starter = Starter()
    with pytest.raises(TrialNotPassedError) as raised:
        respond(started, beside(store, scaling, starter), now_s=STARTED_S + 70.0)
    assert str(raised.value) == (
        "The sea trial of dev-chat could not be made: CloudFormation made another request before it ended "
        "(result: unknown)"
    )
    assert starter.orders == []
    turn = read_turn(store, "dev-chat")
    assert turn is not None
    assert turn.request_id == "rollback-1"


def test_an_inconclusive_trial_may_be_allowed_to_stay_unverified(
    started: CustomResourceEvent,
    store: TrialStore,
    scaling: DictScaling,
    missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
    verified: dict[str, str],
) -> None:
    result = missed("inconclusive")
    lenient = replace(result.request, gate=replace(result.request.gate, on_inconclusive="pass"))
    store.write(KEY, replace(result, request=lenient).to_json())
    assert respond(started, beside(store, scaling), now_s=STARTED_S) == {
        "IsComplete": True,
        "Data": {
            **verified,
            "Verdict": "inconclusive",
            "Verified": "false",
            "ResultUri": URI,
            "ReportUri": REPORT,
        },
    }


def test_a_failed_trial_is_never_allowed_to_stay(
    started: CustomResourceEvent,
    store: TrialStore,
    scaling: DictScaling,
    missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
) -> None:
    result = missed("fail")
    lenient = replace(result.request, gate=replace(result.request.gate, on_inconclusive="pass"))
    store.write(KEY, replace(result, request=lenient).to_json())
    with pytest.raises(TrialNotPassedError, match="failed"):
        respond(started, beside(store, scaling), now_s=STARTED_S)


def test_a_result_of_another_release_ends_the_wait(
    started: CustomResourceEvent, store: TrialStore, scaling: DictScaling
) -> None:
    store.write(KEY, '{"schema_version": "0"}')
    with pytest.raises(TrialNotPassedError) as raised:
        respond(started, beside(store, scaling), now_s=STARTED_S)
    assert "could not be made: another release wrote its result: trial result: " in str(raised.value)
