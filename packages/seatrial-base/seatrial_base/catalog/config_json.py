"""A model's `config.json` as Hugging Face writes it: typed look-ups, precision, what it lacks, and its family.

A family tells how the layers look, and which one stands in for one that no one has looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Literal

from seatrial_base.catalog.precision import quantization_of
from seatrial_base.errors import PlanError
from seatrial_base.files import read_text
from seatrial_base.text import json_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


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
    Family("glm4_moe_lite", required=(*_ROUTED_FIELDS, *_LATENT)),
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

    `fields`: its `config.json`, of the text part where it is multimodal.
    """
    kind = _kind_of(fields)
    alike = [family for family in _EVERY if _kind_of(dict.fromkeys(family.required, 1)) == kind]
    able = [family for family in alike if all(fields.get(name) is not None for name in family.required)]
    usual = _FAMILIES[_STAND_INS[kind]]
    # Order names by the letters at their beginning; of equal ones a text model's own, and the newest.
    best = max(
        able,
        key=lambda family: (_letters_alike(family.name, model_type), not family.name.endswith("_text"), family.name),
        default=usual,
    )
    nearest = best if _letters_alike(best.name, model_type) >= _FEWEST_ALIKE else usual
    # What an unknown family can't be planned without: a context, the widths, and all of a layer it tells of.
    required: list[str] = [_CONTEXT]
    if all(fields.get(name) is None for name in EXPERT_WIDTHS):
        required.append("intermediate_size")
    if fields.get("kv_lora_rank"):
        required += _LATENT
    if fields.get("linear_num_value_heads"):
        required += _LINEAR
    return replace(nearest, required=tuple(required), defaults=())


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
    """Return what the planner lacks for a family that another stands in for; `None` where no one looked."""
    return _LACKING.get(model_type)


def family_names() -> tuple[str, ...]:
    """Return every known `model_type`, sorted."""
    return tuple(sorted(_FAMILIES))


_TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config")
_ENCODERS = ("vision_config", "audio_config", "vision_tower", "image_token_id", "embd_layer")
_INHERITED = ("quantization_config", "tie_word_embeddings", "dtype", "torch_dtype")  # said for the whole model
_ALWAYS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
_COUNTED = ("num_key_value_heads", "num_kv_heads", "head_dim", "sliding_window", "attention_chunk_size")
INSTEAD_OF_TEXT = (
    "Seatrial serves models that generate text: serve this one with Hugging Face's Text Embeddings Inference container "
    "(huggingface-pytorch-tei) on a SageMaker endpoint of your own"
)
_HINT = "use the config.json of the weights"
_GENERATES = ("CausalLM", "ConditionalGeneration", "LMHead", "ChatModel", "ImageTextToText", "Vision2Seq", "ChatGLM")
_HEADLESS = ("Model", "Classification", "MaskedLM", "QuestionAnswering", "RewardModel", "Encoder", "TextEncoding")
# Blocks of a model whose every block is one of mixer, MLP and experts (Nemotron-H), as a word or a letter.
_STATE = ("mamba", "M")
_EXPERTS, _MLP = ("moe", "E"), ("mlp", "-")
_UNCACHED = ("linear", "mamba", "conv", "recurrent")  # parts of the names in `layer_types` of layers without a KV cache
_STATE_BYTES = 4  # of a value: the engines keep the state in 32 bits where the checkpoint says so (Nemotron 3)
_USUAL_CONVOLUTION = 4  # tokens, of every published model, where it is not said
_WIDTH_PER_RANK = 16  # modeling_jamba.py: mamba_dt_rank "auto" is the hidden size over it


@dataclass(frozen=True, slots=True)
class Mamba:
    """One Mamba layer: its parameters, and the state that each sequence keeps in it.

    Mamba-2 has heads, as attention has, and groups that share their inputs; Mamba-1 has neither. Each family writes the
    same numbers under names of its own.

    Attributes:
        state: Elements that each of the inner values keeps of a sequence.
        convolution: Tokens that the convolution sees.
        heads: Heads of Mamba-2; 0 for Mamba-1.
        groups: Groups of heads that share their inputs; Mamba-2.
        time_rank: Rank of the time step; Mamba-1.
    """

    hidden: int
    inner: int
    state: int
    convolution: int
    heads: int
    groups: int
    time_rank: int

    @property
    def params(self) -> int:
        """Parameters: projections, convolution, time step, decay, and the norm in front of the output."""
        outward = self.inner * self.hidden
        if not self.heads:
            inputs = self.hidden * 2 * self.inner + self.inner * (self.time_rank + 2 * self.state)
            steps = self.time_rank * self.inner + self.inner + self.inner * self.state + self.inner
            return inputs + steps + self.inner * (self.convolution + 1) + self.time_rank + 2 * self.state + outward
        inputs = self.hidden * (self.inner + self._convolved + self.heads)
        return inputs + self._convolved * (self.convolution + 1) + 3 * self.heads + self.inner + outward

    @property
    def state_bytes(self) -> int:
        """Bytes that a sequence keeps in this layer, however long it is."""
        values = self.inner * self.state + self._convolved * (self.convolution - 1)
        return values * _STATE_BYTES

    @property
    def _convolved(self) -> int:
        """Values that the convolution sees: the inner ones, and both inputs of each group."""
        return self.inner + (2 * self.groups * self.state if self.heads else 0)


@dataclass(frozen=True, slots=True)
class ConfigJson:
    """The fields of one `config.json` whose required ones are known to be there.

    Attributes:
        fields: The fields, of the text part where the model is multimodal.
        layout: How the family lays out a layer.
        is_multimodal: It has an encoder of images or sound besides.
        unknown_family: The `model_type` that no one has looked at, where the layout is that of another; else `None`.
    """

    fields: dict[str, object]
    layout: Family
    is_multimodal: bool = False
    unknown_family: str | None = None

    @property
    def family(self) -> str:
        """The `model_type`, or the known one that stands in for it."""
        return self.layout.name

    @property
    def layers(self) -> int:
        """Transformer layers; of a model in blocks (Nemotron-H), those that attend or have Mamba."""
        blocks = self._single_blocks
        return _count(blocks, (*_STATE, *("attention", "*"))) if blocks else self.number("num_hidden_layers")

    @property
    def experts(self) -> int | None:
        """Routed experts of each layer that has experts; `None` for a dense model."""
        return self.first(*EXPERT_COUNTS) if self.first(*EXPERTS_CHOSEN) else None

    @property
    def experts_per_token(self) -> int | None:
        """Routed experts that one token passes through; `None` for a dense model."""
        return self.first(*EXPERTS_CHOSEN) if self.experts else None

    @property
    def expert_layers(self) -> int:
        """Layers, or blocks, whose MLP is a mixture of experts."""
        if self.experts is None:
            return 0
        if blocks := self._single_blocks:
            return _count(blocks, _EXPERTS)
        kinds, frequency = self.listed("mlp_layer_types"), self.listed("moe_layer_freq")
        if kinds:
            return kinds.count("sparse")
        if frequency:
            return frequency.count(1)
        if period := self.optional("expert_layer_period"):
            return len(tuple(_every(self.layers, period, self.optional("expert_layer_offset"))))
        step = self.first("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval") or 1
        first = self.first("first_k_dense_replace", "moe_layer_start_index") or 0
        return max(self.layers - first - len(self.listed("mlp_only_layers")), 0) // step

    @property
    def dense_mlps(self) -> int:
        """MLPs without experts: Gemma 4 has one beside its experts, too."""
        if blocks := self._single_blocks:
            return _count(blocks, _MLP)
        return self.layers if self.family == "gemma4_text" else self.layers - self.expert_layers

    @property
    def kv_heads(self) -> int:
        """Key and value heads; Falcon's first generation has one when it says `multi_query`."""
        if self.flag("multi_query") and not self.flag("new_decoder_architecture"):
            return 1
        if self.latent_dim is not None:
            return self.number("num_attention_heads")
        if self.family == "nemotron-nas":
            return max((kv for kv, _ in self.blocks if kv), default=self.number("num_attention_heads"))
        return self.first("num_key_value_heads", "num_kv_heads") or self.number("num_attention_heads")

    @property
    def head_dim(self) -> int:
        """Width of one query and key head: as given, or the hidden size divided by the heads."""
        if self.latent_dim is not None:
            return self.number("qk_nope_head_dim") + self.number("qk_rope_head_dim")
        return self.optional("head_dim") or self.number("hidden_size") // self.number("num_attention_heads")

    @property
    def latent_dim(self) -> int | None:
        """Elements that multi-head latent attention caches of a token in one layer; `None` without it."""
        rank, rope = self.optional("kv_lora_rank"), self.optional("qk_rope_head_dim")
        return rank + rope if rank and rope is not None else None

    @property
    def blocks(self) -> tuple[tuple[int | None, float], ...]:
        """KV heads of each block of a pruned model, `None` without attention, and its MLP's multiple of hidden."""
        heads = self.number("num_attention_heads")
        return tuple(_block(block, heads) for block in self.listed("block_configs"))

    @property
    def ties_embeddings(self) -> bool:
        """Input and output embeddings are one matrix; where it is left out, as the family has them."""
        return self.flag("tie_word_embeddings", default=self.layout.ties_unsaid)

    @property
    def max_context(self) -> int:
        """Longest sequence in tokens."""
        return self.number("max_position_embeddings")

    @property
    def linear_layers(self) -> int:
        """Layers without a KV cache: linear attention, Mamba, or blocks whose attention was pruned."""
        if blocks := self._single_blocks:
            return _count(blocks, _STATE)
        layers, interval = self.layers, self.optional("full_attention_interval")
        if kinds := [str(each) for each in self.listed("layer_types") or self.listed("layers_block_type")]:
            return sum(any(part in kind for part in _UNCACHED) for kind in kinds)
        if self.family == "nemotron-nas":
            return sum(kv is None for kv, _ in self.blocks)
        if "attn_layer_indices" in self.fields:
            return layers - (len(self.listed("attn_layer_indices")) or layers)
        if period := self.optional("attn_layer_period"):
            return layers - len(tuple(_every(layers, period, self.optional("attn_layer_offset"))))
        return layers - layers // interval if interval else 0

    @property
    def _single_blocks(self) -> tuple[str, ...]:
        """The blocks of a model whose every block is one of mixer, MLP and experts (Nemotron-H); else none."""
        pattern = self.text("hybrid_override_pattern")
        listed = tuple(pattern) if pattern else tuple(str(each) for each in self.listed("layers_block_type"))
        return listed if any(each in (*_EXPERTS, *_MLP) for each in listed) else ()

    @property
    def mamba(self) -> Mamba | None:
        """A Mamba layer; `None` where the model has none."""
        if not self.first("mamba_d_state", "ssm_state_size"):
            return None
        hidden = self.number("hidden_size")
        heads = self.first("mamba_num_heads", "mamba_n_heads") or 0
        width = self.first("mamba_head_dim", "mamba_d_head") or 0
        expanded = (self.first("mamba_expand", "expand") or 2) * hidden
        return Mamba(
            hidden=hidden,
            inner=self.first("mamba_d_ssm") or (heads * width if width else expanded),
            state=self.first("ssm_state_size", "mamba_d_state") or 0,
            convolution=self.first("conv_kernel", "mamba_d_conv") or _USUAL_CONVOLUTION,
            heads=heads,
            groups=self.first("n_groups", "mamba_n_groups") or 1,
            time_rank=self.first("mamba_dt_rank") or -(-hidden // _WIDTH_PER_RANK),
        )

    @property
    def mamba_layers(self) -> int:
        """Layers with Mamba: beside the attention of every layer (Falcon-H1), or in place of it."""
        if self.mamba is None:
            return 0
        return self.layers if self.family == "falcon_h1" else self.linear_layers

    @property
    def sliding(self) -> tuple[int | None, int | None]:
        """The attention window in tokens, and how many layers have it; `None` for no window, and for all layers."""
        window, layers = self.first("sliding_window", "attention_chunk_size"), self._sliding_layers()
        if window is None or layers == 0 or window >= self.max_context:
            return None, None
        return window, None if layers == self.layers else layers

    def _sliding_layers(self) -> int:
        """Count the layers with a window, as the model code of Hugging Face lays them out."""
        layers, kinds = self.layers, self.listed("layer_types")
        if kinds:
            return kinds.count("sliding_attention") + kinds.count("chunked_attention")
        if self.layout.slides == EVERY_LAYER:
            return layers
        if self.layout.slides is not None:
            return layers - layers // (self.optional("sliding_window_pattern") or self.layout.slides)
        if self.flag("use_sliding_window"):  # Qwen: the layers from max_window_layers on
            return max(layers - (self.optional("max_window_layers") or layers), 0)
        return 0

    @property
    def quantization(self) -> str | None:
        """Precision of the checkpoint's weights; `None` when it has 16 bits.

        Raises:
            ValueError: The checkpoint is quantized in a way that can't be planned; it is named.
        """
        return quantization_of(self.fields.get("quantization_config"))

    @property
    def method(self) -> str | None:
        """The checkpoint's `quant_method`, by which an engine chooses its loader."""
        described = self.fields.get("quantization_config")
        named = described.get("quant_method") if isinstance(described, dict) else None
        return named if isinstance(named, str) else None

    def number(self, name: str) -> int:
        """Return a required whole number."""
        value = self.optional(name)
        if value is None:
            raise KeyError(name)
        return value

    def optional(self, name: str) -> int | None:
        """Return a whole number, or `None` when the field is absent or null; of one for each layer, their mean."""
        value = self.fields.get(name)
        if isinstance(value, list):
            each = [one for one in value if isinstance(one, int) and not isinstance(one, bool)]
            return round(sum(each) / len(each)) if each and len(each) == len(value) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def first(self, *names: str) -> int | None:
        """Return the first of several fields that is a whole number other than zero."""
        return next((value for name in names if (value := self.optional(name))), None)

    def listed(self, name: str) -> list[object]:
        """Return a list, empty when the field is absent."""
        value = self.fields.get(name)
        return value if isinstance(value, list) else []

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a truth value."""
        value = self.fields.get(name)
        return value if isinstance(value, bool) else default

    def text(self, name: str) -> str | None:
        """Return a text, or `None` when the field is absent."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else None


def _count(blocks: tuple[str, ...], names: tuple[str, ...]) -> int:
    return sum(each in names for each in blocks)


def _every(layers: int, period: int, offset: int | None) -> Iterator[int]:
    """Yield each layer of a period, from an offset on."""
    return (layer for layer in range(layers) if period > 0 and layer % period == (offset or 0) % period)


def read_config_json(path: Path) -> ConfigJson:
    """Read a `config.json` and check that its family can be planned and nothing required is missing.

    Of a multimodal model the text part is read.

    Raises:
        PlanError: SEA201 when the file or a field is missing, SEA209 when the family or the quantization can't be
            planned, SEA211 when a number is one that no model has, SEA255 when the model generates no text.
    """
    try:
        fields = json_document(read_text(path))
    except (OSError, ValueError) as error:
        message, hint = f"the file can't be read: {error}", "give the model's config.json"
        raise PlanError.of("SEA201", message, hint=hint, where=path.as_posix()) from error
    if not isinstance(fields, dict):
        message, hint = "the file is not a JSON object", "give the model's config.json"
        raise PlanError.of("SEA201", message, hint=hint, where=path.as_posix())
    return checked_config_json(fields, path.as_posix())


def checked_config_json(document: dict[str, object], where: str) -> ConfigJson:
    """Check a parsed `config.json`, as `read_config_json` does.

    Raises:
        PlanError: As `read_config_json`.
    """
    if headless := _headless(document):
        raise PlanError.of("SEA255", headless, hint=INSTEAD_OF_TEXT, where=where)
    fields, is_multimodal = _text_part(document)
    model_type = fields.get("model_type")
    if not isinstance(model_type, str):
        raise PlanError.of("SEA201", "model_type missing", hint=_HINT, where=where)
    known = find_family(model_type)
    layout = known or nearest_family(model_type, fields)
    written = {name: value for name, value in fields.items() if value is not None}  # null is as good as absent
    config = ConfigJson(
        {**fields, **dict(layout.defaults), **written},
        layout,
        is_multimodal,
        unknown_family=None if known else model_type,
    )
    required = (*_ALWAYS, *layout.required)
    numbers = (*required, *dict(layout.defaults))
    missing = [name for name in numbers if config.optional(name) is None and not _said_otherwise(config, name)]
    if missing:
        raise PlanError.of("SEA201", f"{', '.join(missing)} missing", hint=_HINT, where=where)
    impossible = _impossible(config, required)
    if impossible:
        raise PlanError.of("SEA211", impossible, hint=_HINT, where=where)
    unplanned = _unplanned(config)
    if unplanned:
        raise PlanError.of(
            "SEA209",
            unplanned,
            hint=(
                f"known: {', '.join(family_names())}; or give model.architecture, a catalog id of the same shape "
                "(seatrial models list), or model.shape, its numbers"
            ),
            where=where,
        )
    return config


def _headless(document: dict[str, object]) -> str:
    """Return which class of a configuration generates no text, as those of embeddings and rankings; else nothing."""
    named = document.get("architectures")
    names = [str(name) for name in named] if isinstance(named, list) else []
    if not names or any(part in name for name in names for part in _GENERATES):
        return ""
    headless = [name for name in names if name.endswith(_HEADLESS)]
    return f"{headless[0]} generates no text: it gives embeddings or scores" if headless else ""


def _text_part(document: dict[str, object]) -> tuple[dict[str, object], bool]:
    """Return the fields of the text model, and whether there is more than text."""
    for name in _TEXT_PARTS:
        inner = document.get(name)
        if isinstance(inner, dict):
            inherited = {key: document[key] for key in (*_INHERITED, "model_type") if document.get(key) is not None}
            return _text_part({**inherited, **{key: value for key, value in inner.items() if value is not None}})[
                0
            ], True
    return document, any(document.get(name) is not None for name in _ENCODERS)


def _said_otherwise(config: ConfigJson, name: str) -> bool:
    """Return whether another field says the same: families name their experts differently."""
    same = next((names for names in (EXPERT_COUNTS, EXPERTS_CHOSEN) if name in names), ())
    return config.first(*same) is not None


def _unplanned(config: ConfigJson) -> str:
    """Return what of the model can't be planned, or nothing."""
    if config.optional("hidden_size_per_layer_input") and config.family != "gemma3n_text":
        return f"{config.family} with embeddings in every layer (hidden_size_per_layer_input) is not supported"
    if not config.layers:
        return f"{config.unknown_family or config.family} without a layer that attends or has Mamba is not supported"
    if config.family == "nemotron-nas" and len(config.blocks) != config.layers:
        return "nemotron-nas needs block_configs, one for each of num_hidden_layers"
    if config.optional("kv_lora_rank") and config.optional("qk_rope_head_dim") is None:
        return f"{config.family} with kv_lora_rank but without qk_rope_head_dim is not supported"
    try:
        quantization_of(config.fields.get("quantization_config"))
    except ValueError as error:
        return f"weights quantized with {error} are not supported"
    return ""


def _impossible(config: ConfigJson, required: tuple[str, ...]) -> str:
    """Return what no model has, or nothing: a count below one, heads that can't be grouped, too many experts."""
    counts = [*required, *_COUNTED]
    low = [f"{name} is {value}" for name in counts if (value := config.optional(name)) is not None and value < 1]
    if low:
        return f"{', '.join(low)}: at least 1"
    heads, kv_heads = config.number("num_attention_heads"), config.kv_heads
    if heads % kv_heads:
        return f"{kv_heads} KV heads do not divide {heads} attention heads"
    experts, chosen = config.experts or 0, config.experts_per_token or 0
    return f"{chosen} experts of each token are more than {experts}" if chosen > experts else ""


def _block(block: object, heads: int) -> tuple[int | None, float]:
    """Return the KV heads and the MLP's width of one block, in multiples of the hidden size."""
    attention = block.get("attention") if isinstance(block, dict) else None
    mlp = block.get("ffn") if isinstance(block, dict) else None
    group = attention.get("n_heads_in_group") if isinstance(attention, dict) else None
    wide = mlp.get("ffn_mult") if isinstance(mlp, dict) else None
    kv_heads = heads // group if isinstance(group, int) and group > 0 else None
    return kv_heads, float(wide) if isinstance(wide, int | float) else 0.0
