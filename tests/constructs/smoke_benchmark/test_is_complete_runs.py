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
from tests.constructs.smoke_benchmark.conftest import refuse
from tests.constructs.smoke_benchmark.waiting import (
    BEFORE,
    DUE_S,
    KEY,
    NOTE,
    PAUSE,
    REPORT,
    STARTED_S,
    URI,
    Starter,
    beside,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.result import TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import CustomResourceEvent
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore
    from tests.constructs.conftest import DictScaling, DictStore


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


class TestACallOfAwsThatFails:
    """The framework takes an error of this function for its final answer."""

    @pytest.fixture
    def started(
        self, started: CustomResourceEvent, store: DictStore, monkeypatch: pytest.MonkeyPatch
    ) -> CustomResourceEvent:
        """Return a request whose trial was ordered before its store could be read no more."""
        monkeypatch.setattr(store, "read", refuse)
        return started

    @pytest.mark.parametrize("mode", ["rollback", "report"])
    def test_is_made_again_at_the_next_look(
        self,
        started: CustomResourceEvent,
        store: DictStore,
        scaling: DictScaling,
        capsys: pytest.CaptureFixture[str],
        mode: str,
    ) -> None:
        started["ResourceProperties"]["Mode"] = mode
        assert respond(started, beside(store, scaling), now_s=DUE_S) == {"IsComplete": False}
        assert capsys.readouterr().out == f"to be looked at again: {KEY}: SlowDown\n"

    def test_rolls_back_when_there_is_no_next_look(
        self, started: CustomResourceEvent, store: DictStore, scaling: DictScaling
    ) -> None:
        with pytest.raises(TrialNotPassedError) as raised:
            respond(started, beside(store, scaling), now_s=DUE_S + 1.0)
        assert str(raised.value) == (f"The sea trial of dev-chat could not be made: {KEY}: SlowDown (result: unknown)")

    def test_never_fails_a_deployment_that_only_reports(
        self, started: CustomResourceEvent, store: DictStore, scaling: DictScaling, unverified: dict[str, str]
    ) -> None:
        started["ResourceProperties"]["Mode"] = "report"
        assert respond(started, beside(store, scaling), now_s=DUE_S + 1.0) == {
            "IsComplete": True,
            "Data": {**unverified, "Verdict": "error"},
        }


def test_a_passed_trial_waits_until_scaling_goes_on(
    started: CustomResourceEvent,
    store: DictStore,
    scaling: DictScaling,
    passed: TrialResult,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store.write(PAUSE, NOTE)
    store.write(KEY, passed.to_json())
    with monkeypatch.context() as throttled:
        throttled.setattr(scaling, "suspend", refuse)
        assert respond(started, beside(store, scaling), now_s=STARTED_S) == {"IsComplete": False}
    assert respond(started, beside(store, scaling), now_s=STARTED_S + 20.0)["IsComplete"] is True
    assert scaling.states == {"dev-chat-model": BEFORE}
