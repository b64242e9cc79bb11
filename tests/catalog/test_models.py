from __future__ import annotations

import pytest

from seatrial.catalog import models


@pytest.mark.parametrize(
    ("hub_id", "architecture"),
    [
        ("meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-7b-hf"),
        ("meta-llama/Llama-2-7b-chat-hf", "meta-llama/Llama-2-7b-hf"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "meta-llama/Meta-Llama-3-8B"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B"),
        ("meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"),
        ("tiiuae/falcon-40b-instruct", "tiiuae/falcon-40b"),
        ("tiiuae/falcon-180B-chat", "tiiuae/falcon-180B"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mistralai/Mixtral-8x7B-v0.1"),
        ("MISTRALAI/mixtral-8x7b-v0.1", "mistralai/Mixtral-8x7B-v0.1"),
    ],
)
def test_a_tuned_model_shares_the_architecture_of_its_base(hub_id: str, architecture: str) -> None:
    found = models.find(hub_id)

    assert found is not None
    assert found.id == architecture


def test_an_alias_may_ship_another_context() -> None:
    base, tuned = models.find("Qwen/Qwen2.5-7B"), models.find("Qwen/Qwen2.5-7B-Instruct")

    assert base is not None
    assert tuned is not None
    assert (base.max_context, tuned.max_context) == (131_072, 32_768)


@pytest.mark.parametrize("hub_id", ["meta-llama/Llama-2-7b-chatty-hf", "someone/else", ""])
def test_an_unknown_model_is_no_error(hub_id: str) -> None:
    assert models.find(hub_id) is None


def test_names_the_nearest() -> None:
    assert models.nearest("meta-llama/Llama-2-7b")[0] == "meta-llama/Llama-2-7b-hf"


def test_falcon_runs_attention_beside_its_mlp() -> None:
    parallel = {model.family for model in models.every() if model.parallel_attention}

    assert parallel == {"falcon"}


def test_deepseek_v3_has_latent_attention() -> None:
    latent = [model.id for model in models.every() if model.is_mla]

    assert latent == ["deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-V3"]


def test_a_sliding_window_bounds_the_cached_tokens() -> None:
    mistral, llama = models.find("mistralai/Mistral-7B-v0.1"), models.find("meta-llama/Llama-2-7b-hf")

    assert mistral is not None
    assert llama is not None
    assert (mistral.cached_tokens(4_000), mistral.cached_tokens(9_000)) == (4_000, 4_096)
    assert llama.cached_tokens(9_000) == 9_000


def test_a_mixture_of_experts_says_how_many() -> None:
    found = models.find("mistralai/Mixtral-8x7B-v0.1")

    assert found is not None
    assert (found.experts, found.experts_per_token) == (8, 2)
    assert round(found.params_total / 1e9, 1) == 46.7
    assert round(found.params_active / 1e9, 1) == 12.9
