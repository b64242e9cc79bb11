from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from seatrial_cdk.trial_service.runtime.on_event import DirectionUnknownError, respond
from seatrial_cdk.trial_service.runtime.store import UnavailableError
from tests.constructs.trial_service.stacks_beside import NOW_S, ROLLBACKS, UNREADABLE, Stack, UnreadableStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.result import TrialResult
    from seatrial_cdk.trial_service.runtime.custom_resource import CustomResourceEvent
    from seatrial_cdk.trial_service.runtime.store import TrialStore


def uris(folder: str) -> dict[str, str]:
    key = f"s3://results/{folder}/dev-chat/b/config-2/model-2"
    return {"ResultUri": f"{key}.json", "ReportUri": f"{key}.md"}


def test_create_starts_a_trial_and_returns(create: CustomResourceEvent, store: TrialStore) -> None:
    stack = Stack("CREATE_IN_PROGRESS")
    answer = respond(create, store, stack, now_s=NOW_S)
    assert answer == {"PhysicalResourceId": "smoke-benchmark-dev-chat", "StartedAt": NOW_S}
    assert stack.orders == [
        {"RequestId": "request-1", "ResourceProperties": create["ResourceProperties"], "StartedAt": NOW_S, "Run": 1}
    ]


def test_a_changed_plan_starts_a_trial(update: CustomResourceEvent, store: TrialStore) -> None:
    stack = Stack("UPDATE_IN_PROGRESS")
    answer = respond(update, store, stack, now_s=NOW_S)
    assert answer == {"PhysicalResourceId": "smoke-benchmark-dev-chat", "StartedAt": NOW_S}
    assert [order["RequestId"] for order in stack.orders] == ["request-1"]


@pytest.mark.parametrize("name", ["PlanDigest", "EndpointConfigName", "ModelName"])
def test_whatever_is_deployed_anew_is_tried(
    update: CustomResourceEvent, store: TrialStore, passed: TrialResult, name: str
) -> None:
    update["OldResourceProperties"] = {**update["ResourceProperties"], name: "other"}
    for folder in ("latest", "passed"):
        store.write(f"{folder}/dev-chat/b/config-2/model-2.json", passed.to_json())
    stack = Stack("UPDATE_IN_PROGRESS")
    assert respond(update, store, stack, now_s=NOW_S).get("StartedAt") == NOW_S
    assert len(stack.orders) == 1


@pytest.mark.parametrize("name", ["Mode", "BudgetSeconds", "FallbackTarget"])
def test_another_way_to_try_is_no_reason_for_a_trial(update: CustomResourceEvent, store: TrialStore, name: str) -> None:
    update["OldResourceProperties"] = {**update["ResourceProperties"], name: "1"}
    stack = Stack("UPDATE_IN_PROGRESS")
    assert "StartedAt" not in respond(update, store, stack, now_s=NOW_S)
    assert stack.orders == []


@pytest.mark.parametrize("status", ["UPDATE_IN_PROGRESS", *ROLLBACKS, UNREADABLE])
def test_an_unchanged_plan_is_answered_from_its_last_result(
    update: CustomResourceEvent,
    store: TrialStore,
    missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
    verified: dict[str, str],
    status: str,
) -> None:
    update["OldResourceProperties"] = update["ResourceProperties"]
    store.write("latest/dev-chat/b/config-2/model-2.json", missed("fail").to_json())
    stack = Stack(status)
    assert respond(update, store, stack, now_s=NOW_S) == {
        "PhysicalResourceId": "smoke-benchmark-dev-chat",
        "Data": {**verified, "Verdict": "fail", "Verified": "false", **uris("latest")},
    }
    assert stack.orders == []


@pytest.mark.parametrize("status", ROLLBACKS)
def test_a_rollback_goes_back_to_the_passing_result(
    update: CustomResourceEvent, store: TrialStore, passed: TrialResult, verified: dict[str, str], status: str
) -> None:
    store.write("passed/dev-chat/b/config-2/model-2.json", passed.to_json())
    stack = Stack(status)
    assert respond(update, store, stack, now_s=NOW_S) == {
        "PhysicalResourceId": "smoke-benchmark-dev-chat",
        "Data": {**verified, **uris("passed")},
    }
    assert stack.orders == []


@pytest.mark.parametrize("status", ROLLBACKS)
def test_a_rollback_without_a_passing_result_goes_back_unverified(
    update: CustomResourceEvent, store: TrialStore, passed: TrialResult, unverified: dict[str, str], status: str
) -> None:
    store.write("latest/dev-chat/b/config-2/model-2.json", passed.to_json())
    stack = Stack(status)
    assert respond(update, store, stack, now_s=NOW_S) == {
        "PhysicalResourceId": "smoke-benchmark-dev-chat",
        "Data": unverified,
    }
    assert stack.orders == []


def test_a_result_of_another_version_never_blocks_a_rollback(
    update: CustomResourceEvent, store: TrialStore, unverified: dict[str, str]
) -> None:
    store.write("passed/dev-chat/b/config-2/model-2.json", '{"schema_version": "0"}')
    answer = respond(update, store, Stack("UPDATE_ROLLBACK_IN_PROGRESS"), now_s=NOW_S)
    assert answer["Data"] == {**unverified, "ResultUri": "s3://results/passed/dev-chat/b/config-2/model-2.json"}


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


@pytest.mark.parametrize("status", ROLLBACKS)
@pytest.mark.parametrize(("digest", "folder"), [("a", "passed"), ("b", "latest")])
def test_an_unreadable_store_never_blocks_a_rollback(
    update: CustomResourceEvent, unverified: dict[str, str], status: str, digest: str, folder: str
) -> None:
    update["OldResourceProperties"] = {**update["ResourceProperties"], "PlanDigest": digest}
    answer = respond(update, UnreadableStore(), Stack(status), now_s=NOW_S)
    uri = f"s3://results/{folder}/dev-chat/b/config-2/model-2.json"
    assert answer["Data"] == {**unverified, "ResultUri": uri}


def test_going_forward_an_unreadable_result_never_becomes_another_target(update: CustomResourceEvent) -> None:
    update["OldResourceProperties"] = update["ResourceProperties"]
    with pytest.raises(UnavailableError, match="SlowDown"):
        respond(update, UnreadableStore(), Stack("UPDATE_IN_PROGRESS"), now_s=NOW_S)


def test_without_a_status_a_configuration_that_has_passed_is_answered_without_a_trial(
    update: CustomResourceEvent, store: TrialStore, passed: TrialResult, verified: dict[str, str]
) -> None:
    key = "passed/dev-chat/b/config-2/model-2.json"
    store.write(key, passed.to_json())
    stack = Stack(UNREADABLE)
    answer = respond(update, store, stack, now_s=NOW_S)
    assert (answer["Data"], stack.orders) == ({**verified, **uris("passed")}, [])


@pytest.mark.parametrize("readable", [True, False])
def test_without_a_status_an_unproven_configuration_never_stays(
    update: CustomResourceEvent,
    store: TrialStore,
    readable: bool,  # noqa: FBT001 (a column of the table)
) -> None:
    stack = Stack(UNREADABLE)
    with pytest.raises(DirectionUnknownError) as raised:
        respond(update, store if readable else UnreadableStore(), stack, now_s=NOW_S)
    assert stack.orders == []
    assert str(raised.value) == (
        "Whether dev-chat is rolled back can't be told, and no stored trial of it was passed "
        "(reading the stack's status: throttled)"
    )


def test_without_a_status_a_trial_that_only_reports_is_made(update: CustomResourceEvent, store: TrialStore) -> None:
    update["ResourceProperties"]["Mode"] = "report"
    stack = Stack(UNREADABLE)
    assert respond(update, store, stack, now_s=NOW_S).get("StartedAt") == NOW_S
    assert len(stack.orders) == 1


@pytest.mark.parametrize(
    ("status", "left"),
    [
        ("ROLLBACK_IN_PROGRESS", ["trials/other/b/1.json"]),
        ("UPDATE_ROLLBACK_IN_PROGRESS", ["trials/other/b/1.json"]),
        ("DELETE_IN_PROGRESS", ["trials/dev-chat/b/1.json", "trials/other/b/1.json"]),
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", ["trials/dev-chat/b/1.json", "trials/other/b/1.json"]),
        (UNREADABLE, ["trials/dev-chat/b/1.json", "trials/other/b/1.json"]),
    ],
)
def test_a_creation_that_is_rolled_back_leaves_no_results_behind(
    create: CustomResourceEvent, store: TrialStore, status: str, left: list[str]
) -> None:
    for name in ("dev-chat", "other"):
        store.write(f"trials/{name}/b/1.json", "{}")
    respond({**create, "RequestType": "Delete"}, store, Stack(status), now_s=NOW_S)
    assert [key for key in ("trials/dev-chat/b/1.json", "trials/other/b/1.json") if store.read(key)] == left


def test_a_bucket_that_cannot_be_emptied_never_blocks_a_deletion(create: CustomResourceEvent) -> None:
    deletion: CustomResourceEvent = {**create, "RequestType": "Delete", "PhysicalResourceId": "id"}
    answer = respond(deletion, UnreadableStore(), Stack("ROLLBACK_IN_PROGRESS"), now_s=NOW_S)
    assert answer == {"PhysicalResourceId": "id"}
