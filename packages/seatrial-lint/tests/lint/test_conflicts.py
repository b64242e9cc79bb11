"""Keys that contradict each other, and limits. Each row: what is written, and what is said of it, or nothing."""

from __future__ import annotations

import pytest

from seatrial_lint.lint.lint import Given
from tests.lint.cases import BASE, LMI, TGI, Case

CASES = (
    Case(
        "SEA319",
        "option.model_id=org/model\noption.revision=abc\noption.max_num_seqs=64",
        "3: option.max_num_seqs: error",
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case(
        "SEA319",
        "option.model_id=org/model\noption.revision=abc\noption.max_num_seqs=64\noption.max_rolling_batch_size=64",
        "",
    ),
    Case(
        "SEA319",
        BASE + "option.async_mode=true\noption.rolling_batch=vllm",
        "5: option.rolling_batch: error",
    ),
    Case("SEA319", BASE + "option.async_mode=true\noption.rolling_batch=disable", ""),
    Case(
        "SEA319",
        BASE + "batch_size=2\noption.rolling_batch=vllm",
        "4: batch_size: error",
    ),
    Case("SEA319", BASE + "batch_size=1\noption.rolling_batch=vllm", ""),
    Case(
        "SEA319",
        TGI + "MAX_INPUT_TOKENS=1000\nMAX_INPUT_LENGTH=1000",
        "5: MAX_INPUT_LENGTH: error",
        "container.env",
    ),
    Case("SEA319", TGI + "MAX_INPUT_TOKENS=1000", "", "container.env"),
    Case(
        "SEA319",
        TGI + "DTYPE=float16\nHF_MODEL_QUANTIZE=awq",
        "4: DTYPE: error",
        "container.env",
    ),
    Case("SEA319", TGI + "DTYPE=float16\nHF_MODEL_QUANTIZE=bitsandbytes-nf4", "", "container.env"),
    Case(
        "SEA319",
        TGI + "DTYPE=float16\nHF_MODEL_QUANTIZE=bitsandbytes",
        "4: DTYPE: error",
        "container.env",
        Given(engine="tgi", version="1.1.1"),
    ),
    Case(
        "SEA319",
        TGI + "DTYPE=float16\nHF_MODEL_QUANTIZE=bitsandbytes",
        "",
        "container.env",
        Given(engine="tgi", version="1.2.0"),
    ),
    Case(
        "SEA319",
        "HF_MODEL_ID=org/model\nHF_MODEL_REVISION=abc\nSM_NUM_GPUS=2\nHF_MODEL_QUANTIZE=exl2",
        "4: HF_MODEL_QUANTIZE: error",
        "container.env",
    ),
    Case("SEA319", TGI + "HF_MODEL_QUANTIZE=exl2", "", "container.env"),
    Case(
        "SEA319",
        LMI + "TENSOR_PARALLEL_DEGREE=4\nOPTION_TENSOR_PARALLEL_DEGREE=2",
        "5: OPTION_TENSOR_PARALLEL_DEGREE: error",
        "container.env",
    ),
    Case("SEA319", LMI + "TENSOR_PARALLEL_DEGREE=4\nOPTION_TENSOR_PARALLEL_DEGREE=4", "", "container.env"),
    Case(
        "SEA319",
        BASE
        + (
            ""
            "option.max_model_len=4096\noption.max_rolling_batch_prefill_tokens=4095\noption.enable_chunked_prefill=false"
        ),
        "5: option.max_rolling_batch_prefill_tokens: error",
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case(
        "SEA319",
        BASE
        + (
            ""
            "option.max_model_len=4096\noption.max_rolling_batch_prefill_tokens=4096\noption.enable_chunked_prefill=false"
        ),
        "",
    ),
    Case(
        "SEA322",
        TGI + "MAX_INPUT_TOKENS=2048\nMAX_TOTAL_TOKENS=2048",
        "4: MAX_INPUT_TOKENS: error",
        "container.env",
    ),
    Case("SEA322", TGI + "MAX_INPUT_TOKENS=2047\nMAX_TOTAL_TOKENS=2048", "", "container.env"),
    Case(
        "SEA322",
        TGI + "MAX_TOTAL_TOKENS=2049\nMAX_BATCH_TOTAL_TOKENS=2048",
        "4: MAX_TOTAL_TOKENS: error",
        "container.env",
    ),
    Case("SEA322", TGI + "MAX_TOTAL_TOKENS=2048\nMAX_BATCH_TOTAL_TOKENS=2048", "", "container.env"),
    Case(
        "SEA322",
        TGI + "MAX_BATCH_PREFILL_TOKENS=2049\nMAX_BATCH_TOTAL_TOKENS=2048",
        "4: MAX_BATCH_PREFILL_TOKENS: error",
        "container.env",
    ),
    Case("SEA322", TGI + "MAX_BATCH_PREFILL_TOKENS=2048\nMAX_BATCH_TOTAL_TOKENS=2048", "", "container.env"),
    Case(
        "SEA322",
        TGI + "MAX_INPUT_LENGTH=1024\nMAX_BATCH_PREFILL_TOKENS=1023",
        "5: MAX_BATCH_PREFILL_TOKENS: error",
        "container.env",
        Given(engine="tgi", version="1.4.5"),
    ),
    Case(
        "SEA322",
        TGI + "MAX_INPUT_LENGTH=1024\nMAX_BATCH_PREFILL_TOKENS=1024",
        "",
        "container.env",
        Given(engine="tgi", version="1.4.5"),
    ),
    Case(
        "SEA322",
        TGI + "MAX_BATCH_SIZE=0",
        "4: MAX_BATCH_SIZE: error",
        "container.env",
    ),
    Case("SEA322", TGI + "MAX_BATCH_SIZE=1", "", "container.env"),
    Case(
        "SEA332",
        BASE
        + (
            ""
            "option.rolling_batch=lmi-dist\nengine=MPI\noption.speculative_draft_model=org/draft\noption.enable_lora=true"
        ),
        "6: option.speculative_draft_model: error",
        given=Given(engine="lmi", version="lmi12"),
    ),
    Case(
        "SEA332",
        BASE
        + (
            ""
            "option.rolling_batch=lmi-dist\nengine=MPI\noption.speculative_draft_model=org/draft\noption.tensor_parallel_degree=4\noption.draft_model_tp_size=2"
        ),
        "8: option.draft_model_tp_size: error",
        given=Given(engine="lmi", version="lmi12"),
    ),
    Case(
        "SEA332",
        BASE + 'option.speculative_config={"method": "eagle3", "num_speculative_tokens": 3}',
        "4: option.speculative_config: error",
    ),
    Case(
        "SEA332",
        BASE + 'option.speculative_config={"method": "eagle3", "model": "org/heads", "num_speculative_tokens": 3}',
        "",
    ),
    Case(
        "SEA332",
        BASE + 'option.speculative_config={"method": "ngram"}',
        "4: option.speculative_config: error",
    ),
    Case(
        "SEA332",
        BASE + "option.rolling_batch=vllm\noption.speculative_model=org/draft\noption.num_speculative_tokens=3",
        "5: option.speculative_model: error",
        given=Given(engine="lmi", version="lmi12"),
    ),
    Case(
        "SEA332",
        BASE
        + (
            ""
            "option.rolling_batch=vllm\noption.speculative_model=org/draft\noption.num_speculative_tokens=3\noption.use_v2_block_manager=true"
        ),
        "",
        given=Given(engine="lmi", version="lmi12"),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_rule_finds_its_boundary(case: Case) -> None:
    assert case.found() == ([case.place] if case.place else [])
