"""How weights are stored and multiplied: bits of a weight, which matrices have them, the arithmetic they use."""

from __future__ import annotations

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
        source: Where the layout was read.
        kept_quality: What is published of the answers' quality where it stays that of 16 bits; empty where nothing is.
    """

    name: str
    bits: float
    arithmetic_bits: Literal[16, 8, 4]
    scope: Scope
    source: str
    kept_quality: str = ""


BITS_16BIT = 16.0

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
    WeightPrecision(
        "awq", 4 + 20 / 128, 16, "linear", "AWQ (Lin et al. 2024): groups of 128, 16-bit scale, 4-bit zero"
    ),
    WeightPrecision("gptq", 4 + 20 / 128, 16, "linear", "GPTQ (Frantar et al. 2023): groups of 128, as AWQ"),
    WeightPrecision("int4", 4 + 16 / 32, 16, "experts", "Kimi K2 checkpoints: experts in groups of 32, 16-bit scale"),
    WeightPrecision("mxfp4", 4 + 8 / 32, 16, "experts", "OCP Microscaling 1.0: blocks of 32, 8-bit scale; gpt-oss"),
    WeightPrecision("nvfp4", 4 + 8 / 16, 4, "linear", "NVIDIA NVFP4: blocks of 16, 8-bit scale"),
)
_BY_NAME = {each.name: each for each in _EVERY}


def default_kv_bits(engine: str, quantization: str | None) -> int:
    """Return the bits of a cached element where nothing else is asked.

    NVFP4 checkpoints, and the FP8 ones that TensorRT-LLM is run with, come from NVIDIA's Model Optimizer and bring the
    scales of an FP8 cache (`kv_cache_quant_algo`), which the engines then take.

    Args:
        engine: The engine's family.
        quantization: Quantization of the weights; `None` for 16 bits.
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
