"""Counts a model's parameters from its shape, the way the catalog's own counts were made.

Embeddings, attention, MLP or experts, norms, and the biases that a family has. Checked against the published counts
of the catalog's models (tests/catalog/test_parameters.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.catalog.config_json import ConfigJson


def count_parameters(config: ConfigJson) -> tuple[int, int]:
    """Return the parameters in total and those that one token passes through."""
    hidden, layers = config.number("hidden_size"), config.number("num_hidden_layers")
    embeddings = config.number("vocab_size") * hidden * (1 if config.ties_embeddings else 2)
    if config.family == "falcon":
        total = embeddings + layers * _falcon_layer(config) + 2 * hidden
        return total, total
    shared = embeddings + layers * (_attention(config) + 2 * hidden) + hidden
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
    if config.family.startswith("qwen3"):
        return weights + 2 * head_dim  # norms of queries and keys
    return weights


def _falcon_layer(config: ConfigJson) -> int:
    hidden, head_dim = config.number("hidden_size"), config.head_dim
    queries, keys = config.number("num_attention_heads") * head_dim, config.kv_heads * head_dim
    norms = 2 if config.flag("new_decoder_architecture") else 1  # each has a weight and a bias
    return 2 * hidden * queries + 2 * hidden * keys + 8 * hidden * hidden + norms * 2 * hidden
