from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_cdk.trials.runtime.outcome import Baseline, baseline_of
from seatrial_cdk.trials.runtime.store import UnavailableError

if TYPE_CHECKING:
    from seatrial_load.documents.result import TrialResult
    from tests.constructs.conftest import DictStore

RELEASED = "released/dev-chat/result.json"


def test_the_baseline_is_what_is_released_whatever_its_plan(store: DictStore, passed: TrialResult) -> None:
    before = replace(passed, request=replace(passed.request, plan_digest="a"))
    store.write(RELEASED, before.to_json())
    uri = "s3://results/passed/dev-chat/a/config-2/model-2.json"
    assert baseline_of(store, "dev-chat") == Baseline(before, uri)


def test_an_unnamed_deployment_is_found_where_it_was_released(store: DictStore, passed: TrialResult) -> None:
    before = replace(passed, request=replace(passed.request, expected=None))
    store.write(RELEASED, before.to_json())
    assert baseline_of(store, "dev-chat").uri == f"s3://results/{RELEASED}"


@pytest.mark.parametrize("text", [None, '{"schema_version": "1"}', "{"])
def test_a_first_release_has_none_and_one_of_another_schema_is_none(store: DictStore, text: str | None) -> None:
    if text is not None:
        store.write(RELEASED, text)
    assert baseline_of(store, "dev-chat") == Baseline(None, "")


def test_an_unreadable_store_is_no_reason_to_make_no_trial(store: DictStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(key: str) -> str:
        raise UnavailableError(f"reading {key}: SlowDown")

    monkeypatch.setattr(store, "read", refuse)
    assert baseline_of(store, "dev-chat") == Baseline(None, "")
