"""Families of models: how their layers look, and which one stands in for one that nobody has looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

QueryKeyNorm = Literal["none", "head", "whole"]


@dataclass(frozen=True, slots=True)
class Family:
    """How the layers of one family look.

    Attributes:
        name: `model_type` of the configuration, of its text part where it is multimodal.
        mlp_matrices: 3 with a gate, 2 without.
        norms: Norms of the hidden size in each layer; in each block where `hybrid_override_pattern` lists blocks.
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


EXPERT_COUNTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
EXPERT_WIDTHS = ("moe_intermediate_size", "expert_ffn_hidden_size")
EXPERTS_CHOSEN = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "top_k_experts",
    "moe_topk",
    "moe_k",
)
_CONTEXT = "max_position_embeddings"
_DENSE = ("intermediate_size", _CONTEXT)
_LOCAL = (*_DENSE, "num_local_experts", "num_experts_per_tok")
_QWEN_MOE = (_CONTEXT, "num_experts", "num_experts_per_tok", "moe_intermediate_size")
_ROUTED_FIELDS = (*_DENSE, "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size")
_LATENT = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
_LINEAR = (
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_conv_kernel_dim",
)
_ERNIE = ("moe_num_experts", "moe_k", "moe_intermediate_size")
_PER_LAYER = ("hidden_size_per_layer_input", "vocab_size_per_layer_input")
_MAMBA_1 = ("mamba_expand", "mamba_d_state", "mamba_d_conv", "mamba_dt_rank")
_MAMBA_2 = ("mamba_n_heads", "mamba_d_state", "mamba_d_conv")
_MAMBA_BLOCKS = ("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "conv_kernel")
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
    Family("bamba", required=(*_DENSE, *_MAMBA_2)),
    Family("deepseek_v2", required=(*_ROUTED_FIELDS, *_LATENT)),
    Family("deepseek_v3", required=(*_ROUTED_FIELDS, *_LATENT)),
    Family("deepseek_v32", required=(*_ROUTED_FIELDS, *_LATENT)),
    Family("dots1", qk_norm="head", required=_ROUTED_FIELDS),
    Family("ernie4_5", ties_unsaid=True),
    Family("ernie4_5_moe", ties_unsaid=True, required=(*_DENSE, *_ERNIE)),
    Family(
        "falcon",
        mlp_matrices=2,
        norm_vectors=2,
        ties_unsaid=True,
        required=(),
        defaults=((_CONTEXT, 2048),),
        parallel_attention=True,
    ),
    Family("falcon_h1", required=(*_DENSE, *_MAMBA_2)),
    Family("gemma", ties_unsaid=True),
    Family("gemma2", norms=4, ties_unsaid=True, slides=2),
    Family("gemma3_text", norms=4, qk_norm="head", ties_unsaid=True, slides=6, defaults=_GEMMA_3_DEFAULTS),
    Family("gemma3n_text", norms=4, qk_norm="head", ties_unsaid=True, slides=5, required=(*_DENSE, *_PER_LAYER)),
    Family("gemma4_text", norms=4, qk_norm="head", ties_unsaid=True, slides=6),
    Family("glm4", norms=4, biases="qkv"),
    Family("glm4_moe", required=_ROUTED_FIELDS),
    Family("glm_moe_dsa", required=(*_ROUTED_FIELDS, *_LATENT)),
    Family("gpt_neox", mlp_matrices=2, norm_vectors=2, biases="every"),
    Family("gpt_oss", biases="every", slides=2, required=_LOCAL),
    Family("granite"),
    Family("granitemoe", required=_LOCAL),
    Family("granitemoehybrid", required=(_CONTEXT, "shared_intermediate_size", *_MAMBA_2)),
    Family("hunyuan_v1_dense", qk_norm="head"),
    Family("hunyuan_v1_moe", qk_norm="head", required=(*_DENSE, "num_experts", "moe_topk")),
    Family("jamba", required=(*_DENSE, *_MAMBA_1)),
    Family("kimi_k2", required=(*_ROUTED_FIELDS, *_LATENT)),
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
    Family("nemotron_h", mlp_matrices=2, norms=1, required=(_CONTEXT, *_MAMBA_BLOCKS)),
    Family("olmo", norms=0),
    Family("olmo2", qk_norm="whole"),
    Family("olmo3", qk_norm="whole", slides=4),
    Family("phi", mlp_matrices=2, norms=1, norm_vectors=2, biases="every"),
    Family("phi3", slides=EVERY_LAYER),
    Family("phimoe", norm_vectors=2, required=_LOCAL),
    Family("qwen2", biases="qkv"),
    Family("qwen2_5_vl", biases="qkv"),
    Family("qwen2_5_vl_text", biases="qkv"),
    Family("qwen2_moe", biases="qkv", required=_QWEN_MOE),
    Family("qwen3", qk_norm="head"),
    Family("qwen3_5_moe_text", qk_norm="head", required=(*_QWEN_MOE, *_LINEAR)),
    Family("qwen3_5_text", qk_norm="head", required=(*_DENSE, *_LINEAR)),
    Family("qwen3_moe", qk_norm="head", required=_QWEN_MOE),
    Family("qwen3_next", qk_norm="head", required=(*_QWEN_MOE, *_LINEAR)),
    Family("qwen3_omni_moe_text", qk_norm="head", required=_QWEN_MOE),
    Family("qwen3_vl_moe_text", qk_norm="head", required=_QWEN_MOE),
    Family("qwen3_vl_text", qk_norm="head"),
    Family("seed_oss"),
    Family("starcoder2", mlp_matrices=2, norm_vectors=2, biases="every", ties_unsaid=True, slides=EVERY_LAYER),
)
_FAMILIES = {family.name: family for family in _EVERY}
# Families that were looked at, and what the planner lacks for each.
_LACKING = {
    "deepseek_v4": "compressed attention",
    "kimi_linear": "delta attention beside latent attention",
    "mimo_v2_flash": "sliding layers with heads of their own",
}
_STAND_INS = {
    "dense": "llama",
    "experts": "qwen3_moe",
    "latent experts": "deepseek_v3",
    "linear": "qwen3_5_text",
    "linear experts": "qwen3_next",
    "Mamba": "bamba",
    "Mamba experts": "granitemoehybrid",
}
_FEWEST_ALIKE = 4  # letters at the beginning of two names, as in qwen4 and qwen3


def find_family(model_type: str) -> Family | None:
    """Return the family of a `model_type`, or `None` when its layers are not known."""
    return _FAMILIES.get(model_type)


def nearest_family(model_type: str, fields: Mapping[str, object]) -> Family:
    """Return the known family whose layers are most like those of an unknown one, with what that one needs.

    It has the same kind of layers (experts, latent, linear attention, Mamba) by the fields that tell them, and needs
    no field that is missing; of these, the newest whose name begins alike, else the most common one of the kind.

    Args:
        model_type: The unknown family.
        fields: Its `config.json`, of the text part where it is multimodal.
    """
    kind = _kind_of(fields)
    alike = [family for family in _EVERY if _kind_of(dict.fromkeys(family.required, 1)) == kind]
    able = [family for family in alike if all(fields.get(name) is not None for name in family.required)]
    usual = _FAMILIES[_STAND_INS[kind]]
    best = max(able, key=lambda family: _likeness(family.name, model_type), default=usual)
    found = best if _letters_alike(best.name, model_type) >= _FEWEST_ALIKE else usual
    return replace(found, required=tuple(_needed(fields)), defaults=())


def _needed(fields: Mapping[str, object]) -> Iterator[str]:
    """Yield what an unknown family can't be planned without: a context, the widths, and all of a layer it tells of."""
    yield _CONTEXT
    if all(fields.get(name) is None for name in EXPERT_WIDTHS):
        yield "intermediate_size"
    if fields.get("kv_lora_rank"):
        yield from _LATENT
    if fields.get("linear_num_value_heads"):
        yield from _LINEAR


def _likeness(name: str, other: str) -> tuple[int, bool, str]:
    """Order names by the letters at their beginning; of equal ones a text model's own, and the newest."""
    return _letters_alike(name, other), not name.endswith("_text"), name


def _letters_alike(name: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False)))


def _kind_of(fields: Mapping[str, object]) -> str:
    """Return the kind of layers that the fields tell, a key of `_STAND_INS`."""
    has = {name for name, value in fields.items() if value is not None}
    kind = " ".join(_kinds(has))
    return kind if kind in _STAND_INS else "dense"


def _kinds(has: set[str]) -> Iterator[str]:
    if has & {*_MAMBA_1[:1], *_MAMBA_2[:1], *_MAMBA_BLOCKS[:1]}:
        yield "Mamba"
    elif "linear_num_value_heads" in has:
        yield "linear"
    elif "kv_lora_rank" in has:
        yield "latent"
    if has & {*EXPERT_COUNTS}:
        yield "experts"


def unplanned_feature(model_type: str) -> str | None:
    """Return what the planner lacks for a family that another stands in for; `None` where nobody looked."""
    return _LACKING.get(model_type)


def family_names() -> tuple[str, ...]:
    """Return every known `model_type`, sorted."""
    return tuple(sorted(_FAMILIES))
