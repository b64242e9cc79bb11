"""How long a sequence may be, how many are batched, how many tokens an iteration takes, how many requests wait."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial.plan.document import Decision
from seatrial.plan.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial.catalog.architecture import Architecture
    from seatrial.catalog.engines import Engine
    from seatrial.predict.memory import MemoryFit
    from seatrial.spec.endpoint import ServingOverrides, WorkloadSpec

ENGINE_BATCH_LIMIT = 256
_STEP_TOKENS = 256


def choose_max_model_len(
    overrides: ServingOverrides, workload: WorkloadSpec, architecture: Architecture
) -> Decision[int]:
    """Return the longest sequence: the override, or the workload's rounded up within the model's context."""
    if overrides.max_model_len is not None:
        return Decision(value=overrides.max_model_len, because="The spec fixes it.")
    tokens = workload.input_tokens + workload.output_tokens
    rounded = _rounded_up(tokens)
    length = min(rounded, architecture.max_context)
    because = f"The workload's {workload.input_tokens:,} + {workload.output_tokens:,} tokens, rounded up to {length:,}"
    return Decision(value=length, because=f"{because}; the model's context is {architecture.max_context:,}.")


def choose_batched_tokens(overrides: ServingOverrides, workload: WorkloadSpec, engine: Engine) -> Decision[int]:
    """Return the tokens of one engine iteration: the override, or the engine's default unless a prompt is longer."""
    if overrides.max_num_batched_tokens is not None:
        return Decision(value=overrides.max_num_batched_tokens, because="The spec fixes it.")
    prompt = _rounded_up(workload.input_tokens)
    default = engine.default_batched_tokens
    if prompt > default and engine.scheduler == "separate":
        because = f"One prompt of {workload.input_tokens:,} tokens, rounded up, fills an iteration."
        return Decision(value=prompt, because=because)
    whole = default // workload.input_tokens
    if not whole:
        because = f"{default:,} is the default taken for {engine.family}, which takes longer prompts in chunks."
        return Decision(value=default, because=because)
    because = (
        f"{default:,} is the default taken for {engine.family}, room for {counted(whole, 'prompt')} of the workload."
    )
    return Decision(value=default, because=because)


def choose_max_num_seqs(overrides: ServingOverrides, memory: MemoryFit, capacity: int, error: float) -> Decision[int]:
    """Return the batch limit: the override, or the least of KV room, what the objectives allow, and 256."""
    if overrides.max_num_seqs is not None:
        return Decision(value=overrides.max_num_seqs, because="The spec fixes it.")
    allowed = math.ceil(capacity * (1 + error))
    if allowed < min(memory.kv_limited_batch, ENGINE_BATCH_LIMIT):
        held = counted(capacity, "concurrent request")
        because = f"One copy sustains {held}, plus {error:.0%} for the error of the prediction."
        return Decision(value=allowed, because=because)
    if memory.kv_limited_batch <= ENGINE_BATCH_LIMIT:
        because = f"The KV room holds {counted(memory.kv_limited_batch, 'sequence')} of the workload's length."
        return Decision(value=memory.kv_limited_batch, because=because)
    because = (
        f"The KV room holds {memory.kv_limited_batch:,} sequences; no engine is given more than {ENGINE_BATCH_LIMIT}."
    )
    return Decision(value=ENGINE_BATCH_LIMIT, because=because)


def batch_limit_warnings(overrides: ServingOverrides, memory: MemoryFit) -> tuple[str, ...]:
    """Warn when the KV room can't hold the batch limit that the spec fixes."""
    fixed = overrides.max_num_seqs
    if fixed is None or fixed <= memory.kv_limited_batch:
        return ()
    held = counted(memory.kv_limited_batch, "sequence")
    return (f"max_num_seqs is fixed at {fixed}, but the KV room holds {held} of the workload's length.",)


def choose_max_queued(
    overrides: ServingOverrides, max_num_seqs: int, answered_in_time: int, timeout_s: float
) -> Decision[int]:
    """Return how many requests may wait: those that are still answered before a request ends, or one full batch."""
    if overrides.max_queued_requests is not None:
        return Decision(value=overrides.max_queued_requests, because="The spec fixes it.")
    waiting = answered_in_time - max_num_seqs
    if waiting < max_num_seqs:
        because = f"One full batch of {max_num_seqs}: a trial loads a copy to twice its batch."
        return Decision(value=max_num_seqs, because=because)
    because = (
        f"Up to {answered_in_time} concurrent requests are answered within {timeout_s:g} s; {max_num_seqs} of them run."
    )
    return Decision(value=waiting, because=because)


def choose_levels(given: Iterable[int] | None, max_num_seqs: int, gate: int) -> Decision[tuple[int, ...]]:
    """Return the concurrency levels of the trial: the spec's, or doubling to twice the batch limit; always the gate."""
    if given is not None:
        return Decision(value=tuple(sorted({*given, gate})), because=f"The spec fixes them; {gate} is the gate's.")
    doubling = {2**power for power in range((2 * max_num_seqs).bit_length())}
    because = f"Doubling from 1 to twice the batch limit of {max_num_seqs}, and {gate}, where the SLO must hold."
    return Decision(value=tuple(sorted({*doubling, gate})), because=because)


def _rounded_up(tokens: int) -> int:
    return math.ceil(tokens / _STEP_TOKENS) * _STEP_TOKENS
