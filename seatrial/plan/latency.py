"""The closed-form latency model: what one copy does at a concurrency.

A decode step reads the touched weights and the KV cache of the batch, or is bound by arithmetic, and never takes less
than the host's floor; an all-reduce and the server's work per sequence are added. A prefill is arithmetic, all-reduce
and the server's work per prompt token. In the steady state of a closed loop every step carries its share of prefills:

    step(B)     = decode(B, input + output/2) + B/output * prefill(k)/k       s
    throughput  = B / step                                                    tokens/s
    end-to-end  = concurrency / B * output * step                             s
    TTFT        = (concurrency/B - 1) * output * step + prefill(k)            s: queue, then prefill
    TPOT        = (end-to-end - TTFT) / (output - 1)                          s

B is the concurrency, or what the KV room, the batch limit or the admission of prefills leave of it; k is the number
of prompts in one prefill. Constants: `catalog/data/engines.json`. All results are means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.plan.document import CurvePoint
from seatrial.units import MS_PER_S

if TYPE_CHECKING:
    from seatrial.catalog.architecture import Architecture
    from seatrial.catalog.engines import Engine

_PCIE_FULL_SPEED_ACCELERATORS = 4


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of a model on its accelerators, under one workload.

    Attributes:
        architecture: The model.
        engine: The engine with its constants.
        link: How the accelerators are joined.
        degree: Accelerators that the copy is sharded over.
        flops: Operations per second of one accelerator at the weights' precision.
        memory_bandwidth_bytes_s: Of one accelerator.
        weights_bytes: All weights, over all accelerators.
        kv_bytes_per_token: On one accelerator.
        kv_limited_batch: Sequences that the KV room holds.
        max_num_seqs: Sequences that the engine batches at most.
        batched_tokens: Prompt tokens of one iteration.
        input_tokens: Prompt length of a request.
        output_tokens: Generated length of a request.
    """

    architecture: Architecture
    engine: Engine
    link: str
    degree: int
    flops: float
    memory_bandwidth_bytes_s: float
    weights_bytes: int
    kv_bytes_per_token: int
    kv_limited_batch: int
    max_num_seqs: int
    batched_tokens: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Seconds:
    """Where the time of a step goes."""

    memory: float = 0.0
    compute: float = 0.0
    host: float = 0.0
    link: float = 0.0

    @property
    def total(self) -> float:
        """All of it."""
        return self.memory + self.compute + self.host + self.link

    def plus(self, other: Seconds, times: float) -> Seconds:
        """Add a multiple of another."""
        return Seconds(
            self.memory + times * other.memory,
            self.compute + times * other.compute,
            self.host + times * other.host,
            self.link + times * other.link,
        )

    @property
    def largest(self) -> str:
        """The name of the largest part."""
        parts = {"memory": self.memory, "compute": self.compute, "host": self.host, "link": self.link}
        return max(parts, key=lambda name: parts[name])


def predict(copy: Copy, concurrency: int) -> CurvePoint:
    """Predict what a copy does with this many requests in flight; all means."""
    batch, bound = _batch(copy, concurrency)
    prompts = _prompts_per_prefill(copy, batch)
    prefill = prefill_seconds(copy, prompts)
    step = decode_seconds(copy, batch).plus(prefill, batch / copy.output_tokens / prompts)
    service_s = copy.output_tokens * step.total
    queue_s = (concurrency / batch - 1) * service_s
    after_first_s = service_s - prefill.total
    end_to_end_s = queue_s + service_s
    return CurvePoint(
        concurrency=concurrency,
        output_tok_s=batch / step.total,
        ttft_ms=(queue_s + prefill.total) * MS_PER_S,
        tpot_ms=after_first_s / (copy.output_tokens - 1 or 1) * MS_PER_S,  # a single token has no TPOT: one step
        e2e_latency_ms=end_to_end_s * MS_PER_S,
        ms_per_token=end_to_end_s / copy.output_tokens * MS_PER_S,
        limit=bound or step.largest,
    )


def decode_seconds(copy: Copy, batch: float) -> Seconds:
    """Return the time of one decode step of a batch in the middle of its outputs."""
    constants, shape = copy.engine.performance, copy.architecture
    bandwidth = copy.memory_bandwidth_bytes_s * constants.memory_efficiency
    flops = copy.degree * copy.flops * constants.compute_efficiency
    context = shape.cached_tokens(copy.input_tokens + copy.output_tokens // 2)
    weights_s = _touched_bytes(copy, batch) / (copy.degree * bandwidth)
    arithmetic_s = 2 * shape.params_active * batch / flops
    kv_s = batch * context * copy.kv_bytes_per_token / bandwidth
    floor_s = constants.layer_floor_s * shape.layers
    server_s, link_s = constants.sequence_s * batch, _all_reduce_s(copy, batch)
    if floor_s >= max(weights_s, arithmetic_s) + kv_s:
        return Seconds(host=floor_s + server_s, link=link_s)
    if weights_s >= arithmetic_s:
        return Seconds(memory=weights_s + kv_s, host=server_s, link=link_s)
    return Seconds(memory=kv_s, compute=arithmetic_s, host=server_s, link=link_s)


def prefill_seconds(copy: Copy, prompts: float) -> Seconds:
    """Return the time of one prefill: a matrix product per parameter and token, and attention over the prompt."""
    constants, shape = copy.engine.performance, copy.architecture
    tokens = prompts * copy.input_tokens
    attention = 2 * shape.layers * shape.attention_heads * shape.head_dim * tokens * copy.input_tokens
    flops = copy.degree * copy.flops * constants.compute_efficiency
    arithmetic_s = (2 * shape.params_active * tokens + attention) / flops
    floor_s = constants.layer_floor_s * shape.layers
    server_s = constants.input_token_s * tokens + constants.sequence_s * prompts
    link_s = _all_reduce_s(copy, tokens)
    if floor_s >= arithmetic_s:
        return Seconds(host=floor_s + server_s, link=link_s)
    return Seconds(compute=arithmetic_s, host=server_s, link=link_s)


def _batch(copy: Copy, concurrency: int) -> tuple[float, str]:
    """Return the sequences in the running batch, and what keeps the others out of it."""
    per_prefill = max(1, copy.batched_tokens // copy.input_tokens)
    admitted = per_prefill * (copy.output_tokens / copy.engine.steps_between_prefills + 1)
    limits = {"kv": copy.kv_limited_batch, "batch limit": copy.max_num_seqs, "admission": admitted}
    bound = min(limits, key=lambda name: limits[name])
    return (limits[bound], bound) if limits[bound] < concurrency else (float(concurrency), "")


def _prompts_per_prefill(copy: Copy, batch: float) -> float:
    arriving = copy.engine.steps_between_prefills * batch / copy.output_tokens
    return max(1.0, min(copy.batched_tokens // copy.input_tokens, arriving, batch))


def _touched_bytes(copy: Copy, batch: float) -> float:
    """Return the weights that a step reads: of a mixture of experts those that any token of the batch chose."""
    shape = copy.architecture
    if shape.experts is None or shape.experts_per_token is None:
        return copy.weights_bytes
    chosen = shape.experts_per_token / shape.experts
    in_experts = (shape.params_total - shape.params_active) / (1 - chosen) / shape.params_total
    return copy.weights_bytes * (1 - in_experts * math.pow(1 - chosen, batch))


def _all_reduce_s(copy: Copy, tokens: float) -> float:
    if copy.degree == 1:
        return 0.0
    constants, shape, others = copy.engine.performance, copy.architecture, copy.degree - 1
    per_layer = 1 if shape.parallel_attention else 2
    bus_bytes = 2 * others / copy.degree * tokens * 2 * shape.hidden_size
    return per_layer * shape.layers * (constants.hop_s * others + bus_bytes / _link_bytes_s(copy))


def _link_bytes_s(copy: Copy) -> float:
    """Return the bus bandwidth of an all-reduce; PCIe is shared past four accelerators (measured on g5)."""
    if copy.link == "nvlink":
        return copy.engine.performance.nvlink_bytes_s
    return copy.engine.performance.pcie_bytes_s * min(1.0, _PCIE_FULL_SPEED_ACCELERATORS / copy.degree)
