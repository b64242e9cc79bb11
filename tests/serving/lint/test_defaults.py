"""What happens when a key is left out, and what the hardware can't run; each row with the whole message."""

from __future__ import annotations

import pytest

from seatrial.serving.lint.lint import Given
from tests.serving.lint.cases import BASE, TGI, VLLM, Case, said

CASES = (
    Case(
        "SEA321",
        "option.model_id=org/model\noption.revision=abc",
        (
            "1: warning: the default of max_rolling_batch_size is 32 in the asynchronous handler, not 256 as "
            "documented | write option.max_rolling_batch_size"
        ),
        given=Given(engine="lmi", version="lmi17"),
    ),
    Case("SEA321", BASE, "", given=Given(engine="lmi", version="lmi17")),
    Case(
        "SEA323",
        BASE + "option.model_loading_timeout=3601",
        (
            "4: option.model_loading_timeout: warning: 3601 s of loading exceed 3600 s, the longest startup health "
            "check, which stops the container first | write at most 3600"
        ),
    ),
    Case("SEA323", BASE + "option.model_loading_timeout=3600", ""),
    Case(
        "SEA323",
        BASE + "option.model_loading_timeout=901",
        (
            "4: option.model_loading_timeout: warning: 901 s of loading exceed the startup health check's 900 s, "
            "which stops the container first | write at most 900"
        ),
        given=Given(startup_timeout_s=900),
    ),
    Case("SEA323", BASE + "option.model_loading_timeout=900", "", given=Given(startup_timeout_s=900)),
    Case(
        "SEA326",
        (
            ""
            "option.model_id=tiiuae/falcon-7b\noption.revision=abc\noption.max_rolling_batch_size=64\noption.tensor_parallel_degree=2"
        ),
        (
            "4: option.tensor_parallel_degree: error: 2 GPUs do not divide the 71 attention heads of tiiuae/falcon-7b "
            "| write 1"
        ),
    ),
    Case(
        "SEA326",
        (
            ""
            "option.model_id=tiiuae/falcon-7b\noption.revision=abc\noption.max_rolling_batch_size=64\noption.tensor_parallel_degree=1"
        ),
        "",
    ),
    Case(
        "SEA326",
        BASE + "option.tensor_parallel_degree=8",
        (
            "4: option.tensor_parallel_degree: error: ml.g5.12xlarge has 4 accelerators, fewer than 8 | "
            "write at most 4, or choose a larger instance"
        ),
        given=Given(instance_type="ml.g5.12xlarge"),
    ),
    Case(
        "SEA326",
        BASE + "option.tensor_parallel_degree=4",
        "",
        given=Given(instance_type="ml.g5.12xlarge"),
    ),
    Case(
        "SEA327",
        TGI + "DTYPE=bfloat16",
        "4: DTYPE: error: NVIDIA T4 has no bfloat16: the engine does not start | write float16",
        "container.env",
        Given(instance_type="ml.g4dn.xlarge"),
    ),
    Case("SEA327", TGI + "DTYPE=float16", "", "container.env", Given(instance_type="ml.g4dn.xlarge")),
    Case(
        "SEA328",
        BASE + "option.kv_cache_dtype=fp8_e4m3",
        (
            "4: option.kv_cache_dtype: warning: NVIDIA A10G has no FP8: some attention kernels reject an FP8 cache | "
            "leave it out"
        ),
        given=Given(instance_type="ml.g5.2xlarge"),
    ),
    Case("SEA328", BASE + "option.kv_cache_dtype=auto", "", given=Given(instance_type="ml.g5.2xlarge")),
    Case(
        "SEA328",
        BASE + "option.quantize=fp8",
        (
            "4: option.quantize: warning: NVIDIA A10G has no FP8: weights are stored in FP8 but computed in 16 bits, "
            "which is slower | choose awq or gptq weights"
        ),
        given=Given(instance_type="ml.g5.2xlarge"),
    ),
    Case(
        "SEA330",
        TGI + "API_KEY=correct horse",
        (
            "4: API_KEY: error: a secret is in plain text, readable with sagemaker:DescribeModel | revoke it and "
            "remove it; use Secrets Manager: model.hub_token_secret"
        ),
        "container.env",
    ),
    Case(
        "SEA333",
        BASE + "option.rolling_batch=trtllm",
        (
            "1: option.model_id: warning: TensorRT-LLM compiles this model at every start, which takes many minutes | "
            "compile it ahead of time, or raise both startup timeouts"
        ),
    ),
    Case(
        "SEA333",
        (
            ""
            "option.model_id=s3://bucket/compiled/\noption.revision=abc\noption.max_rolling_batch_size=64\noption.rolling_batch=trtllm"
        ),
        "",
    ),
    Case(
        "SEA334",
        BASE + "option.rolling_batch=disable",
        (
            "4: option.rolling_batch: error: without option.async_mode, LMI 17 loads the model with Hugging Face "
            "Accelerate, not vLLM | write option.async_mode=true and "
            "option.entryPoint=djl_python.lmi_vllm.vllm_async_service beside it, or leave it out"
        ),
        given=Given(engine="lmi", version="lmi17"),
    ),
    Case(
        "SEA334",
        BASE + "option.rolling_batch=disable\noption.async_mode=true",
        "",
        given=Given(engine="lmi", version="lmi17"),
    ),
    Case(
        "SEA336",
        "SM_VLLM_MODEL=org/model\nSM_VLLM_REVISION=abc",
        (
            "1: warning: the vLLM container uses 1 of the 4 GPUs of ml.g5.12xlarge | write "
            "SM_VLLM_TENSOR_PARALLEL_SIZE=4"
        ),
        "container.env",
        Given(instance_type="ml.g5.12xlarge"),
    ),
    Case(
        "SEA336",
        "SM_VLLM_MODEL=org/model\nSM_VLLM_REVISION=abc\nSM_VLLM_TENSOR_PARALLEL_SIZE=4",
        "",
        "container.env",
        Given(instance_type="ml.g5.12xlarge"),
    ),
    Case(
        "SEA340",
        (
            ""
            "option.model_id=mistralai/Mixtral-8x7B-v0.1\noption.revision=abc\noption.max_rolling_batch_size=64\noption.max_model_len=32769"
        ),
        (
            "4: option.max_model_len: error: 32769 tokens exceed the context of mistralai/Mixtral-8x7B-v0.1, 32768: "
            "vLLM does not start | write at most 32768"
        ),
    ),
    Case(
        "SEA340",
        (
            ""
            "option.model_id=mistralai/Mixtral-8x7B-v0.1\noption.revision=abc\noption.max_rolling_batch_size=64\noption.max_model_len=32768"
        ),
        "",
    ),
    Case(
        "SEA341",
        "MAX_TOTAL_TOKENS=2048\nSM_NUM_GPUS=1",
        ("1: error: TGI does not start without HF_MODEL_ID | write HF_MODEL_ID; for weights from S3, /opt/ml/model"),
        "container.env",
    ),
    Case("SEA341", TGI, "", "container.env"),
    Case(
        "SEA342",
        TGI,
        (
            "1: note: TGI is in maintenance mode since December 2025: small fixes, no new models | move to LMI with "
            "vLLM: seatrial convert --to lmi"
        ),
        "container.env",
    ),
    Case("SEA342", VLLM, "", "container.env"),
    Case(
        "SEA365",
        "option.model_id=org/model\noption.max_rolling_batch_size=4",
        (
            "1: option.model_id: note: the main branch of org/model can move: a restart may load another model | set "
            "the commit as revision"
        ),
    ),
    Case("SEA365", "option.model_id=s3://bucket/model/\noption.max_rolling_batch_size=4", ""),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_a_rule_says_at_its_boundary(case: Case) -> None:
    assert said(case.rule, case.text, name=case.name, given=case.given) == ([case.message] if case.message else [])
