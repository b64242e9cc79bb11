"""A trial that is longer than one function may run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import ALL_SUSPENDED
from seatrial_cdk.smoke_benchmark.runtime.turn import take_turn
from tests.constructs.smoke_benchmark.conftest import BEFORE, COMPONENT, ORDERED_S, PROGRESS, RUN, TRIAL, second_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.progress import TrialProgress
    from seatrial.bench.result import TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder
    from tests.constructs.conftest import DictScaling, DictStore
    from tests.constructs.smoke_benchmark.conftest import Asked, Clock, ScriptedTrial


class TestATrialLongerThanOneFunction:
    def test_pauses_with_its_checkpoint_and_its_scaling_at_rest(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        store: DictStore,
        scaling: DictScaling,
        progress: TrialProgress,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        scaling.states[COMPONENT] = BEFORE
        run(order, lambda _: progress)
        assert store.read(TRIAL) is None
        assert store.read(PROGRESS) == progress.to_json()
        assert json.loads(store.read(RUN) or "") == {"alive_at_s": ORDERED_S + 5.0, "paused": True}
        assert scaling.states == {COMPONENT: ALL_SUSPENDED}
        assert capsys.readouterr().out == "run 1 ends with 1 levels; the next one goes on\n"

    def test_goes_on_from_its_checkpoint_and_restores_what_was_before_its_first_run(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        store: DictStore,
        scaling: DictScaling,
        clock: Clock,
        progress: TrialProgress,
        passed: TrialResult,
    ) -> None:
        scaling.states[COMPONENT] = BEFORE
        run(order, lambda _: progress)
        second_run(store, order)
        clock.now_s = ORDERED_S + 320.0
        (asked,) = run(order, lambda _: passed).asked
        assert asked.resume == replace(progress, elapsed_s=320.0), "the pause counts: copies cost all the time"
        assert store.read(TRIAL) == passed.to_json()
        assert scaling.states == {COMPONENT: BEFORE}

    def test_is_checkpointed_after_each_level(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        store: DictStore,
        progress: TrialProgress,
        passed: TrialResult,
    ) -> None:
        seen: list[str | None] = []

        def act(asked: Asked) -> TrialResult:
            asked.on_progress(progress)
            seen.append(store.read(PROGRESS))
            return passed

        run(order, act)
        assert seen == [progress.to_json()]

    @pytest.mark.parametrize("checkpoint", [None, '{"schema_version": "0"}'])
    def test_begins_anew_with_what_is_left_of_the_budget_where_a_dead_run_left_no_checkpoint(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        store: DictStore,
        clock: Clock,
        passed: TrialResult,
        checkpoint: str | None,
    ) -> None:
        second_run(store, order)
        if checkpoint:
            store.write(PROGRESS, checkpoint)
        clock.now_s = ORDERED_S + 200.0
        (asked,) = run(order, lambda _: passed).asked
        assert asked.resume is None
        assert asked.request == replace(passed.request, load=replace(passed.request.load, budget_s=400.0))

    def test_has_no_budget_left_in_the_end(
        self, order: TrialOrder, run: Callable[..., ScriptedTrial], store: DictStore, clock: Clock, passed: TrialResult
    ) -> None:
        clock.now_s = ORDERED_S + 600.0
        assert run(order, lambda _: passed).asked == []
        error = "SEA507: the budget of 600 s ended before the trial began"
        assert store.read(TRIAL) == json.dumps({"error": error})


class TestATrialThatWaits:
    """Such as for a component to wake from zero."""

    def test_waits_as_long_as_its_function_may(
        self, order: TrialOrder, run: Callable[..., ScriptedTrial], store: DictStore, clock: Clock, passed: TrialResult
    ) -> None:
        def act(asked: Asked) -> TrialResult:
            for _ in range(60):
                asked.sleep(15.0)
            return passed

        run(order, act, left_s=120.0)
        assert clock.now_s == ORDERED_S + 5.0 + 105.0
        assert json.loads(store.read(RUN) or "") == {"alive_at_s": clock.now_s, "paused": True}
        assert (store.read(PROGRESS), store.read(TRIAL)) == (None, None)

    def test_waits_no_more_when_it_is_to_stop(
        self, order: TrialOrder, run: Callable[..., ScriptedTrial], store: DictStore, clock: Clock, passed: TrialResult
    ) -> None:
        def act(asked: Asked) -> TrialResult:
            take_turn(store, "dev-chat", "delete-1", document="", now_s=ORDERED_S + 20.0)
            for _ in range(60):
                asked.sleep(15.0)
            return passed

        run(order, act)
        assert clock.now_s == ORDERED_S + 5.0 + 15.0
        assert "was cancelled or deleted" in json.loads(store.read(TRIAL) or "")["error"]
