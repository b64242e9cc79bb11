"""Keys that the container doesn't read. Each row: what is written, and what is said of it, or nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from seatrial_base.catalog.engine_options import all_known_options
from seatrial_lint.lint.checks.keys import RENAMED, SUCCESSORS, TRANSLATED
from seatrial_lint.lint.lint import Given
from tests.lint.cases import BASE, LMI, TGI, VLLM, Case, linted, said

if TYPE_CHECKING:
    from seatrial_base.catalog.engine_versions import EngineName

CASES = (
    Case(
        "SEA313",
        BASE + "option.max_rolling_batch=64",
        "4: option.max_rolling_batch: warning",
    ),
    Case("SEA313", BASE, ""),
    Case(
        "SEA313",
        BASE + "option.entirely_made_up_thing=1",
        "4: option.entirely_made_up_thing: warning",
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
        "4: job_queue_sise: warning",
    ),
    Case("SEA313", BASE + "job_queue_size=10", ""),
    Case(
        "SEA313",
        TGI + "MAX_BATCH_PREFIL_TOKENS=4096",
        "4: MAX_BATCH_PREFIL_TOKENS: warning",
        "container.env",
    ),
    Case("SEA313", TGI + "MAX_BATCH_PREFILL_TOKENS=4096\nSOME_VARIABLE_OF_MINE=1", "", "container.env"),
    Case(
        "SEA313",
        VLLM + "SM_VLLM_MAX_MODEL_LENGTH=4096",
        "4: SM_VLLM_MAX_MODEL_LENGTH: warning",
        "container.env",
        Given(engine="vllm", version="0.26.0"),
    ),
    Case("SEA313", VLLM + "SM_VLLM_MAX_MODEL_LEN=4096", "", "container.env", Given(engine="vllm", version="0.26.0")),
    Case(
        "SEA314",
        TGI + "MAX_INPUT_LENGTH=1024",
        "4: MAX_INPUT_LENGTH: warning",
        "container.env",
        Given(engine="tgi", version="2.0.0"),
    ),
    Case("SEA314", TGI + "MAX_INPUT_TOKENS=1024", "", "container.env", Given(engine="tgi", version="2.0.0")),
    Case(
        "SEA314",
        TGI + "USE_PREFIX_CACHING=1",
        "4: USE_PREFIX_CACHING: warning",
        "container.env",
        Given(engine="tgi", version="2.4.0"),
    ),
    Case("SEA314", TGI + "PREFIX_CACHING=1", "", "container.env", Given(engine="tgi", version="2.4.0")),
    Case(
        "SEA314",
        BASE + "option.rolling_batch=lmi-dist",
        "4: option.rolling_batch: warning",
        given=Given(engine="lmi", version="lmi15"),
    ),
    Case("SEA314", BASE + "option.rolling_batch=vllm", "", given=Given(engine="lmi", version="lmi15")),
    Case(
        "SEA315",
        BASE + "option.swap_space=4",
        "4: option.swap_space: warning",
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case(
        "SEA315",
        BASE + "option.rope_scaling={}",
        "4: option.rope_scaling: warning",
        given=Given(engine="lmi", version="lmi17"),
    ),
    Case(
        "SEA315",
        BASE + "option.paged_attention=True\noption.rolling_batch=lmi-dist\nengine=MPI",
        "4: option.paged_attention: warning",
        given=Given(engine="lmi", version="0.26.0"),
    ),
    Case(
        "SEA315",
        BASE + "option.max_input_len=1024",
        "4: option.max_input_len: warning",
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case(
        "SEA315",
        TGI + "ROPE_SCALING=linear",
        "4: ROPE_SCALING: warning",
        "container.env",
        Given(engine="tgi", version="0.9.3"),
    ),
    Case(
        "SEA316",
        BASE + "option.output_formatter=jsonlines",
        "4: option.output_formatter: warning",
        given=Given(engine="lmi", version="lmi27"),
    ),
    Case("SEA316", BASE + "option.rolling_batch=vllm\noption.output_formatter=jsonlines", ""),
    Case(
        "SEA316",
        BASE + "option.speculative_draft_model=org/draft",
        "4: option.speculative_draft_model: warning",
        given=Given(engine="lmi", version="lmi15"),
    ),
    Case(
        "SEA316",
        BASE + "model_loading_timeout=600",
        "4: model_loading_timeout: warning",
    ),
    Case("SEA316", BASE + "tensor_parallel_degree=4\ndtype=fp16\nnormalize=false", ""),
    Case("SEA316", BASE + "option.tensor_parallel_degree=4", ""),
    Case(
        "SEA316",
        TGI + "MESSAGES_API_ENABLED=true",
        "4: MESSAGES_API_ENABLED: warning",
        "container.env",
        Given(engine="tgi", version="2.4.0"),
    ),
    Case(
        "SEA316",
        VLLM + "SM_VLLM_ENABLE_PREFIX_CACHING=false",
        "4: SM_VLLM_ENABLE_PREFIX_CACHING: warning",
        "container.env",
    ),
    Case("SEA316", VLLM + "SM_VLLM_NO_ENABLE_PREFIX_CACHING=true", "", "container.env"),
    Case(
        "SEA316",
        LMI + "SM_VLLM_DTYPE=auto",
        "4: SM_VLLM_DTYPE: warning",
        "container.env",
        Given(engine="lmi", version="lmi27"),
    ),
    Case("SEA316", LMI, "", "container.env", Given(engine="lmi", version="lmi27")),
    Case(
        "SEA316",
        LMI + "MAX_TOTAL_TOKENS=4096",
        "4: MAX_TOTAL_TOKENS: warning",
        "container.env",
        Given(engine="lmi", version="lmi27"),
    ),
    Case("SEA316", LMI + "OPTION_MAX_MODEL_LEN=4096", "", "container.env", Given(engine="lmi", version="lmi27")),
    Case(
        "SEA320",
        BASE + "option.max_model_len=1024\noption.max_model_len=2048",
        "4: option.max_model_len: warning",
    ),
    Case("SEA320", BASE + "option.max_model_len=1024", ""),
    Case(
        "SEA320",
        BASE + "option.max_model_len=1024\noption.max_model_len=1024",
        "4: option.max_model_len: warning",
    ),
    Case(
        "SEA337",
        BASE + "option.Max_Model_Len=4096",
        "4: option.Max_Model_Len: warning",
    ),
    Case("SEA337", BASE + "option.max_model_len=4096", ""),
    Case(
        "SEA337",
        BASE + "option.entrypoint=djl_python.lmi_vllm.vllm_async_service",
        "4: option.entrypoint: warning",
    ),
    Case("SEA337", BASE + "option.entryPoint=djl_python.lmi_vllm.vllm_async_service", ""),
    Case(
        "SEA337",
        LMI + "OPTION_max_Model_len=4096",
        "4: OPTION_max_Model_len: warning",
        "container.env",
    ),
    Case("SEA337", LMI + "OPTION_MAX_MODEL_LEN=4096", "", "container.env"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_rule_finds_its_boundary(case: Case) -> None:
    assert case.found() == ([case.place] if case.place else [])


@pytest.mark.parametrize("version", ["lmi12", "lmi14", "lmi16", "lmi27"])
def test_a_hint_is_looked_up_in_the_tables_before_it_is_given(version: str) -> None:
    """Djl-serving issue 2648: the key that was named is refused by the same linter."""
    (told,) = said(
        "SEA316", "HF_MODEL_ID=s3://w/q/\nTENSOR_PARALLEL_SIZE=8\n", name="c.env", given=Given("lmi", version)
    )
    assert "OPTION_TENSOR_PARALLEL_DEGREE" in told.partition("| ")[2]


NAMES = sorted({name for row in RENAMED.rows for name in (row.name,)} | {one.name for one in SUCCESSORS.rows})
KEYS = ("SEA313", "SEA314", "SEA315", "SEA316", "SEA337")


@pytest.mark.parametrize("engine", ["lmi", "tgi", "vllm", "sglang"])
def test_no_hint_names_a_key_that_the_linter_refuses(engine: EngineName) -> None:
    prefix = {"lmi": "OPTION_", "tgi": "", "vllm": "SM_VLLM_", "sglang": "SM_SGLANG_"}[engine]
    versions = {"lmi": ("lmi9", "lmi12", "lmi16", "lmi27"), "tgi": ("1.4.0", "3.3.6"), "vllm": ("0.11.0", "0.26.0")}
    options = {name for row in all_known_options() for name in row.options} | {*NAMES, *TRANSLATED}
    refused: list[str] = []
    for version in versions.get(engine, ("0.5.20",)):
        given = Given(engine, version)
        for name in sorted(options):
            for key in {name.upper(), f"{prefix}{name.upper()}", f"OPTION_{name.upper()}"}:
                for one in linted(f"{key}=1\n", name="c.env", given=given).findings:
                    named = re.fullmatch(r"(?:write|did you mean) ([A-Z][A-Z_]+)(?:\?| only)?", one.hint)
                    again = linted(f"{named[1]}=1\n", name="c.env", given=given).findings if named else ()
                    refused += [f"{key}: {one.hint}: {two.message}" for two in again if two.rule in KEYS]
    assert refused == []


@pytest.mark.parametrize(
    ("engine", "version", "key", "word"),
    [
        ("vllm", "0.28.0", "SM_VLLM_CALCULATE_KV_SCALES", "was removed (last seen in vLLM 0.26.0)"),
        ("vllm", "0.26.0", "SM_VLLM_CALCULATE_KV_SCALES", ""),
        ("vllm", "0.28.0", "SM_VLLM_MAX_NUM_QUEUED_TOKENS", "is newer (first seen in vLLM 0.29.0)"),
        ("vllm", "0.29.0", "SM_VLLM_MAX_NUM_QUEUED_TOKENS", ""),
        ("vllm", "0.26.0", "SM_VLLM_KV_OFFLOADING_SIZE", ""),
        ("sglang", "0.5.20", "SM_SGLANG_CUDA_GRAPH_MAX_BS", "was removed (last seen in SGLang 0.5.19)"),
        ("sglang", "0.5.19", "SM_SGLANG_CUDA_GRAPH_MAX_BS", ""),
        ("sglang", "0.5.20", "SM_SGLANG_ATTN_DP_SIZE", "is newer (first seen in SGLang 0.5.22)"),
        ("sglang", "0.5.23", "SM_SGLANG_MAX_QUEUED_REQUESTS", ""),
    ],
)
def test_options_are_those_of_the_version(engine: EngineName, version: str, key: str, word: str) -> None:
    value = "true" if "ENABLE" in key or "CALCULATE" in key else "1"
    found = said("SEA315", f"{key}={value}\n", name="c.env", given=Given(engine, version))
    assert [word in one for one in found] == [True] * bool(word)
