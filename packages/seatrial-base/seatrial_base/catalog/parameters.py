"""Counts a model's parameters from its shape, the way the catalog's own counts were made.

Embeddings, attention, MLP or experts, norms, and the biases that a family has; not the layers that only draft tokens
(multi-token prediction), and of a multimodal model the text part only. Checked against the published counts of the
catalog's models (packages/seatrial-base/tests/catalog/test_parameters.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial_base.catalog.config_json import ConfigJson

_PRUNED_MULTIPLE = 256  # modeling_decilm.py of nvidia/Llama-3_3-Nemotron-Super-49B-v1 rounds an MLP's width up to it
_BIASED_HEAD = ("phi",)


def count_parameters(config: ConfigJson) -> tuple[int, int]:
    """Return the parameters in total and those that one token passes through, embeddings included in both."""
    rest = _embeddings(config) + _all_attention(config) + _all_norms(config) + _dense_mlps(config)
    if config.experts is None or config.experts_per_token is None:
        return rest, rest
    rest += config.expert_layers * _always_active(config)
    expert = config.expert_layers * _expert(config)
    return rest + config.experts * expert, rest + config.experts_per_token * expert


def _embeddings(config: ConfigJson) -> int:
    vocab, hidden = config.number("vocab_size"), config.number("hidden_size")
    head_bias = vocab if config.family in _BIASED_HEAD or config.flag("lm_head_bias") else 0
    return vocab * hidden * (1 if config.ties_embeddings else 2) + head_bias


def _all_norms(config: ConfigJson) -> int:
    norms = config.layers * _norms_of_a_layer(config) + (1 if config.layout.norms else 0)
    return norms * config.layout.norm_vectors * config.number("hidden_size")


def _norms_of_a_layer(config: ConfigJson) -> int:
    """Falcon's first generation has one norm in front of both attention and MLP."""
    if config.family == "falcon" and not config.flag("new_decoder_architecture"):
        return 1
    return config.layout.norms


# ------------------------------------------------------------------ attention


def _all_attention(config: ConfigJson) -> int:
    linear = config.linear_layers
    if config.latent_dim is not None:
        return config.layers * _latent_attention(config)
    if config.family == "nemotron-nas":
        return sum(_attention(config, kv_heads, config.head_dim) for kv_heads, _ in config.blocks if kv_heads)
    full = config.layers - linear
    if config.optional("global_head_dim"):
        sliding = config.sliding[1] or 0
        return sliding * _attention(config, config.kv_heads, config.head_dim) + (full - sliding) * _global(config)
    state = linear * _linear_attention(config) if linear else 0
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


def _latent_attention(config: ConfigJson) -> int:
    """Return multi-head latent attention, with the indexer of DeepSeek-V3.2 and GLM-5 where there is one."""
    hidden, heads, rank = (config.number(name) for name in ("hidden_size", "num_attention_heads", "kv_lora_rank"))
    rope, values = config.number("qk_rope_head_dim"), config.number("v_head_dim")
    nope, query_rank = config.number("qk_nope_head_dim"), config.optional("q_lora_rank")
    queries = heads * (nope + rope)
    down = hidden * query_rank + query_rank + query_rank * queries if query_rank else hidden * queries
    latent = hidden * (rank + rope) + rank + rank * heads * (nope + values)
    index_heads, index_dim = config.optional("index_n_heads") or 0, config.optional("index_head_dim") or 0
    indexer = (query_rank or hidden) * index_heads * index_dim + hidden * (index_dim + index_heads) + 2 * index_dim
    return down + latent + heads * values * hidden + indexer


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
        return sum(3 * hidden * _pruned_width(hidden, wide) for _, wide in config.blocks)
    beside = config.family == "gemma4_text"  # its experts stand beside the MLP, not in its place
    layers = config.layers if beside else config.layers - config.expert_layers
    return layers * _mlp(config, _dense_width(config)) if layers else 0


def _mlp(config: ConfigJson, wide: int) -> int:
    hidden = config.number("hidden_size")
    biases = wide + hidden if config.layout.mlp_matrices == 2 and config.layout.biases == "every" else 0  # noqa: PLR2004
    return config.layout.mlp_matrices * hidden * wide + biases


def _dense_width(config: ConfigJson) -> int:
    hidden = config.number("hidden_size")
    given = config.first("dense_intermediate_size", "intermediate_size_mlp", "ffn_hidden_size", "intermediate_size")
    return given or 4 * hidden  # Falcon's width where it says none


def _pruned_width(hidden: int, multiple: float) -> int:
    wide = int(2 * multiple * hidden / 3)
    return -(-wide // _PRUNED_MULTIPLE) * _PRUNED_MULTIPLE


def _expert_width(config: ConfigJson) -> int:
    return config.optional("moe_intermediate_size") or config.number("intermediate_size")


def _expert(config: ConfigJson) -> int:
    hidden, wide = config.number("hidden_size"), _expert_width(config)
    biases = 2 * wide + hidden if config.layout.biases == "every" else 0
    return 3 * hidden * wide + biases


def _always_active(config: ConfigJson) -> int:
    """Return the router and the shared experts of a layer with experts."""
    hidden, experts = config.number("hidden_size"), config.experts or 0
    biased = config.layout.biases == "every" or config.flag("use_routing_bias")
    router = experts * hidden + (experts if biased else 0)
    shared = _shared_width(config)
    gate = hidden if config.optional("shared_expert_intermediate_size") else 0  # Qwen weighs its shared expert
    return router + gate + 3 * hidden * shared


def _shared_width(config: ConfigJson) -> int:
    if config.family == "llama4_text":
        return config.number("intermediate_size")
    given = config.first("shared_expert_intermediate_size", "shared_intermediate_size")
    return given or (config.optional("n_shared_experts") or 0) * _expert_width(config)
