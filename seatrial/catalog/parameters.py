"""Counts a model's parameters from its shape, the way the catalog's own counts were made.

Embeddings, attention, MLP or experts, norms, and the biases that a family has. Checked against the published counts
of the catalog's models (tests/catalog/test_parameters.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.catalog.config_json import ConfigJson

_BIASED = ("gpt_neox", "phi")  # LayerNorm, and a bias in every projection
_NORMS_AROUND = ("gemma2", "gemma3_text")  # a norm before and one after both attention and MLP
_QK_NORMS = ("gemma3_text", "qwen3", "qwen3_moe")


def count_parameters(config: ConfigJson) -> tuple[int, int]:
    """Return the parameters in total and those that one token passes through."""
    hidden, layers = config.number("hidden_size"), config.number("num_hidden_layers")
    embeddings = config.number("vocab_size") * hidden * (1 if config.ties_embeddings else 2)
    if config.family == "falcon" or config.family in _BIASED:
        layer = _falcon_layer(config) if config.family == "falcon" else _biased_layer(config)
        head_bias = config.number("vocab_size") if config.family == "phi" else 0
        total = embeddings + layers * layer + 2 * hidden + head_bias
        return total, total
    norms = 4 if config.family in _NORMS_AROUND else 2
    shared = embeddings + layers * (_attention(config) + norms * hidden) + hidden
    if config.experts is None:
        total = shared + layers * 3 * hidden * config.number("intermediate_size")
        return total, total
    expert = 3 * hidden * (config.optional("moe_intermediate_size") or config.number("intermediate_size"))
    shared += layers * hidden * config.experts  # the router
    return shared + layers * config.experts * expert, shared + layers * config.number("num_experts_per_tok") * expert


def _attention(config: ConfigJson) -> int:
    hidden, head_dim = config.number("hidden_size"), config.head_dim
    queries, keys = config.number("num_attention_heads") * head_dim, config.kv_heads * head_dim
    weights = 2 * hidden * queries + 2 * hidden * keys
    if config.family == "qwen2":
        return weights + queries + 2 * keys  # biases of the three projections
    if config.family in _QK_NORMS:
        return weights + 2 * head_dim
    return weights


def _falcon_layer(config: ConfigJson) -> int:
    hidden, head_dim = config.number("hidden_size"), config.head_dim
    queries, keys = config.number("num_attention_heads") * head_dim, config.kv_heads * head_dim
    norms = 2 if config.flag("new_decoder_architecture") else 1  # each has a weight and a bias
    return 2 * hidden * queries + 2 * hidden * keys + 8 * hidden * hidden + norms * 2 * hidden


def _biased_layer(config: ConfigJson) -> int:
    hidden, wide = config.number("hidden_size"), config.number("intermediate_size")
    keys = config.kv_heads * config.head_dim
    attention = 2 * hidden * hidden + 2 * hidden * keys + 2 * hidden + 2 * keys
    norms = 1 if config.family == "phi" else 2  # Phi's attention and MLP share one
    return attention + 2 * hidden * wide + wide + hidden + norms * 2 * hidden
