from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_base.errors import BenchError
from seatrial_load.documents.request import Objective
from seatrial_load.documents.result import Check, Knee, LiveProof, TrialResult, Unmeasured, Verdict
from seatrial_load.documents.stop import Stop, StopReason, Void, VoidReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import LevelResult

SEEN = Unmeasured(occasion="verification", sent=5, succeeded=5, errors={}, first_errors=(), longest_wait_s=None)
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


def refused(text: str) -> list[str]:
    with pytest.raises(BenchError) as caught:
        TrialResult.from_json(text)
    assert {problem.rule for problem in caught.value.problems} == {"SEA501"}
    return [f"{problem.field}: {problem.message}" for problem in caught.value.problems]


START = {"created_at": "", "instances_added": 0, "because": ""}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"duration_s": -1.0}, "duration_s: -1 is below 0"),
        (
            {"start": {"created_at": "", "seconds": -1, "instances_added": 0, "because": ""}},
            "start.seconds: -1 is below 0",
        ),
        ({"levels": {"succeeded": 9}}, "levels[0].succeeded: 9 of 8 requests"),
        ({"levels": {"requests": 0, "succeeded": 0}}, "levels[0].requests: 0 is below 1"),
        ({"levels": {"errors": {"throttled": 1}}}, "levels[0].errors: 1 failures of 0 requests that failed"),
        ({"levels": {"output_tok_s": -0.5}}, "levels[0].output_tok_s: -0.5 is below 0"),
        ({"levels": {"window_s": -2.0}}, "levels[0].window_s: -2 is below 0"),
        ({"levels": {"concurrency": 2}}, "levels: concurrency 2 is listed 2 times"),
    ],
)
def test_what_no_trial_can_have_measured_is_refused(result: TrialResult, change: dict[str, object], told: str) -> None:
    raw = json.loads(result.to_json())
    levels = change.pop("levels", {})
    raw["levels"][0].update(levels)
    assert refused(json.dumps({**raw, **change})) == [told]


def test_a_latency_below_0_is_refused(result: TrialResult) -> None:
    raw = json.loads(result.to_json())
    raw["levels"][0]["ttft_ms"]["p95"] = -1.0
    assert refused(json.dumps(raw)) == ["levels[0].ttft_ms: a value is below 0"]


def test_two_levels_of_one_rate_are_refused(result: TrialResult, level: Callable[..., LevelResult]) -> None:
    rates = (2.0, 3.0, 3.0)
    levels = tuple(level(1, offered_requests_per_s=rate, arrival="poisson") for rate in rates)
    assert refused(replace(result, levels=levels).to_json()) == ["levels: 3 requests/s is listed 2 times"]


def test_more_answers_than_requests_are_refused_where_nothing_is_measured(result: TrialResult) -> None:
    seen = Unmeasured(occasion="warm_up", sent=2, succeeded=3, errors={}, first_errors=(), longest_wait_s=None)
    assert refused(replace(result, unmeasured=(seen,)).to_json()) == ["unmeasured[0].succeeded: 3 of 2 sent"]


def test_a_key_that_stands_there_twice_is_refused(result: TrialResult) -> None:
    text = result.to_json().replace('"duration_s":', '"duration_s":1.0,"duration_s":', 1)
    assert refused(text) == [": not JSON: the key 'duration_s' is given twice"]


def test_error_rate_is_the_share_that_failed(level: Callable[..., LevelResult]) -> None:
    assert level(1, requests=8, succeeded=6).error_rate == pytest.approx(0.25)  # (8 - 6) / 8


MET = Check(objective=TTFT, measured=100.0, met=True, sentence="within")


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({}, []),
        ({"levels": ()}, ["verdict.status"]),
        ({"levels": (), "unmeasured": (SEEN,)}, []),
        ({"levels": (), "unmeasured": (replace(SEEN, succeeded=0),)}, ["verdict.status"]),
        ({"levels": (), "unmeasured": (replace(SEEN, occasion="warm_up"),)}, ["verdict.status"]),
        ({"verdict": Verdict(status="pass", because="held", checks=(MET, replace(MET, met=None)))},
         ["verdict.checks[1].met"]),
        ({"verdict": Verdict(status="pass", because="held", checks=(replace(MET, met=False),))},
         ["verdict.checks[0].met"]),
        ({"verdict": Verdict(status="fail", because="nothing", checks=(replace(MET, met=False),)), "levels": ()}, []),
    ],
)  # fmt: skip
def test_a_pass_that_nothing_was_measured_for_is_refused(
    result: TrialResult, changes: dict[str, object], problems: list[str]
) -> None:
    passed = replace(result, verdict=Verdict(status="pass", because="held", checks=(MET,)))
    text = replace(passed, **changes).to_json()  # type: ignore[arg-type]  # fields of a result
    found = []
    try:
        TrialResult.from_json(text)
    except BenchError as refused:
        found = [problem.field for problem in refused.problems]
    assert found == problems


def test_a_pass_of_levels_that_the_client_limited_or_nobody_answered_is_refused(result: TrialResult) -> None:
    first, dead = result.levels
    void = Void(reasons=(VoidReason.READ_LATE,), because="late")
    for levels in ((dead,), (replace(first, void=void), dead)):
        passed = replace(result, verdict=Verdict(status="pass", because="held", checks=()), levels=levels)
        with pytest.raises(BenchError, match=r"verdict.status: SEA501: pass, though no"):
            TrialResult.from_json(passed.to_json())


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_cache_holds_no_more_than_the_prompts(result: TrialResult, share: float) -> None:
    with pytest.raises(BenchError, match=r"levels\[0\].cached_share: SEA501"):
        TrialResult.from_json(replace(result, levels=(replace(result.levels[0], cached_share=share),)).to_json())


def test_a_result_of_before_the_cache_was_told_is_read(result: TrialResult) -> None:
    document = json.loads(result.to_json())
    for level in document["levels"]:
        del level["cached_share"]
    assert TrialResult.from_json(json.dumps(document)) == result
