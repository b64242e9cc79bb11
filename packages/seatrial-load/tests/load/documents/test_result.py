from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial_base.errors import BenchError
from seatrial_load.documents.request import Objective
from seatrial_load.documents.result import Check, Knee, LiveProof, TrialResult, Verdict
from seatrial_load.documents.stop import Stop, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import LevelResult

TTFT = Objective(metric="ttft_ms", statistic="p95", bound=500.0, sense="at_most")


@pytest.fixture
def result(trial_request: Callable[..., TrialRequest], level: Callable[..., LevelResult]) -> TrialResult:
    bad = level(
        2, succeeded=0, ttft_ms=None, output_tok_s=None, errors={"throttled": 8}, first_errors=("throttled: ü",)
    )
    return TrialResult(
        schema_version="3",
        request=trial_request(),
        started_at="2026-11-21T01:02:03+00:00",
        duration_s=12.5,
        engine_note="",
        live=LiveProof(proven=False, endpoint_config_name=None, model_name=None, copy_count=None, because="not asked"),
        levels=(level(1), bad),
        knees=(
            Knee(detector="slo", concurrency=1, because="held"),
            Knee(detector="kneedle", concurrency=None, because="few"),
        ),
        verdict=Verdict(
            status="inconclusive", because="why", checks=(Check(objective=TTFT, measured=None, met=None, sentence="s"),)
        ),
        target_concurrency_per_copy=0.75,
        target_detector="slo",
        target_because="slo knee",
        usd_per_million_output_tokens=None,
        stopped=Stop(reason=StopReason.ALL_MEASURED, because="every level was measured"),
    )


def test_round_trip(result: TrialResult) -> None:
    assert TrialResult.from_json(result.to_json()) == result


def test_missing_is_null_never_zero(result: TrialResult) -> None:
    levels = json.loads(result.to_json())["levels"]
    assert (levels[1]["ttft_ms"], levels[1]["output_tok_s"]) == (None, None)


def test_another_schema_version_is_refused(result: TrialResult) -> None:
    text = json.dumps({**json.loads(result.to_json()), "schema_version": "1"})
    with pytest.raises(BenchError) as caught:
        TrialResult.from_json(text)
    assert str(caught.value) == 'trial result: schema_version: SEA501: expected one of 3, got "1"'


def test_a_wrong_count_of_errors_is_refused(result: TrialResult) -> None:
    raw = json.loads(result.to_json())
    raw["levels"][1]["errors"]["throttled"] = "many"
    with pytest.raises(BenchError) as caught:
        TrialResult.from_json(json.dumps(raw))
    assert str(caught.value) == (
        'trial result: levels[1].errors.throttled: SEA501: expected a whole number, got "many"'
    )


def test_error_rate_is_the_share_that_failed(level: Callable[..., LevelResult]) -> None:
    assert level(1, requests=8, succeeded=6).error_rate == pytest.approx(0.25)  # (8 - 6) / 8
