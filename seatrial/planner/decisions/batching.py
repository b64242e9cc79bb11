"""Limits of batching: tokens of a sequence, sequences of a batch, tokens of an iteration, requests that wait."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial.documents.plan import Decision
from seatrial.planner.predict.copy_model import compiled_length, power_of_two
from seatrial.planner.predict.memory import missing_bytes
from seatrial.planner.predict.simulation import saturation_per_s
from seatrial_base.units import MIB, MS_PER_S, counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial.documents.prediction import MemoryFit
    from seatrial.planner.search.capacity import Levels
    from seatrial.planner.search.demand import Demand
    from seatrial.specs.endpoint import EndpointSpec, ServingOverrides, Slo
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.engines import Engine
    from seatrial_load.measure.lengths import RequestLengths


ENGINE_BATCH_LIMIT = 256
_STEP_TOKENS = 256
_TYPICAL_REQUESTS = 2
_USUAL_LENGTH = 4096  # what a chat that grows, or a page of context, needs; tokens


def fixed_max_model_len(endpoint: EndpointSpec) -> int | None:
    """Return the longest request that the spec fixes; None when it leaves that to the planner."""
    return endpoint.serving.overrides.max_model_len or endpoint.workload.max_model_len


def choose_max_model_len(
    endpoint: EndpointSpec, lengths: RequestLengths, architecture: Architecture, *, compiled: bool
) -> Decision[int]:
    """Return the longest request that a deployment must hold: the spec's, or the workload's longest one's, rounded up.

    Args:
        compiled: The engine is compiled for one length; powers of two are compiled most often, so caches have them.
    """
    fixed, workload = fixed_max_model_len(endpoint), endpoint.workload
    if fixed is not None:
        return Decision(value=fixed, because="The spec fixes it.")
    longest = lengths.longest
    if compiled:
        length = min(compiled_length(longest), architecture.max_context)
        because = f"{longest:,} tokens of the workload, up to a power of 2, at least 1,024."
        return Decision(value=length, because=because)
    length = min(_rounded_up(longest), architecture.max_context)
    because = f"{round(lengths.input.mean):,} + {workload.output_tokens:,} tokens of the workload, rounded up."
    if not lengths.are_fixed:
        because = f"{longest:,} tokens of the workload's longest request, rounded up."
    return Decision(value=length, because=because)


def settle_max_model_len(
    least: Decision[int], demand: Demand, memory: MemoryFit, batched_tokens: int, groups: int = 1
) -> Decision[int]:
    """Return the longest request that the chosen deployment takes, with what it costs in KV cache.

    Twice the typical request and at least 4,096 tokens, unless the spec fixes it: within the model's context, within
    the KV cache, and, where an engine computes one prompt per iteration, within the tokens of one.

    Args:
        least: The longest request that it must take.
        batched_tokens: Prompt tokens of one iteration.
        groups: Groups of the copy's accelerators that each have a KV cache.
    """
    typical, architecture = demand.tokens, demand.architecture
    if demand.engine.compiled_shapes:
        cost = "It is compiled in: every sequence of the batch reserves it."
        words = _kv_words(least.value, demand, memory, groups)
        return Decision(value=least.value, because=f"{least.because} {cost} {words}")
    if fixed_max_model_len(demand.endpoint) is not None:
        return Decision(value=least.value, because=f"{least.because} {_kv_words(least.value, demand, memory, groups)}")
    wanted = max(_TYPICAL_REQUESTS * typical, _USUAL_LENGTH)
    bounds = {"the model's context": architecture.max_context, "the KV cache": _longest_held(architecture, memory)}
    if demand.engine.scheduler == "separate" or demand.overrides.chunked_prefill is False:
        bounds["one prompt per iteration"] = batched_tokens + demand.endpoint.workload.output_tokens
    bound, most = min(bounds.items(), key=lambda pair: pair[1])
    length = max(least.value, min(_rounded_up(wanted), most))
    if length == least.value > wanted:
        return Decision(value=length, because=f"{least.because} {_kv_words(length, demand, memory, groups)}")
    within = f", bounded by {bound}" if length < wanted else ""
    because = f"Twice the typical request of {typical:,} tokens, at least {_USUAL_LENGTH:,}{within}."
    return Decision(value=length, because=f"{because} {_kv_words(length, demand, memory, groups)}")


def _longest_held(architecture: Architecture, memory: MemoryFit) -> int:
    """Return the longest request that the KV cache holds alone, in whole steps of 256 tokens, by bisection."""
    low, high = 0, architecture.max_context // _STEP_TOKENS + 1
    while high - low > 1:
        middle = (low + high) // 2
        held = missing_bytes(memory, architecture.cached_tokens(middle * _STEP_TOKENS)) <= 0
        low, high = (middle, high) if held else (low, middle)
    return low * _STEP_TOKENS


def _kv_words(length: int, demand: Demand, memory: MemoryFit, groups: int) -> str:
    cached = demand.architecture.cached_tokens(length)
    held = groups * int(memory.kv_room_bytes // (memory.kv_bytes_per_token * cached))
    return (
        f"The KV cache holds {counted(memory.kv_limited_batch, 'typical request')}, or {held:,} of {length:,} tokens "
        f"({memory.kv_bytes_per_token * cached / MIB:,.0f} MiB each per accelerator)."
    )


def choose_batched_tokens(
    endpoint: EndpointSpec, lengths: RequestLengths, engine: Engine, max_model_len: int
) -> Decision[int]:
    """Return the tokens of one engine iteration: the override, or the engine's default unless a prompt is longer.

    An engine with compiled shapes takes one prompt at a time and fills it up to `max_model_len`.
    """
    # Not the default of the engine: a prompt is padded to the compiled length, whatever it has.
    if engine.compiled_shapes:
        return Decision(value=max_model_len, because="One prompt at a time, filled up to max_model_len.")
    overrides, workload = endpoint.serving.overrides, endpoint.workload
    if overrides.max_num_batched_tokens is not None:
        return Decision(value=overrides.max_num_batched_tokens, because="The spec fixes it.")
    longest = max(lengths.input.longest, (fixed_max_model_len(endpoint) or 0) - workload.output_tokens)
    prompt = _rounded_up(longest)
    default = engine.default_batched_tokens
    if prompt > default and engine.scheduler == "separate":
        because = f"One prompt of {longest:,} tokens per iteration, rounded up."
        return Decision(value=prompt, because=because)
    whole = default // round(lengths.input.mean)
    if not whole:
        because = f"Default for {engine.family}; longer prompts are prefilled in chunks."
        return Decision(value=default, because=because)
    because = f"Default for {engine.family}: {counted(whole, 'prompt')} of the workload."
    return Decision(value=default, because=because)


def choose_max_num_seqs(
    overrides: ServingOverrides, memory: MemoryFit, capacity: int, error: float, *, bursts: bool = False
) -> Decision[int]:
    """Return the batch limit: the override, or the least of KV room, what the objectives allow, and 256.

    Args:
        capacity: Requests in flight on a copy that keep the objectives; with bursts, those of the busiest moments.
        bursts: Requests arrive at a rate, so that more than the mean are in flight at times.
    """
    if overrides.max_num_seqs is not None:
        return Decision(value=overrides.max_num_seqs, because="The spec fixes it.")
    # By as much as the prediction may be too low: a limit below what a copy takes would throttle it.
    allowed = math.ceil(capacity * (1 + error))
    if allowed < min(memory.kv_limited_batch, ENGINE_BATCH_LIMIT):
        held = counted(capacity, "concurrent request")
        sustained = f"At its highest rate one copy has {held}, in 99 % of the time" if bursts else ""
        because = f"{sustained or f'One copy sustains {held}'}, plus {error:.0%} for the prediction error."
        return Decision(value=allowed, because=because)
    if memory.kv_limited_batch <= ENGINE_BATCH_LIMIT:
        because = f"The KV cache holds {counted(memory.kv_limited_batch, 'sequence')} of the workload's length."
        return Decision(value=memory.kv_limited_batch, because=because)
    because = f"The KV cache holds {memory.kv_limited_batch:,} sequences; the planner's limit is {ENGINE_BATCH_LIMIT}."
    return Decision(value=ENGINE_BATCH_LIMIT, because=because)


def compiled_batch(wanted: int, most: int) -> int:
    """Return the batch to compile: a power of two for the requests that are wanted, and within what fits; 0 if none."""
    return 2 ** (min(power_of_two(wanted), most).bit_length() - 1) if most else 0


def choose_compiled_batch(engine: Engine, memory: MemoryFit, capacity: int) -> Decision[int]:
    """Return the batch that is compiled in: every step computes all of it, so no more than the objectives allow."""
    most = min(engine.batch_limit, memory.kv_limited_batch)
    value = compiled_batch(capacity, most)
    because = (
        f"Compiled in, a power of 2: one copy sustains {counted(capacity, 'concurrent request')}, the KV cache holds "
        f"{counted(memory.kv_limited_batch, 'sequence')} of max_model_len, the planner's limit is {engine.batch_limit}."
    )
    return Decision(value=value, because=because)


def batch_limit_warnings(overrides: ServingOverrides, memory: MemoryFit) -> tuple[str, ...]:
    """Warn when the KV cache can't hold the batch limit that the spec fixes."""
    fixed = overrides.max_num_seqs
    if fixed is None or fixed <= memory.kv_limited_batch:
        return ()
    held = counted(memory.kv_limited_batch, "sequence")
    return (f"max_num_seqs is set to {fixed}, but the KV cache holds {held} of the workload's length.",)


def choose_max_queued(
    overrides: ServingOverrides, max_num_seqs: int, answered_in_time: int, timeout_s: float
) -> Decision[int]:
    """Return how many requests may wait: those that are still answered before a request ends, or one full batch."""
    if overrides.max_queued_requests is not None:
        return Decision(value=overrides.max_queued_requests, because="The spec fixes it.")
    waiting = answered_in_time - max_num_seqs
    if waiting < max_num_seqs:
        because = f"One more batch of {max_num_seqs}: the trial loads a copy to twice its batch."
        return Decision(value=max_num_seqs, because=because)
    because = (
        f"One copy answers {answered_in_time} concurrent requests within {timeout_s:g} s; {max_num_seqs} of them run, "
        f"the others wait."
    )
    return Decision(value=waiting, because=because)


def queue_room(slo: Slo, levels: Levels, knee: int, status: int | None) -> tuple[Decision[int], Decision[int]]:
    """Return the requests and their tokens that may wait so that what is admitted keeps the SLO's time to first token.

        prefill rate    = requests per second of a full copy × mean prompt      tokens/s
        queued tokens   = prefill rate × (bound of TTFT - TTFT at the knee)     tokens
        queued requests = queued tokens / mean prompt                           at least 1

    A full copy takes a prompt up as fast as it ends answers: that, not what its prefill alone would do, empties the
    queue (Little's law). The least room of the bounded percentiles counts, each with its own prediction. vLLM's text on
    `max_num_queued_tokens` has the same product of bound and prefill rate.
    """
    at_knee, per_s = levels.at(knee).ttft_ms, saturation_per_s(levels.copy)
    bounds = {name: bound for name, bound in slo.ttft_ms.model_dump().items() if bound is not None}
    name = min(bounds, key=lambda each: bounds[each] - getattr(at_knee, each))
    room_s = max(0.0, bounds[name] - getattr(at_knee, name)) / MS_PER_S
    requests, prompt = max(1, math.floor(per_s * room_s)), levels.copy.input_tokens
    refuses = f" Further ones are answered {status}." if status is not None else ""
    because = (
        f"A full copy takes up {per_s * prompt:,.0f} prompt tokens/s; TTFT {name} is {getattr(at_knee, name):,.0f} ms "
        f"at the knee of {knee}, {bounds[name]:g} ms at most: {room_s:.2f} s of them may wait.{refuses}"
    )
    tokens = max(prompt, math.floor(per_s * room_s * prompt))
    return Decision(value=requests, because=because), Decision(value=tokens, because=because)


def choose_levels(given: Iterable[int] | None, max_num_seqs: int, gate: int) -> Decision[tuple[int, ...]]:
    """Return the concurrency levels of the trial: the spec's, or doubling to twice the batch limit; always the gate."""
    if given is not None:
        return Decision(value=tuple(sorted({*given, gate})), because=f"From the spec, and {gate}, the gate.")
    doubling = {2**power for power in range((2 * max_num_seqs).bit_length())}
    because = (
        f"Powers of 2 up to twice the batch limit of {max_num_seqs}, and {gate}, the gate, where the SLO must hold."
    )
    return Decision(value=tuple(sorted({*doubling, gate})), because=because)


def _rounded_up(tokens: int) -> int:
    return math.ceil(tokens / _STEP_TOKENS) * _STEP_TOKENS
