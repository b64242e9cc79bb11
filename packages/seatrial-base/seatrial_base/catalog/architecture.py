"""The shape of a model: what sizing needs to know, and reading it from a Hugging Face `config.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_base.catalog.config_json import ConfigJson, read_config_json
from seatrial_base.catalog.parameters import count_parameters

if TYPE_CHECKING:
    from pathlib import Path

_DTYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp16"}


@dataclass(frozen=True, slots=True)
class Architecture:
    """The shape of one model.

    Attributes:
        id: Hub id, or the file that it was read from.
        family: `model_type` of the configuration.
        layers: Transformer layers.
        hidden_size: Width of the residual stream.
        attention_heads: Query heads; the tensor parallel degree divides them.
        kv_heads: Key and value heads; under multi-head latent attention as many as query heads.
        head_dim: Width of one query and key head; under multi-head latent attention `qk_nope_head_dim` and
            `qk_rope_head_dim`.
        vocab: Vocabulary size.
        max_context: Longest sequence in tokens.
        dtype: Type of the published weights, `fp16` or `bf16`.
        params_total: Parameters.
        params_active: Parameters that one token passes through.
        experts: Routed experts of each layer that has experts; `None` for a dense model.
        experts_per_token: Routed experts that one token passes through; shared experts count as active always.
        tied_embeddings: Input and output embeddings are one matrix.
        sliding_window: Tokens that the attention of a sliding layer looks back; `None` where every layer sees all.
        parallel_attention: Attention and MLP run side by side (Falcon): one all-reduce per layer.
        checkpoint_quantization: Quantization of the published checkpoint; `None` when it has 16 bits.
        source: Where the facts were read.
        date: When; `None` for a file of the user.
        sliding_layers: Layers that have the window, where only some do (Gemma 2 and 3, gpt-oss); `None` for all.
        linear_layers: Layers with linear attention (Qwen3-Next, Qwen3.5): a state of fixed size, no KV cache.
        latent_dim: Elements of one token's latent in one layer under multi-head latent attention (`kv_lora_rank` and
            `qk_rope_head_dim`), which every accelerator holds whole; `None` without.
        is_multimodal: It has an encoder of images or sound, whose parameters are not among these.
    """

    id: str
    family: str
    layers: int
    hidden_size: int
    attention_heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    max_context: int
    dtype: str
    params_total: int
    params_active: int
    experts: int | None
    experts_per_token: int | None
    tied_embeddings: bool
    sliding_window: int | None
    parallel_attention: bool
    checkpoint_quantization: str | None
    source: str
    date: str | None
    sliding_layers: int | None = None
    linear_layers: int = 0
    latent_dim: int | None = None
    is_multimodal: bool = False

    @property
    def is_mla(self) -> bool:
        """Multi-head latent attention: one latent a token is cached, not keys and values of each head."""
        return self.latent_dim is not None

    def quantization(self, override: str | None) -> str | None:
        """Return how the served weights are quantized: as the spec overrides it, or as the checkpoint is published."""
        return override or self.checkpoint_quantization

    @property
    def expert_params(self) -> int:
        """Parameters of all routed experts: active = rest + chosen share * experts, total = rest + experts."""
        if self.experts is None or self.experts_per_token is None or self.experts == self.experts_per_token:
            return 0
        return round((self.params_total - self.params_active) / (1 - self.experts_per_token / self.experts))

    def cached_tokens(self, tokens: float) -> float:
        """Return how many tokens of a sequence stay in the KV cache, averaged over the layers.

        A sliding layer keeps its window, a layer with linear attention none, any other layer the whole sequence.
        Engines without a cache of its own for the sliding layers keep more (vLLM's hybrid KV cache manager does as is
        counted here).
        """
        whole = 1 - self.linear_layers / self.layers
        if self.sliding_window is None or tokens <= self.sliding_window:
            return whole * tokens
        if self.sliding_layers is None:
            return whole * self.sliding_window
        sliding = self.sliding_layers / self.layers
        return sliding * self.sliding_window + (whole - sliding) * tokens


def shards_evenly(architecture: Architecture, degree: int) -> bool:
    """Tell whether a degree divides the attention heads, and divides or is divided by the KV heads."""
    heads, kv_heads = architecture.attention_heads, architecture.kv_heads
    return heads % degree == 0 and (kv_heads % degree == 0 or degree % kv_heads == 0)


def from_config_json(path: Path) -> Architecture:
    """Read a model's shape from its `config.json`; parameters are counted from the shape.

    Raises:
        PlanError: SEA201 when the file or a field is missing, SEA209 when the family or the quantization can't be
            planned, SEA211 when a number is one that no model has.
    """
    return architecture_of(read_config_json(path), name=path.name, source=path.as_posix())


def architecture_of(config: ConfigJson, *, name: str, source: str, date: str | None = None) -> Architecture:
    """Return the shape that a checked `config.json` describes; parameters are counted from it.

    Gemma 4's layers that see all have fewer, wider heads than its sliding layers: the heads are those of the sliding
    layers, so its KV cache is overestimated.

    Args:
        config: The configuration.
        name: The architecture's id.
        source: Where the configuration was read.
        date: When; `None` for a file of the user.
    """
    total, active = count_parameters(config)
    window, sliding_layers = config.sliding
    return Architecture(
        id=name,
        family=config.family,
        layers=config.layers,
        hidden_size=config.number("hidden_size"),
        attention_heads=config.number("num_attention_heads"),
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        vocab=config.number("vocab_size"),
        max_context=config.max_context,
        dtype=_published_dtype(config),
        params_total=total,
        params_active=active,
        experts=config.experts,
        experts_per_token=config.experts_per_token,
        tied_embeddings=config.ties_embeddings,
        sliding_window=window,
        parallel_attention=config.layout.parallel_attention,
        checkpoint_quantization=config.quantization,
        source=source,
        date=date,
        sliding_layers=sliding_layers,
        linear_layers=config.linear_layers,
        latent_dim=config.latent_dim,
        is_multimodal=config.is_multimodal,
    )


def _published_dtype(config: ConfigJson) -> str:
    return _DTYPES.get(config.text("dtype") or config.text("torch_dtype") or "", "bf16")
