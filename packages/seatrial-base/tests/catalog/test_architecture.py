from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seatrial_base.catalog.architecture import architecture_of, from_config_json, shards_evenly
from seatrial_base.catalog.config_json import INSTEAD_OF_TEXT, checked_config_json, family_names, unplanned_feature
from seatrial_base.catalog.models import find_model
from seatrial_base.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[[object], Path]

LLAMA_2_7B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "torch_dtype": "float16",
    "tie_word_embeddings": False,
}
FALCON_7B = {
    "model_type": "falcon",
    "hidden_size": 4544,
    "num_hidden_layers": 32,
    "num_attention_heads": 71,
    "num_kv_heads": 71,
    "multi_query": True,
    "new_decoder_architecture": False,
    "vocab_size": 65024,
    "torch_dtype": "bfloat16",
}
FALCON_40B = {
    "model_type": "falcon",
    "hidden_size": 8192,
    "num_hidden_layers": 60,
    "num_attention_heads": 128,
    "num_kv_heads": 8,
    "multi_query": True,
    "new_decoder_architecture": True,
    "vocab_size": 65024,
    "torch_dtype": "bfloat16",
}
MIXTRAL_8X7B = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 32000,
    "max_position_embeddings": 32768,
    "torch_dtype": "bfloat16",
}
MISTRAL_7B = {
    "model_type": "mistral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "sliding_window": 4096,
    "vocab_size": 32000,
    "max_position_embeddings": 32768,
    "torch_dtype": "bfloat16",
}
QWEN_2_5_7B = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
QWEN_3_8B = {
    "model_type": "qwen3",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "head_dim": 128,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "dtype": "bfloat16",
}
QWEN_3_30B = {
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "head_dim": 128,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "torch_dtype": "bfloat16",
}
CODE_LLAMA_7B = {**LLAMA_2_7B, "vocab_size": 32016, "max_position_embeddings": 16384, "torch_dtype": "bfloat16"}
GEMMA_7B = {
    "model_type": "gemma",
    "hidden_size": 3072,
    "intermediate_size": 24576,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "head_dim": 256,
    "vocab_size": 256000,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}
GEMMA_2_9B = {
    "model_type": "gemma2",
    "hidden_size": 3584,
    "intermediate_size": 14336,
    "num_hidden_layers": 42,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 256,
    "vocab_size": 256000,
    "max_position_embeddings": 8192,
    "sliding_window": 4096,
    "torch_dtype": "bfloat16",
}
GEMMA_3_1B = {
    "model_type": "gemma3_text",
    "hidden_size": 1152,
    "intermediate_size": 6912,
    "num_hidden_layers": 26,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "vocab_size": 262144,
    "max_position_embeddings": 32768,
    "sliding_window": 512,
    "sliding_window_pattern": 6,
    "torch_dtype": "bfloat16",
}
PHI_2 = {
    "model_type": "phi",
    "hidden_size": 2560,
    "intermediate_size": 10240,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": None,
    "vocab_size": 51200,
    "max_position_embeddings": 2048,
    "torch_dtype": "float16",
}
PHI_3_MINI_4K = {
    "model_type": "phi3",
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "vocab_size": 32064,
    "max_position_embeddings": 4096,
    "sliding_window": 2047,
    "torch_dtype": "bfloat16",
}
PYTHIA_12B = {
    "model_type": "gpt_neox",
    "hidden_size": 5120,
    "intermediate_size": 20480,
    "num_hidden_layers": 36,
    "num_attention_heads": 40,
    "vocab_size": 50688,
    "max_position_embeddings": 2048,
    "torch_dtype": "float16",
}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(config: object) -> Path:
        path = tmp_path / "config.json"
        path.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
        return path

    return written


@pytest.mark.parametrize(
    ("config", "catalog_id"),
    [
        (LLAMA_2_7B, "meta-llama/Llama-2-7b-hf"),
        (FALCON_7B, "tiiuae/falcon-7b"),
        (FALCON_40B, "tiiuae/falcon-40b"),
        (MIXTRAL_8X7B, "mistralai/Mixtral-8x7B-v0.1"),
        (MISTRAL_7B, "mistralai/Mistral-7B-v0.1"),
        (QWEN_2_5_7B, "Qwen/Qwen2.5-7B"),
        (QWEN_3_8B, "Qwen/Qwen3-8B"),
        (QWEN_3_30B, "Qwen/Qwen3-30B-A3B"),
        (CODE_LLAMA_7B, "codellama/CodeLlama-7b-hf"),
        (GEMMA_7B, "google/gemma-7b"),
        (GEMMA_2_9B, "google/gemma-2-9b"),
        (GEMMA_3_1B, "google/gemma-3-1b-it"),
        (PHI_2, "microsoft/phi-2"),
        (PHI_3_MINI_4K, "microsoft/Phi-3-mini-4k-instruct"),
        (PYTHIA_12B, "EleutherAI/pythia-12b"),
    ],
)
def test_a_config_gives_what_the_catalog_says(config: dict[str, object], catalog_id: str, write: Write) -> None:
    read, known = from_config_json(write(config)), find_model(catalog_id)

    assert known is not None
    assert replace(known, id="", source="", date=None) == replace(read, id="", source="")


def test_a_quantized_checkpoint_is_told(write: Write) -> None:
    config = {**LLAMA_2_7B, "quantization_config": {"quant_method": "awq", "bits": 4}}

    assert from_config_json(write(config)).checkpoint_quantization == "awq"


KNOWN = ", ".join(family_names())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {key: value for key, value in LLAMA_2_7B.items() if key not in ("hidden_size", "vocab_size")},
            "SEA201: hidden_size, vocab_size missing\n  hint: use the config.json of the weights",
        ),
        (
            {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257},
            "SEA201: hidden_size, num_hidden_layers, num_attention_heads, max_position_embeddings, intermediate_size "
            "missing\n  hint: use the config.json of the weights",
        ),
        (
            {name: value for name, value in LLAMA_2_7B.items() if name != "model_type"},
            "SEA201: model_type missing\n  hint: use the config.json of the weights",
        ),
        (
            {**LLAMA_2_7B, "architectures": ["LlamaForSequenceClassification"]},
            "SEA255: LlamaForSequenceClassification generates no text: it gives embeddings or scores\n"
            f"  hint: {INSTEAD_OF_TEXT}",
        ),
        (
            {**GEMMA_3_1B, "architectures": ["Gemma3TextModel"]},
            f"SEA255: Gemma3TextModel generates no text: it gives embeddings or scores\n  hint: {INSTEAD_OF_TEXT}",
        ),
        (
            {**LLAMA_2_7B, "quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}},
            "SEA209: weights quantized with bitsandbytes are not supported\n"
            f"  hint: known: {KNOWN}; or give "
            "model.architecture, a catalog id of the same shape (seatrial models list), or model.shape, its numbers",
        ),
        (
            {**LLAMA_2_7B, "num_attention_heads": 0, "num_key_value_heads": -1},
            "SEA211: num_attention_heads is 0, num_key_value_heads is -1: at least 1\n"
            "  hint: use the config.json of the weights",
        ),
        (
            {**LLAMA_2_7B, "num_key_value_heads": 5},
            "SEA211: 5 KV heads do not divide 32 attention heads\n  hint: use the config.json of the weights",
        ),
        (
            {**LLAMA_2_7B, "model_type": "deepseek_v3", "kv_lora_rank": 512},
            "SEA201: n_routed_experts, num_experts_per_tok, moe_intermediate_size, qk_nope_head_dim, "
            "qk_rope_head_dim, v_head_dim missing\n  hint: use the config.json of the weights",
        ),
        (
            {**MIXTRAL_8X7B, "num_experts_per_tok": 9},
            "SEA211: 9 experts of each token are more than 8\n  hint: use the config.json of the weights",
        ),
        ([], "SEA201: the file is not a JSON object\n  hint: give the model's config.json"),
    ],
)
def test_says_what_is_wrong(config: object, message: str, write: Write) -> None:
    path = write(config)

    with pytest.raises(PlanError) as caught:
        from_config_json(path)

    assert str(caught.value) == f"{path.as_posix()}: {message}"


@pytest.mark.parametrize(
    ("config", "sliding"),
    [
        pytest.param(MISTRAL_7B, (4096, None), id="mistral-every-layer"),
        pytest.param({**MISTRAL_7B, "sliding_window": None}, (None, None), id="mistral-without"),
        pytest.param(PHI_3_MINI_4K, (2047, None), id="phi3-every-layer"),
        pytest.param({**PHI_3_MINI_4K, "sliding_window": 262144}, (None, None), id="wider-than-the-context"),
        pytest.param({**GEMMA_2_9B, "num_hidden_layers": 43}, (4096, 22), id="gemma2-the-first-and-every-other"),
        pytest.param(GEMMA_3_1B, (512, 22), id="gemma3-five-of-six"),
        pytest.param({**QWEN_2_5_7B, "sliding_window": 4096, "use_sliding_window": False}, (None, None), id="qwen-off"),
        pytest.param(
            {**QWEN_2_5_7B, "sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 21},
            (4096, 7),
            id="qwen-on",
        ),
        pytest.param(
            {**QWEN_3_8B, "sliding_window": 4096, "layer_types": ["sliding_attention", "full_attention"] * 18},
            (4096, 18),
            id="layers-written-out",
        ),
    ],
)
def test_says_which_layers_slide(
    config: dict[str, object], sliding: tuple[int | None, int | None], write: Write
) -> None:
    read = from_config_json(write(config))

    assert (read.sliding_window, read.sliding_layers) == sliding


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="SEA201: the file can't be read"):
        from_config_json(tmp_path / "config.json")


ROOT = Path(__file__).parents[4]
FACTS = json.loads((ROOT / "scripts" / "facts" / "configs.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("fact", FACTS["models"], ids=lambda fact: fact["id"])
def test_a_published_configuration_gives_the_catalogs_row(fact: dict[str, object], write: Write) -> None:
    read, known = from_config_json(write(fact["config"])), find_model(str(fact["id"]))

    assert known is not None
    assert replace(known, id="", source="", date=None) == replace(read, id="", source="")


@pytest.mark.parametrize("alias", FACTS["aliases"], ids=lambda alias: alias["alias"])
def test_an_alias_has_the_shape_of_its_model(alias: dict[str, object]) -> None:
    found, model = find_model(str(alias["alias"])), find_model(str(alias["id"]))

    assert found is not None
    assert model is not None
    assert replace(found, max_context=model.max_context) == model
    assert found.max_context == (alias["max_context"] or model.max_context)


def test_a_gemma_3_wrapper_needs_only_what_it_publishes(write: Write) -> None:
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
    config = {"model_type": "gemma3", "text_config": {**text, "sliding_window": 1024}, "vision_config": {"layers": 27}}

    read, known = from_config_json(write(config)), find_model("google/gemma-3-4b-it")

    assert known is not None
    assert replace(known, id="", source="", date=None) == replace(read, id="", source="")


INT8 = {"num_bits": 8, "type": "int"}


@pytest.mark.parametrize(
    ("described", "quantization"),
    [
        ({"quant_method": "gptq", "bits": 4}, "gptq"),
        ({"quant_method": "gptq", "bits": 8}, "w8a16"),
        ({"quant_method": "modelopt", "quant_algo": "W8A16"}, "w8a16"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_algo": "FP8"}, "fp8"),
        (
            {
                "quant_method": "modelopt",
                "quant_algo": "MIXED_PRECISION",
                "quantized_layers": {
                    "a": {"quant_algo": "FP8"},
                    "b": {"quant_algo": "NVFP4"},
                    "c": {"quant_algo": "NVFP4"},
                },
            },
            "nvfp4",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}},
            },
            "fp8",
        ),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int"}}}},
            "gptq",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
                "ignore": ["lm_head", "re:.*self_attn.*"],
            },
            "int4",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}},
            },
            "nvfp4",
        ),
        ({"config_groups": {"g": {"weights": INT8, "input_activations": None}}}, "w8a16"),
        ({"config_groups": {"g": {"weights": INT8, "input_activations": INT8}}}, "int8"),
        ({}, None),
    ],
)
def test_a_checkpoint_says_its_precision(described: dict[str, object], quantization: str | None, write: Write) -> None:
    read = from_config_json(write({**LLAMA_2_7B, "quantization_config": described}))

    assert read.checkpoint_quantization == quantization


@pytest.mark.parametrize(
    "described",
    [
        {"quant_method": "hqq"},
        {"quant_method": "compressed-tensors", "config_groups": {}},
        {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 3, "type": "int"}}}},
        {"quant_algo": "MIXED_PRECISION", "quantized_layers": {}},
        {"bits": 4},
    ],
)
def test_a_precision_that_no_plan_knows_is_refused(described: dict[str, object], write: Write) -> None:
    with pytest.raises(PlanError, match="SEA209: weights quantized with"):
        from_config_json(write({**LLAMA_2_7B, "quantization_config": described}))


@pytest.mark.parametrize(
    ("config", "model_type", "family"),
    [
        pytest.param(LLAMA_2_7B, "exaone4", "llama", id="dense"),
        pytest.param(QWEN_3_8B, "qwen4", "qwen3", id="dense-named-alike"),
        pytest.param(QWEN_3_30B, "bailing_moe", "qwen3_moe", id="experts"),
        pytest.param(MIXTRAL_8X7B, "phimoe2", "phimoe", id="experts-of-local-fields"),
    ],
)
def test_the_nearest_family_stands_in_for_an_unknown_one(
    config: dict[str, object], model_type: str, family: str, write: Write
) -> None:
    known = from_config_json(write({**config, "model_type": family}))
    read = from_config_json(write({**config, "model_type": model_type}))

    assert (read.family, read.unknown_family, known.unknown_family) == (family, model_type, None)
    assert replace(read, unknown_family=None) == known


def test_a_family_that_was_looked_at_says_what_the_planner_lacks() -> None:
    assert unplanned_feature("deepseek_v4") == "compressed attention"
    assert unplanned_feature("exaone4") is None


TODAY = json.loads((ROOT / "benchmarks" / "models_of_today" / "configs.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", TODAY["own"], ids=lambda row: row["id"])
def test_the_parameters_of_a_current_model_are_those_that_its_maker_names(row: dict[str, object], write: Write) -> None:
    read = from_config_json(write(row["config"]))

    assert read.unknown_family is None
    assert read.params_total / 1e9 == pytest.approx(row["params_billions"], rel=0.01)


@pytest.mark.parametrize(
    ("model_id", "uncached", "mixed", "state_mib"),
    [
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", 27, 0, 27 * (10240 * 128 + (10240 + 2048) * 3) * 4 / 2**20),
        ("ai21labs/AI21-Jamba-Mini-1.5", 28, 0, 28 * (8192 * 16 + 8192 * 3) * 4 / 2**20),
        ("tiiuae/Falcon-H1-34B-Instruct", 0, 72, 72 * (4096 * 256 + (4096 + 1024) * 3) * 4 / 2**20),
        ("ibm-granite/granite-4.0-h-small", 36, 0, 36 * (8192 * 128 + (8192 + 256) * 3) * 4 / 2**20),
    ],
)
def test_a_sequence_keeps_its_state_in_mamba_layers(
    model_id: str, uncached: int, mixed: int, state_mib: float, write: Write
) -> None:
    config = next(row["config"] for row in TODAY["own"] if row["id"] == model_id)
    read = from_config_json(write(config))

    assert (read.linear_layers, read.mixed_layers) == (uncached, mixed)
    assert read.state_bytes / 2**20 == pytest.approx(state_mib)


def test_latent_attention_is_sharded_by_its_heads() -> None:
    deepseek = find_model("deepseek-ai/DeepSeek-V3")

    assert deepseek is not None
    assert [degree for degree in (1, 2, 3, 4, 8, 16, 128, 256) if shards_evenly(deepseek, degree)] == [
        1,
        2,
        4,
        8,
        16,
        128,
    ]


OF_SOME_LAYERS = (
    *("text_config", "layer_types", "num_experts", "num_experts_per_tok", "block_configs", "hybrid_override_pattern"),
    *("kv_lora_rank", "qk_rope_head_dim", "linear_num_value_heads", "mamba_d_state", "mamba_n_heads", "moe_k"),
)


@given(
    st.dictionaries(
        st.sampled_from([*LLAMA_2_7B, *OF_SOME_LAYERS]),
        st.none() | st.booleans() | st.integers(-3, 300) | st.text(max_size=5) | st.lists(st.integers(), max_size=3),
    ),
    st.sampled_from([*family_names(), "unheard"]),
)
@example({"kv_lora_rank": 512, "qk_rope_head_dim": 64}, "unheard")
@example({"linear_num_value_heads": 32, "layer_types": ["linear_attention"] * 32}, "unheard")
@example({"mamba_d_state": 128}, "unheard")
@example({"kv_lora_rank": 0, "num_key_value_heads": None}, "cohere")
@example({"max_position_embeddings": None}, "falcon")
@example({"max_position_embeddings": False}, "falcon")
@example({"kv_lora_rank": 5, "num_key_value_heads": None}, "cohere")
def test_any_configuration_is_read_or_refused(fields: dict[str, object], family: str) -> None:
    try:
        config = checked_config_json({**LLAMA_2_7B, **fields, "model_type": family}, "a test")
        read = architecture_of(config, name="a", source="a test")
    except PlanError:
        return
    assert 0 < read.params_active <= read.params_total
    assert 0 <= read.linear_layers <= read.layers
