"""The division of an accelerator's memory: weights, activations, the engine's reserve, and the rest for KV cache.

    KV room          = memory - weights / N - activations - reserve - adapters, less the draft's share  bytes
    KV per token     = 2 * layers * KV heads * head dim * 2 / min(N, KV heads)                          bytes
    KV-limited batch = floor(KV room / KV per token / tokens that a request keeps in the cache)

Blocks of a prefix that requests share are in the cache once. Options of an engine bound the room (`with_options`).

Attention data parallelism divides the N accelerators into d groups, each with sequences of its own and with all weights
but the routed experts, which are spread over all:

    weights on one   = experts / N + d * (weights - experts) / N                                        bytes
    KV per token     = as above, over N / d accelerators                                                bytes
    KV-limited batch = d * that of one group

vLLM holds the rest so (docs/serving/data_parallel_deployment.md); that the other engines do too is an assumption.

The published rule of thumb, (memory - weights) / (KV per token * tokens), forgets activations and reserve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from seatrial.documents.prediction import MemoryFit
from seatrial_base.catalog.engine_options import effect_of
from seatrial_base.catalog.precision import find_precision
from seatrial_base.units import as_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.specs.endpoint import WorkloadSpec
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.engines import Engine
    from seatrial_base.catalog.instances import Instance
    from seatrial_base.catalog.speculation import Draft
    from seatrial_lint.engines.engine_options import Lora
    from seatrial_load.measure.lengths import RequestLengths

BYTES_16BIT = 2  # of a number of 16 bits
KEYS_AND_VALUES = 2  # the two halves of the KV cache
# An assumption: the widest moment of a layer holds about this many vectors of the hidden size for each prompt token:
# residual and norm whole on every accelerator; queries, keys and values, attention's output and both halves of the
# gated MLP sharded.
_WHOLE_VECTORS = 3
_SHARDED_VECTORS = 9  # likewise
_USUAL_RANK = 16  # vLLM's default of max_lora_rank


def memory_bound(engine: Engine, name: str, value: object) -> float:
    """Return the number by which an option bounds the KV cache of an engine; 0 where it does not, or is no number."""
    effect, number = effect_of(name), as_number(value) or 0.0
    reads = effect is not None and engine.family in effect.engines and 0 < number < math.inf
    return (int(number) if number >= 1 else number) if reads else 0.0


def with_options(engine: Engine, options: Mapping[str, object]) -> Engine:
    """Return an engine with the options that bound its KV cache."""
    bounds = {name: bound for name, value in options.items() if (bound := memory_bound(engine, name, value))}
    changed: dict[str, Any] = {effect.sets: bound for name, bound in bounds.items() if (effect := effect_of(name))}
    return replace(engine, **changed, kv_share_of_rest=engine.kv_share_of_rest or "memory_utilization" in changed)


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """The first tokens of a prompt that other running requests have, too, and how many such beginnings there are."""

    tokens: int = 0
    groups: int = 1

    def in_blocks(self, engine: Engine, tokens: int) -> int:
        """Return the shared tokens of a request of some tokens, the last of which is its own: whole blocks alone."""
        size = engine.kv_block_tokens
        return min(self.tokens, tokens - 1) // size * size


NOTHING_SHARED = SharedPrefix()


def shared_prefix(workload: WorkloadSpec, lengths: RequestLengths) -> SharedPrefix:
    """Return what running requests share: what is cached of prompts, but for a conversation's own earlier turns."""
    cached = round(workload.prefix_hit_rate * lengths.input.mean)
    return SharedPrefix(min(cached, workload.shared_prefix_tokens) if lengths.added else cached, workload.prefix_groups)


def served_by(engine: Engine, architecture: Architecture) -> Architecture:
    """Return a model as an engine serves it: without a window that all layers share where the engine keeps none.

    TensorRT-LLM slides only where `max_attention_window_size` is set; its pages have as many tokens a second of Mistral
    7B as of Llama 3.1 8B behind prompts of 20,000 tokens, where a window of 4,096 would give twice as many.
    """
    slides = architecture.sliding_window is not None and architecture.sliding_layers is None
    return replace(architecture, sliding_window=None) if slides and not engine.keeps_window else architecture


def weights_bytes(architecture: Architecture, quantization: str | None) -> int:
    """Return the size of all weights; quantization leaves the embeddings at 16 bits, or all but the experts."""
    narrow = find_precision(quantization)
    if narrow is None:
        return architecture.params_total * BYTES_16BIT
    linear = architecture.params_total - embedding_params(architecture)
    narrowed = architecture.expert_params if narrow.scope == "experts" and architecture.experts else linear
    return round((architecture.params_total - narrowed) * BYTES_16BIT + narrowed * narrow.bits / 8)


def experts_bytes(architecture: Architecture, quantization: str | None) -> float:
    """Return the size of all routed experts, which every quantization narrows."""
    narrow = find_precision(quantization)
    return architecture.expert_params * (narrow.bits / 8 if narrow else BYTES_16BIT)


def weights_on_accelerator(
    architecture: Architecture,
    quantization: str | None,
    degree: int,
    *,
    attention_data_parallel_degree: int = 1,
    draft_bytes: int = 0,
) -> int:
    """Return the weights that one accelerator holds, in bytes.

    Args:
        attention_data_parallel_degree: Groups of them that each have all weights but the routed experts.
        draft_bytes: All weights of the draft of speculative decoding, which each group has.
    """
    every, groups = weights_bytes(architecture, quantization) + draft_bytes, attention_data_parallel_degree
    if groups == 1:
        return every // degree
    experts = experts_bytes(architecture, quantization)
    return math.ceil((experts + groups * (every - experts)) / degree)


def embedding_params(architecture: Architecture) -> int:
    """Return the parameters of input and output embedding, which are one matrix where they are tied."""
    return architecture.vocab * architecture.hidden_size * (1 if architecture.tied_embeddings else 2)


def kv_bytes_per_token(architecture: Architecture, degree: int, kv_bits: int = 16) -> int:
    """Return the KV cache of one token on one accelerator: 2 * layers * KV heads * head dim * 2 bytes.

    KV heads are spread over the accelerators; when there are fewer heads than accelerators each holds one. The latent
    of multi-head latent attention is no head: every accelerator holds it whole.
    """
    if architecture.latent_dim is not None:
        return architecture.layers * architecture.latent_dim * kv_bits // 8
    whole = KEYS_AND_VALUES * architecture.layers * architecture.kv_heads * architecture.head_dim * kv_bits // 8
    return whole // min(degree, architecture.kv_heads)


def state_tokens(architecture: Architecture, degree: int, kv_bytes_per_token: int) -> float:
    """Return how many tokens of KV cache take as much as the state that a sequence keeps in Mamba layers."""
    return architecture.state_bytes / (degree * kv_bytes_per_token)


def activation_bytes(architecture: Architecture, batched_tokens: int, degree: int) -> int:
    """Return the activations of one iteration of this many prompt tokens, on each accelerator."""
    vectors = _WHOLE_VECTORS + _SHARDED_VECTORS / degree
    return round(vectors * batched_tokens * architecture.hidden_size * BYTES_16BIT)


def adapter_slots(lora: Lora | None) -> int:
    """Return the adapters of a batch at most, for each of which an engine has a slot; vLLM's default is 1."""
    return 0 if lora is None else lora.max_adapters or len(lora.adapters or ()) or 1


def adapters_bytes(architecture: Architecture, lora: Lora | None, degree: int, *, experts_groups: int = 1) -> int:
    """Return what LoRA adapters take of one accelerator: one slot for each adapter of a batch, at the highest rank."""
    each = adapter_slot_bytes(architecture, lora, degree, experts_groups=experts_groups)
    return round(adapter_slots(lora) * math.fsum(each))


def adapter_slot_bytes(
    architecture: Architecture, lora: Lora | None, degree: int, *, experts_groups: int = 1
) -> tuple[float, float]:
    """Return what the slot of an adapter takes of one accelerator, in bytes: beside the experts, and of the experts.

    Every linear layer has a slot, whatever an adapter was trained on, embeddings left out (vLLM's lora/layers:
    `create_lora_weights`): rank * (inputs + outputs) * 2 bytes, of which the side that the degree does not cut is on
    every accelerator, unless the adapters are fully sharded. Each expert has a pair of its own.
    """
    if lora is None:
        return 0.0, 0.0
    rank, hidden = lora.max_rank or _USUAL_RANK, architecture.hidden_size
    queries, keys = (heads * architecture.head_dim for heads in (architecture.attention_heads, architecture.kv_heads))
    sides = [(hidden, queries), (hidden, keys), (hidden, keys), (hidden, queries)]
    if architecture.experts:
        dense = architecture.shared_width
    else:  # of a shape whose width nobody says, what its parameters leave for three matrices
        attention = sum(kept * cut for kept, cut in sides)
        rest = (architecture.params_total - embedding_params(architecture)) // architecture.layers - attention
        dense = architecture.mlp_width or max(0, rest // (3 * hidden))
    sides += 3 * [(hidden, dense)] if dense else []
    # Gate and up are cut along their outputs and down along its inputs: the hidden size stays whole on every rank.
    whole = degree if lora.fully_sharded else 1
    per_layer, of_experts = sum(rank * (kept / whole + cut / degree) for kept, cut in sides), 0.0
    if architecture.experts and architecture.expert_width:
        local = architecture.experts / experts_groups
        cut = architecture.expert_width * experts_groups / degree
        of_experts = 3 * local * rank * (hidden / whole + cut)
    return architecture.layers * per_layer * BYTES_16BIT, architecture.layers * of_experts * BYTES_16BIT


def held_tokens(engine: Engine, input_tokens: int, output_tokens: int) -> int:
    """Return the tokens of a request that hold KV cache on average: its prompt, and a share of its output."""
    return input_tokens + math.ceil(output_tokens * engine.kv_reserved_output)


_SURE_DEVIATIONS = 1.645  # of the sum of the batch's tokens: room in 95 % of the time, so that few are preempted


def sequences_held(room_tokens: float, tokens: float, stddev: float = 0.0, shared: float = 0.0, groups: int = 1) -> int:
    """Return how many sequences a room holds, of lengths that differ: those whose sum fits in 95 % of the time.

    Formula: n * tokens + 1.645 * stddev * sqrt(n) <= room. An engine that lacks the room preempts a sequence. Where
    more run than there are groups, the `shared` ones of the tokens are held once for each group.
    """
    if shared:
        common = sequences_held(room_tokens - groups * shared, tokens - shared, stddev)
        return max(common, sequences_held(room_tokens, tokens, stddev))
    if not stddev or room_tokens <= 0:
        return int(room_tokens // tokens)
    spread = _SURE_DEVIATIONS * stddev
    root = (math.sqrt(spread * spread + 4 * tokens * room_tokens) - spread) / (2 * tokens)
    return int(root * root)


def fit_memory(
    architecture: Architecture,
    instance: Instance,
    engine: Engine,
    *,
    degree: int,
    quantization: str | None,
    tokens: int,
    batched_tokens: int,
    kv_bits: int = 16,
    draft: Draft | None = None,
    tokens_stddev: float = 0.0,
    attention_data_parallel_degree: int = 1,
    adapters: int = 0,
    shared: SharedPrefix = NOTHING_SHARED,
) -> MemoryFit:
    """Divide the memory of one accelerator.

    What the engine leaves free by default counts towards the reserve. A draft takes room for its weights, which count
    with the model's, and for its own KV cache of every token.

    Args:
        tokens: What a sequence holds on average, for the KV-limited batch: `held_tokens`.
        draft: The draft of speculative decoding whose shape is known.
        adapters: Bytes of the slots of LoRA adapters (`adapters_bytes`).
        shared: What running requests have in common.
    """
    architecture = served_by(engine, architecture)
    memory, group = instance.accelerator_memory_bytes, degree // attention_data_parallel_degree
    weights = weights_on_accelerator(
        architecture,
        quantization,
        degree,
        attention_data_parallel_degree=attention_data_parallel_degree,
        draft_bytes=draft.weights_bytes if draft else 0,
    )
    activations = activation_bytes(architecture, batched_tokens, group)
    # The engine leaves a share free of the whole memory, or of what weights and activations leave; of its own share,
    # CUDA graphs take from vLLM 0.20 on what they took of the free one before.
    least, free = engine.performance.reserve_bytes, 1 - engine.memory_utilization
    reserve = max(least, round(memory * free) + engine.graphs_bytes)
    if engine.kv_share_of_rest:
        reserve = least + round(max(0, memory - weights - activations - least) * free)
    elif engine.memory_share is not None:
        reserve = max(0, reserve - round(memory * (engine.memory_share - engine.memory_utilization)))
    per_token = kv_bytes_per_token(architecture, group, kv_bits)
    drafted = kv_bytes_per_token(draft.shape, group) if draft else 0
    left = memory - reserve - activations - weights - adapters
    most_tokens = engine.most_kv_tokens or engine.most_kv_blocks * engine.kv_block_tokens
    bounds = (engine.most_kv_bytes, most_tokens * (per_token + drafted))
    kept = min([left, *(int(bound) for bound in bounds if bound)])
    reserve += left - kept
    room = kept * per_token // (per_token + drafted)
    cached = architecture.cached_tokens(tokens)
    held = cached + state_tokens(architecture, group, per_token)
    common = cached - architecture.cached_tokens(tokens - shared.in_blocks(engine, tokens))
    batch = int(room // (per_token * held))
    if tokens_stddev or common:
        batch = sequences_held(room / per_token, held, tokens_stddev * cached / tokens, common, shared.groups)
    return MemoryFit(
        accelerator_memory_bytes=memory,
        weights_bytes=weights,
        activation_bytes=activations,
        reserve_bytes=reserve,
        adapters_bytes=adapters,
        kv_room_bytes=room,
        kv_bytes_per_token=per_token,
        kv_limited_batch=max(batch, 0) * attention_data_parallel_degree,
    )


def missing_bytes(fit: MemoryFit, cached_tokens: float) -> float:
    """Return what one accelerator lacks to hold a single sequence; zero or less when it fits."""
    return fit.kv_bytes_per_token * cached_tokens - fit.kv_room_bytes
