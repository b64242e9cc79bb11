"""How much of an accelerator's memory weights and KV cache take, and how many sequences that leaves room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.plan.document import MemoryFit

if TYPE_CHECKING:
    from seatrial.catalog.architecture import Architecture
    from seatrial.catalog.engines import Engine
    from seatrial.catalog.instances import Instance

BYTES_16BIT = 2
KEYS_AND_VALUES = 2
# AWQ and GPTQ keep 4 bits a weight, and for each group of 128 a 16-bit scale and a 4-bit zero point.
_BITS = {"fp8": 8.0, "awq": 4 + 20 / 128, "gptq": 4 + 20 / 128}


def weights_bytes(architecture: Architecture, quantization: str | None) -> int:
    """Return the size of all weights; quantization leaves the embeddings at 16 bits."""
    if quantization is None:
        return architecture.params_total * BYTES_16BIT
    embeddings = architecture.vocab * architecture.hidden_size * (1 if architecture.tied_embeddings else 2)
    rest = architecture.params_total - embeddings
    return round(embeddings * BYTES_16BIT + rest * _BITS[quantization] / 8)


def kv_bytes_per_token(architecture: Architecture, degree: int) -> int:
    """Return the KV cache of one token on one accelerator: 2 * layers * KV heads * head dim * 2 bytes.

    KV heads are spread over the accelerators; when there are fewer heads than accelerators each holds one.
    """
    whole = KEYS_AND_VALUES * architecture.layers * architecture.kv_heads * architecture.head_dim * BYTES_16BIT
    return whole // min(degree, architecture.kv_heads)


def fit_memory(
    architecture: Architecture,
    instance: Instance,
    engine: Engine,
    *,
    degree: int,
    quantization: str | None,
    tokens: int,
) -> MemoryFit:
    """Divide the memory of one accelerator.

    The reserve is the larger of the fitted one and of what the engine leaves free by default.

    Args:
        architecture: The model.
        instance: The instance type.
        engine: The engine.
        degree: Accelerators that one copy is sharded over.
        quantization: Quantization of the weights.
        tokens: Length of a sequence, for the KV-limited batch.
    """
    memory = instance.accelerator_memory_bytes
    reserve = max(engine.performance.reserve_bytes, round(memory * (1 - engine.memory_utilization)))
    weights = weights_bytes(architecture, quantization) // degree
    room = memory - reserve - weights
    per_token = kv_bytes_per_token(architecture, degree)
    batch = room // (per_token * architecture.cached_tokens(tokens))
    return MemoryFit(
        accelerator_memory_bytes=memory,
        weights_bytes=weights,
        reserve_bytes=reserve,
        kv_room_bytes=room,
        kv_bytes_per_token=per_token,
        kv_limited_batch=max(batch, 0),
    )


def missing_bytes(fit: MemoryFit, cached_tokens: int) -> int:
    """Return what one accelerator lacks to hold a single sequence; zero or less when it fits."""
    return fit.kv_bytes_per_token * cached_tokens - fit.kv_room_bytes
