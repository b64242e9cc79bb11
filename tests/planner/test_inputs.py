"""The architecture that the plan is made for, from each place where a spec may give it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from seatrial.specs.architecture import read_architecture
from seatrial_base.catalog.models import find_model
from seatrial_base.errors import PlanError

if TYPE_CHECKING:
    from seatrial.specs.load import LoadedSpec

LLAMA_2_7B = {
    "layers": 32,
    "hidden_size": 4096,
    "attention_heads": 32,
    "vocab": 32_000,
    "max_context": 4096,
    "params_total": 6_738_415_616,
    "dtype": "fp16",
}
MIXTRAL_8X7B = {
    "layers": 32,
    "hidden_size": 4096,
    "attention_heads": 32,
    "kv_heads": 8,
    "vocab": 32_000,
    "max_context": 32_768,
    "params_total": 46_702_792_704,
    "params_active": 12_879_925_248,
    "experts": 8,
    "experts_per_token": 2,
}
GEMMA_3_1B = {
    "layers": 26,
    "hidden_size": 1152,
    "attention_heads": 4,
    "kv_heads": 1,
    "head_dim": 256,
    "vocab": 262_144,
    "max_context": 32_768,
    "params_total": 999_885_952,
    "sliding_window": 512,
    "sliding_layers": 22,
    "tied_embeddings": True,
}
FALCON_7B = {
    "layers": 32,
    "hidden_size": 4544,
    "attention_heads": 71,
    "kv_heads": 1,
    "vocab": 65_024,
    "max_context": 2048,
    "params_total": 6_921_720_704,
    "tied_embeddings": True,
    "parallel_attention": True,
}


class Ask(Protocol):
    def __call__(self, **fields: object) -> LoadedSpec: ...


@pytest.mark.parametrize(
    ("shape", "model_id"),
    [
        (LLAMA_2_7B, "meta-llama/Llama-2-7b-hf"),
        (MIXTRAL_8X7B, "mistralai/Mixtral-8x7B-v0.1"),
        (GEMMA_3_1B, "google/gemma-3-1b-it"),
        (FALCON_7B, "tiiuae/falcon-7b"),
    ],
)
def test_a_shape_gives_what_the_catalog_says(shape: dict[str, object], model_id: str, ask: Ask) -> None:
    read = read_architecture(ask(model={"hub_id": "me/mine", "shape": shape}))

    known = find_model(model_id)
    assert known is not None
    own: dict[str, Any] = {"id": "me/mine", "family": "inline", "source": "model.shape of chat.yaml", "date": None}
    assert read == replace(known, **own, mlp_width=None, expert_width=None)  # of which a shape says nothing


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ({"hub_id": "me/mine"}, "me/mine"),
        ({"jumpstart_id": "my-model", "accept_eula": True}, "my-model"),
        ({"s3_uri": "s3://bucket/weights/"}, "the model"),
    ],
)
def test_a_shape_goes_with_every_source_of_the_weights(model: dict[str, object], name: str, ask: Ask) -> None:
    assert read_architecture(ask(model={**model, "shape": LLAMA_2_7B})).id == name


def test_a_config_file_is_read_beside_the_spec(ask: Ask) -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "vocab_size": 32000,
        "max_position_embeddings": 4096,
    }
    Path("config.json").write_text(json.dumps(config), encoding="utf-8")

    assert read_architecture(ask(model={"hub_id": "me/mine", "config_file": "config.json"})).kv_heads == 32


def test_latent_attention_is_planned(ask: Ask) -> None:
    read = read_architecture(ask(model={"hub_id": "deepseek-ai/DeepSeek-R1"}))

    assert (read.latent_dim, read.kv_heads, read.checkpoint_quantization) == (576, 128, "fp8")


@pytest.mark.parametrize(
    ("model", "shape", "quantization"),
    [
        ({"hub_id": "Qwen/Qwen3-32B-FP8"}, "Qwen/Qwen3-32B", "fp8"),
        ({"hub_id": "openai/gpt-oss-20b"}, "openai/gpt-oss-20b", "mxfp4"),
        ({"hub_id": "me/my-tune-AWQ", "architecture": "Qwen/Qwen3-32B"}, "Qwen/Qwen3-32B", "awq"),
        ({"hub_id": "me/my-tune", "architecture": "Qwen/Qwen3-32B"}, "Qwen/Qwen3-32B", None),
        ({"hub_id": "me/my-tune-w8a8", "shape": LLAMA_2_7B}, "me/my-tune-w8a8", "int8"),
    ],
)
def test_a_repository_is_planned_in_its_own_precision(
    model: dict[str, object], shape: str, quantization: str | None, ask: Ask
) -> None:
    read = read_architecture(ask(model=model))

    assert (read.id, read.quantization(None)) == (shape, quantization)
    assert read.quantization("fp8") == "fp8"


def test_a_format_that_no_container_plans_is_refused_with_its_name(ask: Ask) -> None:
    with pytest.raises(PlanError) as caught:
        read_architecture(ask(model={"hub_id": "unsloth/Llama-3.3-70B-Instruct-bnb-4bit"}))

    (problem,) = caught.value.problems
    assert problem.rule == "SEA209"
    assert "bitsandbytes" in problem.message


def test_an_unknown_model_names_the_three_ways(ask: Ask) -> None:
    with pytest.raises(PlanError) as caught:
        read_architecture(ask(model={"hub_id": "zzz/unheard-of"}))

    assert str(caught.value) == (
        "chat.yaml:3: model.hub_id: SEA201: the architecture of zzz/unheard-of is unknown\n"
        "  hint: give model.architecture, a catalog id of the same shape (seatrial models list); or model.config_file, "
        "the config.json of the weights; or model.shape with layers, hidden_size, attention_heads, kv_heads, vocab, "
        "max_context and params_total"
    )
