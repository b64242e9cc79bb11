"""Values that the container doesn't take. Each row: what is written, and what is said of it, or nothing."""

from __future__ import annotations

import pytest

from seatrial_base.catalog.engine_options import parser_names
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

PARSERS = (
    Case("SEA378", BASE + "option.tool_call_parser=hermes", "", given=Given(engine="lmi", version="lmi27")),
    Case("SEA378", BASE + "option.tool_call_parser=hermess", "4: option.tool_call_parser: warning",
         given=Given(engine="lmi", version="lmi27")),
    Case("SEA378", BASE + "option.reasoning_parser=qwen", "4: option.reasoning_parser: warning",
         given=Given(engine="lmi", version="lmi27")),
    Case("SEA378", VLLM + "SM_VLLM_TOOL_CALL_PARSER=llama3", "4: SM_VLLM_TOOL_CALL_PARSER: warning", "container.env"),
    Case("SEA378", VLLM + "SM_VLLM_REASONING_PARSER=deepseek_r1", "", "container.env"),
    Case("SEA378", VLLM + "SM_VLLM_TOOL_PARSER_PLUGIN=own.py\nSM_VLLM_TOOL_CALL_PARSER=own", "", "container.env"),
    Case("SEA378", "SM_SGLANG_MODEL_PATH=org/model\nSM_SGLANG_TOOL_CALL_PARSER=hermes", "", "container.env"),
    Case("SEA378", "SM_SGLANG_MODEL_PATH=org/model\nSM_SGLANG_TOOL_CALL_PARSER=llama3_json",
         "2: SM_SGLANG_TOOL_CALL_PARSER: warning", "container.env"),
    Case("SEA378", "SM_SGLANG_MODEL_PATH=org/model\nSM_SGLANG_REASONING_PARSER=deepseek_r1",
         "2: SM_SGLANG_REASONING_PARSER: warning", "container.env"),
)  # fmt: skip


def test_an_unknown_parser_is_told_with_the_nearest_and_all_names() -> None:
    (said,) = Case("SEA378", VLLM + "SM_VLLM_TOOL_CALL_PARSER=hermess", "", "container.env").says()
    assert said.startswith("4: SM_VLLM_TOOL_CALL_PARSER: warning: hermess is no tool call parser of vLLM")
    known = parser_names("vllm", "tool_call_parser")
    assert known is not None
    assert said.endswith(f" | write hermes; known on {known.date}: {', '.join(known.names)}")


@pytest.mark.parametrize("case", [*CASES, *PARSERS], ids=str)
def test_a_rule_finds_its_boundary(case: Case) -> None:
    assert case.found() == ([case.place] if case.place else [])
