"""Values that the container doesn't take. Each row: what is written, and what is said of it, or nothing."""

from __future__ import annotations

import pytest

from seatrial.serving.lint.lint import Given
from tests.serving.lint.cases import BASE, TGI, VLLM, Case, said

CASES = (
    Case(
        "SEA317",
        BASE + "option.dtype=bfloat16",
        "4: option.dtype: error: LMI 27 does not start with bfloat16: it takes auto, fp32, fp16, bf16 | write bf16",
    ),
    Case("SEA317", BASE + "option.dtype=bf16", ""),
    Case(
        "SEA317",
        TGI + "DTYPE=bf16",
        "4: DTYPE: error: TGI 3.3.6 does not start with bf16: it takes float16, bfloat16 | write bfloat16",
        "container.env",
    ),
    Case("SEA317", TGI + "DTYPE=bfloat16", "", "container.env"),
    Case(
        "SEA317",
        VLLM + "SM_VLLM_DTYPE=fp16",
        "4: SM_VLLM_DTYPE: error: vLLM 0.26.0 does not start with fp16: it takes float16, bfloat16 | write float16",
        "container.env",
        Given(engine="vllm", version="0.26.0"),
    ),
    Case("SEA317", VLLM + "SM_VLLM_DTYPE=half", "", "container.env"),
    Case(
        "SEA318",
        BASE + "option.rolling_batch=scheduler",
        "4: option.rolling_batch: error: LMI 15 takes auto, disable, vllm, trtllm, tnx, lmi-dist | leave it out",
        given=Given(engine="lmi", version="lmi15"),
    ),
    Case("SEA318", BASE + "option.rolling_batch=vllm", "", given=Given(engine="lmi", version="lmi15")),
    Case(
        "SEA318",
        BASE + "engine=DeepSpeed",
        "4: engine: error: LMI 27 has no engine DeepSpeed | write engine=Python",
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case("SEA318", BASE + "engine=Python", "", given=Given(engine="lmi", version="lmi27")),
    Case(
        "SEA318",
        BASE + "engine=MPI",
        (
            "4: engine: error: vLLM in LMI 27 takes engine=Python only, and does not start with MPI | write "
            "engine=Python"
        ),
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case("SEA318", BASE + "engine=Python", "", given=Given(engine="lmi", version="lmi27")),
    Case(
        "SEA318",
        BASE + "option.tensor_parallel_degree=four",
        (
            "4: option.tensor_parallel_degree: error: 'four' is no value that LMI 27 takes: a whole number, "
            "max | write another value, or leave the key out"
        ),
    ),
    Case("SEA318", BASE + "option.tensor_parallel_degree=max", ""),
    Case("SEA318", VLLM + "SM_VLLM_MAX_MODEL_LEN=32K", "", "container.env"),
    Case("SEA318", VLLM + "SM_VLLM_MAX_NUM_BATCHED_TOKENS=25.6k", "", "container.env"),
    Case(
        "SEA318",
        VLLM + "SM_VLLM_MAX_MODEL_LEN=25.6K",
        (
            "4: SM_VLLM_MAX_MODEL_LEN: error: '25.6K' is no value that vLLM 0.26.0 takes: a whole number | "
            "write another value, or leave the key out"
        ),
        "container.env",
    ),
    Case(
        "SEA318",
        BASE + "option.pipeline_parallel_degree=2",
        (
            "4: option.pipeline_parallel_degree: error: vLLM in LMI 27 does not start with a pipeline "
            "parallel degree other than 1 | write 1, and a tensor parallel degree that covers the GPUs"
        ),
    ),
    Case("SEA318", BASE + "option.pipeline_parallel_degree=1", ""),
    Case(
        "SEA318",
        BASE + "option.quantize=smoothquant",
        (
            "4: option.quantize: error: 'smoothquant' is no value that LMI 27 takes: awq, gptq, fp8, "
            "bitsandbytes | write another value, or leave the key out"
        ),
    ),
    Case("SEA318", BASE + "option.quantize=modelopt", ""),
    Case(
        "SEA318",
        BASE + "option.speculative_config=eagle",
        (
            "4: option.speculative_config: error: 'eagle' is no value that LMI 27 takes: a JSON object | "
            "write another value, or leave the key out"
        ),
    ),
    Case("SEA318", BASE + 'option.speculative_config={"method":"ngram","num_speculative_tokens":3}', ""),
    Case(
        "SEA318",
        TGI + "HF_MODEL_QUANTIZE=exl2",
        (
            "4: HF_MODEL_QUANTIZE: error: 'exl2' is no value that TGI 2.0.2 takes: bitsandbytes, gptq, awq, "
            "eetq, bitsandbytes-nf4, bitsandbytes-fp4, fp8 | write another value, or leave the key out"
        ),
        "container.env",
        Given(engine="tgi", version="2.0.2"),
    ),
    Case(
        "SEA318",
        BASE + "option.output_formatter=xml\noption.rolling_batch=vllm",
        (
            "4: option.output_formatter: error: there is no formatter 'xml': json, jsonlines, sse, "
            "json_chat, jsonlines_chat, sse_chat, 3p, 3p_stream, none | name one of them"
        ),
    ),
    Case("SEA318", BASE + "option.output_formatter=sse\noption.rolling_batch=vllm", ""),
    Case(
        "SEA339",
        BASE + "option.quantize=awq",
        (
            "4: option.quantize: warning: vLLM reads awq from the checkpoint; written out, it turns the "
            "faster Marlin kernels off | leave it out"
        ),
    ),
    Case("SEA339", BASE + "option.quantize=fp8", ""),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_a_rule_says_at_its_boundary(case: Case) -> None:
    assert said(case.rule, case.text, name=case.name, given=case.given) == ([case.message] if case.message else [])
