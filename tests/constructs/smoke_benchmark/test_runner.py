from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import pytest

from seatrial.bench.request import Expected, Target
from seatrial.errors import BenchError
from seatrial_cdk.smoke_benchmark.runtime.runner import perform

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore

TRIAL, LATEST, PASSED = "trials/dev-chat/b/request-1.json", "latest/dev-chat/b.json", "passed/dev-chat/b.json"


@pytest.fixture
def order(properties: dict[str, str]) -> TrialOrder:
    return {"RequestId": "request-1", "ResourceProperties": properties}


def test_the_trial_is_told_what_must_be_live(order: TrialOrder, store: TrialStore, passed: TrialResult) -> None:
    asked: list[TrialRequest] = []

    def trial(request: TrialRequest) -> TrialResult:
        asked.append(request)
        return passed

    perform(order, store, trial, region="us-east-1")
    (request,) = asked
    assert request == passed.request
    assert request.target == Target(endpoint_name="dev-chat", inference_component="dev-chat-model", region="us-east-1")
    assert request.expected == Expected(endpoint_config_name="config-2", model_name="model-2")


def test_a_pass_is_kept_as_trial_latest_and_passed(order: TrialOrder, store: TrialStore, passed: TrialResult) -> None:
    perform(order, store, lambda _: passed, region="us-east-1")
    assert [store.read(key) for key in (TRIAL, LATEST, PASSED)] == [passed.to_json()] * 3


@pytest.mark.parametrize("status", ["fail", "inconclusive"])
def test_anything_else_is_kept_as_trial_and_latest(
    order: TrialOrder,
    store: TrialStore,
    missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
    status: Literal["fail", "inconclusive"],
) -> None:
    result = missed(status)
    perform(order, store, lambda _: result, region="us-east-1")
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
    order: TrialOrder, store: TrialStore, error: Exception, message: str
) -> None:
    def trial(_: TrialRequest) -> TrialResult:
        raise error

    perform(order, store, trial, region="us-east-1")
    documents = [store.read(key) for key in (TRIAL, LATEST, PASSED)]
    assert documents == [json.dumps({"error": message}), None, None]


def test_a_malformed_request_is_written_down(order: TrialOrder, store: TrialStore, passed: TrialResult) -> None:
    order["ResourceProperties"]["Request"] = "{}"
    perform(order, store, lambda _: passed, region="us-east-1")
    assert "trial request: endpoint: SEA501: missing" in json.loads(store.read(TRIAL) or "")["error"].splitlines()
