"""Formats of weights: bits of a weight, which matrices have them, the arithmetic that they use."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

Scope = Literal["linear", "experts"]


@dataclass(frozen=True, slots=True)
class WeightPrecision:
    """One way to store weights.

    Attributes:
        name: As `serving.overrides.quantization` and a checkpoint name it.
        bits: Bits of a weight, its share of the group's scale and zero point included.
        arithmetic_bits: Width of the operands of a matrix product, where the accelerator has such arithmetic; 16 where
            weights are only stored narrow.
        scope: Matrices that have it: every linear layer, or only the experts. Embeddings keep 16 bits.
        kept_quality: What is published of the answers' quality where it stays that of 16 bits; empty where nothing is.
    """

    name: str
    bits: float
    arithmetic_bits: Literal[16, 8, 4]
    scope: Scope
    source: str
    kept_quality: str = ""


BITS_16BIT = 16.0
_BY_ALGORITHM = {
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "fp8_pb_wo": "fp8",
    "fp8_per_channel_per_token": "fp8",
    "awq": "awq",
    "mxfp4": "mxfp4",
    "nvfp4": "nvfp4",
    "w4a16_awq": "awq",
    "w4a16_nvfp4": "nvfp4",
    "w8a16": "w8a16",
    "w8a16_gptq": "w8a16",
}
# Bits and kind of a weight, in the words of compressed-tensors.
_BY_LAYOUT = {(8, "float"): "fp8", (8, "int"): "int8", (4, "int"): "gptq", (4, "float"): "mxfp4"}
_NVFP4_GROUP = 16  # MXFP4 has blocks of 32: OCP Microscaling 1.0
_HALF_BYTE = 4
_BYTE = 8

_EVERY = (
    WeightPrecision(
        "fp8",
        8.0,
        8,
        "linear",
        "DeepSeek-V3 technical report: a scale for each 128 x 128 block",
        kept_quality="lossless for Llama 3.1 (arXiv 2411.02355)",
    ),
    WeightPrecision("int8", 8.0, 8, "linear", "SmoothQuant (Xiao et al. 2023): a scale for each channel"),
    WeightPrecision("w8a16", 8.0, 16, "linear", "llm-compressor, scheme W8A16: INT8 weights, a scale for each channel"),
    WeightPrecision(
        "awq", 4 + 20 / 128, 16, "linear", "AWQ (Lin et al. 2024): groups of 128, 16-bit scale, 4-bit zero"
    ),
    WeightPrecision("gptq", 4 + 20 / 128, 16, "linear", "GPTQ (Frantar et al. 2023): groups of 128, as AWQ"),
    WeightPrecision("int4", 4 + 16 / 32, 16, "experts", "Kimi K2 checkpoints: experts in groups of 32, 16-bit scale"),
    WeightPrecision("mxfp4", 4 + 8 / 32, 16, "experts", "OCP Microscaling 1.0: blocks of 32, 8-bit scale; gpt-oss"),
    WeightPrecision("nvfp4", 4 + 8 / 16, 4, "linear", "NVIDIA NVFP4: blocks of 16, 8-bit scale"),
)
_BY_NAME = {each.name: each for each in _EVERY}
NAMES = tuple(_BY_NAME)


def default_kv_bits(engine: str, quantization: str | None) -> int:
    """Return the bits of a cached element where nothing else is asked.

    NVFP4 checkpoints, and the FP8 ones that TensorRT-LLM is run with, come from NVIDIA's Model Optimizer and bring the
    scales of an FP8 cache (`kv_cache_quant_algo`), which the engines then take.
    """
    narrow = quantization == "nvfp4" or (quantization == "fp8" and engine == "trtllm")
    return 8 if narrow else 16


def kept_quality(quantization: str) -> str:
    """Return what is published of a precision whose answers are as good as those of 16 bits; else nothing.

    Raises:
        KeyError: The quantization is unknown.
    """
    return _BY_NAME[quantization].kept_quality


def find_precision(quantization: str | None) -> WeightPrecision | None:
    """Return how weights are stored; `None` for 16 bits.

    Raises:
        KeyError: The quantization is unknown.
    """
    return None if quantization is None else _BY_NAME[quantization]


def quantization_of(described: object) -> str | None:
    """Return the precision that a `quantization_config` describes, by its name here; `None` for 16 bits.

    Raises:
        ValueError: It is another one, which is named.
    """
    if not isinstance(described, dict) or not described:
        return None
    method = str(described.get("quant_method", "")).lower()
    algorithm = str(described.get("quant_algo") or "").lower()
    named = _BY_ALGORITHM.get(method) or _BY_ALGORITHM.get(algorithm)
    if method == "gptq":
        named = "w8a16" if described.get("bits") == _BYTE else "gptq"
    precision = named or _most_used(described) or _of_groups(described)
    if precision is None:
        raise ValueError(algorithm or method or "an unnamed method")
    return precision


def block_of(described: object) -> int | None:
    """Return how many weights share a scale by a `quantization_config`: a square's side, or a group along the input.

    `None` where a scale is a whole row's, column's or matrix's, and where nothing tells.
    """
    if not isinstance(described, dict):
        return None
    groups = described.get("config_groups")
    group = next(iter(groups.values()), None) if isinstance(groups, dict) else None
    weights = group.get("weights") if isinstance(group, dict) else None
    inner = weights if isinstance(weights, dict) else {}
    square = described.get("weight_block_size") or inner.get("block_structure")
    side = square[0] if isinstance(square, list) and square else None
    size = side or inner.get("group_size") or described.get("group_size") or described.get("q_group_size")
    return size if isinstance(size, int) and size > 0 else None


def _most_used(described: dict[str, object]) -> str | None:
    """Return the precision of most layers, where they are listed one by one."""
    layers = described.get("quantized_layers")
    if not isinstance(layers, dict):
        return None
    named = Counter(
        _BY_ALGORITHM.get(str(layer.get("quant_algo")).lower()) for layer in layers.values() if isinstance(layer, dict)
    )
    return max(named, key=lambda name: named[name], default=None)


def _of_groups(described: dict[str, object]) -> str | None:
    """Return the precision of the first group of layers that compressed-tensors describes."""
    groups = described.get("config_groups")
    group = next(iter(groups.values()), None) if isinstance(groups, dict) else None
    weights = group.get("weights") if isinstance(group, dict) else None
    if not isinstance(group, dict) or not isinstance(weights, dict):
        return None
    bits, layout = weights.get("num_bits"), (weights.get("num_bits"), str(weights.get("type")))
    if layout == (_HALF_BYTE, "float") and weights.get("group_size") == _NVFP4_GROUP:
        return "nvfp4"
    ignored = described.get("ignore")
    # Attention keeps 16 bits, as in the checkpoints of Kimi K2.
    only_experts = isinstance(ignored, list) and any("self_attn" in str(name) for name in ignored)
    if layout == (_HALF_BYTE, "int") and only_experts:
        return "int4"
    if layout == (_BYTE, "int") and not group.get("input_activations"):
        return "w8a16"
    return _BY_LAYOUT.get((bits, layout[1])) if isinstance(bits, int) else None
