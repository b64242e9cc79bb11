"""A model's `config.json` as Hugging Face writes it: typed look-ups, and what it lacks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.errors import PlanError
from seatrial.files import read_text

if TYPE_CHECKING:
    from pathlib import Path

_FAMILIES = (
    "falcon",
    "gemma",
    "gemma2",
    "gemma3_text",
    "gpt_neox",
    "llama",
    "mistral",
    "mixtral",
    "phi",
    "phi3",
    "qwen2",
    "qwen3",
    "qwen3_moe",
)
_TIED_UNSAID = ("falcon", "gemma", "gemma2", "gemma3_text")  # tie_word_embeddings is true where it is left out
_FALCON_CONTEXT = 2048  # tokens; Falcon's configurations leave it out
_GEMMA_3_PATTERN = 6  # every sixth layer sees all, unless sliding_window_pattern says otherwise
_ALWAYS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
_MOST = ("intermediate_size", "max_position_embeddings")
_REQUIRED = {
    "falcon": _ALWAYS,
    "mixtral": (*_ALWAYS, *_MOST, "num_local_experts", "num_experts_per_tok"),
    "qwen3_moe": (*_ALWAYS, *_MOST, "num_experts", "num_experts_per_tok", "moe_intermediate_size"),
}


@dataclass(frozen=True, slots=True)
class ConfigJson:
    """The fields of one `config.json` whose required ones are known to be there."""

    fields: dict[str, object]

    @property
    def family(self) -> str:
        """The `model_type`."""
        return str(self.fields.get("model_type"))

    @property
    def experts(self) -> int | None:
        """Experts of each layer; `None` for a dense model."""
        return self.optional("num_local_experts") or self.optional("num_experts")

    @property
    def kv_heads(self) -> int:
        """Key and value heads; Falcon's first generation has one when it says `multi_query`."""
        if self.flag("multi_query") and not self.flag("new_decoder_architecture"):
            return 1
        given = self.optional("num_key_value_heads") or self.optional("num_kv_heads")
        return given or self.number("num_attention_heads")

    @property
    def head_dim(self) -> int:
        """Width of one head; Qwen3 and Gemma give it, the others divide the hidden size."""
        return self.optional("head_dim") or self.number("hidden_size") // self.number("num_attention_heads")

    @property
    def ties_embeddings(self) -> bool:
        """Input and output embeddings are one matrix; left out, Falcon and Gemma tie them and the others don't."""
        return self.flag("tie_word_embeddings", default=self.family in _TIED_UNSAID)

    @property
    def max_context(self) -> int:
        """Longest sequence in tokens."""
        return self.optional("max_position_embeddings") or _FALCON_CONTEXT

    @property
    def sliding(self) -> tuple[int | None, int | None]:
        """The attention window in tokens, and how many layers have it; `None` for no window, and for all layers."""
        window, layers = self.optional("sliding_window"), self._sliding_layers()
        if window is None or layers == 0 or window >= self.max_context:
            return None, None
        return window, None if layers == self.number("num_hidden_layers") else layers

    def _sliding_layers(self) -> int:
        """Count the layers with a window, as the model code of Hugging Face lays them out."""
        layers, kinds = self.number("num_hidden_layers"), self.fields.get("layer_types")
        if isinstance(kinds, list):
            return kinds.count("sliding_attention")
        if self.family in ("mistral", "phi3"):
            return layers
        if self.family == "gemma2":
            return layers - layers // 2  # layers 0, 2, 4, …
        if self.family == "gemma3_text":
            return layers - layers // (self.optional("sliding_window_pattern") or _GEMMA_3_PATTERN)
        if self.flag("use_sliding_window"):  # Qwen: the layers from max_window_layers on
            return max(layers - (self.optional("max_window_layers") or layers), 0)
        return 0

    @property
    def quantization(self) -> str | None:
        """Method by which the checkpoint is quantized; `None` when it has 16 bits."""
        given = self.fields.get("quantization_config")
        return str(given.get("quant_method")) if isinstance(given, dict) else None

    def number(self, name: str) -> int:
        """Return a required whole number."""
        value = self.optional(name)
        if value is None:
            raise KeyError(name)
        return value

    def optional(self, name: str) -> int | None:
        """Return a whole number, or `None` when the field is absent or null."""
        value = self.fields.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

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

    Raises:
        PlanError: SEA201 when the file or a field is missing, SEA209 when the family can't be planned, SEA211 when a
            number is one that no model has.
    """
    config = ConfigJson(_read(path))
    if "kv_lora_rank" in config.fields:
        message = f"{config.family} has multi-head latent attention, which is not supported"
        raise PlanError.of("SEA209", message, hint="choose another model", where=path.as_posix())
    if config.family not in _FAMILIES:
        hint = (
            f"known: {', '.join(_FAMILIES)}; or give model.architecture, a catalog id of the same shape (seatrial "
            "models list), or model.shape, its numbers"
        )
        message = f"the model_type {config.family} is not supported"
        if "vision_config" in config.fields:
            message = f"the model_type {config.family} is multimodal: the memory of its image encoder is not supported"
        raise PlanError.of("SEA209", message, hint=hint, where=path.as_posix())
    required = _REQUIRED.get(config.family, (*_ALWAYS, *_MOST))
    missing = [name for name in required if config.optional(name) is None]
    if missing:
        message, hint = f"{', '.join(missing)} missing", "use the config.json of the weights"
        raise PlanError.of("SEA201", message, hint=hint, where=path.as_posix())
    impossible = _impossible(config, required)
    if impossible:
        hint = "use the config.json of the weights"
        raise PlanError.of("SEA211", impossible, hint=hint, where=path.as_posix())
    return config


def _impossible(config: ConfigJson, required: tuple[str, ...]) -> str:
    """Return what no model has, or nothing: a count below one, heads that can't be grouped."""
    counts = [*required, "num_key_value_heads", "num_kv_heads", "head_dim", "sliding_window"]
    low = [f"{name} is {value}" for name in counts if (value := config.optional(name)) is not None and value < 1]
    if low:
        return f"{', '.join(low)}: at least 1"
    heads, kv_heads = config.number("num_attention_heads"), config.kv_heads
    if heads % kv_heads:
        return f"{kv_heads} KV heads do not divide {heads} attention heads"
    return ""


def _read(path: Path) -> dict[str, object]:
    try:
        fields = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        message, hint = f"the file can't be read: {error}", "give the model's config.json"
        raise PlanError.of("SEA201", message, hint=hint, where=path.as_posix()) from error
    if not isinstance(fields, dict):
        message, hint = "the file is not a JSON object", "give the model's config.json"
        raise PlanError.of("SEA201", message, hint=hint, where=path.as_posix())
    return fields
