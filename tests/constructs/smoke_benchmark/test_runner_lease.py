"""One run for one function, and none for a request that another has followed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import ALL_SUSPENDED
from seatrial_cdk.smoke_benchmark.runtime.turn import take_turn
from tests.constructs.smoke_benchmark.conftest import (
    BEFORE,
    COMPONENT,
    LATEST,
    ORDERED_S,
    PASSED,
    RELEASED,
    RUN,
    TRIAL,
    refuse,
    second_run,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.progress import TrialProgress
    from seatrial.bench.result import TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder
    from tests.constructs.conftest import DictScaling, DictStore
    from tests.constructs.smoke_benchmark.conftest import Asked, Clock, Events, ScriptedTrial


class TestOneRunForOneFunction:
    def test_an_order_that_comes_twice_is_carried_out_once(
        self, order: TrialOrder, run: Callable[..., ScriptedTrial], passed: TrialResult
    ) -> None:
        assert [len(run(order, lambda _: passed).asked) for _ in range(2)] == [1, 0]

    def test_an_order_that_comes_twice_at_the_same_moment_is_carried_out_once(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        passed: TrialResult,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        second: list[ScriptedTrial] = []

        def act(_: Asked) -> TrialResult:
            second.append(run(order, lambda _: passed))
            return passed

        run(order, act)
        assert [trial.asked for trial in second] == [[]]
        assert capsys.readouterr().out.startswith("run 1 of this trial has begun already\n")

    def test_a_function_that_was_thought_dead_leaves_everything_to_its_successor(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        store: DictStore,
        scaling: DictScaling,
        events: Events,
        passed: TrialResult,
    ) -> None:
        scaling.states[COMPONENT] = BEFORE

        def act(_: Asked) -> TrialResult:
            second_run(store, order.copy())
            return passed

        run(order, act)
        assert [store.read(key) for key in (TRIAL, LATEST, PASSED, RELEASED)] == [None] * 4
        assert scaling.states == {COMPONENT: ALL_SUSPENDED}
        assert events.details == []

    @pytest.mark.parametrize("following", ["rollback-1", "delete-1"])
    def test_the_request_that_follows_stops_the_load_within_10_s_and_the_result_never_counts(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        store: DictStore,
        scaling: DictScaling,
        events: Events,
        clock: Clock,
        passed: TrialResult,
        following: str,
    ) -> None:
        scaling.states[COMPONENT] = BEFORE
        said: list[str] = []

        def act(asked: Asked) -> TrialResult:
            clock.wait(1.0)
            take_turn(store, "dev-chat", following, document="", now_s=ORDERED_S + 20.0)
            for pause_s in (0.0, 4.0, 5.0):
                clock.wait(pause_s)
                said.append(asked.should_stop())
            return passed

        run(order, act)
        stopped = "CloudFormation went on without this trial: its request was cancelled or deleted"
        assert said == ["", "", stopped]
        documents = [store.read(key) for key in (TRIAL, LATEST, PASSED, RELEASED)]
        assert documents == [json.dumps({"error": stopped}), None, None, None]
        assert scaling.states == {COMPONENT: BEFORE}
        assert events.details == []

    def test_a_request_that_was_followed_before_its_run_began_is_not_carried_out(
        self, order: TrialOrder, run: Callable[..., ScriptedTrial], store: DictStore, passed: TrialResult
    ) -> None:
        take_turn(store, "dev-chat", "delete-1", document="", now_s=ORDERED_S + 1.0)
        assert run(order, lambda _: passed).asked == []

    def test_nothing_is_written_behind_documents_that_were_cleared_away_meanwhile(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        store: DictStore,
        clock: Clock,
        passed: TrialResult,
        progress: TrialProgress,
    ) -> None:
        def act(asked: Asked) -> TrialResult:
            store.clear("dev-chat")
            clock.wait(60.0)
            asked.on_progress(progress)
            return passed

        run(order, act)
        assert store.texts == {}

    def test_documents_that_were_cleared_away_stop_the_trial_too(
        self, order: TrialOrder, run: Callable[..., ScriptedTrial], store: DictStore, passed: TrialResult
    ) -> None:
        store.clear("dev-chat")
        assert run(order, lambda _: passed).asked == []
        assert store.texts == {}

    def test_a_run_gives_a_sign_of_life_every_30_s(
        self, order: TrialOrder, run: Callable[..., ScriptedTrial], store: DictStore, clock: Clock, passed: TrialResult
    ) -> None:
        alive: list[float] = []

        def act(_: Asked) -> TrialResult:
            for _tenth in range(7):
                clock.wait(10.0)
                alive.append(json.loads(store.read(RUN) or "")["alive_at_s"] - ORDERED_S)
            return passed

        run(order, act)
        assert alive == [5.0, 5.0, 35.0, 35.0, 35.0, 65.0, 65.0]

    def test_a_store_that_is_throttled_for_a_while_stops_nothing(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        store: DictStore,
        clock: Clock,
        passed: TrialResult,
        progress: TrialProgress,
    ) -> None:
        def act(asked: Asked) -> TrialResult:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(store, "read", refuse)
                patch.setattr(store, "write", refuse)
                clock.wait(60.0)
                assert asked.should_stop() == ""
                asked.on_progress(progress)
            return passed

        run(order, act)
        assert store.read(TRIAL) == passed.to_json()
