"""Which layers of a `config.json` attend, keep a state instead, or have experts: each family says it another way."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.catalog.config_json import ConfigJson

_STATE = ("mamba", "M")
_ATTENTION = ("attention", "*")
EXPERTS, MLP = ("moe", "E"), ("mlp", "-")
_UNCACHED = ("linear", "mamba", "conv", "recurrent")  # parts of the names in `layer_types` of layers without a KV cache


def listed_blocks(config: ConfigJson) -> tuple[str, ...]:
    """Return the blocks of a model whose every block is one of mixer, MLP and experts (Nemotron-H); else none."""
    pattern = config.text("hybrid_override_pattern")
    listed = tuple(pattern) if pattern else tuple(str(each) for each in config.listed("layers_block_type"))
    return listed if any(each in (*EXPERTS, *MLP) for each in listed) else ()


def count_blocks(blocks: tuple[str, ...], names: tuple[str, ...]) -> int:
    """Count the blocks of one kind."""
    return sum(each in names for each in blocks)


def count_layers(config: ConfigJson) -> int:
    """Return the layers that mix tokens: every layer, or the blocks that attend or keep a state."""
    blocks = listed_blocks(config)
    return count_blocks(blocks, (*_STATE, *_ATTENTION)) if blocks else config.number("num_hidden_layers")


def count_uncached(config: ConfigJson) -> int:
    """Return the layers without a KV cache: linear attention, Mamba, or blocks whose attention was pruned."""
    if blocks := listed_blocks(config):
        return count_blocks(blocks, _STATE)
    layers, interval = config.layers, config.optional("full_attention_interval")
    if kinds := [str(each) for each in config.listed("layer_types") or config.listed("layers_block_type")]:
        return sum(any(part in kind for part in _UNCACHED) for kind in kinds)
    if config.family == "nemotron-nas":
        return sum(kv is None for kv, _ in config.blocks)
    if "attn_layer_indices" in config.fields:
        return layers - (len(config.listed("attn_layer_indices")) or layers)
    if period := config.optional("attn_layer_period"):
        return layers - len(tuple(_every(layers, period, config.optional("attn_layer_offset"))))
    return layers - layers // interval if interval else 0


def count_expert_layers(config: ConfigJson) -> int:
    """Return the layers, or blocks, with a mixture of experts."""
    if config.experts is None:
        return 0
    if blocks := listed_blocks(config):
        return count_blocks(blocks, EXPERTS)
    kinds, frequency = config.listed("mlp_layer_types"), config.listed("moe_layer_freq")
    if kinds:
        return kinds.count("sparse")
    if frequency:
        return frequency.count(1)
    if period := config.optional("expert_layer_period"):
        return len(tuple(_every(config.layers, period, config.optional("expert_layer_offset"))))
    step = config.first("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval") or 1
    first = config.first("first_k_dense_replace", "moe_layer_start_index") or 0
    return max(config.layers - first - len(config.listed("mlp_only_layers")), 0) // step


def count_dense_mlps(config: ConfigJson) -> int:
    """Return the MLPs without experts: Gemma 4 has one beside its experts, too."""
    if blocks := listed_blocks(config):
        return count_blocks(blocks, MLP)
    return config.layers if config.family == "gemma4_text" else config.layers - config.expert_layers


def _every(layers: int, period: int, offset: int | None) -> Iterator[int]:
    """Yield each layer of a period, from an offset on."""
    return (layer for layer in range(layers) if period > 0 and layer % period == (offset or 0) % period)
