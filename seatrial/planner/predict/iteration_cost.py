"""The cost of one iteration of the engine: the time of a decode step and of a prefill, part by part.

A decode step of B sequences over ctx cached tokens on N accelerators:

    products   = ((weights / N / W) ** q + (arithmetic(B) / N / F) ** q) ** (1 / q)       all matrix products
    experts    = the same, of the experts that any of the B tokens chose (`operators.chosen_share`)
    fixed      = L * (least time of each operator and of the small kernels between them) + work between two steps
    link       = all-reduces * L * what one of B vectors takes, as the engine's was measured, or
                 latency + 2 (N - 1) / N * bytes / bus bandwidth
    ranks      = all-reduces * L * skew * (N - 1)               ranks wait for the last one, whatever it waits for
    attention  = ctx * KV bytes / W, or where the batch is too short to fill the accelerator ctx * latency of a head / B
    device     = products + experts + fixed + link
    adapters   = 2 * least time of each product * L + min(B, slots) * bytes of an adapter / W: of products and fixed
    drafting   = device of the draft over what is verified + (k - 1) * device of the draft, of k drafted tokens
    host       = launch * (kernels + all-reduces) * L           an engine without CUDA graphs launches every kernel
    step       = max(host, device) + ranks + drafting + attention + server * B                                   s

A prefill of T prompt tokens is max(host, device(T) + attention arithmetic) + ranks + server * T. A bandwidth W and
FLOPS F are those that the operator reaches at the weights' precision (`catalog/operators.py`, fitted on measured
kernels); the engine's own constants are in `catalog/data/engines.json`.

Attention data parallelism divides the N accelerators into d groups, each with sequences of its own (`memory.py`):

    products   = of B / d tokens on N / d accelerators, which read all weights but the experts'
    attention  = ctx / d tokens on N / d accelerators; of the longest sequence at least
    link       = the all-reduce behind attention over N / d accelerators; before the experts the tokens of all groups
                 are gathered, and behind them scattered, which moves as much as an all-reduce over all N

A prompt is computed by the accelerators of its group alone: those of other groups wait unless they have prompts too.
The server's work is that of all sequences.

An engine with compiled shapes (AWS Neuron) computes its whole batch over its whole length in every step, and fills
every prompt up to that length: both times are those of the full shapes, whatever runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.planner.predict.copy_model import drafting_copy
from seatrial.planner.predict.memory import BYTES_16BIT, embedding_params, experts_bytes, weights_bytes
from seatrial_base.catalog import operators, precision
from seatrial_base.catalog.operators import find_operator
from seatrial_base.catalog.precision import find_precision

if TYPE_CHECKING:
    from seatrial.planner.predict.copy_model import Copy
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.operators import Link, Operator


_REFERENCE_HEAD_DIM = 128  # of Llama 2 7B, on which TGI's attention latency was fitted
_REFERENCE_BYTES_S = 600e9 / 80  # memory bandwidth per multiprocessor of the A10G, where the latency was fitted
_PRODUCTS = 4  # of a dense layer: queries with keys and values, output, up with gate, down
_LATENT_PRODUCTS = 6  # with multi-head latent attention: both are projected down and up again
_MLP_PRODUCTS = 2  # up with gate, down
_EXPERT_MATRICES = 3  # up, gate, down
# An assumption near public runs of Qwen3 mixtures (test_neuron.py): columns of an expert on a NeuronCore.
_FULL_COLUMNS = 300
# An assumption: norms, rotary embedding, residual and activation read or write a token's vector this often in a layer.
_VECTOR_PASSES = 20
_BLOCK_SCALED = "fp8"  # the checkpoints of mixtures have a scale for each block of 128 x 128 weights
# The state of a layer with linear attention has about twice the hidden size in values (Qwen3-Next, Qwen3.5), each with
# keys of 32 bits; a decode step reads and writes it.
_STATE_BYTES = 2 * 128 * 4 * 2


@dataclass(frozen=True, slots=True)
class AllReduces:
    """The all-reduces of one iteration.

    Attributes:
        link: How the accelerators reach each other.
        least_times: How many there are, times what the engine takes over the measured kernel, without tokens.
        token_times: The same of what tokens add.
        token_bytes: What each token adds to the size of one.
        hops_s: What all of them take where data goes through the host's memory.
    """

    link: Link
    least_times: float
    token_times: float
    token_bytes: float
    hops_s: float

    def seconds(self, tokens: float) -> float:
        """Return the time that they take for this many tokens."""
        least = self.link.all_reduce_s(0.0)
        more = self.link.all_reduce_s(tokens * self.token_bytes) - least
        return self.least_times * least + self.token_times * more + self.hops_s


@dataclass(frozen=True, slots=True)
class Costs:
    """The coefficients of one copy's iterations, all in seconds.

    Attributes:
        host: Least time of a decode step: the host launches the kernels; 0 with CUDA graphs.
        prompt_host: The same of an iteration with prompt tokens, which runs without a graph of the whole model.
        fixed: What an iteration takes on the device whatever its size, and between two iterations.
        weights: Reading all weights that every token passes through.
        sharpness: How reading and arithmetic of matrix products add up.
        expert_weights: Reading all experts of all layers; 0 for a dense model.
        expert_sharpness: How reading and arithmetic of experts add up.
        expert_share: Share of the experts that one token chooses; 1 for a dense model.
        dense_tokens: Tokens up to which the engine computes every expert for every token.
        token: Arithmetic of one token in the layers, experts excluded, and reading its vectors.
        head_token: Arithmetic of one output token in the output embedding.
        expert_token: Arithmetic of one token in its experts.
        prompt_token: Arithmetic of attention for one prompt token over its prompt.
        attention_token: Reading the KV cache of one token of context.
        attention_latency: Attention over one token of context when the batch is too small to fill the accelerator.
        all_reduces: The all-reduces of one iteration; several kinds where groups of accelerators have their own.
        ranks: What the ranks of one iteration wait for each other, beside host and device.
        sequence: Work of the server per sequence and step.
        input_token: Work of the server per prompt token.
        draft: What drafting adds to a decode step, as a share of it, where the draft's shape is unknown.
        verified: Tokens of a sequence in one decode step: 1, or 1 + drafted ones.
        compiled: The least times are those of compiled shapes, not of a host that launches kernels.
        drafter: The coefficients of a draft whose shape is known.
        groups: Groups of accelerators that attend to sequences of their own.
        prompt_length: Tokens of a prompt, which one group computes; 0 where there is one group.
        slots: LoRA adapters of a batch at most.
        adapter: Reading one of them beside the experts; `adapter_experts`, its matrices of all experts.
    """

    host: float
    prompt_host: float
    fixed: float
    weights: float
    sharpness: float
    expert_weights: float
    expert_sharpness: float
    expert_share: float
    dense_tokens: int
    token: float
    head_token: float
    expert_token: float
    prompt_token: float
    attention_token: float
    attention_latency: float
    all_reduces: tuple[AllReduces, ...]
    ranks: float
    sequence: float
    input_token: float
    draft: float
    verified: int
    compiled: bool = False
    drafter: Costs | None = None
    groups: int = 1
    prompt_length: int = 0
    slots: int = 0
    adapter: float = 0.0
    adapter_experts: float = 0.0

    def share_of_group(self, prompt_tokens: float) -> float:
        """Return the prompt tokens that the slowest group takes, times the groups; all of them where they are even."""
        return max(prompt_tokens, self.groups * min(prompt_tokens, self.prompt_length))

    def busy(self, tokens: float, prompt_tokens: float = 0.0) -> float:
        """Return the time of matrix products and experts for output tokens and prompt tokens of one iteration."""
        every = tokens + prompt_tokens
        arithmetic = (tokens + self.share_of_group(prompt_tokens)) * self.token + tokens * self.head_token
        products = _added(self.weights, arithmetic, self.sharpness)
        if self.slots:
            read = self.adapter + self.adapter_experts * self._chosen(every)
            products += min(every, self.slots) * read
        if not self.expert_weights:
            return products
        chosen, computed = self._chosen(every), self._computed(every)
        return products + _added(self.expert_weights * chosen, every * computed, self.expert_sharpness)

    def device(self, tokens: float, prompt_tokens: float = 0.0) -> float:
        """Return what the device takes for this many tokens, without attention."""
        return self.fixed + self.busy(tokens, prompt_tokens) + self.link(tokens + prompt_tokens)

    def read(self, tokens: float) -> float:
        """Return the time to read the weights that the tokens touch: of the experts those that any of them chose."""
        return self.weights + self.expert_weights * self._chosen(tokens)

    def arithmetic(self, tokens: float, prompt_tokens: float = 0.0) -> float:
        """Return the time of the matrix products; a dense mixture computes every expert."""
        every, own = tokens + prompt_tokens, tokens + self.share_of_group(prompt_tokens)
        return own * self.token + every * self._computed(every) + tokens * self.head_token

    def prompt_attention(self, prompt_tokens: float) -> float:
        """Return the arithmetic of attention of prompt tokens over their prompts."""
        return self.share_of_group(prompt_tokens) * self.prompt_token

    def link(self, tokens: float) -> float:
        """Return the time of the all-reduces."""
        return math.fsum(each.seconds(tokens) for each in self.all_reduces)

    def attention(self, batch: float) -> float:
        """Return the time of attention per token of context; a draft reads its own cache for each drafted token."""
        drafting = (self.verified - 1) * self.drafter.attention(batch) if self.drafter else 0.0
        return max(self.attention_token, self.attention_latency / batch) + drafting

    def drafting(self, batch: float, prompt_tokens: float = 0.0) -> float:
        """Return the time of drafting beside a decode step, without attention; 0 where it is a share of the step.

        The draft first takes what the model has just read, as many tokens as are verified, then one token at a time.
        """
        if self.drafter is None:
            return 0.0
        host = self.drafter.prompt_host if prompt_tokens else self.drafter.host
        first = max(host, self.drafter.device(batch * self.verified, prompt_tokens))
        each = max(self.drafter.host, self.drafter.device(batch))
        return first + (self.verified - 2) * each + (self.verified - 1) * self.drafter.ranks

    def step(self, batch: float) -> float:
        """Return the time of a decode step of a batch without its attention."""
        busy = (max(self.host, self.device(batch * self.verified)) + self.ranks) * (1 + self.draft)
        return busy + self.drafting(batch) + batch * self.sequence

    def mixed(self, batch: float, prompt_tokens: float) -> float:
        """Return the time of an iteration that takes prompt tokens beside a batch, without the batch's attention."""
        busy = self.device(batch * self.verified, prompt_tokens) + self.prompt_attention(prompt_tokens)
        server = batch * self.sequence + prompt_tokens * self.input_token
        iteration = max(self.prompt_host, busy) + self.ranks
        return iteration * (1 + self.draft) + self.drafting(batch, prompt_tokens) + server

    def prefill(self, prompts: float, input_tokens: int) -> float:
        """Return the time of a prefill of whole prompts."""
        tokens = prompts * input_tokens
        busy = max(self.prompt_host, self.device(0.0, tokens) + self.prompt_attention(tokens)) + self.ranks
        return busy + tokens * self.input_token + prompts * self.sequence

    def _chosen(self, tokens: float) -> float:
        if tokens <= self.dense_tokens:
            return 1.0
        return operators.chosen_share(self.expert_share, tokens) if self.expert_weights else 0.0

    def _computed(self, tokens: float) -> float:
        return self.expert_token / (self.expert_share if tokens <= self.dense_tokens else 1.0)


def _added(read: float, arithmetic: float, sharpness: float) -> float:
    """Return ((read) ** q + (arithmetic) ** q) ** (1 / q), scaled so that nothing overflows."""
    # The larger of the two goes outside the power: q may be so large that a power of seconds is zero.
    high, low = (read, arithmetic) if read >= arithmetic else (arithmetic, read)
    return high if high <= 0 else float(high * (1 + (low / high) ** sharpness) ** (1 / sharpness))


def costs_of(copy: Copy) -> Costs:
    """Compute the coefficients of a copy's iterations."""
    costs = _in_groups(_dynamic_costs(copy), copy)
    return _compiled(costs, copy) if copy.compiled_length else _speculative(_adapted(costs, copy), copy)


def _in_groups(costs: Costs, copy: Copy) -> Costs:
    """Return the costs of attention data parallelism: those of a group for what it has of its own, experts for all."""
    groups, shape = copy.attention_data_parallel_degree, copy.architecture
    if groups == 1:
        return costs
    own = _dynamic_costs(replace(copy, degree=copy.attention_degree, attention_data_parallel_degree=1))
    # Behind attention the accelerators of a group reduce; before and behind the experts all of them do.
    shared = 1 / _reduces_of_layer(shape) if shape.experts else 0.0  # of the all-reduces of a layer
    return replace(
        costs,
        weights=own.weights,
        token=own.token / groups,
        attention_token=own.attention_token / groups,
        attention_latency=max(costs.attention_latency, own.attention_token),
        all_reduces=(
            *(_shared_by(each, shared, 1) for each in costs.all_reduces),
            *(_shared_by(each, 1 - shared, groups) for each in own.all_reduces),
        ),
        ranks=shared * costs.ranks + (1 - shared) * own.ranks,
        groups=groups,
        prompt_length=copy.prefilled_tokens,
    )


def _shared_by(every: AllReduces, share: float, groups: int) -> AllReduces:
    """Return a share of all-reduces, each of one group's tokens."""
    return replace(
        every,
        least_times=share * every.least_times,
        token_times=share * every.token_times,
        token_bytes=every.token_bytes / groups,
        hops_s=share * every.hops_s,
    )


def _adapted(costs: Costs, copy: Copy) -> Costs:
    """Return the costs with those of LoRA adapters, which are of 16 bits whatever the weights are."""
    if not copy.adapters:
        return costs
    hardware, shape, (dense_bytes, expert_bytes) = copy.hardware, copy.architecture, copy.adapter_bytes
    product = find_operator(hardware.accelerator, "product", None, copy.engine.kernels)
    products = 2 * shape.layers * (_LATENT_PRODUCTS if shape.latent_dim is not None else _PRODUCTS)
    fixed, marginal = (_factor(copy, product) * share for share in (copy.calibration.fixed, copy.calibration.marginal))
    byte_s = fixed / (hardware.memory_bandwidth_bytes_s * product.memory_efficiency)
    flop_s = marginal / (hardware.flops_16bit * product.compute_efficiency)
    # Beside each product one down to the rank and one up; a parameter has 2 bytes, and a token takes 2 FLOPs of it.
    return replace(
        costs,
        fixed=costs.fixed + fixed * products * product.latency_s,
        token=costs.token + dense_bytes * flop_s,
        expert_token=costs.expert_token + _chosen(shape) * expert_bytes * flop_s,
        slots=copy.adapters,
        adapter=dense_bytes * byte_s,
        adapter_experts=expert_bytes * byte_s,
    )


def _speculative(costs: Costs, copy: Copy) -> Costs:
    """Return the costs with those of the draft: work between two drafted tokens is less than between two steps."""
    if copy.speculation is None or copy.speculation.draft is None:
        return costs
    draft, constants = copy.speculation.draft, copy.engine.performance
    drafting = drafting_copy(copy, draft)
    drafter = _in_groups(_dynamic_costs(drafting), drafting)
    # The drafter's costs hold the work between two steps of the model, which is more than between two drafted tokens.
    spared = copy.calibration.fixed * (constants.step_s - draft.step_s)
    return replace(
        costs,
        draft=0.0,
        drafter=replace(drafter, fixed=drafter.fixed - spared, sequence=0.0, input_token=0.0),
    )


def _compiled(costs: Costs, copy: Copy) -> Costs:
    """Return the costs of compiled shapes: a decode step of the whole batch, a prefill of the whole length."""
    filled, shape = 1.0, copy.architecture
    if shape.experts and shape.expert_params:
        # Narrow slices of an expert leave a part of a NeuronCore idle.
        width = shape.expert_params / (_EXPERT_MATRICES * shape.layers * shape.experts * shape.hidden_size)
        filled = min(1.0, width / copy.degree / _FULL_COLUMNS)
    costs = replace(costs, expert_token=costs.expert_token / filled)
    cached = copy.max_num_seqs * copy.architecture.cached_tokens(copy.compiled_length)
    step_s = costs.device(copy.max_num_seqs) + cached * costs.attention_token
    seen = copy.compiled_length / copy.input_tokens  # the coefficient is of prompts of the workload's length
    prefill_s = costs.device(0.0, copy.compiled_length) + copy.compiled_length * costs.prompt_token * seen
    return replace(costs, host=step_s, prompt_host=prefill_s, attention_token=0.0, attention_latency=0.0, compiled=True)


def _dynamic_costs(copy: Copy) -> Costs:
    constants, shape, hardware = copy.engine.performance, copy.architecture, copy.hardware
    fixed, marginal = copy.calibration.fixed, copy.calibration.marginal
    reduces = _reduces_of_layer(shape) if copy.degree > 1 else 0
    kernels = (constants.moe_kernels if shape.experts else constants.kernels) + reduces
    launch = fixed * constants.kernel_launch_s * kernels * shape.layers
    product, experts = _operator(copy, "product"), _operator(copy, "experts")
    attention = _operator(copy, "decode attention")
    rest_bytes, expert_bytes = _read_bytes(copy)
    each = copy.degree * hardware.memory_bandwidth_bytes_s
    product_flops = copy.degree * hardware.flops * product.compute_efficiency / _factor(copy, product)
    expert_flops = copy.degree * hardware.flops * experts.compute_efficiency / _factor(copy, experts)
    # The parameters that one token multiplies in the layers: in its experts, and without them.
    expert_params = shape.expert_params * _chosen(shape) if shape.experts else 0.0
    body = shape.params_active - embedding_params(shape) - expert_params
    head = shape.vocab * shape.hidden_size
    vectors_s = shape.layers * _VECTOR_PASSES * BYTES_16BIT * shape.hidden_size / hardware.memory_bandwidth_bytes_s
    return Costs(
        host=0.0 if constants.cuda_graphs else launch,
        prompt_host=launch,
        fixed=fixed * (_fixed_s(copy, product, experts, attention) + constants.step_s),
        weights=fixed * _factor(copy, product) * rest_bytes / (each * product.memory_efficiency),
        sharpness=constants.sharpness or product.sharpness,
        expert_weights=fixed * _factor(copy, experts) * expert_bytes / (each * experts.memory_efficiency),
        expert_sharpness=constants.sharpness or experts.sharpness,
        expert_share=_chosen(shape),
        dense_tokens=copy.engine.moe_dense_tokens if shape.experts else 0,
        token=marginal * (2 * body / product_flops + vectors_s),
        head_token=marginal * 2 * head / product_flops,
        expert_token=marginal * 2 * expert_params / expert_flops,
        prompt_token=marginal * _prompt_token_s(copy),
        attention_token=marginal
        * _factor(copy, attention)
        * copy.kv_bytes_per_token
        / (hardware.memory_bandwidth_bytes_s * attention.memory_efficiency),
        attention_latency=fixed * shape.layers * _head_latency_s(copy),
        all_reduces=_all_reduces(copy, reduces),
        # The ranks of an all-reduce wait for each other; a slow way through the host's memory hides it.
        ranks=fixed * reduces * shape.layers * (0.0 if _link(copy).hop_s > 0 else constants.skew_s * (copy.degree - 1)),
        sequence=marginal * _sequence_s(copy),
        input_token=marginal * constants.input_token_s,
        draft=copy.speculation.draft_tokens * copy.speculation.draft_cost if copy.speculation else 0.0,
        verified=copy.verified_tokens,
    )


def product_of(copy: Copy) -> Operator:
    """Return the constants of a copy's matrix products, experts excluded."""
    return _operator(copy, "product")


def _operator(copy: Copy, kind: operators.Kind) -> Operator:
    """Return an operator at the precision of its weights: the experts alone may be narrow.

    One with narrow operands runs only where the accelerator has such arithmetic, whatever the one most alike has.
    """
    narrow, hardware = find_precision(copy.quantization), copy.hardware
    everywhere = narrow is not None and (narrow.scope == "linear" or copy.architecture.experts is None)
    mine = narrow if narrow and "attention" not in kind and (kind == "experts" or everywhere) else None
    operator = find_operator(hardware.accelerator, kind, mine.name if mine else None, copy.engine.kernels)
    narrowed = operator.precision != operators.WIDE and find_precision(operator.precision)
    if narrowed and narrowed.arithmetic_bits < precision.BITS_16BIT and not hardware.has_narrow_arithmetic:
        return find_operator(hardware.accelerator, kind, None, copy.engine.kernels)
    return operator


def kernels_of(copy: Copy) -> tuple[str, ...]:
    """Return the operators that a copy runs, as `Performance.kernel_factors` names them."""
    kinds: tuple[operators.Kind, ...] = ("product", "decode attention", "prefill attention")
    used = [_operator(copy, kind) for kind in (*kinds, *(("experts",) if copy.architecture.experts else ()))]
    links = ("link/16-bit",) if copy.degree > 1 else ()
    named = (*(f"{each.operator}/{each.precision}" for each in used), *links)
    return tuple(f"{copy.hardware.accelerator}/{name}" for name in named)


def _factor(copy: Copy, operator: Operator) -> float:
    """Return what the engine takes for an operator over the measured kernel."""
    factor = copy.engine.performance.factor(copy.hardware.accelerator, operator.operator, operator.precision)
    is_experts = operator.operator == "experts"
    return factor * copy.engine.experts_release_factor(copy.hardware.accelerator) if is_experts else factor


def _fixed_s(copy: Copy, product: Operator, experts: Operator, attention: Operator) -> float:
    """Return the least time of the operators of all layers, and of the small kernels between them."""
    shape, constants = copy.architecture, copy.engine.performance
    linear_s = (shape.linear_layers + shape.mixed_layers) * constants.linear_layer_s
    products = _LATENT_PRODUCTS if shape.latent_dim is not None else _PRODUCTS
    sparse_s = 0.0 if shape.sparse_tokens is None else constants.sparse_layer_s
    layer = constants.layer_s + sparse_s + _factor(copy, attention) * attention.latency_s
    if shape.experts is None:
        layer += _factor(copy, product) * products * product.latency_s
    else:
        layer += _factor(copy, product) * (products - _MLP_PRODUCTS) * product.latency_s
        # Beside the experts: scales of their inputs, and dealing tokens out to ranks.
        scaled_s = constants.block_scaling_layer_s if copy.quantization == _BLOCK_SCALED else 0.0
        dealt_s = constants.expert_parallel_layer_s if copy.expert_parallel_degree > 1 else 0.0
        layer += _factor(copy, experts) * experts.latency_s + (scaled_s + dealt_s)
    return shape.layers * layer + linear_s


def _sequence_s(copy: Copy) -> float:
    """Return the work of a sequence in a step: the server's, which grows with the ranks, and its linear state."""
    shape, constants = copy.architecture, copy.engine.performance
    server_s = constants.sequence_s * (1 + constants.sequence_rank * (copy.degree - 1))
    linear_bytes = shape.linear_layers * _STATE_BYTES * shape.hidden_size
    state_bytes = 2 * shape.state_bytes or linear_bytes  # a step reads and writes it
    read_s = state_bytes / (copy.degree * copy.hardware.memory_bandwidth_bytes_s)
    return server_s + read_s / _operator(copy, "decode attention").memory_efficiency


def _reduces_of_layer(shape: Architecture) -> int:
    """Return the all-reduces of a layer: one where attention and MLP run side by side."""
    return 1 if shape.parallel_attention else 2


def _read_bytes(copy: Copy) -> tuple[float, float]:
    """Return the weights that every step reads and those of experts; embeddings are looked up, not read.

    A tied embedding is read as the output embedding. Those of Gemma 3n's layers are no active parameters.
    """
    shape = copy.architecture
    of_layers = 0 if shape.experts else shape.params_total - shape.params_active
    of_input = 0 if shape.tied_embeddings else shape.vocab * shape.hidden_size
    looked_up = (of_layers + of_input) * BYTES_16BIT
    experts = experts_bytes(shape, copy.quantization)
    return weights_bytes(shape, copy.quantization) - looked_up - experts, experts


def _chosen(shape: Architecture) -> float:
    if shape.experts is None or shape.experts_per_token is None:
        return 1.0
    return shape.experts_per_token / shape.experts


def _prompt_token_s(copy: Copy) -> float:
    """Return the arithmetic of causal attention for one computed prompt token.

    It sees the cached prefix, and half of the tokens that are computed on average, or what sparse attention chooses.
    """
    shape, hardware = copy.architecture, copy.hardware
    kernel = find_operator(hardware.accelerator, "prefill attention", None)
    reached = kernel.compute_efficiency * copy.input_tokens / (copy.input_tokens + kernel.half_length)
    seen = shape.seen_by_prompt(copy.input_tokens - copy.prefilled_tokens, copy.input_tokens)
    flops = 4 * seen * shape.layers * shape.attention_heads * shape.head_dim
    return _factor(copy, kernel) * flops / (copy.degree * hardware.flops_16bit * reached)


def _head_latency_s(copy: Copy) -> float:
    """Return the time of one head of one layer per token of context: one multiprocessor reads a head's cache alone.

    Query heads that share keys and values share the read, too.
    """
    hardware, constants, shape = copy.hardware, copy.engine.performance, copy.architecture
    share = hardware.memory_bandwidth_bytes_s / hardware.multiprocessors / _REFERENCE_BYTES_S
    shared = shape.kv_heads / shape.attention_heads
    return constants.attention_token_s * shared * shape.head_dim / _REFERENCE_HEAD_DIM / share


def _all_reduces(copy: Copy, reduces: int) -> tuple[AllReduces, ...]:
    """Return the all-reduces of all layers, of the vectors of all tokens; none on one accelerator."""
    if not reduces:
        return ()
    link = _link(copy)
    every = reduces * copy.architecture.layers
    factor = copy.engine.performance.factor(copy.hardware.accelerator, "link", "16-bit")
    fixed, marginal = copy.calibration.fixed, copy.calibration.marginal
    return (
        AllReduces(
            link=link,
            least_times=fixed * every * factor,
            token_times=marginal * every * factor,
            token_bytes=BYTES_16BIT * copy.architecture.hidden_size,
            hops_s=fixed * every * link.hop_s * (copy.degree - 1),
        ),
    )


def _link(copy: Copy) -> Link:
    return operators.link(copy.hardware.accelerator, copy.degree, copy.engine.kernels)
