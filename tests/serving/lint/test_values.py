"""Values that the container doesn't take. Each row: what is written, and what is said of it, or nothing."""

from __future__ import annotations

import pytest

from seatrial.serving.lint.lint import Given
from tests.serving.lint.cases import BASE, TGI, VLLM, Case, said

CASES = (
    Case(
        "SEA317",
        BASE + "option.dtype=bfloat16",
        "4: option.dtype: error: LMI 27 does not start with bfloat16; valid: auto, fp32, fp16, bf16 | write bf16",
    ),
    Case("SEA317", BASE + "option.dtype=bf16", ""),
    Case(
        "SEA317",
        TGI + "DTYPE=bf16",
        "4: DTYPE: error: TGI 3.3.6 does not start with bf16; valid: float16, bfloat16 | write bfloat16",
        "container.env",
    ),
    Case("SEA317", TGI + "DTYPE=bfloat16", "", "container.env"),
    Case(
        "SEA317",
        VLLM + "SM_VLLM_DTYPE=fp16",
        "4: SM_VLLM_DTYPE: error: vLLM 0.26.0 does not start with fp16; valid: float16, bfloat16 | write float16",
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
        ("4: engine: error: vLLM in LMI 27 needs engine=Python and does not start with MPI | write engine=Python"),
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case("SEA318", BASE + "engine=Python", "", given=Given(engine="lmi", version="lmi27")),
    Case(
        "SEA318",
        BASE + "option.tensor_parallel_degree=four",
        (
            "4: option.tensor_parallel_degree: error: 'four' is not valid in LMI 27; valid: a whole number, "
            "max | use another value, or leave the key out"
        ),
    ),
    Case("SEA318", BASE + "option.tensor_parallel_degree=max", ""),
    Case("SEA318", VLLM + "SM_VLLM_MAX_MODEL_LEN=32K", "", "container.env"),
    Case("SEA318", VLLM + "SM_VLLM_MAX_NUM_BATCHED_TOKENS=25.6k", "", "container.env"),
    Case(
        "SEA318",
        VLLM + "SM_VLLM_MAX_MODEL_LEN=25.6K",
        (
            "4: SM_VLLM_MAX_MODEL_LEN: error: '25.6K' is not valid in vLLM 0.26.0; valid: a whole number | "
            "use another value, or leave the key out"
        ),
        "container.env",
    ),
    Case(
        "SEA318",
        BASE + "option.pipeline_parallel_degree=2",
        (
            "4: option.pipeline_parallel_degree: error: vLLM in LMI 27 needs a pipeline parallel degree of 1 | write "
            "1, and set the tensor parallel degree to the number of GPUs"
        ),
    ),
    Case("SEA318", BASE + "option.pipeline_parallel_degree=1", ""),
    Case(
        "SEA318",
        BASE + "option.quantize=smoothquant",
        (
            "4: option.quantize: error: 'smoothquant' is not valid in LMI 27; valid: awq, gptq, fp8, "
            "bitsandbytes | use another value, or leave the key out"
        ),
    ),
    Case("SEA318", BASE + "option.quantize=modelopt", ""),
    Case(
        "SEA318",
        BASE + "option.speculative_config=eagle",
        (
            "4: option.speculative_config: error: 'eagle' is not valid in LMI 27; valid: a JSON object | "
            "use another value, or leave the key out"
        ),
    ),
    Case("SEA318", BASE + 'option.speculative_config={"method":"ngram","num_speculative_tokens":3}', ""),
    Case(
        "SEA318",
        TGI + "HF_MODEL_QUANTIZE=exl2",
        (
            "4: HF_MODEL_QUANTIZE: error: 'exl2' is not valid in TGI 2.0.2; valid: bitsandbytes, gptq, awq, "
            "eetq, bitsandbytes-nf4, bitsandbytes-fp4, fp8 | use another value, or leave the key out"
        ),
        "container.env",
        Given(engine="tgi", version="2.0.2"),
    ),
    Case(
        "SEA318",
        BASE + "option.output_formatter=xml\noption.rolling_batch=vllm",
        (
            "4: option.output_formatter: error: no formatter 'xml'; valid: json, jsonlines, sse, "
            "json_chat, jsonlines_chat, sse_chat, 3p, 3p_stream, none | use one of them"
        ),
    ),
    Case("SEA318", BASE + "option.output_formatter=sse\noption.rolling_batch=vllm", ""),
    Case(
        "SEA339",
        BASE + "option.quantize=awq",
        (
            "4: option.quantize: warning: vLLM reads awq from the checkpoint; setting it disables the faster Marlin "
            "kernels | leave it out"
        ),
    ),
    Case("SEA339", BASE + "option.quantize=fp8", ""),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_a_rule_says_at_its_boundary(case: Case) -> None:
    assert said(case.rule, case.text, name=case.name, given=case.given) == ([case.message] if case.message else [])
