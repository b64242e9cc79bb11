"""One copy of a model on its accelerators, under one workload: everything that the performance model reads."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from seatrial.documents.calibration import UNCALIBRATED, Calibration
from seatrial.planner.predict.memory import (
    NOTHING_SHARED,
    adapter_slot_bytes,
    adapter_slots,
    kv_bytes_per_token,
    sequences_held,
    served_by,
    state_tokens,
    weights_bytes,
)
from seatrial_base.bounds import DEFAULT_DRAFT_COST
from seatrial_base.catalog.instances import flops_4bit, multiprocessors
from seatrial_base.catalog.precision import find_precision
from seatrial_base.catalog.speculation import draft_of, facts_of
from seatrial_base.field_facts import made_of
from seatrial_base.units import GIB

if TYPE_CHECKING:
    from seatrial.documents.prediction import MemoryFit
    from seatrial.planner.predict.memory import SharedPrefix
    from seatrial.specs.endpoint import SpeculativeDecodingSpec
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.engines import Engine
    from seatrial_base.catalog.instances import Instance
    from seatrial_base.catalog.speculation import Draft, Provenance
    from seatrial_lint.engines.engine_options import Lora
    from seatrial_load.measure.lengths import RequestLengths

_SHORTEST_COMPILED = 1024  # tokens; the shortest sequence of the public cache of compiled models
_LARGE_BYTES = 70 * GIB  # from here on vLLM takes larger iterations by default; A100 excepted (engine/arg_utils.py)
_LARGEST_BYTES = 160 * GIB  # and still larger ones


@dataclass(frozen=True, slots=True)
class Hardware:
    """The accelerators of one instance type, as one copy sees them.

    Attributes:
        instance_type: SageMaker's name; the host's speed is known by its family.
        flops: Operations per second of one accelerator at the weights' precision.
        flops_16bit: The same at 16 bits.
    """

    instance_type: str
    accelerator: str
    flops: float
    flops_16bit: float
    memory_bandwidth_bytes_s: float
    multiprocessors: int

    @property
    def has_narrow_arithmetic(self) -> bool:
        """Whether operands of fewer than 16 bits are multiplied as they are."""
        return self.flops > self.flops_16bit


@dataclass(frozen=True, slots=True)
class Speculation:
    """Speculative decoding: some tokens are drafted, and one step of the model verifies them.

    Attributes:
        draft_tokens: Tokens drafted for each step.
        acceptance_rate: Chance that a drafted token is accepted; an assumption until it is measured.
        draft_cost: Drafting one token, as a share of one decode step of the model; unused where the draft is known.
        draft: The draft's shape: what drafting takes is then computed from it. `None` where it is unknown, or where
            nothing is computed (tokens of the prompt).
        provenance: Where the acceptance rate comes from.
        source: The fit or the publication; empty where the spec gives the rate.
    """

    draft_tokens: int
    acceptance_rate: float
    draft_cost: float
    draft: Draft | None = None
    provenance: Provenance | Literal["given"] = "given"
    source: str = ""

    @property
    def tokens_per_step(self) -> float:
        """Tokens that one step yields on average: (1 - a^(k+1)) / (1 - a), Leviathan et al. 2023, equation 1."""
        return tokens_per_step(self.acceptance_rate, self.draft_tokens)


def tokens_per_step(acceptance_rate: float, draft_tokens: int) -> float:
    """Return (1 - a^(k+1)) / (1 - a): drafted token i of a chain is kept with the chance a^i; one more comes free."""
    return (1 - acceptance_rate ** (draft_tokens + 1)) / (1 - acceptance_rate)


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of a model on its accelerators, under one workload.

    Attributes:
        degree: Accelerators that the copy is sharded over (tensor parallel degree).
        weights_bytes: All weights, over all accelerators.
        kv_bytes_per_token: On one accelerator.
        kv_room_tokens: Tokens that the KV room of the copy holds, over all groups of attention.
        max_num_seqs: Sequences that the engine batches at most.
        batched_tokens: Prompt tokens of one iteration.
        prefix_hit_rate: Share of the prompt tokens that the engine finds in its prefix cache.
        compiled_length: Tokens of a sequence that an engine with compiled shapes is compiled for; 0 elsewhere.
        expert_parallel_degree: Groups that the experts are dealt out to: an accelerator holds 1 / this many of them,
            each sharded over `degree / expert_parallel_degree` accelerators. 1 shards every expert over all.
        attention_data_parallel_degree: Groups of accelerators that attend to sequences of their own: each holds
            attention's weights and the KV cache of its sequences over `attention_degree` accelerators, and a decode
            step of B sequences attends to B / this many in each. 1 shards attention over all.
        shared: What running requests have in common.
        adapters: LoRA adapters of a batch at most: every request is taken to name one.
        adapter_bytes: Those of one on one accelerator: beside the experts, and of the experts.
    """

    architecture: Architecture
    engine: Engine
    hardware: Hardware
    degree: int
    quantization: str | None
    weights_bytes: int
    kv_bytes_per_token: int
    kv_room_tokens: int
    max_num_seqs: int
    batched_tokens: int
    input_tokens: int
    output_tokens: int
    speculation: Speculation | None = None
    calibration: Calibration = UNCALIBRATED
    prefix_hit_rate: float = 0.0
    compiled_length: int = 0
    lengths: RequestLengths | None = None
    expert_parallel_degree: int = 1
    attention_data_parallel_degree: int = 1
    shared: SharedPrefix = NOTHING_SHARED
    adapters: int = 0
    adapter_bytes: tuple[float, float] = (0.0, 0.0)

    @property
    def attention_degree(self) -> int:
        """Accelerators that the attention of one sequence is sharded over."""
        return max(1, self.degree // self.attention_data_parallel_degree)

    @property
    def running_output_tokens(self) -> float:
        """Mean output of the running requests: long ones run longer, so that there are more of them at any time."""
        return self.output_tokens * (1 + (self.lengths.output.relative_variance if self.lengths else 0.0))

    @property
    def reserved_stddev(self) -> float:
        """Standard deviation of what a request holds of the KV cache, in tokens."""
        if self.lengths is None or self.compiled_length:
            return 0.0
        share = self.engine.kv_reserved_output
        return math.hypot(self.lengths.input.stddev, share * self.lengths.output.stddev)

    @property
    def prefilled_tokens(self) -> int:
        """Prompt tokens of a request that are computed: at least the last one."""
        return max(1, round(self.input_tokens * (1 - self.prefix_hit_rate)))

    @property
    def tokens_reserved(self) -> int:
        """KV cache that one request holds on average, in tokens: whole blocks for its prompt and its output."""
        if self.compiled_length:
            return self.compiled_length
        cached = self.architecture.cached_tokens(self._held_in_blocks)
        return math.ceil(cached + state_tokens(self.architecture, self.attention_degree, self.kv_bytes_per_token))

    @property
    def shared_tokens(self) -> float:
        """Of the KV cache that one request holds, what is in blocks of a prefix that others hold, too."""
        tokens, cached = self._held_in_blocks, self.architecture.cached_tokens
        return cached(tokens) - cached(tokens - self.shared.in_blocks(self.engine, self.input_tokens))

    @property
    def own_room(self) -> float:
        """Tokens of the KV room beside the shared prefixes; all of it where too few run, so that each holds its own."""
        groups, room = self.attention_data_parallel_degree * self.shared.groups, self.kv_room_tokens
        return room - (groups * self.shared_tokens if groups * self.tokens_reserved <= room else 0.0)

    @property
    def kv_limited_batch(self) -> int:
        """Sequences that the KV room holds; where lengths differ, in 95 % of the time."""
        groups = self.attention_data_parallel_degree
        room, reserved, stddev = self.kv_room_tokens / groups, self.tokens_reserved, self.reserved_stddev
        return groups * sequences_held(room, reserved, stddev, self.shared_tokens, self.shared.groups)

    @property
    def most_running(self) -> int:
        """Sequences that run at once at most: what the KV room holds, and what the engine batches."""
        return min(self.kv_limited_batch, self.max_num_seqs)

    @property
    def prompts_per_prefill(self) -> int:
        """Whole prompts of one iteration; at least one, which the engine then takes alone."""
        if self.compiled_length:
            return 1
        return max(1, self.batched_tokens // self._blocks(self.prefilled_tokens))

    @property
    def decode_steps(self) -> int:
        """Decode steps of one request: its first token comes with the prefill."""
        return math.ceil((self.output_tokens - 1) / self.tokens_per_step)

    @property
    def verified_tokens(self) -> int:
        """Tokens of a sequence that one decode step takes: 1, or 1 + drafted ones."""
        return 1 + (self.speculation.draft_tokens if self.speculation else 0)

    @property
    def tokens_per_step(self) -> float:
        """Tokens that one decode step yields for one sequence."""
        return self.speculation.tokens_per_step if self.speculation else 1.0

    @property
    def _held_in_blocks(self) -> int:
        held = math.ceil(self.running_output_tokens * self.engine.kv_reserved_output)
        return self._blocks(self.input_tokens) + self._blocks(held)

    def _blocks(self, tokens: int) -> int:
        size = self.engine.kv_block_tokens
        return math.ceil(tokens / size) * size


def drafting_copy(copy: Copy, draft: Draft) -> Copy:
    """Return a draft as a copy of its own, at 16 bits on the accelerators of the model that it drafts for."""
    return replace(
        copy,
        architecture=draft.shape,
        hardware=replace(copy.hardware, flops=copy.hardware.flops_16bit),
        quantization=None,
        weights_bytes=weights_bytes(draft.shape, None),
        kv_bytes_per_token=kv_bytes_per_token(draft.shape, copy.attention_degree),
        speculation=None,
    )


def hardware_of(instance: Instance, quantization: str | None = None) -> Hardware | None:
    """Return an instance type's accelerators; `None` when the catalog lacks their FLOPS or memory bandwidth.

    Weights whose arithmetic is narrow (`catalog/precision.py`) run at the accelerator's FLOPS of that width, or at 16
    bits where it has none: the kernel then widens the weights as it reads them.
    """
    if instance.flops_16bit is None or instance.memory_bandwidth_bytes_s is None:
        return None
    narrow = find_precision(quantization)
    by_bits = {16: instance.flops_16bit, 8: instance.flops_8bit, 4: flops_4bit(instance.accelerator)}
    return made_of(
        Hardware,
        instance,
        flops=float((by_bits[narrow.arithmetic_bits] if narrow else None) or instance.flops_16bit),
        flops_16bit=float(instance.flops_16bit),
        memory_bandwidth_bytes_s=float(instance.memory_bandwidth_bytes_s),
        multiprocessors=multiprocessors(instance.accelerator),
    )


def place_copy(
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
    prefix_hit_rate: float = 0.0,
    max_model_len: int = 0,
    lengths: RequestLengths | None = None,
    expert_parallel_degree: int = 1,
    attention_data_parallel_degree: int = 1,
    shared: SharedPrefix = NOTHING_SHARED,
    adapters: Lora | None = None,
) -> Copy:
    """Place one copy.

    Args:
        max_model_len: Tokens of the longest sequence, which an engine with compiled shapes is compiled for.
    """
    lora = None if engine.compiled_shapes else adapters
    return Copy(
        architecture=served_by(engine, architecture),
        engine=engine,
        hardware=hardware,
        degree=degree,
        quantization=quantization,
        weights_bytes=weights_bytes(architecture, quantization),
        kv_bytes_per_token=memory.kv_bytes_per_token,
        kv_room_tokens=attention_data_parallel_degree * (memory.kv_room_bytes // memory.kv_bytes_per_token),
        max_num_seqs=max_num_seqs,
        batched_tokens=batched_tokens,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        speculation=speculation,
        calibration=calibration or Calibration(),
        # Compiled shapes fill every prompt up to the compiled length: cached tokens save nothing.
        prefix_hit_rate=0.0 if engine.compiled_shapes else prefix_hit_rate,
        compiled_length=max_model_len if engine.compiled_shapes else 0,
        lengths=None if lengths is None or lengths.are_fixed else lengths,
        expert_parallel_degree=expert_parallel_degree,
        attention_data_parallel_degree=attention_data_parallel_degree,
        shared=NOTHING_SHARED if engine.compiled_shapes else shared,
        adapters=adapter_slots(lora),
        adapter_bytes=adapter_slot_bytes(architecture, lora, degree, experts_groups=expert_parallel_degree),
    )


def compiled_length(tokens: int) -> int:
    """Return the sequence length to compile for requests of this many tokens: a power of two, as public caches have."""
    return max(_SHORTEST_COMPILED, power_of_two(tokens))


def power_of_two(number: int) -> int:
    """Return the least power of two that is not below a number."""
    return 1 << max(0, number - 1).bit_length()


def least_batched_tokens(engine: Engine, instance: Instance, input_tokens: int) -> int:
    """Return the prompt tokens of one iteration: the engine's default, or a whole prompt where it takes no chunks."""
    memory = instance.accelerator_memory_bytes
    large = memory >= _LARGE_BYTES and "A100" not in instance.accelerator
    default = engine.large_batched_tokens if large else engine.default_batched_tokens
    if memory >= _LARGEST_BYTES:
        default = max(default, engine.largest_batched_tokens)
    return max(default, input_tokens if engine.scheduler == "separate" else 0)


def speculation_of(spec: SpeculativeDecodingSpec | None, architecture: Architecture) -> Speculation | None:
    """Return speculative decoding as the performance model reads it; `None` where the spec asks for none.

    Drafting is computed from the draft's shape where that is known. A draft cost that is neither the spec's default nor
    the catalog's is the user's own, and wins. So does an acceptance rate, which is then `given`.
    """
    if spec is None:
        return None
    plain = Speculation(spec.draft_tokens, spec.acceptance_rate, spec.draft_cost)
    if spec.method is None:
        return plain
    facts = facts_of(spec.method, architecture, spec.model)
    known = spec.acceptance_rate == facts.acceptance_rate
    usual = spec.draft_cost in (DEFAULT_DRAFT_COST, facts.draft_cost)
    return made_of(
        Speculation,
        spec,
        draft_cost=facts.draft_cost if usual else spec.draft_cost,
        draft=draft_of(spec.method, architecture, spec.model) if usual else None,
        provenance=facts.provenance if known else "given",
        source=facts.source if known else "",
    )
