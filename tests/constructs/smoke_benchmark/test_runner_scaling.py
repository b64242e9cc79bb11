"""The scaling of copies while a run measures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial.errors import BenchError
from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import ALL_SUSPENDED
from seatrial_cdk.smoke_benchmark.runtime.unavailable import UnavailableError
from tests.constructs.smoke_benchmark.conftest import BEFORE, COMPONENT, PAUSE, TRIAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_application_autoscaling.type_defs import SuspendedStateTypeDef

    from seatrial.bench.result import TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder
    from tests.constructs.conftest import DictScaling, DictStore
    from tests.constructs.smoke_benchmark.conftest import Asked, ScriptedTrial


class TestScaling:
    @pytest.mark.parametrize("error", [None, BenchError.of("SEA502", "another deployment came between")])
    def test_rests_while_the_trial_measures_and_is_then_as_before(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        store: DictStore,
        scaling: DictScaling,
        passed: TrialResult,
        error: Exception | None,
    ) -> None:
        scaling.states[COMPONENT] = BEFORE
        seen: list[tuple[SuspendedStateTypeDef, object]] = []

        def act(_: Asked) -> TrialResult:
            seen.append((scaling.states[COMPONENT], json.loads(store.read(PAUSE) or "")))
            if error:
                raise error
            return passed

        run(order, act)
        assert seen == [(ALL_SUSPENDED, {"request_id": "request-1", "before": BEFORE})]
        assert scaling.states == {COMPONENT: BEFORE}
        assert json.loads(store.read(PAUSE) or "")["before"] is None

    def test_of_a_component_that_nothing_scales_is_left_alone(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        store: DictStore,
        scaling: DictScaling,
        passed: TrialResult,
    ) -> None:
        run(order, lambda _: passed)
        assert (scaling.calls, store.read(PAUSE)) == ([], None)

    def test_that_cannot_be_restored_stays_written_down_and_spoils_no_result(
        self,
        order: TrialOrder,
        run: Callable[..., ScriptedTrial],
        store: DictStore,
        scaling: DictScaling,
        passed: TrialResult,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """`is_complete` restores it before it answers."""
        scaling.states[COMPONENT] = BEFORE
        suspend = scaling.suspend

        def refuse(component: str, state: SuspendedStateTypeDef) -> None:
            if state == BEFORE:
                raise UnavailableError("resuming: throttled")
            suspend(component, state)

        monkeypatch.setattr(scaling, "suspend", refuse)
        run(order, lambda _: passed)
        assert store.read(TRIAL) == passed.to_json()
        assert capsys.readouterr().out.startswith("scaling is left to is_complete: resuming: throttled\n")
        assert json.loads(store.read(PAUSE) or "")["before"] == BEFORE
