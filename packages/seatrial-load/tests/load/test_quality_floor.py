"""Quality as part of the verdict: proven met, proven missed, or neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_load.aws.credentials import Credentials
from seatrial_load.documents.request import (
    EvaluationPrompt,
    QualityFloor,
    QualityObjective,
    TrialRequest,
    TrialTarget,
    Workload,
)
from seatrial_load.documents.request_checks import read_trial_request
from seatrial_load.documents.result import EvaluationAnswer, TrialResult, Verdict
from seatrial_load.quality.scores import judged_quality, with_quality
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.run import run_trial

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    Status = Literal["pass", "fail", "inconclusive"]

PROMPTS = tuple(EvaluationPrompt(id=f"{n}", prompt=f"prompt {n}", reference="a b") for n in range(40))
EXACT = QualityObjective(metric="exact_match", bound=0.8, sense="at_least")
SURE = QualityObjective(metric="perplexity", bound=2.0, sense="at_most")


def floor(*objectives: QualityObjective) -> QualityFloor:
    return QualityFloor(evaluation_set="0" * 64, prompts=PROMPTS, objectives=objectives, most_tokens=8)


def answers(right: int, *, failed: int = 0, log: float = -0.1) -> list[EvaluationAnswer]:
    found = [
        EvaluationAnswer(id=f"{n}", text="A  b" if n < right else "c", tokens=("c",), log_probabilities=(log,))
        for n in range(40 - failed)
    ]
    return [*found, *(EvaluationAnswer(id=f"{n}", text="", failure="timeout: late") for n in range(40 - failed, 40))]


@pytest.mark.parametrize(
    ("right", "failed", "confidence", "before", "after"),
    [
        (40, 0, 0.9, "pass", "pass"),
        (20, 0, 0.9, "pass", "fail"),
        (33, 0, 0.9, "pass", "inconclusive"),
        (33, 0, 0.0, "pass", "pass"),
        (31, 0, 0.0, "pass", "fail"),
        (33, 0, 0.9, "fail", "fail"),
        (40, 0, 0.9, "inconclusive", "inconclusive"),
        (20, 0, 0.9, "inconclusive", "fail"),
        (35, 5, 0.9, "pass", "inconclusive"),
    ],
)
def test_the_floor_decides_with_the_verdict(
    right: int, failed: int, confidence: float, before: Status, after: Status
) -> None:
    quality = judged_quality(floor(EXACT), answers(right, failed=failed), confidence)
    verdict = with_quality(Verdict(status=before, because="the levels", checks=()), quality)
    assert verdict.status == after
    if after != before:
        assert "quality exact_match" in verdict.because


def test_a_bound_from_above_looks_at_the_other_end() -> None:
    assert judged_quality(floor(SURE), answers(0, log=-0.1), 0.9).checks[0].met is True
    assert judged_quality(floor(SURE), answers(0, log=-2.0), 0.9).checks[0].met is False


def test_what_no_answer_tells_proves_nothing() -> None:
    silent = [EvaluationAnswer(id=prompt.id, text="x") for prompt in PROMPTS]
    quality = judged_quality(floor(SURE), silent, 0.9)
    assert (quality.checks[0].measured, quality.checks[0].met) == (None, None)


def asked(url: str, trial_request: Callable[..., TrialRequest], quality: QualityFloor | None) -> TrialResult:
    target = TrialTarget(endpoint_name="whole", inference_component=None, region="eu-west-1", endpoint_url=url)
    workload = Workload(input_tokens=16, output_tokens=4, schema="lmi", stream=False)
    request = trial_request(target=target, expected=None, workload=workload, objectives=(), quality=quality)
    tools = Tools(credentials=Credentials("AKIDEXAMPLE", "secret"), calibrates=False, asks_cloudwatch=False)
    result = run_trial(read_trial_request(request.to_json()), tools=tools)
    assert isinstance(result, TrialResult)
    return result


def test_a_trial_asks_after_its_levels(runtime_url: str, trial_request: Callable[..., TrialRequest]) -> None:
    result = asked(runtime_url, trial_request, floor(EXACT))
    assert result.quality is not None
    assert (result.quality.answered, result.quality.checks[0].measured) == (40, 1.0)
    assert result.verdict.status != "fail"  # a busy machine may leave the levels inconclusive
    assert TrialResult.from_json(result.to_json()) == result


def test_a_trial_without_a_floor_asks_nothing(runtime_url: str, trial_request: Callable[..., TrialRequest]) -> None:
    assert asked(runtime_url, trial_request, None).quality is None
