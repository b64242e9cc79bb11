"""Which precision the `quantization_config` of a checkpoint describes."""

from __future__ import annotations

from collections import Counter

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
    if method == "gptq":
        return "int8" if described.get("bits") == 8 else "gptq"  # noqa: PLR2004 (bits)
    found = _BY_NAME.get(method) or _BY_NAME.get(algorithm) or _most_used(described) or _of_groups(described)
    if found is None:
        raise ValueError(algorithm or method or "an unnamed method")
    return found


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
    bits, kind, size = weights.get("num_bits"), str(weights.get("type")), weights.get("group_size")
    if bits == _HALF_BYTE and kind == "float" and size == _NVFP4_GROUP:
        return "nvfp4"
    if bits == _HALF_BYTE and kind == "int" and _only_experts(described):
        return "int4"
    return _BY_LAYOUT.get((bits, kind)) if isinstance(bits, int) else None


def _only_experts(described: dict[str, object]) -> bool:
    """Tell whether attention keeps 16 bits, as in the checkpoints of Kimi K2."""
    ignored = described.get("ignore")
    return isinstance(ignored, list) and any("self_attn" in str(name) for name in ignored)
