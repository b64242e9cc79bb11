from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import pytest

from seatrial_cdk.trial_service.runtime.is_complete import (
    MAX_REASON_CHARACTERS,
    TrialNotPassedError,
    respond,
)
from tests.constructs.trial_service.waiting import (
    BEFORE,
    DUE_S,
    KEY,
    MISSED,
    NOTE,
    PAUSE,
    REPORT,
    STARTED_S,
    URI,
    beside,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.result import TrialResult
    from seatrial_cdk.trial_service.runtime.custom_resource import CustomResourceEvent
    from seatrial_cdk.trial_service.runtime.store import TrialStore
    from tests.constructs.conftest import DictScaling


@pytest.mark.parametrize("now_s", [STARTED_S, DUE_S])
def test_no_document_yet_is_not_complete(
    started: CustomResourceEvent, store: TrialStore, scaling: DictScaling, now_s: float
) -> None:
    assert respond(started, beside(store, scaling), now_s=now_s) == {"IsComplete": False}


def test_an_overdue_trial_rolls_back(started: CustomResourceEvent, store: TrialStore, scaling: DictScaling) -> None:
    with pytest.raises(TrialNotPassedError) as raised:
        respond(started, beside(store, scaling), now_s=DUE_S + 1)
    assert str(raised.value) == (
        "The sea trial of dev-chat could not be made: no answer after 841 s, the budget was 600 s (result: unknown)"
    )


def test_a_passed_trial_returns_its_attributes(
    started: CustomResourceEvent, store: TrialStore, scaling: DictScaling, passed: TrialResult, verified: dict[str, str]
) -> None:
    store.write(KEY, passed.to_json())
    assert respond(started, beside(store, scaling), now_s=STARTED_S) == {
        "IsComplete": True,
        "Data": {**verified, "ResultUri": URI, "ReportUri": REPORT},
    }


def test_a_late_document_still_counts(
    started: CustomResourceEvent, store: TrialStore, scaling: DictScaling, passed: TrialResult
) -> None:
    store.write(KEY, passed.to_json())
    assert respond(started, beside(store, scaling), now_s=DUE_S + 1)["IsComplete"]


@pytest.mark.parametrize(("status", "heading"), [("fail", "failed"), ("inconclusive", "was inconclusive")])
def test_a_trial_not_passed_rolls_back_with_every_reason(
    started: CustomResourceEvent,
    store: TrialStore,
    scaling: DictScaling,
    missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
    status: Literal["fail", "inconclusive"],
    heading: str,
) -> None:
    store.write(KEY, missed(status).to_json())
    with pytest.raises(TrialNotPassedError) as raised:
        respond({**started, "RequestType": "Update"}, beside(store, scaling), now_s=STARTED_S)
    assert str(raised.value) == f"The sea trial of dev-chat {heading}: {MISSED} (result: {URI})"


def test_a_failed_creation_tells_its_numbers_and_names_no_result_that_its_rollback_deletes(
    started: CustomResourceEvent,
    store: TrialStore,
    scaling: DictScaling,
    missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
) -> None:
    store.write(KEY, missed("fail").to_json())
    with pytest.raises(TrialNotPassedError) as raised:
        respond(started, beside(store, scaling), now_s=STARTED_S)
    assert str(raised.value) == (
        f"The sea trial of dev-chat failed: {MISSED}"
        "; level 8 per copy: 48 of 48 requests succeeded, 250.0 tok/s, TTFT p95 812.2 ms, TPOT p95 45.5 ms"
        "; level 16 per copy: 48 of 48 requests succeeded, 410.5 tok/s, TTFT p95 812.2 ms, TPOT p95 45.5 ms"
        " (a rollback of the creation deletes the result)"
    )


@pytest.mark.parametrize("status", ["fail", "inconclusive"])
def test_mode_report_completes_whatever_the_verdict(
    started: CustomResourceEvent,
    store: TrialStore,
    scaling: DictScaling,
    missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
    verified: dict[str, str],
    status: Literal["fail", "inconclusive"],
) -> None:
    started["ResourceProperties"]["Mode"] = "report"
    store.write(KEY, missed(status).to_json())
    assert respond(started, beside(store, scaling), now_s=STARTED_S) == {
        "IsComplete": True,
        "Data": {**verified, "Verdict": status, "Verified": "false", "ResultUri": URI, "ReportUri": REPORT},
    }


def test_an_error_document_rolls_back(started: CustomResourceEvent, store: TrialStore, scaling: DictScaling) -> None:
    store.write(KEY, json.dumps({"error": "SEA502: the live endpoint config is config-1"}))
    with pytest.raises(TrialNotPassedError) as raised:
        respond({**started, "RequestType": "Update"}, beside(store, scaling), now_s=STARTED_S)
    assert str(raised.value) == (
        f"The sea trial of dev-chat could not be made: SEA502: the live endpoint config is config-1 (result: {URI})"
    )


def test_an_error_document_of_a_creation_is_not_named_either(
    started: CustomResourceEvent, store: TrialStore, scaling: DictScaling
) -> None:
    store.write(KEY, json.dumps({"error": "SEA502: the live endpoint config is config-1"}))
    with pytest.raises(TrialNotPassedError) as raised:
        respond(started, beside(store, scaling), now_s=STARTED_S)
    assert str(raised.value) == (
        "The sea trial of dev-chat could not be made: SEA502: the live endpoint config is config-1 "
        "(a rollback of the creation deletes the result)"
    )


@pytest.mark.parametrize(("document", "uri"), [('{"error": "SEA504: unreachable"}', URI), (None, "unknown")])
def test_mode_report_completes_without_a_measurement(
    started: CustomResourceEvent,
    store: TrialStore,
    scaling: DictScaling,
    unverified: dict[str, str],
    document: str | None,
    uri: str,
) -> None:
    started["ResourceProperties"]["Mode"] = "report"
    if document is not None:
        store.write(KEY, document)
    assert respond(started, beside(store, scaling), now_s=DUE_S + 1) == {
        "IsComplete": True,
        "Data": {**unverified, "Verdict": "error", "ResultUri": uri},
    }


def test_stored_attributes_need_no_waiting(
    create: CustomResourceEvent, store: TrialStore, scaling: DictScaling, unverified: dict[str, str]
) -> None:
    assert respond({**create, "Data": unverified}, beside(store, scaling), now_s=STARTED_S) == {"IsComplete": True}


def test_a_deletion_is_complete_at_once(create: CustomResourceEvent, store: TrialStore, scaling: DictScaling) -> None:
    deletion: CustomResourceEvent = {**create, "RequestType": "Delete", "ResourceProperties": {}}
    assert respond(deletion, beside(store, scaling), now_s=STARTED_S) == {"IsComplete": True}


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        (MAX_REASON_CHARACTERS, "x" * MAX_REASON_CHARACTERS),
        (MAX_REASON_CHARACTERS + 1, "x" * (MAX_REASON_CHARACTERS - 1) + "…"),
    ],
)
def test_a_long_reason_is_cut_and_never_the_result_behind_it(length: int, shown: str) -> None:
    assert str(TrialNotPassedError("x" * length, f"result: {URI}")) == f"{shown} (result: {URI})"


@pytest.mark.parametrize("document", ["passed", "error", "overdue"])
def test_whatever_the_answer_scaling_that_a_killed_runner_left_suspended_is_restored(
    started: CustomResourceEvent, store: TrialStore, scaling: DictScaling, passed: TrialResult, document: str
) -> None:
    started["ResourceProperties"]["Mode"] = "report"
    store.write(PAUSE, NOTE)
    if document != "overdue":
        store.write(KEY, passed.to_json() if document == "passed" else '{"error": "killed"}')
    for _ in range(2):
        assert respond(started, beside(store, scaling), now_s=DUE_S + 1)["IsComplete"]
    assert scaling.states == {"dev-chat-model": BEFORE}


def test_scaling_is_restored_before_a_failed_trial_rolls_back(
    started: CustomResourceEvent, store: TrialStore, scaling: DictScaling
) -> None:
    store.write(PAUSE, NOTE)
    with pytest.raises(TrialNotPassedError):
        respond(started, beside(store, scaling), now_s=DUE_S + 1)
    assert scaling.states == {"dev-chat-model": BEFORE}


def test_scaling_rests_while_the_trial_runs(
    started: CustomResourceEvent, store: TrialStore, scaling: DictScaling
) -> None:
    store.write(PAUSE, NOTE)
    assert respond(started, beside(store, scaling), now_s=DUE_S) == {"IsComplete": False}
    assert scaling.calls == []


@pytest.mark.parametrize(
    "pause",
    [
        pytest.param('{"request_id": "request-1", "before": null}', id="restored"),
        pytest.param(None, id="never suspended"),
        pytest.param(json.dumps({"request_id": "request-2", "before": BEFORE}), id="suspended by another trial"),
    ],
)
def test_scaling_that_the_runner_restored_or_never_suspended_is_left_alone(
    started: CustomResourceEvent, store: TrialStore, scaling: DictScaling, passed: TrialResult, pause: str | None
) -> None:
    store.write(KEY, passed.to_json())
    if pause is not None:
        store.write(PAUSE, pause)
    assert respond(started, beside(store, scaling), now_s=STARTED_S)["IsComplete"]
    assert scaling.calls == []
