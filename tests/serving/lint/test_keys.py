"""Keys that the container doesn't read. Each row: what is written, and what is said of it, or nothing."""

from __future__ import annotations

import pytest

from seatrial.serving.lint.lint import Given
from tests.serving.lint.cases import BASE, LMI, TGI, VLLM, Case, said

CASES = (
    Case(
        "SEA313",
        BASE + "option.max_rolling_batch=64",
        (
            "4: option.max_rolling_batch: warning: max_rolling_batch is unknown to LMI 27, which ignores it silently "
            "| did you mean option.max_rolling_batch_size?"
        ),
    ),
    Case("SEA313", BASE, ""),
    Case(
        "SEA313",
        BASE + "option.entirely_made_up_thing=1",
        (
            "4: option.entirely_made_up_thing: warning: entirely_made_up_thing is unknown to LMI 27, which ignores it "
            "silently | leave it out"
        ),
        given=Given(version="lmi27", engine="lmi"),
    ),
    Case(
        "SEA313",
        BASE + "option.entryPoint=model.py\noption.entirely_made_up_thing=1",
        "",
        given=Given(version="lmi27", engine="lmi"),
    ),
    Case(
        "SEA313",
        BASE + "job_queue_sise=10",
        "4: job_queue_sise: warning: job_queue_sise is not a key of the model server | did you mean job_queue_size?",
    ),
    Case("SEA313", BASE + "job_queue_size=10", ""),
    Case(
        "SEA313",
        TGI + "MAX_BATCH_PREFIL_TOKENS=4096",
        (
            "4: MAX_BATCH_PREFIL_TOKENS: warning: MAX_BATCH_PREFIL_TOKENS is unknown to TGI 3.3.6 | did you "
            "mean MAX_BATCH_PREFILL_TOKENS?"
        ),
        "container.env",
    ),
    Case("SEA313", TGI + "MAX_BATCH_PREFILL_TOKENS=4096\nSOME_VARIABLE_OF_MINE=1", "", "container.env"),
    Case(
        "SEA313",
        VLLM + "SM_VLLM_MAX_MODEL_LENGTH=4096",
        (
            "4: SM_VLLM_MAX_MODEL_LENGTH: warning: max_model_length is not an argument of vLLM 0.26.0, which does not "
            "start with it | did you mean SM_VLLM_MAX_MODEL_LEN?"
        ),
        "container.env",
        Given(engine="vllm", version="0.26.0"),
    ),
    Case("SEA313", VLLM + "SM_VLLM_MAX_MODEL_LEN=4096", "", "container.env", Given(engine="vllm", version="0.26.0")),
    Case(
        "SEA314",
        TGI + "MAX_INPUT_LENGTH=1024",
        (
            "4: MAX_INPUT_LENGTH: warning: TGI 2.0 renamed it; the old name is an alias and can't be set with the new "
            "one | write MAX_INPUT_TOKENS"
        ),
        "container.env",
        Given(engine="tgi", version="2.0.0"),
    ),
    Case("SEA314", TGI + "MAX_INPUT_TOKENS=1024", "", "container.env", Given(engine="tgi", version="2.0.0")),
    Case(
        "SEA314",
        TGI + "USE_PREFIX_CACHING=1",
        ("4: USE_PREFIX_CACHING: warning: TGI 2.4 renamed it and ignores the old name silently | write PREFIX_CACHING"),
        "container.env",
        Given(engine="tgi", version="2.4.0"),
    ),
    Case("SEA314", TGI + "PREFIX_CACHING=1", "", "container.env", Given(engine="tgi", version="2.4.0")),
    Case(
        "SEA314",
        BASE + "option.rolling_batch=lmi-dist",
        "4: option.rolling_batch: warning: lmi-dist was removed in LMI 15: LMI 15 runs vLLM instead | write vllm",
        given=Given(engine="lmi", version="lmi15"),
    ),
    Case("SEA314", BASE + "option.rolling_batch=vllm", "", given=Given(engine="lmi", version="lmi15")),
    Case(
        "SEA315",
        BASE + "option.swap_space=4",
        (
            "4: option.swap_space: warning: swap_space was removed from vLLM (last seen in LMI 20); LMI 27 ignores it "
            "silently | leave it out: vLLM no longer swaps to host memory"
        ),
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case(
        "SEA315",
        BASE + "option.rope_scaling={}",
        (
            "4: option.rope_scaling: warning: rope_scaling is gone from vLLM (last seen in LMI 16); LMI 17 "
            'drops it without a word | write hf_overrides={"rope_parameters": …} instead'
        ),
        given=Given(engine="lmi", version="lmi17"),
    ),
    Case(
        "SEA315",
        BASE + "option.paged_attention=True\noption.rolling_batch=lmi-dist\nengine=MPI",
        (
            "4: option.paged_attention: warning: paged_attention was removed (last seen in DJL 0.25); LMI 8 ignores "
            "it silently | leave it out: the KV cache is always paged"
        ),
        given=Given(engine="lmi", version="0.26.0"),
    ),
    Case(
        "SEA315",
        BASE + "option.max_input_len=1024",
        (
            "4: option.max_input_len: warning: max_input_len is read by TensorRT-LLM only, not by vLLM | "
            "write option.max_model_len, which counts prompt and output together"
        ),
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case(
        "SEA315",
        TGI + "ROPE_SCALING=linear",
        (
            "4: ROPE_SCALING: warning: ROPE_SCALING is newer (first seen in TGI 1.0.1); TGI 0.9.3 drops "
            "it without a word | leave it out"
        ),
        "container.env",
        Given(engine="tgi", version="0.9.3"),
    ),
    Case(
        "SEA316",
        BASE + "option.output_formatter=jsonlines",
        (
            "4: option.output_formatter: warning: the asynchronous handler formats responses itself and ignores this "
            "silently | leave it out, or set option.rolling_batch=vllm for the old schema"
        ),
    ),
    Case("SEA316", BASE + "option.rolling_batch=vllm\noption.output_formatter=jsonlines", ""),
    Case(
        "SEA316",
        BASE + "option.speculative_draft_model=org/draft",
        (
            "4: option.speculative_draft_model: warning: since LMI 15 speculative decoding is told by one "
            'key, and this one is dropped without a word | write option.speculative_config={"method": …, '
            '"model": …, "num_speculative_tokens": …}'
        ),
        given=Given(engine="lmi", version="lmi15"),
    ),
    Case(
        "SEA316",
        BASE + "tensor_parallel_degree=4",
        (
            "4: tensor_parallel_degree: warning: without the prefix `option.` it does not reach the engine | "
            "write option.tensor_parallel_degree"
        ),
    ),
    Case("SEA316", BASE + "option.tensor_parallel_degree=4", ""),
    Case(
        "SEA316",
        TGI + "MESSAGES_API_ENABLED=true",
        (
            "4: MESSAGES_API_ENABLED: warning: removed in TGI 2.4: each request selects chat by its format | leave it "
            "out"
        ),
        "container.env",
        Given(engine="tgi", version="2.4.0"),
    ),
    Case(
        "SEA316",
        VLLM + "SM_VLLM_ENABLE_PREFIX_CACHING=false",
        (
            "4: SM_VLLM_ENABLE_PREFIX_CACHING: warning: the container drops flags with value false: vLLM's default, "
            "on, stays | write SM_VLLM_NO_ENABLE_PREFIX_CACHING=true"
        ),
        "container.env",
    ),
    Case("SEA316", VLLM + "SM_VLLM_NO_ENABLE_PREFIX_CACHING=true", "", "container.env"),
    Case(
        "SEA316",
        LMI + "SM_VLLM_DTYPE=auto",
        (
            "4: SM_VLLM_DTYPE: warning: LMI 27 does not read variables of another container | convert the "
            "configuration: seatrial convert"
        ),
        "container.env",
        Given(engine="lmi", version="lmi27"),
    ),
    Case("SEA316", LMI, "", "container.env", Given(engine="lmi", version="lmi27")),
    Case(
        "SEA316",
        LMI + "MAX_TOTAL_TOKENS=4096",
        "4: MAX_TOTAL_TOKENS: warning: LMI 27 does not read this variable of TGI | write OPTION_MAX_MODEL_LEN",
        "container.env",
        Given(engine="lmi", version="lmi27"),
    ),
    Case("SEA316", LMI + "OPTION_MAX_MODEL_LEN=4096", "", "container.env", Given(engine="lmi", version="lmi27")),
    Case(
        "SEA320",
        BASE + "option.max_model_len=1024\noption.max_model_len=2048",
        "4: option.max_model_len: warning: duplicate on line 5, which takes precedence: 2048 | keep one of them",
    ),
    Case("SEA320", BASE + "option.max_model_len=1024", ""),
    Case(
        "SEA320",
        BASE + "option.max_model_len=1024\noption.max_model_len=1024",
        "4: option.max_model_len: warning: duplicate on line 5 | keep one of them",
    ),
    Case(
        "SEA337",
        BASE + "option.Max_Model_Len=4096",
        (
            "4: option.Max_Model_Len: warning: case matters: LMI 27 reads Max_Model_Len, but the key is max_model_len "
            "| write option.max_model_len"
        ),
    ),
    Case("SEA337", BASE + "option.max_model_len=4096", ""),
    Case(
        "SEA337",
        BASE + "option.entrypoint=djl_python.lmi_vllm.vllm_async_service",
        (
            "4: option.entrypoint: warning: case matters: LMI 27 reads entrypoint, but the key is entryPoint | write "
            "option.entryPoint"
        ),
    ),
    Case("SEA337", BASE + "option.entryPoint=djl_python.lmi_vllm.vllm_async_service", ""),
    Case(
        "SEA337",
        LMI + "OPTION_max_Model_len=4096",
        (
            "4: OPTION_max_Model_len: warning: case matters: LMI 27 reads max_Model_len, but the key is max_model_len "
            "| write OPTION_MAX_MODEL_LEN"
        ),
        "container.env",
    ),
    Case("SEA337", LMI + "OPTION_MAX_MODEL_LEN=4096", "", "container.env"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_a_rule_says_at_its_boundary(case: Case) -> None:
    assert said(case.rule, case.text, name=case.name, given=case.given) == ([case.message] if case.message else [])
