"""Which quantizations an accelerator can run, and which it computes in their own arithmetic."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial_base.catalog.instances import Instance

# vLLM documentation, quantization, supported hardware (Turing is the T4): Marlin kernels begin with Ampere, and 4-bit
# floating point weights (mxfp4, nvfp4) and groups of integers in experts have no other ones.
_NO_KERNELS = MappingProxyType({"NVIDIA T4": ("marlin", "exl2", "mxfp4", "nvfp4", "int4")})
_FP4_ARITHMETIC = ("Blackwell", "B200", "B300")


def has_kernels(instance: Instance, quantization: str) -> bool:
    """Tell whether an engine can run such weights on an instance type, be it in 16-bit arithmetic."""
    return quantization not in _NO_KERNELS.get(instance.accelerator, ())


def computes_in(instance: Instance, quantization: str) -> bool:
    """Tell whether the accelerator multiplies in the arithmetic of a quantization: `fp8`, `nvfp4`; else False."""
    if quantization == "nvfp4":
        return any(name in instance.accelerator for name in _FP4_ARITHMETIC)
    return quantization == "fp8" and (instance.flops_8bit is not None or "Blackwell" in instance.accelerator)
