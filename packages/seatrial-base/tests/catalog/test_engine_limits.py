"""What an engine refuses at load, held against what its own wheel and published reports say."""

from __future__ import annotations

import pytest

from seatrial_base.catalog.engine_limits import BUILDS, LIMITS, STORAGE, Start, loader_of, start_refusals
from seatrial_base.catalog.instances import ACCELERATORS
from seatrial_base.catalog.models import GATED, MODELS, TEXTLESS, given_instead_of_text, is_gated, resolve_model

A100, H100, T4 = "NVIDIA A100 80GB SXM4", "NVIDIA H100 SXM5 80GB", "NVIDIA T4"
CODER, QWEN_235B = "Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8", "Qwen/Qwen3-235B-A22B-FP8"
NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct-FP8"


def rows_of(
    name: str, engine: str, version: tuple[int, ...], degree: int, *, experts: int = 1, on: str = H100
) -> set[str]:
    known = resolve_model(name)
    assert known is not None, name
    start = Start(engine, version, known[1], degree, experts, on, architecture=known[0])
    return {each.row for each in start_refusals(start)}


@pytest.mark.parametrize(
    ("name", "engine", "version", "degree", "experts", "on", "rows"),
    [
        (CODER, "vllm", (0, 26, 0), 8, 1, A100, {"vllm-fp8-experts"}),  # 2,560 / 8 = 320
        (CODER, "vllm", (0, 26, 0), 8, 8, A100, set()),
        (CODER, "vllm", (0, 26, 0), 4, 1, A100, set()),
        (CODER, "vllm", (0, 29, 0), 8, 1, H100, set()),  # blocks of 64 from 0.29 on
        (CODER, "vllm", (0, 29, 0), 8, 1, A100, {"vllm-fp8-experts"}),  # by Triton's FP8 kernels alone
        (QWEN_235B, "vllm", (0, 28, 0), 8, 1, H100, {"vllm-fp8-experts"}),  # 1,536 / 8 = 192
        (QWEN_235B, "sglang", (0, 5, 23), 8, 1, H100, {"sglang-fp8-experts"}),
        (QWEN_235B, "sglang", (0, 5, 23), 8, 8, H100, set()),  # a rank has one KV head of 128
        (NEXT, "vllm", (0, 33, 0), 8, 8, H100, {"vllm-fp8-rows"}),  # vLLM pull request 52915: shared experts
        ("deepseek-ai/DeepSeek-R1", "vllm", (0, 26, 0), 8, 1, H100, set()),
        ("MiniMaxAI/MiniMax-M2.5", "vllm", (0, 26, 0), 8, 1, H100, {"vllm-fp8-experts"}),  # pull request 48173
        ("RedHatAI/Qwen3-235B-A22B-FP8-dynamic", "vllm", (0, 26, 0), 8, 1, H100, set()),  # a scale for each channel
        ("Qwen/Qwen3-32B-AWQ", "vllm", (0, 26, 0), 8, 1, H100, set()),  # 25,600 / 8 = 25 groups
        ("Qwen/Qwen2.5-72B-Instruct-AWQ", "vllm", (0, 26, 0), 8, 1, H100, set()),  # padded to 29,696
        ("Qwen/Qwen2.5-32B-Instruct-AWQ", "vllm", (0, 26, 0), 8, 1, H100, set()),  # 27,648 / 8 = 27 groups
        ("Qwen/Qwen2.5-14B-Instruct-AWQ", "vllm", (0, 26, 0), 8, 1, H100, {"vllm-group-rows"}),  # 13,824 / 8 = 13.5
        ("Qwen/Qwen3-30B-A3B-GPTQ-Int4", "vllm", (0, 26, 0), 8, 1, H100, set()),  # groups are halved down to 32
        ("Qwen/Qwen2.5-14B-Instruct-GPTQ-Int8", "vllm", (0, 26, 0), 8, 1, H100, {"vllm-group-rows"}),
        ("RedHatAI/Qwen2.5-14B-Instruct-quantized.w8a16", "vllm", (0, 26, 0), 8, 1, H100, set()),  # no groups
        ("RedHatAI/Qwen3-30B-A3B-quantized.w4a16", "vllm", (0, 26, 0), 8, 1, H100, {"vllm-group-experts"}),
        ("openai/gpt-oss-120b", "vllm", (0, 26, 0), 8, 1, H100, set()),
        ("openai/gpt-oss-20b", "vllm", (0, 26, 0), 1, 1, T4, {"vllm-capability"}),
        ("moonshotai/Kimi-K2-Thinking", "vllm", (0, 26, 0), 8, 1, H100, set()),
    ],
)
def test_degrees_cut_no_block(
    name: str, engine: str, version: tuple[int, ...], degree: int, experts: int, on: str, rows: set[str]
) -> None:
    assert rows_of(name, engine, version, degree, experts=experts, on=on) == rows


@pytest.mark.parametrize(
    ("engine", "version", "format_", "refused"),
    [
        ("vllm", (0, 23, 0), "GGUF", False),
        ("vllm", (0, 24, 0), "GGUF", True),
        ("vllm", (0, 27, 1), "bitsandbytes", False),
        ("vllm", (0, 28, 0), "bitsandbytes", True),
        ("tgi", (1, 1, 1), "awq", False),
    ],
)
def test_loaders_come_and_go_with_versions(
    engine: str, version: tuple[int, ...], format_: str, *, refused: bool
) -> None:
    assert bool(start_refusals(Start(engine, version, format_))) is refused


@pytest.mark.parametrize(
    ("option", "version", "loads"),
    [
        ("lmi-vllm", (27,), ("vllm", (0, 23, 1))),
        ("vllm", (0, 26, 0), ("vllm", (0, 26, 0))),
        ("vllm", (2, 1, 0), ("vllm", (0, 24, 0))),
        ("sglang", (1, 2, 0), ("sglang", (0, 5, 14))),
        ("tgi", (3, 3, 6), ("tgi", (3, 3, 6))),
    ],
)
def test_the_code_inside_a_container_loads(option: str, version: tuple[int, ...], loads: tuple[str, object]) -> None:
    assert loader_of(option, version) == loads


def test_every_row_has_a_source_and_a_day() -> None:
    tables = (BUILDS, STORAGE, LIMITS, TEXTLESS, GATED)
    assert all(row.source and row.date for table in tables for row in table.rows)
    assert {row.name for row in ACCELERATORS.rows if row.compute_capability is None} == {
        "AWS Inferentia2",
        "AWS Trainium1",
        "AWS Trainium2",
    }


def test_the_catalogs_models_generate_text_and_have_widths() -> None:
    assert [row.id for row in MODELS.rows if given_instead_of_text(row.id)] == []
    # A pruned model has MLPs of several widths.
    lacking = [row.id for row in MODELS.rows if not (row.mlp_width or row.expert_width)]
    assert lacking == ["nvidia/Llama-3_3-Nemotron-Super-49B-v1"]


@pytest.mark.parametrize(
    ("name", "gives"),
    [
        ("BAAI/bge-m3", "embeddings"),
        ("Qwen/Qwen3-Embedding-8B", "embeddings"),
        ("Alibaba-NLP/gte-Qwen2-7B-instruct", "embeddings"),
        ("intfloat/multilingual-e5-large", "embeddings"),
        ("sentence-transformers/all-MiniLM-L6-v2", "embeddings"),
        ("BAAI/bge-reranker-v2-m3", "embeddings"),
        ("Qwen/Qwen3-Reranker-8B", "scores"),
        ("cross-encoder/ms-marco-MiniLM-L-6-v2", "scores"),
        ("FacebookAI/xlm-roberta-large", "vectors of its input"),
        ("Qwen/Qwen3-8B", None),
        ("mistralai/Mistral-7B-Instruct-v0.2", None),
    ],
)
def test_models_without_text_are_known_by_name(name: str, gives: str | None) -> None:
    assert given_instead_of_text(name) == gives


@pytest.mark.parametrize(
    ("name", "gated"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", True),
        ("google/gemma-3-27b-it", True),
        ("google/gemma-4-31B", False),
        ("unsloth/Llama-3.3-70B-Instruct", False),
        ("Qwen/Qwen3-8B", False),
    ],
)
def test_gated_repositories_are_their_publishers(name: str, *, gated: bool) -> None:
    assert is_gated(name) is gated
