"""Values that the container doesn't take. Each row: what is written, and what is said of it, or nothing."""

from __future__ import annotations

import pytest

from seatrial_lint.lint.lint import Given
from tests.lint.cases import BASE, TGI, VLLM, Case

CASES = (
    Case(
        "SEA317",
        BASE + "option.dtype=bfloat16",
        "4: option.dtype: error",
    ),
    Case("SEA317", BASE + "option.dtype=bf16", ""),
    Case(
        "SEA317",
        TGI + "DTYPE=bf16",
        "4: DTYPE: error",
        "container.env",
    ),
    Case("SEA317", TGI + "DTYPE=bfloat16", "", "container.env"),
    Case(
        "SEA317",
        VLLM + "SM_VLLM_DTYPE=fp16",
        "4: SM_VLLM_DTYPE: error",
        "container.env",
        Given(engine="vllm", version="0.26.0"),
    ),
    Case("SEA317", VLLM + "SM_VLLM_DTYPE=half", "", "container.env"),
    Case(
        "SEA318",
        BASE + "option.rolling_batch=scheduler",
        "4: option.rolling_batch: error",
        given=Given(engine="lmi", version="lmi15"),
    ),
    Case("SEA318", BASE + "option.rolling_batch=vllm", "", given=Given(engine="lmi", version="lmi15")),
    Case(
        "SEA318",
        BASE + "engine=DeepSpeed",
        "4: engine: error",
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case("SEA318", BASE + "engine=Python", "", given=Given(engine="lmi", version="lmi27")),
    Case(
        "SEA318",
        BASE + "engine=MPI",
        "4: engine: error",
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case("SEA318", BASE + "engine=Python", "", given=Given(engine="lmi", version="lmi27")),
    Case(
        "SEA318",
        BASE + "option.tensor_parallel_degree=four",
        "4: option.tensor_parallel_degree: error",
    ),
    Case("SEA318", BASE + "option.tensor_parallel_degree=max", ""),
    Case("SEA318", VLLM + "SM_VLLM_MAX_MODEL_LEN=32K", "", "container.env"),
    Case("SEA318", VLLM + "SM_VLLM_MAX_NUM_BATCHED_TOKENS=25.6k", "", "container.env"),
    Case(
        "SEA318",
        VLLM + "SM_VLLM_MAX_MODEL_LEN=25.6K",
        "4: SM_VLLM_MAX_MODEL_LEN: error",
        "container.env",
    ),
    Case(
        "SEA318",
        BASE + "option.pipeline_parallel_degree=2",
        "4: option.pipeline_parallel_degree: error",
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case("SEA318", BASE + "option.pipeline_parallel_degree=1", ""),
    Case(
        "SEA318",
        BASE + "option.quantize=smoothquant",
        "4: option.quantize: error",
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case("SEA318", BASE + "option.quantize=modelopt", ""),
    Case(
        "SEA318",
        BASE + "option.speculative_config=eagle",
        "4: option.speculative_config: error",
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case("SEA318", BASE + 'option.speculative_config={"method":"ngram","num_speculative_tokens":3}', ""),
    Case(
        "SEA318",
        TGI + "HF_MODEL_QUANTIZE=exl2",
        "4: HF_MODEL_QUANTIZE: error",
        "container.env",
        Given(engine="tgi", version="2.0.2"),
    ),
    Case(
        "SEA318",
        BASE + "option.output_formatter=xml\noption.rolling_batch=vllm",
        "4: option.output_formatter: error",
    ),
    Case("SEA318", BASE + "option.output_formatter=sse\noption.rolling_batch=vllm", ""),
    Case(
        "SEA339",
        BASE + "option.quantize=awq",
        "4: option.quantize: warning",
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case("SEA339", BASE + "option.quantize=fp8", ""),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_rule_finds_its_boundary(case: Case) -> None:
    assert case.found() == ([case.place] if case.place else [])
