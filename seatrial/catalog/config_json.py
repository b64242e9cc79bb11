"""A model's `config.json` as Hugging Face writes it: typed look-ups, and what it lacks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.errors import PlanError

if TYPE_CHECKING:
    from pathlib import Path

_FAMILIES = ("falcon", "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe")
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
        """Width of one head; Qwen3 gives it, the others divide the hidden size."""
        return self.optional("head_dim") or self.number("hidden_size") // self.number("num_attention_heads")

    @property
    def ties_embeddings(self) -> bool:
        """Input and output embeddings are one matrix; left out, Falcon ties them and the others don't."""
        return self.flag("tie_word_embeddings", default=self.family == "falcon")

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
        return value if isinstance(value, int) else None

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
        PlanError: SEA201 when the file or a field is missing, SEA209 when the family can't be planned.
    """
    config = ConfigJson(_read(path))
    if "kv_lora_rank" in config.fields:
        message = f"{config.family} has multi-head latent attention, which can't be planned yet"
        raise PlanError.of("SEA209", message, hint="choose a model without it", where=path.as_posix())
    if config.family not in _FAMILIES:
        hint = f"known: {', '.join(_FAMILIES)}; or give model.architecture, a catalog id of the same shape"
        message = f"the model_type {config.family} can't be planned yet"
        raise PlanError.of("SEA209", message, hint=hint, where=path.as_posix())
    required = _REQUIRED.get(config.family, (*_ALWAYS, *_MOST))
    missing = [name for name in required if config.optional(name) is None]
    if missing:
        message, hint = f"{', '.join(missing)} missing", "use the config.json that lies beside the weights"
        raise PlanError.of("SEA201", message, hint=hint, where=path.as_posix())
    return config


def _read(path: Path) -> dict[str, object]:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message, hint = f"the file can't be read: {error}", "it must be the model's config.json"
        raise PlanError.of("SEA201", message, hint=hint, where=path.as_posix()) from error
    if not isinstance(fields, dict):
        message, hint = "the file is not a JSON object", "it must be the model's config.json"
        raise PlanError.of("SEA201", message, hint=hint, where=path.as_posix())
    return fields
