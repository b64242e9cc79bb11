from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.catalog.models import MODELS, find_model, find_model_by_name, nearest_models

if TYPE_CHECKING:
    from seatrial_base.catalog.architecture import Architecture


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
        ("mistralai/Mistral-7B-Instruct-v0.1", "mistralai/Mistral-7B-v0.1"),
        ("mistralai/Mistral-7B-Instruct-v0.2", "mistralai/Mistral-7B-Instruct-v0.2"),
        ("codellama/CodeLlama-34b-Instruct-hf", "codellama/CodeLlama-34b-hf"),
        ("codellama/CodeLlama-7b-Python-hf", "codellama/CodeLlama-7b-hf"),
        ("google/gemma-7b-it", "google/gemma-7b"),
    ],
)
def test_a_tuned_model_shares_the_architecture_of_its_base(hub_id: str, architecture: str) -> None:
    found = find_model(hub_id)

    assert found is not None
    assert found.id == architecture


def test_an_alias_may_ship_another_context() -> None:
    base, tuned = find_model("Qwen/Qwen2.5-7B"), find_model("Qwen/Qwen2.5-7B-Instruct")

    assert base is not None
    assert tuned is not None
    assert (base.max_context, tuned.max_context) == (131_072, 32_768)


@pytest.mark.parametrize("hub_id", ["meta-llama/Llama-2-7b-chatty-hf", "someone/else", ""])
def test_an_unknown_model_is_no_error(hub_id: str) -> None:
    assert find_model(hub_id) is None


@pytest.mark.parametrize(
    ("name", "model_id"),
    [
        ("Llama 2 7B", "meta-llama/Llama-2-7b-hf"),
        ("Llama 2 13B Chat", "meta-llama/Llama-2-13b-hf"),
        ("Llama 2 70B Chat", "meta-llama/Llama-2-70b-hf"),
        ("Llama-2 (7B)", "meta-llama/Llama-2-7b-hf"),
        ("llama2-7b", "meta-llama/Llama-2-7b-hf"),
        ("LLAMA_2_7B_CHAT_HF", "meta-llama/Llama-2-7b-hf"),
        ("Llama 3 8B", "meta-llama/Meta-Llama-3-8B"),
        ("Meta Llama 3.1 8B Instruct", "meta-llama/Llama-3.1-8B"),
        ("Llama 3.3 70B", "meta-llama/Llama-3.3-70B-Instruct"),
        ("CodeLlama 34B", "codellama/CodeLlama-34b-hf"),
        ("Code Llama 7B Python", "codellama/CodeLlama-7b-hf"),
        ("Mistral 7B", "mistralai/Mistral-7B-v0.1"),
        ("Mistral 7B Instruct", "mistralai/Mistral-7B-v0.1"),
        ("Mistral 7B Instruct v0.2", "mistralai/Mistral-7B-Instruct-v0.2"),
        ("Mistral 7B Instruct v0.3", "mistralai/Mistral-7B-v0.3"),
        ("Mixtral 8x7B", "mistralai/Mixtral-8x7B-v0.1"),
        ("Mixtral 8x7B Instruct", "mistralai/Mixtral-8x7B-v0.1"),
        ("Mixtral 8x22B Instruct", "mistralai/Mixtral-8x22B-v0.1"),
        ("Falcon 7B Instruct", "tiiuae/falcon-7b"),
        ("Falcon 40B", "tiiuae/falcon-40b"),
        ("Falcon 180B Chat", "tiiuae/falcon-180B"),
        ("Qwen2.5 7B", "Qwen/Qwen2.5-7B"),
        ("Qwen3 30B", "Qwen/Qwen3-30B-A3B"),
        ("GPT-NeoX 20B", "EleutherAI/gpt-neox-20b"),
        ("Gemma 2B", "google/gemma-2b"),
        ("Gemma 2 2B it", "google/gemma-2-2b"),
        ("Phi-3 mini", "microsoft/Phi-3-mini-4k-instruct"),
        ("Phi 3 mini 128k", "microsoft/Phi-3-mini-128k-instruct"),
        ("meta-llama/Llama 2 7B", "meta-llama/Llama-2-7b-hf"),
    ],
)
def test_a_displayed_name_is_read_by_its_pattern(name: str, model_id: str) -> None:
    found = find_model_by_name(name)

    assert found is not None
    assert found.id == model_id


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("Llama 7B", id="another-generation"),
        pytest.param("Llama 27B", id="a-size-is-no-generation"),
        pytest.param("Mistral 7B v0.9", id="another-version"),
        pytest.param("Llama 2 7B 32K", id="another-context"),
        pytest.param("Qwen3 30B A5B", id="other-active-parameters"),
        pytest.param("TheBloke/Llama-2-7B", id="another-owner"),
        pytest.param("Llama 2 7B Guard", id="another-model"),
        pytest.param("Mistral", id="no-size"),
        pytest.param("7B", id="no-family"),
        pytest.param("instruct", id="tuning-only"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_a_name_does_not_say_is_not_guessed(name: str) -> None:
    assert find_model_by_name(name) is None


@pytest.mark.parametrize("model", MODELS.rows, ids=lambda model: model.id)
def test_every_id_is_found_by_its_own_displayed_form(model: Architecture) -> None:
    short = model.id.partition("/")[2]
    forms = (model.id, short, short.replace("-", " "), short.replace("-", "_").upper())

    assert {found.id for form in forms if (found := find_model_by_name(form))} == {model.id}


@given(st.text(max_size=60) | st.from_regex(r"[ a-z0-9./_-]{0,40}", fullmatch=True))
def test_any_text_is_a_known_name_or_none(text: str) -> None:
    found = find_model_by_name(text)

    assert found is None or find_model(found.id) is not None
    assert set(nearest_models(text)) <= {model.id for model in MODELS.rows}


@given(st.sampled_from(MODELS.rows), st.sampled_from(" -_"), st.booleans())
def test_case_and_separators_do_not_matter(model: Architecture, separator: str, is_upper: bool) -> None:  # noqa: FBT001
    name = model.id.partition("/")[2].replace("-", separator)
    found = find_model_by_name(name.upper() if is_upper else name.lower())

    assert found is not None
    assert found.id == model.id


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("meta-llama/Llama-2-7b", "meta-llama/Llama-2-7b-hf"),
        ("Lama 2 7B", "meta-llama/Llama-2-7b-hf"),
        ("Falcon 7", "tiiuae/falcon-7b"),
        ("Mistrall 7B", "mistralai/Mistral-7B-v0.1"),
        ("Mistral 8B", "mistralai/Ministral-8B-Instruct-2410"),
    ],
)
def test_names_the_nearest(name: str, first: str) -> None:
    assert nearest_models(name)[0] == first


def test_nothing_is_near_to_nonsense() -> None:
    assert nearest_models("xyzzy") == ()


def test_falcon_runs_attention_beside_its_mlp() -> None:
    parallel = {model.family for model in MODELS.rows if model.parallel_attention}

    assert parallel == {"falcon"}


def test_deepseek_v3_has_latent_attention() -> None:
    latent = [model.id for model in MODELS.rows if model.is_mla]

    assert {model.split("/")[0] for model in latent} == {"deepseek-ai", "moonshotai", "zai-org"}
    assert "deepseek-ai/DeepSeek-R1" in latent


def test_a_sliding_window_bounds_the_cached_tokens() -> None:
    mistral, llama = find_model("mistralai/Mistral-7B-v0.1"), find_model("meta-llama/Llama-2-7b-hf")

    assert mistral is not None
    assert llama is not None
    assert (mistral.cached_tokens(4_000), mistral.cached_tokens(9_000)) == (4_000, 4_096)
    assert llama.cached_tokens(9_000) == 9_000


def test_a_window_in_some_layers_is_averaged_over_all() -> None:
    gemma, gpt_oss = find_model("google/gemma-3-1b-it"), find_model("openai/gpt-oss-20b")

    assert gemma is not None
    assert gpt_oss is not None
    assert (gemma.layers, gemma.sliding_layers, gemma.sliding_window) == (26, 22, 512)
    assert gemma.cached_tokens(512) == 512
    assert gemma.cached_tokens(2_600) == pytest.approx(float(Fraction(22 * 512 + 4 * 2_600, 26)))
    assert gpt_oss.cached_tokens(1_128) == (128 + 1_128) / 2


@pytest.mark.parametrize("model", MODELS.rows, ids=lambda model: model.id)
def test_more_tokens_never_need_less_cache(model: Architecture) -> None:
    cached = [model.cached_tokens(tokens) for tokens in range(0, model.max_context + 1, 64)]

    assert cached == sorted(cached)
    assert all(kept <= tokens for kept, tokens in zip(cached, range(0, model.max_context + 1, 64), strict=True))


def test_a_mixture_of_experts_says_how_many() -> None:
    found = find_model("mistralai/Mixtral-8x7B-v0.1")

    assert found is not None
    assert (found.experts, found.experts_per_token) == (8, 2)
    assert round(found.params_total / 1e9, 1) == 46.7
    assert round(found.params_active / 1e9, 1) == 12.9
