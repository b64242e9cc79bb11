"""The shape of a model: what sizing needs to know, its parameters, and reading it from a Hugging Face `config.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_base.catalog.config_json import EXPERT_WIDTHS, ConfigJson, read_config_json
from seatrial_base.catalog.precision import block_of
from seatrial_base.field_facts import made_of

if TYPE_CHECKING:
    from pathlib import Path


# Index key over latent of a token in DeepSeek-V3.2: 128 elements of 8 bits over 576 of 16.
INDEX_SHARE = 128 / (2 * 576)
_DTYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp16"}


@dataclass(frozen=True, slots=True)
class Architecture:
    """The shape of one model.

    Attributes:
        id: Hub id, or the file that it was read from.
        family: `model_type` of the configuration.
        attention_heads: Query heads; the tensor parallel degree divides them.
        kv_heads: Key and value heads; under multi-head latent attention as many as query heads.
        head_dim: Width of one query and key head; under multi-head latent attention `qk_nope_head_dim` and
            `qk_rope_head_dim`.
        max_context: Longest sequence in tokens.
        params_active: Parameters that one token passes through.
        experts: Routed experts of each layer that has experts; `None` for a dense model.
        experts_per_token: Routed experts that one token passes through; shared experts count as active always.
        tied_embeddings: Input and output embeddings are one matrix.
        sliding_window: Tokens that the attention of a sliding layer looks back; `None` where every layer sees all.
        parallel_attention: Attention and MLP run side by side (Falcon): one all-reduce per layer.
        checkpoint_quantization: Quantization of the published checkpoint; `None` when it has 16 bits.
        date: When; `None` for a file of the user.
        sliding_layers: Layers that have the window, where only some do (Gemma 2 and 3, gpt-oss); `None` for all.
        linear_layers: Layers with linear attention (Qwen3-Next, Qwen3.5): a state of fixed size, no KV cache.
        latent_dim: Elements of one token's latent in one layer under multi-head latent attention (`kv_lora_rank` and
            `qk_rope_head_dim`), which every accelerator holds whole; `None` without.
        sparse_tokens: Tokens that sparse attention reads of a context (DeepSeek-V3.2, GLM-5); `None` for all.
        is_multimodal: It has an encoder of images or sound, whose parameters are not among these.
        mixed_layers: Layers with Mamba beside attention (Falcon-H1): a state and a KV cache.
        state_bytes: Bytes that a sequence keeps in all Mamba layers, whatever its length; 0 without Mamba.
        unknown_family: The `model_type` of the user's configuration, where `family` stands in for it; else `None`.
        mlp_width: Inner width of an MLP without experts (`intermediate_size`); `None` where it has none or nobody says.
        expert_width: Inner width of one routed expert; `None` for a dense model.
        shared_width: Inner width of the experts that every token passes through, together; 0 without.
        weight_block: Weights that share a scale in the checkpoint: the side of a square of FP8, the group along the
            input of others; `None` where a scale is a whole row's, column's or matrix's.
        weight_method: `quant_method` of the checkpoint, the loader's name in an engine; `None` where nobody says.
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
    sparse_tokens: int | None = None
    mixed_layers: int = 0
    state_bytes: int = 0
    unknown_family: str | None = None
    mlp_width: int | None = None
    expert_width: int | None = None
    shared_width: int = 0
    weight_block: int | None = None
    weight_method: str | None = None

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

    def attended_tokens(self, tokens: float) -> float:
        """Return how many cached tokens a decode step reads of a sequence, averaged over the layers.

        Sparse attention chooses some by an index, whose keys it reads of all the others too.
        """
        cached = self.cached_tokens(tokens)
        if self.sparse_tokens is None or cached <= self.sparse_tokens:
            return cached
        return self.sparse_tokens + INDEX_SHARE * (cached - self.sparse_tokens)

    def seen_by_prompt(self, first: float, last: float) -> float:
        """Return how many cached tokens attention multiplies for a token of a prompt, averaged over layers and tokens.

        Sparse attention chooses some of a longer prompt. Its kernel multiplies latents, which are wider than a head
        (FlashMLA's token-level sparse prefill has the absorbed shape: github.com/deepseek-ai/FlashMLA), so that it
        costs more than attention over all until the prompt is some times longer than what is chosen.

        Args:
            first: Position of the first token that is computed, behind a cached prefix.
            last: Position of the last one; at least 1.
        """
        middle, most = (first + last) / 2, self.sparse_tokens
        if most is None or last <= most:
            return self.attended_tokens(last) * middle / last
        short = max(0.0, most - first)  # tokens that see no more than are chosen
        chosen = (short * (most + first) / 2 + (last - first - short) * most) / (last - first)
        wider = (self.latent_dim or self.head_dim) / self.head_dim
        return wider * chosen + INDEX_SHARE * (middle - chosen)


def shards_evenly(architecture: Architecture, degree: int) -> bool:
    """Return whether a degree divides the attention heads, and divides or is divided by the KV heads."""
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
    """
    total, active = count_parameters(config)
    window, sliding_layers = config.sliding
    described = config.fields.get("quantization_config")
    return made_of(
        Architecture,
        config,
        id=name,
        hidden_size=config.number("hidden_size"),
        attention_heads=config.number("num_attention_heads"),
        vocab=config.number("vocab_size"),
        dtype=_DTYPES.get(config.text("dtype") or config.text("torch_dtype") or "", "bf16"),
        params_total=total,
        params_active=active,
        tied_embeddings=config.ties_embeddings,
        sliding_window=window,
        parallel_attention=config.layout.parallel_attention,
        checkpoint_quantization=config.quantization,
        source=source,
        date=date,
        sliding_layers=sliding_layers,
        sparse_tokens=config.optional("index_topk"),
        mixed_layers=config.mamba_layers if config.family == "falcon_h1" else 0,
        state_bytes=config.mamba_layers * (config.mamba.state_bytes if config.mamba else 0),
        mlp_width=_mlp_width(config) if config.dense_mlps and not config.blocks else None,
        expert_width=_expert_width(config) if config.experts else None,
        shared_width=_shared_width(config) if config.experts else 0,
        weight_block=block_of(described),
        weight_method=config.method,
    )


_PRUNED_MULTIPLE = 256  # modeling_decilm.py of nvidia/Llama-3_3-Nemotron-Super-49B-v1 rounds an MLP's width up to it
_BIASED_HEAD = ("phi",)


def count_parameters(config: ConfigJson) -> tuple[int, int]:
    """Return the parameters in total and those that one token passes through, embeddings included in both."""
    rest = _embeddings(config) + _all_attention(config) + _all_norms(config) + _dense_mlps(config)
    rest += config.mamba_layers * (config.mamba.params if config.mamba else 0) + _per_layer_inputs(config)
    if config.experts is None or config.experts_per_token is None:
        width, vocab = config.optional("hidden_size_per_layer_input"), config.optional("vocab_size_per_layer_input")
        return rest + (config.layers * width * vocab if width and vocab else 0), rest
    rest += config.expert_layers * _always_active(config)
    hidden, wide = config.number("hidden_size"), _expert_width(config)
    biases = 2 * wide + hidden if config.layout.biases == "every" else 0
    expert = config.expert_layers * (config.layout.mlp_matrices * hidden * wide + biases)
    return rest + config.experts * expert, rest + config.experts_per_token * expert


def _embeddings(config: ConfigJson) -> int:
    vocab, hidden = config.number("vocab_size"), config.number("hidden_size")
    head_bias = vocab if config.family in _BIASED_HEAD or config.flag("lm_head_bias") else 0
    return vocab * hidden * (1 if config.ties_embeddings else 2) + head_bias


def _per_layer_inputs(config: ConfigJson) -> int:
    """Return what Gemma 3n multiplies besides: gate and projection of each layer's embedding, LAuReL, AltUp."""
    width, hidden = config.optional("hidden_size_per_layer_input"), config.number("hidden_size")
    if not width:
        return 0
    streams, rank = config.optional("altup_num_inputs") or 1, config.optional("laurel_rank") or 0
    return config.layers * hidden * (3 * width + 2 * rank) + 2 * (streams - 1) * hidden * hidden


def _all_norms(config: ConfigJson) -> int:
    norms = config.number("num_hidden_layers") * (
        1 if config.family == "falcon" and not config.flag("new_decoder_architecture") else config.layout.norms
    ) + (1 if config.layout.norms else 0)
    return norms * config.layout.norm_vectors * config.number("hidden_size")


# ------------------------------------------------------------------ attention


def _all_attention(config: ConfigJson) -> int:
    linear = config.linear_layers
    if config.latent_dim is not None:
        hidden, heads, rank = (config.number(name) for name in ("hidden_size", "num_attention_heads", "kv_lora_rank"))
        rope, values = config.number("qk_rope_head_dim"), config.number("v_head_dim")
        nope, query_rank = config.number("qk_nope_head_dim"), config.optional("q_lora_rank")
        queries = heads * (nope + rope)
        down = hidden * query_rank + query_rank + query_rank * queries if query_rank else hidden * queries
        latent = hidden * (rank + rope) + rank + rank * heads * (nope + values)
        index_heads, index_dim = config.optional("index_n_heads") or 0, config.optional("index_head_dim") or 0
        indexer = (query_rank or hidden) * index_heads * index_dim + hidden * (index_dim + index_heads) + 2 * index_dim
        return config.layers * (down + latent + heads * values * hidden + indexer)
    if config.family == "nemotron-nas":
        return sum(_attention(config, kv_heads, config.head_dim) for kv_heads, _ in config.blocks if kv_heads)
    full = config.layers - linear
    if config.optional("global_head_dim"):
        sliding = config.sliding[1] or 0
        return sliding * _attention(config, config.kv_heads, config.head_dim) + (full - sliding) * _global(config)
    state = linear * _linear_attention(config) if linear and config.optional("linear_num_value_heads") else 0
    return full * _attention(config, config.kv_heads, config.head_dim) + state


def _attention(config: ConfigJson, kv_heads: int, head_dim: int) -> int:
    hidden, heads = config.number("hidden_size"), config.number("num_attention_heads")
    queries, keys = heads * head_dim, kv_heads * head_dim
    gate = hidden * queries if config.family.startswith(("qwen3_5", "qwen3_next")) else 0  # attn_output_gate
    biases = 0
    if config.flag("attention_bias", default=config.layout.biases != "none"):
        biases = queries + 2 * keys + (hidden if config.layout.biases == "every" else 0)
    sinks = heads if config.family == "gpt_oss" else 0
    return 2 * hidden * queries + 2 * hidden * keys + gate + biases + sinks + _qk_norms(config, queries, keys, head_dim)


def _qk_norms(config: ConfigJson, queries: int, keys: int, head_dim: int) -> int:
    kind = config.layout.qk_norm
    if kind == "whole" or (config.layout.name == "cohere" and config.flag("use_qk_norm")):
        return queries + keys
    given = config.family == "glm4_moe" and config.flag("use_qk_norm")
    return 2 * head_dim if kind == "head" or given else 0


def _global(config: ConfigJson) -> int:
    """Return what attention over the whole sequence has in Gemma 4: wider heads, keys that are the values too."""
    hidden, head_dim = config.number("hidden_size"), config.number("global_head_dim")
    kv_heads = config.first("num_global_key_value_heads", "num_key_value_heads") or 1
    queries, keys = config.number("num_attention_heads") * head_dim, kv_heads * head_dim
    return 2 * hidden * queries + (1 if config.flag("attention_k_eq_v") else 2) * hidden * keys + 2 * head_dim


def _linear_attention(config: ConfigJson) -> int:
    """Return a gated delta net: projections, convolution, decay, norm and output."""
    hidden, value_heads = config.number("hidden_size"), config.number("linear_num_value_heads")
    keys = config.number("linear_num_key_heads") * config.number("linear_key_head_dim")
    values = value_heads * config.number("linear_value_head_dim")
    inward = hidden * (2 * keys + 2 * values + 2 * value_heads)
    convolution = (2 * keys + values) * config.number("linear_conv_kernel_dim")
    return inward + convolution + 2 * value_heads + config.number("linear_value_head_dim") + values * hidden


# -------------------------------------------------------------- MLP and experts


def _dense_mlps(config: ConfigJson) -> int:
    hidden = config.number("hidden_size")
    if config.family == "nemotron-nas":
        # Each block's width is rounded up to a multiple.
        widths = (-(-int(2 * multiple * hidden / 3) // _PRUNED_MULTIPLE) for _, multiple in config.blocks)
        return sum(3 * hidden * width * _PRUNED_MULTIPLE for width in widths)
    if not config.dense_mlps:
        return 0
    wide = _mlp_width(config)
    matrices, biased = config.layout.mlp_matrices, config.layout.biases == "every"
    biases = wide + hidden if biased and matrices == 2 else 0  # noqa: PLR2004 (without a gate)
    return config.dense_mlps * (matrices * hidden * wide + biases)


def _mlp_width(config: ConfigJson) -> int:
    names = ("dense_intermediate_size", "intermediate_size_mlp", "ffn_hidden_size", "intermediate_size")
    own = ("shared_intermediate_size",) if config.family == "granitemoehybrid" else ()
    return config.first(*own, *names) or 4 * config.number("hidden_size")  # Falcon's width where it says none


def _expert_width(config: ConfigJson) -> int:
    return config.first(*EXPERT_WIDTHS) or config.number("intermediate_size")


def _always_active(config: ConfigJson) -> int:
    """Return the router and the shared experts of a layer with experts."""
    hidden, experts = config.number("hidden_size"), config.experts or 0
    biased = config.layout.biases == "every" or config.flag("use_routing_bias")
    router = experts * hidden + (experts if biased else 0)
    shared = _shared_width(config)
    gate = hidden if config.optional("shared_expert_intermediate_size") else 0  # Qwen weighs its shared expert
    return router + gate + config.layout.mlp_matrices * hidden * shared


def _shared_width(config: ConfigJson) -> int:
    if config.family == "llama4_text":
        return config.number("intermediate_size")
    widths = ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size")
    counts = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
    return config.first(*widths) or (config.first(*counts) or 0) * _expert_width(config)
