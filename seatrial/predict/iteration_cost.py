"""What one iteration of the engine costs: the time of a decode step and of a prefill, part by part.

A decode step of B sequences over ctx cached tokens on N accelerators:

    host       = launch * (kernels + all-reduces) * L             the host launches every kernel of a layer
    device     = max(weights / (N * W), arithmetic(B)) + all-reduce(B)
    attention  = ctx * max(KV bytes / W, latency of a head / B)   a short batch leaves multiprocessors idle
    step       = max(host, device) + attention + server * B                                               s

A prefill of T prompt tokens is max(host, max(weights, arithmetic(T)) + all-reduce(T)) + server * T. A bandwidth W and
FLOPS are those that the engine reaches. Constants and their sources: `catalog/data/engines.json`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.catalog.architecture import Architecture
    from seatrial.predict.copy_model import Copy


_PCIE_FULL_SPEED_ACCELERATORS = 4
_REFERENCE_HEAD_DIM = 128
_REFERENCE_BYTES_S = 600e9 / 80  # memory bandwidth per multiprocessor of the A10G, where the latency was fitted
_BYTES_16BIT = 2


@dataclass(frozen=True, slots=True)
class Costs:
    """The coefficients of one copy's iterations, all in seconds.

    Attributes:
        host: Least time of an iteration: the host launches the kernels.
        weights: Reading all weights that every token passes through.
        expert_weights: Reading all experts of all layers; 0 for a dense model.
        expert_share: Share of the experts that one token chooses; 1 for a dense model.
        dense_tokens: Tokens up to which the engine computes every expert for every token.
        token: Arithmetic of one token in the linear layers.
        prompt_token: Arithmetic of attention for one prompt token over its prompt.
        attention_token: Reading the KV cache of one token of context.
        attention_latency: Attention over one token of context when the batch is too small to fill the accelerator.
        all_reduce: Latency of the all-reduces of one iteration.
        all_reduce_token: What each token adds to them.
        sequence: Work of the server per sequence and step.
        input_token: Work of the server per prompt token.
        draft: What drafting adds to a decode step, as a share of it.
        verified: Tokens of a sequence in one decode step: 1, or 1 + drafted ones.
    """

    host: float
    weights: float
    expert_weights: float
    expert_share: float
    dense_tokens: int
    token: float
    prompt_token: float
    attention_token: float
    attention_latency: float
    all_reduce: float
    all_reduce_token: float
    sequence: float
    input_token: float
    draft: float
    verified: int

    def device(self, tokens: float) -> float:
        """Return the time of the linear layers and all-reduces for this many tokens."""
        return max(self.read(tokens), self.arithmetic(tokens)) + self.link(tokens)

    def read(self, tokens: float) -> float:
        """Return the time to read the weights that the tokens touch: of the experts those that any of them chose."""
        if not self.expert_weights:
            return self.weights
        chosen = 1.0 if tokens <= self.dense_tokens else 1 - (1 - self.expert_share) ** tokens
        return self.weights + self.expert_weights * chosen

    def arithmetic(self, tokens: float) -> float:
        """Return the time of the matrix products; a dense mixture computes every expert."""
        return tokens * self.token / (self.expert_share if tokens <= self.dense_tokens else 1.0)

    def link(self, tokens: float) -> float:
        """Return the time of the all-reduces."""
        return self.all_reduce + tokens * self.all_reduce_token

    def attention(self, batch: float) -> float:
        """Return the time of attention per token of context."""
        return max(self.attention_token, self.attention_latency / batch)

    def step(self, batch: float) -> float:
        """Return the time of a decode step of a batch without its attention."""
        return max(self.host, self.device(batch * self.verified)) * (1 + self.draft) + batch * self.sequence

    def prefill(self, prompts: float, input_tokens: int) -> float:
        """Return the time of a prefill of whole prompts."""
        tokens = prompts * input_tokens
        busy = max(self.host, self.device(tokens) + tokens * self.prompt_token)
        return busy + tokens * self.input_token + prompts * self.sequence


def costs_of(copy: Copy) -> Costs:
    """Compute the coefficients of a copy's iterations."""
    constants, shape, hardware = copy.engine.performance, copy.architecture, copy.hardware
    fixed, marginal = copy.calibration.fixed, copy.calibration.marginal
    bandwidth = hardware.memory_bandwidth_bytes_s * constants.memory_efficiency
    flops = copy.degree * hardware.flops * constants.compute_efficiency
    slowdown = constants.slowdown(hardware.instance_type)
    reduces = _all_reduces(shape) if copy.degree > 1 else 0
    kernels = constants.moe_kernels if shape.experts else constants.kernels
    read_s = _read_bytes(copy) / (copy.degree * bandwidth)
    experts = _share_in_experts(shape)
    link = reduces * shape.layers * 2 * (copy.degree - 1) / copy.degree * _BYTES_16BIT * shape.hidden_size
    return Costs(
        host=fixed * slowdown * constants.kernel_launch_s * (kernels + reduces) * shape.layers,
        weights=fixed * read_s * (1 - experts),
        expert_weights=fixed * read_s * experts,
        expert_share=_chosen(shape),
        dense_tokens=copy.engine.moe_dense_tokens if shape.experts else 0,
        token=marginal * 2 * shape.params_active / flops,
        prompt_token=marginal * 2 * shape.layers * shape.attention_heads * shape.head_dim * copy.input_tokens / flops,
        attention_token=marginal * copy.kv_bytes_per_token / bandwidth,
        attention_latency=fixed * shape.layers * _head_latency_s(copy),
        all_reduce=fixed * reduces * shape.layers * _hop_s(copy) * (copy.degree - 1),
        all_reduce_token=marginal * link / _link_bytes_s(copy),
        sequence=marginal * slowdown * constants.sequence_s,
        input_token=marginal * slowdown * constants.input_token_s,
        draft=copy.speculation.draft_tokens * copy.speculation.draft_cost if copy.speculation else 0.0,
        verified=1 + (copy.speculation.draft_tokens if copy.speculation else 0),
    )


def _all_reduces(shape: Architecture) -> int:
    """Return the all-reduces of a layer: one where attention and MLP run side by side."""
    return 1 if shape.parallel_attention else 2


def _read_bytes(copy: Copy) -> float:
    """Return the weights that a step could read: the input embedding is looked up, not read, unless it is tied."""
    shape = copy.architecture
    looked_up = 0 if shape.tied_embeddings else shape.vocab * shape.hidden_size * _BYTES_16BIT
    return copy.weights_bytes - looked_up


def _chosen(shape: Architecture) -> float:
    if shape.experts is None or shape.experts_per_token is None:
        return 1.0
    return shape.experts_per_token / shape.experts


def _share_in_experts(shape: Architecture) -> float:
    """Return the share of the parameters in experts: active = rest + chosen * experts, total = rest + experts."""
    chosen = _chosen(shape)
    return 0.0 if chosen == 1 else (shape.params_total - shape.params_active) / (1 - chosen) / shape.params_total


def _head_latency_s(copy: Copy) -> float:
    """Return the time of one head of one layer per token of context: one multiprocessor reads a head's cache alone."""
    hardware, constants = copy.hardware, copy.engine.performance
    share = hardware.memory_bandwidth_bytes_s / hardware.multiprocessors / _REFERENCE_BYTES_S
    return constants.attention_token_s * copy.architecture.head_dim / _REFERENCE_HEAD_DIM / share


def _hop_s(copy: Copy) -> float:
    constants = copy.engine.performance
    return constants.nvlink_hop_s if copy.hardware.link == "nvlink" else constants.hop_s


def _link_bytes_s(copy: Copy) -> float:
    """Return the bus bandwidth of an all-reduce; PCIe is shared past four accelerators (measured on g5)."""
    constants = copy.engine.performance
    if copy.hardware.link == "nvlink":
        return constants.nvlink_bytes_s
    return constants.pcie_bytes_s * min(1.0, _PCIE_FULL_SPEED_ACCELERATORS / copy.degree)
