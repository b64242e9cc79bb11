from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pytest

from seatrial_cdk.smoke_benchmark.runtime.on_event import respond

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.result import TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import CustomResourceEvent, TrialOrder
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore

NOW_S = 1_763_690_000.0
ROLLBACKS = ["UPDATE_ROLLBACK_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"]


@dataclass
class Stack:
    status: str
    orders: list[TrialOrder] = field(default_factory=list)

    def stack_status(self, stack_id: str) -> str:
        assert stack_id.startswith("arn:aws:cloudformation:")
        return self.status

    def start_runner(self, order: TrialOrder) -> None:
        self.orders.append(order)


def test_create_starts_a_trial_and_returns(create: CustomResourceEvent, store: TrialStore) -> None:
    stack = Stack("CREATE_IN_PROGRESS")
    answer = respond(create, store, stack, now_s=NOW_S)
    assert answer == {"PhysicalResourceId": "smoke-benchmark-dev-chat", "StartedAt": NOW_S}
    assert stack.orders == [{"RequestId": "request-1", "ResourceProperties": create["ResourceProperties"]}]


def test_a_changed_plan_starts_a_trial(update: CustomResourceEvent, store: TrialStore) -> None:
    stack = Stack("UPDATE_IN_PROGRESS")
    answer = respond(update, store, stack, now_s=NOW_S)
    assert answer == {"PhysicalResourceId": "smoke-benchmark-dev-chat", "StartedAt": NOW_S}
    assert [order["RequestId"] for order in stack.orders] == ["request-1"]


@pytest.mark.parametrize("status", ["UPDATE_IN_PROGRESS", *ROLLBACKS])
def test_an_unchanged_plan_is_answered_from_its_last_result(
    update: CustomResourceEvent,
    store: TrialStore,
    missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
    verified: dict[str, str],
    status: str,
) -> None:
    update["OldResourceProperties"] = update["ResourceProperties"]
    store.write("latest/dev-chat/b.json", missed("fail").to_json())
    stack = Stack(status)
    uri = "s3://results/latest/dev-chat/b.json"
    assert respond(update, store, stack, now_s=NOW_S) == {
        "PhysicalResourceId": "smoke-benchmark-dev-chat",
        "Data": {**verified, "Verdict": "fail", "Verified": "false", "ResultUri": uri},
    }
    assert stack.orders == []


@pytest.mark.parametrize("status", ROLLBACKS)
def test_a_rollback_goes_back_to_the_passing_result(
    update: CustomResourceEvent, store: TrialStore, passed: TrialResult, verified: dict[str, str], status: str
) -> None:
    store.write("passed/dev-chat/b.json", passed.to_json())
    stack = Stack(status)
    assert respond(update, store, stack, now_s=NOW_S) == {
        "PhysicalResourceId": "smoke-benchmark-dev-chat",
        "Data": {**verified, "ResultUri": "s3://results/passed/dev-chat/b.json"},
    }
    assert stack.orders == []


@pytest.mark.parametrize("status", ROLLBACKS)
def test_a_rollback_without_a_passing_result_goes_back_unverified(
    update: CustomResourceEvent, store: TrialStore, passed: TrialResult, unverified: dict[str, str], status: str
) -> None:
    store.write("latest/dev-chat/b.json", passed.to_json())
    stack = Stack(status)
    assert respond(update, store, stack, now_s=NOW_S) == {
        "PhysicalResourceId": "smoke-benchmark-dev-chat",
        "Data": unverified,
    }
    assert stack.orders == []


def test_a_result_of_another_version_never_blocks_a_rollback(
    update: CustomResourceEvent, store: TrialStore, unverified: dict[str, str]
) -> None:
    store.write("passed/dev-chat/b.json", '{"schema_version": "0"}')
    answer = respond(update, store, Stack("UPDATE_ROLLBACK_IN_PROGRESS"), now_s=NOW_S)
    assert answer["Data"] == {**unverified, "ResultUri": "s3://results/passed/dev-chat/b.json"}


@pytest.mark.parametrize("broken", [{}, {"EndpointName": "dev-chat"}, {"BudgetSeconds": "long"}])
def test_delete_succeeds_whatever_the_properties(
    create: CustomResourceEvent, store: TrialStore, broken: dict[str, str]
) -> None:
    deletion: CustomResourceEvent = {
        **create,
        "RequestType": "Delete",
        "PhysicalResourceId": "smoke-benchmark-dev-chat",
        "ResourceProperties": broken,
    }
    stack = Stack("DELETE_IN_PROGRESS")
    assert respond(deletion, store, stack, now_s=NOW_S) == {"PhysicalResourceId": "smoke-benchmark-dev-chat"}
    assert stack.orders == []


def test_a_missing_property_fails_the_creation_by_its_name(create: CustomResourceEvent, store: TrialStore) -> None:
    del create["ResourceProperties"]["ModelName"]
    with pytest.raises(KeyError, match="ModelName"):
        respond(create, store, Stack("CREATE_IN_PROGRESS"), now_s=NOW_S)
