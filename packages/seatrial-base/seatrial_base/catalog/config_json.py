"""A model's `config.json` as Hugging Face writes it: its family, typed look-ups, precision, and what it lacks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_base.catalog.config_families import (
    EVERY_LAYER,
    EXPERT_COUNTS,
    EXPERTS_CHOSEN,
    family_names,
    find_family,
    nearest_family,
)
from seatrial_base.catalog.config_layers import count_expert_layers, count_layers, count_uncached
from seatrial_base.catalog.mamba import mamba_of
from seatrial_base.errors import PlanError
from seatrial_base.files import read_text
from seatrial_base.nesting import json_document

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial_base.catalog.config_families import Family
    from seatrial_base.catalog.mamba import Mamba


_TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config")
_ENCODERS = ("vision_config", "audio_config", "vision_tower", "image_token_id", "embd_layer")
_INHERITED = ("quantization_config", "tie_word_embeddings", "dtype", "torch_dtype")  # said for the whole model
_ALWAYS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
_COUNTED = ("num_key_value_heads", "num_kv_heads", "head_dim", "sliding_window", "attention_chunk_size")
_HINT = "use the config.json of the weights"


@dataclass(frozen=True, slots=True)
class ConfigJson:
    """The fields of one `config.json` whose required ones are known to be there.

    Attributes:
        fields: The fields, of the text part where the model is multimodal.
        layout: How the family lays out a layer.
        is_multimodal: It has an encoder of images or sound besides.
        unknown_family: The `model_type` that nobody has looked at, where the layout is that of another; else `None`.
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
        return count_layers(self)

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
        """Layers whose MLP is a mixture of experts."""
        return count_expert_layers(self)

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
        return count_uncached(self)

    @property
    def mamba(self) -> Mamba | None:
        """A Mamba layer; `None` where the model has none."""
        return mamba_of(self) if self.first("mamba_d_state", "ssm_state_size") else None

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


def read_config_json(path: Path) -> ConfigJson:
    """Read a `config.json` and check that its family can be planned and nothing required is missing.

    Of a multimodal model the text part is read.

    Raises:
        PlanError: SEA201 when the file or a field is missing, SEA209 when the family or the quantization can't be
            planned, SEA211 when a number is one that no model has.
    """
    return checked_config_json(_read(path), path.as_posix())


def checked_config_json(document: dict[str, object], where: str) -> ConfigJson:
    """Check a parsed `config.json`, as `read_config_json` does.

    Args:
        document: Its fields.
        where: Where it was read, for the messages.

    Raises:
        PlanError: As `read_config_json`.
    """
    if headless := _headless(document):
        raise PlanError.of("SEA209", headless, hint="choose a model that generates text", where=where)
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
        raise PlanError.of("SEA209", unplanned, hint=_ways(), where=where)
    return config


_GENERATES = ("CausalLM", "ConditionalGeneration", "LMHead", "ChatModel", "ImageTextToText", "Vision2Seq", "ChatGLM")
_HEADLESS = ("Model", "Classification", "MaskedLM", "QuestionAnswering", "RewardModel", "Encoder", "TextEncoding")


def _headless(document: dict[str, object]) -> str:
    """Say which class of a configuration generates no text, as those of embeddings and rankings; else nothing."""
    named = document.get("architectures")
    names = [str(name) for name in named] if isinstance(named, list) else []
    if not names or any(part in name for name in names for part in _GENERATES):
        return ""
    found = [name for name in names if name.endswith(_HEADLESS)]
    return f"{found[0]} generates no text: it gives embeddings or scores" if found else ""


def _ways() -> str:
    return (
        f"known: {', '.join(family_names())}; or give model.architecture, a catalog id of the same shape "
        "(seatrial models list), or model.shape, its numbers"
    )


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
    """Tell whether another field says the same: families name their experts differently."""
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


def _read(path: Path) -> dict[str, object]:
    try:
        fields = json_document(read_text(path))
    except (OSError, ValueError) as error:
        message, hint = f"the file can't be read: {error}", "give the model's config.json"
        raise PlanError.of("SEA201", message, hint=hint, where=path.as_posix()) from error
    if not isinstance(fields, dict):
        message, hint = "the file is not a JSON object", "give the model's config.json"
        raise PlanError.of("SEA201", message, hint=hint, where=path.as_posix())
    return fields


_BY_NAME = {
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "fp8_pb_wo": "fp8",
    "fp8_per_channel_per_token": "fp8",
    "awq": "awq",
    "mxfp4": "mxfp4",
    "nvfp4": "nvfp4",
    "w4a16_awq": "awq",
    "w4a16_nvfp4": "nvfp4",
}
# Bits and kind of a weight, in the words of compressed-tensors.
_BY_LAYOUT = {(8, "float"): "fp8", (8, "int"): "int8", (4, "int"): "gptq", (4, "float"): "mxfp4"}
_NVFP4_GROUP = 16  # MXFP4 has blocks of 32: OCP Microscaling 1.0
_HALF_BYTE = 4


def quantization_of(described: object) -> str | None:
    """Return the name of the precision in `seatrial_base.catalog.precision`; `None` for 16 bits.

    Raises:
        ValueError: It is another one, which is named.
    """
    if not isinstance(described, dict) or not described:
        return None
    method = str(described.get("quant_method", "")).lower()
    algorithm = str(described.get("quant_algo") or "").lower()
    named = _by_method(described, method) or _BY_NAME.get(algorithm)
    precision = named or _most_used(described) or _of_groups(described)
    if precision is None:
        raise ValueError(algorithm or method or "an unnamed method")
    return precision


def _by_method(described: dict[str, object], method: str) -> str | None:
    if method == "gptq":
        return "int8" if described.get("bits") == 8 else "gptq"  # noqa: PLR2004 (bits)
    return _BY_NAME.get(method)


def _most_used(described: dict[str, object]) -> str | None:
    """Return the precision of most layers, where they are listed one by one."""
    layers = described.get("quantized_layers")
    if not isinstance(layers, dict):
        return None
    named = Counter(
        _BY_NAME.get(str(layer.get("quant_algo")).lower()) for layer in layers.values() if isinstance(layer, dict)
    )
    return max(named, key=lambda name: named[name], default=None)


def _of_groups(described: dict[str, object]) -> str | None:
    """Return the precision of the first group of layers that compressed-tensors describes."""
    groups = described.get("config_groups")
    group = next(iter(groups.values()), None) if isinstance(groups, dict) else None
    weights = group.get("weights") if isinstance(group, dict) else None
    if not isinstance(weights, dict):
        return None
    bits, layout = weights.get("num_bits"), (weights.get("num_bits"), str(weights.get("type")))
    if layout == (_HALF_BYTE, "float") and weights.get("group_size") == _NVFP4_GROUP:
        return "nvfp4"
    if layout == (_HALF_BYTE, "int") and _only_experts(described):
        return "int4"
    return _BY_LAYOUT.get((bits, layout[1])) if isinstance(bits, int) else None


def _only_experts(described: dict[str, object]) -> bool:
    """Tell whether attention keeps 16 bits, as in the checkpoints of Kimi K2."""
    ignored = described.get("ignore")
    return isinstance(ignored, list) and any("self_attn" in str(name) for name in ignored)
