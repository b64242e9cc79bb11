"""Keys that contradict each other, and limits. Each row: what is written, and what is said of it, or nothing."""

from __future__ import annotations

import pytest

from seatrial.serving.lint.lint import Given
from tests.serving.lint.cases import BASE, LMI, TGI, Case, said

CASES = (
    Case(
        "SEA319",
        "option.model_id=org/model\noption.revision=abc\noption.max_num_seqs=64",
        (
            "3: option.max_num_seqs: error: LMI always sets max_rolling_batch_size: vLLM does not start if "
            "max_num_seqs differs | write option.max_rolling_batch_size only"
        ),
    ),
    Case(
        "SEA319",
        "option.model_id=org/model\noption.revision=abc\noption.max_num_seqs=64\noption.max_rolling_batch_size=64",
        "",
    ),
    Case(
        "SEA319",
        BASE + "option.async_mode=true\noption.rolling_batch=vllm",
        (
            "5: option.rolling_batch: error: the asynchronous handler does its own batching and excludes "
            "rolling_batch=vllm | write rolling_batch=disable"
        ),
    ),
    Case("SEA319", BASE + "option.async_mode=true\noption.rolling_batch=disable", ""),
    Case(
        "SEA319",
        BASE + "batch_size=2\noption.rolling_batch=vllm",
        (
            "4: batch_size: error: batch_size=2 selects dynamic batching and disables rolling_batch=vllm | "
            "leave batch_size out, or write rolling_batch=disable"
        ),
    ),
    Case("SEA319", BASE + "batch_size=1\noption.rolling_batch=vllm", ""),
    Case(
        "SEA319",
        TGI + "MAX_INPUT_TOKENS=1000\nMAX_INPUT_LENGTH=1000",
        (
            "5: MAX_INPUT_LENGTH: error: TGI does not start with both MAX_INPUT_LENGTH and MAX_INPUT_TOKENS | "
            "leave MAX_INPUT_LENGTH out"
        ),
        "container.env",
    ),
    Case("SEA319", TGI + "MAX_INPUT_TOKENS=1000", "", "container.env"),
    Case(
        "SEA319",
        TGI + "DTYPE=float16\nHF_MODEL_QUANTIZE=awq",
        ("4: DTYPE: error: TGI does not start with both DTYPE and QUANTIZE=awq | leave DTYPE out"),
        "container.env",
    ),
    Case("SEA319", TGI + "DTYPE=float16\nHF_MODEL_QUANTIZE=bitsandbytes-nf4", "", "container.env"),
    Case(
        "SEA319",
        TGI + "DTYPE=float16\nHF_MODEL_QUANTIZE=bitsandbytes",
        ("4: DTYPE: error: TGI does not start with both DTYPE and QUANTIZE=bitsandbytes | leave DTYPE out"),
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
        "4: HF_MODEL_QUANTIZE: error: TGI can't shard exl2 weights | write SM_NUM_GPUS=1",
        "container.env",
    ),
    Case("SEA319", TGI + "HF_MODEL_QUANTIZE=exl2", "", "container.env"),
    Case(
        "SEA319",
        LMI + "TENSOR_PARALLEL_DEGREE=4\nOPTION_TENSOR_PARALLEL_DEGREE=2",
        (
            "5: OPTION_TENSOR_PARALLEL_DEGREE: error: TENSOR_PARALLEL_DEGREE=4 on line 4 sets the same option to "
            "another value | keep one of them"
        ),
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
        (
            "5: option.max_rolling_batch_prefill_tokens: error: 4095 tokens per step are below the sequence length "
            "4096, without chunked prefill | write at least 4096, or enable chunked prefill"
        ),
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
        (
            "4: MAX_INPUT_TOKENS: error: MAX_INPUT_TOKENS=2048 is not below MAX_TOTAL_TOKENS=2048, and TGI "
            "does not start | write at most 2047"
        ),
        "container.env",
    ),
    Case("SEA322", TGI + "MAX_INPUT_TOKENS=2047\nMAX_TOTAL_TOKENS=2048", "", "container.env"),
    Case(
        "SEA322",
        TGI + "MAX_TOTAL_TOKENS=2049\nMAX_BATCH_TOTAL_TOKENS=2048",
        (
            "4: MAX_TOTAL_TOKENS: error: MAX_TOTAL_TOKENS=2049 is above MAX_BATCH_TOTAL_TOKENS=2048, and "
            "TGI does not start | write at most 2048"
        ),
        "container.env",
    ),
    Case("SEA322", TGI + "MAX_TOTAL_TOKENS=2048\nMAX_BATCH_TOTAL_TOKENS=2048", "", "container.env"),
    Case(
        "SEA322",
        TGI + "MAX_BATCH_PREFILL_TOKENS=2049\nMAX_BATCH_TOTAL_TOKENS=2048",
        (
            "4: MAX_BATCH_PREFILL_TOKENS: error: MAX_BATCH_PREFILL_TOKENS=2049 is above "
            "MAX_BATCH_TOTAL_TOKENS=2048, and TGI does not start | write at most 2048"
        ),
        "container.env",
    ),
    Case("SEA322", TGI + "MAX_BATCH_PREFILL_TOKENS=2048\nMAX_BATCH_TOTAL_TOKENS=2048", "", "container.env"),
    Case(
        "SEA322",
        TGI + "MAX_INPUT_LENGTH=1024\nMAX_BATCH_PREFILL_TOKENS=1023",
        (
            "5: MAX_BATCH_PREFILL_TOKENS: error: MAX_BATCH_PREFILL_TOKENS=1023 is below "
            "MAX_INPUT_LENGTH=1024, and TGI does not start | write at least 1024"
        ),
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
        "4: MAX_BATCH_SIZE: error: MAX_BATCH_SIZE must be above 0, or TGI does not start | write 1",
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
        (
            "6: option.speculative_draft_model: error: lmi-dist does not start with LoRA and speculative "
            "decoding together | leave one of them out"
        ),
        given=Given(engine="lmi", version="lmi12"),
    ),
    Case(
        "SEA332",
        BASE
        + (
            ""
            "option.rolling_batch=lmi-dist\nengine=MPI\noption.speculative_draft_model=org/draft\noption.tensor_parallel_degree=4\noption.draft_model_tp_size=2"
        ),
        "8: option.draft_model_tp_size: error: the draft model runs on 1 GPU or on all 4, not on 2 | write 1 or 4",
        given=Given(engine="lmi", version="lmi12"),
    ),
    Case(
        "SEA332",
        BASE + 'option.speculative_config={"method": "eagle3", "num_speculative_tokens": 3}',
        ('4: option.speculative_config: error: eagle3 needs a draft model, but none is set | set "model": …'),
    ),
    Case(
        "SEA332",
        BASE + 'option.speculative_config={"method": "eagle3", "model": "org/heads", "num_speculative_tokens": 3}',
        "",
    ),
    Case(
        "SEA332",
        BASE + 'option.speculative_config={"method": "ngram"}',
        (
            "4: option.speculative_config: error: how many tokens are drafted is not said, and vLLM does "
            'not start | set "num_speculative_tokens": 4'
        ),
    ),
    Case(
        "SEA332",
        BASE + "option.rolling_batch=vllm\noption.speculative_model=org/draft\noption.num_speculative_tokens=3",
        (
            "5: option.speculative_model: error: LMI speculative decoding in 12 needs vLLM's second block manager | "
            "write option.use_v2_block_manager=true beside it"
        ),
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
def test_what_a_rule_says_at_its_boundary(case: Case) -> None:
    assert said(case.rule, case.text, name=case.name, given=case.given) == ([case.message] if case.message else [])
