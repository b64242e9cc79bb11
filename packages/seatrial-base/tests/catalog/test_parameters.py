"""The counts of the catalog against what the makers published for the same weights."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.catalog.architecture import architecture_of
from seatrial_base.catalog.config_json import checked_config_json
from seatrial_base.catalog.models import find_model

# Totals of the published tensors, as the hub shows them; GPT-NeoX: the model card of EleutherAI/gpt-neox-20b.
PUBLISHED = {
    "meta-llama/Llama-2-7b-hf": 6_738_415_616,
    "mistralai/Mixtral-8x7B-v0.1": 46_702_792_704,
    "EleutherAI/gpt-neox-20b": 20_554_567_680,
    "google/gemma-2-9b": 9_241_705_984,
    "microsoft/phi-2": 2_779_683_840,
}
# What a name calls the size, in billions: the count must round to it, embeddings included.
NAMED = {
    "codellama/CodeLlama-34b-hf": 34,
    "mistralai/Mixtral-8x22B-v0.1": 141,
    "EleutherAI/pythia-12b": 12,
    "google/gemma-2-27b": 27,
    "google/gemma-3-1b-it": 1,
    "Qwen/Qwen1.5-4B": 4,
    "Qwen/Qwen1.5-14B": 14,
    "Qwen/Qwen1.5-72B": 72,
    "01-ai/Yi-6B": 6,
    "01-ai/Yi-34B": 34,
}
# Billions in total and active as the makers write them, and how many of the two embeddings the active count leaves out.
EXPERTS: dict[str, tuple[str, str, int]] = {
    "deepseek-ai/DeepSeek-V3": ("671", "37", 0),
    "deepseek-ai/DeepSeek-V2-Lite": ("15.7", "2.4", 1),
    "moonshotai/Kimi-K2-Instruct": ("1040", "32", 1),
    "openai/gpt-oss-120b": ("116.8", "5.1", 1),
    "openai/gpt-oss-20b": ("20.9", "3.6", 1),
    "Qwen/Qwen3-235B-A22B": ("235", "22", 0),
    "Qwen/Qwen3-30B-A3B": ("30.5", "3.3", 0),
    "Qwen/Qwen3-Coder-480B-A35B-Instruct": ("480", "35", 0),
    "Qwen/Qwen3-Next-80B-A3B-Instruct": ("80", "3", 2),
    "Qwen/Qwen3.5-397B-A17B": ("397", "17", 0),
    "MiniMaxAI/MiniMax-M2.5": ("230", "10", 1),
    "zai-org/GLM-4.5": ("355", "32", 2),
    "zai-org/GLM-4.5-Air": ("106", "12", 2),
    "zai-org/GLM-5": ("744", "40", 2),
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": ("109", "17", 0),
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct": ("400", "17", 0),
    "google/gemma-4-26B-A4B": ("25.2", "3.8", 0),
    "mistralai/Mixtral-8x7B-v0.1": ("46.7", "12.9", 0),
}
DENSE = {
    "google/gemma-3-12b-it": 11.8,  # the text part: 12.2 with the image encoder
    "google/gemma-3-27b-it": 27.0,
    "google/gemma-3-4b-it": 3.88,
    "google/gemma-4-31B": 30.7,
    "microsoft/phi-4": 14.7,
    "microsoft/Phi-4-mini-instruct": 3.84,
    "mistralai/Ministral-8B-Instruct-2410": 8.02,
    "mistralai/Mistral-Small-3.1-24B-Instruct-2503": 23.6,
    "mistralai/Mistral-Large-Instruct-2411": 123,
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1": 49.9,
    "Qwen/Qwen3.5-27B": 27,
    "allenai/OLMo-2-1124-7B": 7.3,
    "tiiuae/Falcon3-10B-Base": 10.3,
}
_WITHIN = 0.02


def _agrees(count: float, published: str) -> bool:
    """Tell whether a count is within 2 % of the published one, which is rounded to its last digit."""
    half = 0.5 * 0.1 ** len(published.partition(".")[2])
    return (float(published) - half) * (1 - _WITHIN) <= count / 1e9 <= (float(published) + half) * (1 + _WITHIN)


@pytest.mark.parametrize(("model_id", "published"), EXPERTS.items())
def test_a_mixture_of_experts_counts_what_is_published(model_id: str, published: tuple[str, str, int]) -> None:
    found, (total, active, left_out) = find_model(model_id), published

    assert found is not None
    assert _agrees(found.params_total, total)
    assert _agrees(found.params_active - left_out * found.vocab * found.hidden_size, active)


@pytest.mark.parametrize(("model_id", "billions"), DENSE.items())
def test_a_dense_model_counts_what_is_published(model_id: str, billions: float) -> None:
    found = find_model(model_id)

    assert found is not None
    assert found.params_total == found.params_active
    assert found.params_total / 1e9 == pytest.approx(billions, rel=_WITHIN)


@pytest.mark.parametrize(
    ("model_id", "layers", "width"),
    [
        ("deepseek-ai/DeepSeek-V3", 58, 2048),  # of 61 layers, 3 are dense
        ("meta-llama/Llama-4-Maverick-17B-128E-Instruct", 24, 8192),  # every other layer
        ("mistralai/Mixtral-8x7B-v0.1", 32, 14336),
        ("google/gemma-4-26B-A4B", 30, 704),
    ],
)
def test_the_routed_experts_are_told_from_the_rest(model_id: str, layers: int, width: int) -> None:
    found = find_model(model_id)

    assert found is not None
    assert found.experts is not None
    assert found.expert_params == layers * found.experts * 3 * found.hidden_size * width


@given(
    layers=st.integers(1, 100),
    dense=st.integers(0, 100),
    experts=st.integers(2, 512),
    chosen=st.integers(1, 16),
    shared=st.integers(0, 2),
)
def test_experts_never_make_more_active_than_total(
    layers: int, dense: int, experts: int, chosen: int, shared: int
) -> None:
    fields: dict[str, object] = {
        "model_type": "deepseek_v3",
        "hidden_size": 512,
        "intermediate_size": 1024,
        "moe_intermediate_size": 256,
        "num_hidden_layers": layers,
        "first_k_dense_replace": dense,
        "num_attention_heads": 8,
        "vocab_size": 1000,
        "max_position_embeddings": 4096,
        "n_routed_experts": experts,
        "num_experts_per_tok": min(chosen, experts),
        "n_shared_experts": shared,
        "kv_lora_rank": 64,
        "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16,
        "v_head_dim": 32,
    }
    found = architecture_of(checked_config_json(fields, "a test"), name="a", source="a test")

    assert 0 < found.params_active <= found.params_total
    assert 0 <= found.expert_params <= found.params_total


@pytest.mark.parametrize(("model_id", "published"), PUBLISHED.items())
def test_the_count_is_the_published_one(model_id: str, published: int) -> None:
    found = find_model(model_id)

    assert found is not None
    assert found.params_total == published


@pytest.mark.parametrize(("model_id", "billions"), NAMED.items())
def test_the_count_is_the_size_of_the_name(model_id: str, billions: int) -> None:
    found = find_model(model_id)

    assert found is not None
    assert round(found.params_total / 1e9) == billions
