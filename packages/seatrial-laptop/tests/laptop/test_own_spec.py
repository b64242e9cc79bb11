"""Trials of deployments as users write them: the first prompts fit, whatever the schema and the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

from seatrial_load.documents.request import Load, Objective, TrialRequest, TrialTarget, Workload
from seatrial_load.documents.result import TrialResult
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.run import run_trial

if TYPE_CHECKING:
    from collections.abc import Mapping

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
TGI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.6-gpu-py311"
LMI = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"


def lmi(limit: int) -> tuple[str, dict[str, str]]:
    return LMI, {"OPTION_MAX_MODEL_LEN": str(limit), "OPTION_MAX_ROLLING_BATCH_SIZE": "4"}


def tgi(prompt: int, limit: int) -> tuple[str, dict[str, str]]:
    return TGI, {"MAX_INPUT_TOKENS": str(prompt), "MAX_TOTAL_TOKENS": str(limit)}


def request_of(component: str, endpoint: str, workload: Workload) -> TrialRequest:
    error_rate = Objective(metric="error_rate", statistic="value", bound=0.0, sense="at_most")
    load = Load(
        concurrency_levels=(1, 2),
        requests_per_concurrency=2,
        warmup_requests=2,
        budget_s=120.0,
        request_timeout_s=60.0,
    )
    return TrialRequest(
        endpoint="own",
        environment="local",
        plan_digest="0123456789abcdef",
        target=TrialTarget(endpoint_name=endpoint, inference_component=component, region="us-east-1"),
        expected=None,
        workload=workload,
        load=load,
        objectives=(error_rate,),
        gate_concurrency=2,
        copy_count=1,
        mode="rollback",
        usd_per_hour_per_copy=None,
        fallback_target_concurrency=1.0,
        target_utilization=0.8,
    )


@pytest.mark.parametrize(
    ("container", "tokens", "schema"),
    [
        pytest.param(lmi(1536), (1000, 30), "lmi", id="deepseek-1000-tokens-with-the-former-limit"),
        pytest.param(lmi(4096), (1000, 30), "lmi", id="deepseek-1000-tokens"),
        pytest.param(lmi(1088), (1000, 30), "openai_chat", id="chat-close-to-its-limit"),
        pytest.param(lmi(128), (32, 8), "lmi", id="short-prompts"),
        pytest.param(tgi(560, 640), (480, 16), "tgi", id="tgi"),
        pytest.param(tgi(560, 640), (480, 16), "openai_chat", id="tgi-chat"),
    ],
)
def test_an_own_spec_is_measured_with_prompts_of_its_length(
    laptop: Laptop,
    host: str,
    container: tuple[str, Mapping[str, str]],
    tokens: tuple[int, int],
    schema: Literal["lmi", "tgi", "openai_chat"],
) -> None:
    """0 of 6 requests succeeded: the prompts were 1.78 times too long for the tokenizer, and stayed so."""
    component = laptop.component(host, laptop.model(image=container[0], **container[1]))
    workload = Workload(input_tokens=tokens[0], output_tokens=tokens[1], schema=schema)
    result = run_trial(request_of(component, host, workload), tools=Tools(calibrates=False, asks_cloudwatch=False))
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)

    assert isinstance(result, TrialResult)
    assert [dict(level.errors) for level in result.levels] == [{}, {}]
    assert [level.input_tokens_mean for level in result.levels] == pytest.approx([tokens[0]] * 2, rel=0.15, abs=16)
    assert result.verdict.status in ("pass", "inconclusive")
