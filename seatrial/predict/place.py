"""Places one copy on an instance type: from the catalog's rows to what the performance model reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.catalog.accelerators import multiprocessors
from seatrial.predict.copy import Calibration, Copy, Hardware, Speculation
from seatrial.predict.memory import weights_bytes

if TYPE_CHECKING:
    from seatrial.catalog.architecture import Architecture
    from seatrial.catalog.engines import Engine
    from seatrial.catalog.instances import Instance
    from seatrial.predict.memory import MemoryFit


def hardware_of(instance: Instance, quantization: str | None = None) -> Hardware | None:
    """Return an instance type's accelerators; `None` when the catalog lacks their FLOPS or memory bandwidth.

    Only FP8 weights on an accelerator with FP8 compute run at its 8-bit FLOPS.
    """
    if instance.flops_16bit is None or instance.memory_bandwidth_bytes_s is None:
        return None
    in_8bit = quantization == "fp8" and instance.flops_8bit is not None
    return Hardware(
        instance_type=instance.instance_type,
        link=instance.link,
        flops=float(instance.flops_8bit if in_8bit and instance.flops_8bit else instance.flops_16bit),
        memory_bandwidth_bytes_s=float(instance.memory_bandwidth_bytes_s),
        multiprocessors=multiprocessors(instance.accelerator),
    )


def place(
    architecture: Architecture,
    hardware: Hardware,
    engine: Engine,
    memory: MemoryFit,
    *,
    degree: int,
    quantization: str | None,
    input_tokens: int,
    output_tokens: int,
    batched_tokens: int,
    max_num_seqs: int,
    speculation: Speculation | None = None,
    calibration: Calibration | None = None,
) -> Copy:
    """Place one copy.

    Args:
        architecture: The model.
        hardware: The accelerators.
        engine: The engine.
        memory: How the memory of one accelerator is divided.
        degree: Accelerators that the copy is sharded over.
        quantization: Quantization of the weights.
        input_tokens: Prompt length of a request.
        output_tokens: Generated length of a request.
        batched_tokens: Prompt tokens of one iteration.
        max_num_seqs: Sequences that the engine batches at most.
        speculation: Speculative decoding; `None` without.
        calibration: What measurements of the endpoint said; `None` without any.
    """
    return Copy(
        architecture=architecture,
        engine=engine,
        hardware=hardware,
        degree=degree,
        weights_bytes=weights_bytes(architecture, quantization),
        kv_bytes_per_token=memory.kv_bytes_per_token,
        kv_room_tokens=memory.kv_room_bytes // memory.kv_bytes_per_token,
        max_num_seqs=max_num_seqs,
        batched_tokens=batched_tokens,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        speculation=speculation,
        calibration=calibration or Calibration(),
    )


def least_batched_tokens(engine: Engine, input_tokens: int) -> int:
    """Return the prompt tokens of one iteration: the engine's default, or a whole prompt where it takes no chunks."""
    whole = input_tokens if engine.scheduler == "separate" else 0
    return max(engine.default_batched_tokens, whole)
