"""Model families by `model_type`: how each lays out a layer, where its `config.json` does not say so itself.

Read from the model code of Hugging Face transformers 5.23.0 (`models/<family>/`), unless noted otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

QueryKeyNorm = Literal["none", "head", "whole"]


@dataclass(frozen=True, slots=True)
class Family:
    """How the layers of one family look.

    Attributes:
        name: `model_type` of the configuration, of its text part where it is multimodal.
        mlp_matrices: 3 with a gate, 2 without.
        norms: Norms of the hidden size in each layer.
        norm_vectors: 2 where a norm has a weight and a bias, else 1.
        biases: Linear layers that have a bias unless `attention_bias` or `mlp_bias` say otherwise: none, those of
            queries, keys and values, or every one.
        qk_norm: Norms of queries and keys: none, one of a head's width, or one over all heads.
        ties_unsaid: `tie_word_embeddings` is true where the configuration leaves it out.
        slides: Which layers have the window, unless `layer_types` lists them: `None` for none, 0 for every one, n for
            all but every n-th.
        required: Fields that a configuration must have besides those of every family.
        defaults: Fields that published configurations leave out, with the defaults of the family's code.
        parallel_attention: Attention and MLP run side by side.
    """

    name: str
    mlp_matrices: int = 3
    norms: int = 2
    norm_vectors: int = 1
    biases: Literal["none", "qkv", "every"] = "none"
    qk_norm: QueryKeyNorm = "none"
    ties_unsaid: bool = False
    slides: int | None = None
    required: tuple[str, ...] = ("intermediate_size", "max_position_embeddings")
    defaults: tuple[tuple[str, int], ...] = ()
    parallel_attention: bool = False


_CONTEXT = "max_position_embeddings"
_DENSE = ("intermediate_size", _CONTEXT)
_LOCAL = (*_DENSE, "num_local_experts", "num_experts_per_tok")
_QWEN_MOE = (_CONTEXT, "num_experts", "num_experts_per_tok", "moe_intermediate_size")
_ROUTED = (*_DENSE, "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size")
_LATENT = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
_LINEAR = (
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_conv_kernel_dim",
)
_GEMMA_3_DEFAULTS = (
    ("vocab_size", 262_208),
    ("num_attention_heads", 8),
    ("num_key_value_heads", 4),
    ("head_dim", 256),
    (_CONTEXT, 131_072),
)
EVERY_LAYER = 0  # `Family.slides`

_EVERY = (
    Family("cohere", norms=1, ties_unsaid=True, parallel_attention=True),
    Family("cohere2", norms=1, ties_unsaid=True, parallel_attention=True, slides=4),
    Family("deepseek_v2", required=(*_ROUTED, *_LATENT)),
    Family("deepseek_v3", required=(*_ROUTED, *_LATENT)),
    Family("deepseek_v32", required=(*_ROUTED, *_LATENT)),
    Family(
        "falcon",
        mlp_matrices=2,
        norm_vectors=2,
        ties_unsaid=True,
        required=(),
        defaults=((_CONTEXT, 2048),),
        parallel_attention=True,
    ),
    Family("gemma", ties_unsaid=True),
    Family("gemma2", norms=4, ties_unsaid=True, slides=2),
    Family("gemma3_text", norms=4, qk_norm="head", ties_unsaid=True, slides=6, defaults=_GEMMA_3_DEFAULTS),
    Family("gemma4_text", norms=4, qk_norm="head", ties_unsaid=True, slides=6),
    Family("glm4", norms=4, biases="qkv"),
    Family("glm4_moe", required=_ROUTED),
    Family("glm_moe_dsa", required=(*_ROUTED, *_LATENT)),
    Family("gpt_neox", mlp_matrices=2, norm_vectors=2, biases="every"),
    Family("gpt_oss", biases="every", slides=2, required=_LOCAL),
    Family("granite"),
    Family("granitemoe", required=_LOCAL),
    Family("kimi_k2", required=(*_ROUTED, *_LATENT)),
    Family("llama"),
    Family("llama4_text", slides=4, required=(*_LOCAL, "intermediate_size_mlp")),
    Family("mimo", biases="qkv"),
    Family("minimax_m2", qk_norm="whole", required=_LOCAL),
    Family("minimax_m3", qk_norm="head", required=(*_LOCAL, "dense_intermediate_size")),
    Family("minimax_m3_vl", qk_norm="head", required=(*_LOCAL, "dense_intermediate_size")),
    Family("minimax_m3_vl_text", qk_norm="head", required=(*_LOCAL, "dense_intermediate_size")),
    Family("ministral", slides=EVERY_LAYER),
    Family("ministral3"),
    Family("mistral", slides=EVERY_LAYER),
    Family("mixtral", required=_LOCAL),
    Family("nemotron-nas", required=(_CONTEXT,)),
    Family("olmo", norms=0),
    Family("olmo2", qk_norm="whole"),
    Family("olmo3", qk_norm="whole", slides=4),
    Family("phi", mlp_matrices=2, norms=1, norm_vectors=2, biases="every"),
    Family("phi3", slides=EVERY_LAYER),
    Family("phimoe", norm_vectors=2, required=_LOCAL),
    Family("qwen2", biases="qkv"),
    Family("qwen2_moe", biases="qkv", required=_QWEN_MOE),
    Family("qwen3", qk_norm="head"),
    Family("qwen3_5_moe_text", qk_norm="head", required=(*_QWEN_MOE, *_LINEAR)),
    Family("qwen3_5_text", qk_norm="head", required=(*_DENSE, *_LINEAR)),
    Family("qwen3_moe", qk_norm="head", required=_QWEN_MOE),
    Family("qwen3_next", qk_norm="head", required=(*_QWEN_MOE, *_LINEAR)),
    Family("qwen3_vl_moe_text", qk_norm="head", required=_QWEN_MOE),
    Family("qwen3_vl_text", qk_norm="head"),
    Family("seed_oss"),
    Family("starcoder2", mlp_matrices=2, norm_vectors=2, biases="every", ties_unsaid=True, slides=EVERY_LAYER),
)
_BY_NAME = {family.name: family for family in _EVERY}
# Families that were looked at, and what the planner lacks for each.
_LACKING = {
    "deepseek_v4": "compressed attention",
    "gemma3n_text": "embeddings in every layer",
    "jamba": "Mamba layers",
    "kimi_linear": "delta attention beside latent attention",
    "mamba": "Mamba layers",
    "mamba2": "Mamba layers",
    "mimo_v2_flash": "sliding layers with heads of their own",
    "nemotron_h": "Mamba layers",
}


def find_family(model_type: str) -> Family | None:
    """Return the family of a `model_type`, or `None` when its layers are not known."""
    return _BY_NAME.get(model_type)


def lacking(model_type: str) -> str | None:
    """Return what the planner lacks for a family that it can't plan; `None` where nobody looked."""
    return _LACKING.get(model_type)


def names() -> tuple[str, ...]:
    """Return every known `model_type`, sorted."""
    return tuple(sorted(_BY_NAME))
