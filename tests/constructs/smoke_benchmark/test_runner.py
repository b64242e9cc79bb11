from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import pytest

from seatrial.bench.request import Expected, Target
from seatrial.errors import BenchError
from seatrial_cdk.smoke_benchmark.runtime.runner import perform
from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import ALL_SUSPENDED

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_application_autoscaling.type_defs import SuspendedStateTypeDef

    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore
    from tests.constructs.conftest import DictScaling

TRIAL, LATEST, PASSED = (
    "trials/dev-chat/b/request-1.json",
    "latest/dev-chat/b/config-2/model-2.json",
    "passed/dev-chat/b/config-2/model-2.json",
)


@pytest.fixture
def order(properties: dict[str, str]) -> TrialOrder:
    return {"RequestId": "request-1", "ResourceProperties": properties}


def test_the_trial_is_told_what_must_be_live(
    order: TrialOrder, store: TrialStore, scaling: DictScaling, passed: TrialResult
) -> None:
    asked: list[TrialRequest] = []

    def trial(request: TrialRequest) -> TrialResult:
        asked.append(request)
        return passed

    perform(order, store, scaling, trial, region="us-east-1")
    (request,) = asked
    assert request == passed.request
    assert request.target == Target(endpoint_name="dev-chat", inference_component="dev-chat-model", region="us-east-1")
    assert request.expected == Expected(endpoint_config_name="config-2", model_name="model-2")


def test_a_pass_is_kept_as_trial_latest_and_passed(
    order: TrialOrder, store: TrialStore, scaling: DictScaling, passed: TrialResult
) -> None:
    perform(order, store, scaling, lambda _: passed, region="us-east-1")
    assert [store.read(key) for key in (TRIAL, LATEST, PASSED)] == [passed.to_json()] * 3


@pytest.mark.parametrize("status", ["fail", "inconclusive"])
def test_anything_else_is_kept_as_trial_and_latest(
    order: TrialOrder,
    store: TrialStore,
    scaling: DictScaling,
    missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
    status: Literal["fail", "inconclusive"],
) -> None:
    result = missed(status)
    perform(order, store, scaling, lambda _: result, region="us-east-1")
    assert [store.read(key) for key in (TRIAL, LATEST, PASSED)] == [result.to_json(), result.to_json(), None]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (BenchError.of("SEA504", "the endpoint can't be reached"), "SEA504: the endpoint can't be reached"),
        (ZeroDivisionError("division by zero"), "division by zero"),
        (RuntimeError(), "RuntimeError()"),
    ],
)
def test_whatever_goes_wrong_is_written_down(
    order: TrialOrder, store: TrialStore, scaling: DictScaling, error: Exception, message: str
) -> None:
    def trial(_: TrialRequest) -> TrialResult:
        raise error

    perform(order, store, scaling, trial, region="us-east-1")
    documents = [store.read(key) for key in (TRIAL, LATEST, PASSED)]
    assert documents == [json.dumps({"error": message}), None, None]


def test_a_malformed_request_is_written_down(
    order: TrialOrder, store: TrialStore, scaling: DictScaling, passed: TrialResult
) -> None:
    order["ResourceProperties"]["Request"] = "{}"
    perform(order, store, scaling, lambda _: passed, region="us-east-1")
    assert "trial request: endpoint: SEA501: missing" in json.loads(store.read(TRIAL) or "")["error"].splitlines()


PAUSE, COMPONENT = "trials/dev-chat/b/request-1.scaling.json", "dev-chat-model"
BEFORE: SuspendedStateTypeDef = {
    "DynamicScalingInSuspended": True,
    "DynamicScalingOutSuspended": False,
    "ScheduledScalingSuspended": False,
}


def test_an_order_that_comes_twice_is_carried_out_once(
    order: TrialOrder, store: TrialStore, scaling: DictScaling, passed: TrialResult
) -> None:
    asked: list[TrialRequest] = []

    def trial(request: TrialRequest) -> TrialResult:
        asked.append(request)
        return passed

    for _ in range(2):
        perform(order, store, scaling, trial, region="us-east-1")
    assert len(asked) == 1


@pytest.mark.parametrize("error", [None, BenchError.of("SEA502", "another deployment came between")])
def test_scaling_rests_while_the_trial_measures_and_is_then_as_before(
    order: TrialOrder, store: TrialStore, scaling: DictScaling, passed: TrialResult, error: Exception | None
) -> None:
    scaling.states[COMPONENT] = BEFORE
    seen: list[tuple[SuspendedStateTypeDef, str | None]] = []

    def trial(_: TrialRequest) -> TrialResult:
        seen.append((scaling.states[COMPONENT], store.read(PAUSE)))
        if error:
            raise error
        return passed

    perform(order, store, scaling, trial, region="us-east-1")
    assert seen == [(ALL_SUSPENDED, json.dumps(BEFORE))]
    assert scaling.states == {COMPONENT: BEFORE}
    assert store.read(PAUSE) == "null"


def test_a_component_that_nothing_scales_is_left_alone(
    order: TrialOrder, store: TrialStore, scaling: DictScaling, passed: TrialResult
) -> None:
    perform(order, store, scaling, lambda _: passed, region="us-east-1")
    assert (scaling.calls, store.read(PAUSE)) == ([], None)


def test_scaling_that_cannot_be_restored_is_an_error_and_stays_written_down(
    order: TrialOrder, store: TrialStore, scaling: DictScaling, passed: TrialResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaling.states[COMPONENT] = BEFORE
    suspend = scaling.suspend

    def refuse(component: str, state: SuspendedStateTypeDef) -> None:
        if state == BEFORE:
            raise RuntimeError("throttled")
        suspend(component, state)

    monkeypatch.setattr(scaling, "suspend", refuse)
    perform(order, store, scaling, lambda _: passed, region="us-east-1")
    assert [store.read(key) for key in (TRIAL, PAUSE)] == ['{"error": "throttled"}', json.dumps(BEFORE)]


def test_the_log_keeps_the_evidence(
    order: TrialOrder,
    store: TrialStore,
    scaling: DictScaling,
    passed: TrialResult,
    capsys: pytest.CaptureFixture[str],
) -> None:
    perform(order, store, scaling, lambda _: passed, region="us-east-1")
    assert capsys.readouterr().out.splitlines() == [
        "verdict pass: all 1 objectives are met",
        "objective: ttft_ms p95 is within its bound",
        "level 8 per copy: 48 of 48 requests succeeded, 250.0 tok/s, TTFT p95 812.2 ms, TPOT p95 45.5 ms",
        "level 16 per copy: 48 of 48 requests succeeded, 410.5 tok/s, TTFT p95 812.2 ms, TPOT p95 45.5 ms",
        "stopped: every level was measured; live: asked",
    ]
