from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.planner.predict.memory import (
    activation_bytes,
    adapters_bytes,
    fit_memory,
    kv_bytes_per_token,
    missing_bytes,
    sequences_held,
    weights_bytes,
)
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model
from seatrial_base.units import GB
from seatrial_lint.engines.engine_options import Lora

if TYPE_CHECKING:
    from seatrial.documents.prediction import MemoryFit
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.instances import Instance


def model(hub_id: str) -> Architecture:
    found = find_model(hub_id)
    assert found is not None
    return found


def instance(instance_type: str) -> Instance:
    found = find_instance(instance_type)
    assert found is not None
    return found


def fit(hub_id: str, instance_type: str, tokens: int, degree: int = 1, quantization: str | None = None) -> MemoryFit:
    engine = find_engine("tgi", "1.1.0")
    return fit_memory(
        model(hub_id),
        instance(instance_type),
        engine,
        degree=degree,
        quantization=quantization,
        tokens=tokens,
        batched_tokens=4_096,
    )


LLAMA_2_7B = "meta-llama/Llama-2-7b-hf"


def test_the_article_counts_four_users_because_it_reserves_nothing() -> None:
    # 24 GB of an A10G, 14 GB of weights, 4,096 tokens of 2 x 2 x 32 x 32 x 128 bytes: 10e9 / 2.147e9 = 4.66
    assert (24 * GB - 14 * GB) // (4_096 * kv_bytes_per_token(model(LLAMA_2_7B), 1)) == 4
    # with the 2.84 GB of activations and reserve that the published curve lacks it is three
    assert fit(LLAMA_2_7B, "ml.g5.2xlarge", tokens=4_096).kv_limited_batch == 3


def test_the_memory_of_one_accelerator_is_divided_completely() -> None:
    found = fit(LLAMA_2_7B, "ml.g5.12xlarge", tokens=512, degree=4)

    assert found.weights_bytes == 6_738_415_616 * 2 // 4
    assert found.kv_bytes_per_token == 2 * 32 * 32 * 128 * 2 // 4
    parts = (found.weights_bytes, found.activation_bytes, found.reserve_bytes, found.kv_room_bytes)
    assert sum(parts) == found.accelerator_memory_bytes


@pytest.mark.parametrize(("degree", "kv_bytes"), [(1, 122_880), (2, 61_440), (8, 15_360), (16, 15_360)])
def test_kv_heads_are_spread_until_each_accelerator_holds_one(degree: int, kv_bytes: int) -> None:
    assert kv_bytes_per_token(model("tiiuae/falcon-40b"), degree) == kv_bytes


@pytest.mark.parametrize(
    ("quantization", "gigabytes"), [(None, 141.1), ("fp8", 72.7), ("w8a16", 72.7), ("awq", 39.8), ("gptq", 39.8)]
)
def test_quantization_leaves_the_embeddings_at_16_bits(quantization: str | None, gigabytes: float) -> None:
    # the AWQ checkpoint of Llama 3 70B takes 39.8 GB
    assert round(weights_bytes(model("meta-llama/Meta-Llama-3-70B"), quantization) / GB, 1) == gigabytes


@pytest.mark.parametrize(
    ("version", "instance_type", "reserve"),
    [
        ("24", "ml.p5.4xlarge", round(81_920 * 2**20 * 0.1)),  # vLLM 0.19: graphs are captured in what is left
        ("27", "ml.p5.4xlarge", round(81_920 * 2**20 * 0.08) + 1_117_000_000),  # 0.23 counts them within its 92 %
        ("24", "ml.g5.2xlarge", 2_440_000_000),
        ("27", "ml.g5.2xlarge", round(22_888 * 2**20 * 0.08) + 1_117_000_000),
    ],
)
def test_vllm_leaves_free_what_its_release_does_not_take(version: str, instance_type: str, reserve: int) -> None:
    found = fit_memory(
        model(LLAMA_2_7B),
        instance(instance_type),
        find_engine("lmi", version),
        degree=1,
        quantization=None,
        tokens=512,
        batched_tokens=2_048,
    )

    assert found.reserve_bytes == reserve


def test_a_shared_prefix_is_in_the_cache_once_where_more_run_than_there_are_prefixes() -> None:
    assert [sequences_held(10_000, 1_000, 0.0, 800, groups) for groups in (1, 10, 50)] == [46, 10, 10]
    assert sequences_held(20_000, 1_000, 0.0, 800, 10) == 60


def test_a_model_that_does_not_fit_says_what_is_missing() -> None:
    found = fit("meta-llama/Llama-2-13b-hf", "ml.g5.2xlarge", tokens=512)

    assert found.kv_limited_batch == 0
    weights, one_sequence, activations = 13_015_864_320 * 2, 512 * 819_200, 12 * 4_096 * 5_120 * 2
    needed = weights + activations + 2_440_000_000 + one_sequence
    assert missing_bytes(found, 512) == needed - 22_888 * 2**20


def test_activations_grow_with_the_prompt_tokens_of_an_iteration() -> None:
    assert activation_bytes(model(LLAMA_2_7B), 4_096, 1) == 12 * 4_096 * 4_096 * 2
    assert activation_bytes(model(LLAMA_2_7B), 8_192, 4) == 2 * activation_bytes(model(LLAMA_2_7B), 4_096, 4)


@pytest.mark.parametrize(
    ("hub_id", "lora", "degree", "experts", "expected"),
    [
        # 32 * (q 8,192 + k, v 2 * 5,120 + o 8,192 + gate, up, down 3 * 18,432) * 32 layers * 2 bytes * 20
        ("meta-llama/Llama-3.1-8B", Lora(max_adapters=20, max_rank=32), 1, 1, 3_355_443_200),
        ("meta-llama/Llama-3.1-8B", Lora(max_adapters=20, max_rank=32, fully_sharded=True), 4, 1, 838_860_800),
        # The hidden size stays whole: 16 * (4 + 3) * 4,096, and a quarter of the 53,248 columns of the other sides.
        ("meta-llama/Llama-3.1-8B", Lora(), 4, 1, 32 * 2 * 16 * (7 * 4096 + 53248 // 4)),
        # Every expert has its own three: 48 * 2 * 16 * (attention 4 * 2,048 + 9,216, experts 128 * 3 * (2,048 + 768))
        ("Qwen/Qwen3-30B-A3B", Lora(max_adapters=1), 1, 1, 48 * 2 * 16 * (8192 + 9216 + 128 * 3 * 2816)),
        ("Qwen/Qwen3-30B-A3B", Lora(max_adapters=1), 4, 4, 48 * 2 * 16 * (8192 + 9216 // 4 + 32 * 3 * 2816)),
        ("meta-llama/Llama-3.1-8B", None, 1, 1, 0),
    ],
)
def test_adapters_take_a_slot_in_every_linear_layer(
    hub_id: str, lora: Lora | None, degree: int, experts: int, expected: int
) -> None:
    assert adapters_bytes(model(hub_id), lora, degree, experts_groups=experts) == expected


@given(memory=st.integers(1, 300 * GB), more=st.integers(0, 300 * GB), tokens=st.integers(1, 10_000))
def test_more_memory_never_lowers_the_batch(memory: int, more: int, tokens: int) -> None:
    engine, shape, base = find_engine("lmi", "27"), model(LLAMA_2_7B), instance("ml.g5.2xlarge")

    def batch(size: int) -> int:
        larger = replace(base, accelerator_memory_bytes=size)
        fit = fit_memory(shape, larger, engine, degree=1, quantization=None, tokens=tokens, batched_tokens=2_048)
        return fit.kv_limited_batch

    assert batch(memory + more) >= batch(memory)
