"""What happens when a key is left out, and what the hardware can't run; each row with the whole message."""

from __future__ import annotations

import pytest

from seatrial_lint.lint.lint import Given
from tests.lint.cases import BASE, TGI, VLLM, Case

CASES = (
    Case(
        "SEA321",
        "option.model_id=org/model\noption.revision=abc",
        "1: note",
        given=Given(engine="lmi", version="lmi17"),
    ),
    Case("SEA321", BASE, "", given=Given(engine="lmi", version="lmi17")),
    Case(
        "SEA323",
        BASE + "option.model_loading_timeout=3601",
        "4: option.model_loading_timeout: warning",
    ),
    Case("SEA323", BASE + "option.model_loading_timeout=3600", ""),
    Case(
        "SEA323",
        BASE + "option.model_loading_timeout=901",
        "4: option.model_loading_timeout: warning",
        given=Given(startup_timeout_s=900),
    ),
    Case("SEA323", BASE + "option.model_loading_timeout=900", "", given=Given(startup_timeout_s=900)),
    Case(
        "SEA326",
        (
            ""
            "option.model_id=tiiuae/falcon-7b\noption.revision=abc\noption.max_rolling_batch_size=64\noption.tensor_parallel_degree=2"
        ),
        "4: option.tensor_parallel_degree: error",
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
        "4: option.tensor_parallel_degree: error",
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
        "4: DTYPE: error",
        "container.env",
        Given(instance_type="ml.g4dn.xlarge"),
    ),
    Case("SEA327", TGI + "DTYPE=float16", "", "container.env", Given(instance_type="ml.g4dn.xlarge")),
    Case(
        "SEA328",
        BASE + "option.kv_cache_dtype=fp8_e4m3",
        "4: option.kv_cache_dtype: warning",
        given=Given(engine="lmi", version="lmi27", instance_type="ml.g5.2xlarge"),
    ),
    Case("SEA328", BASE + "option.kv_cache_dtype=auto", "", given=Given(instance_type="ml.g5.2xlarge")),
    Case(
        "SEA328",
        BASE + "option.quantize=fp8",
        "4: option.quantize: warning",
        given=Given(engine="lmi", version="lmi27", instance_type="ml.g5.2xlarge"),
    ),
    Case(
        "SEA330",
        TGI + "API_KEY=correct horse",
        "4: API_KEY: error",
        "container.env",
    ),
    Case(
        "SEA333",
        BASE + "option.rolling_batch=trtllm",
        "1: option.model_id: warning",
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
        "4: option.rolling_batch: warning",
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
        "1: warning",
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
        "4: option.max_model_len: error",
        given=Given(engine="lmi", version="lmi27"),
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
        "1: error",
        "container.env",
    ),
    Case("SEA341", TGI, "", "container.env"),
    Case(
        "SEA342",
        TGI,
        "1: note",
        "container.env",
    ),
    Case("SEA342", VLLM, "", "container.env"),
    Case(
        "SEA365",
        "option.model_id=org/model\noption.max_rolling_batch_size=4",
        "1: option.model_id: note",
    ),
    Case("SEA365", "option.model_id=s3://bucket/model/\noption.max_rolling_batch_size=4", ""),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_rule_finds_its_boundary(case: Case) -> None:
    assert case.found() == ([case.place] if case.place else [])
