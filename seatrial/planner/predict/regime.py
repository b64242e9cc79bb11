"""The regime of a copy: how much arithmetic a step does per byte it reads, what bounds it, its growth and knee.

    arithmetic intensity = (2 * P_a * B + 4 * L * n_q * d * B * ctx) / (weights read + KV bytes * B * ctx)   FLOPs/byte
    machine balance      = F * e_c / (W * e_m)                                                              FLOPs/byte
    critical batch size  = F / W * bytes per parameter / 2                                                  sequences

The first two are of what the engine reaches: below the balance a decode step waits for memory. The critical batch size
is the articles' rule, of the data sheet's numbers; it knows no host, no link and no KV cache, so it is a bound that a
real step seldom meets. Bytes are per active parameter: a mixture of experts reads all of them in a large batch.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from seatrial.documents.calibration import Calibration
from seatrial.documents.prediction import LevelRegime, Limit, PredictedKnee, Regime
from seatrial.planner.predict.closed_form import STEP_PARTS, mean_step, predict_at, running_batch
from seatrial.planner.predict.iteration_cost import costs_of, product_of
from seatrial_base.units import MS_PER_S, counted, tenths
from seatrial_load.documents.result import Knee
from seatrial_load.knee import leading_knee
from seatrial_load.measure.curves import saturation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from seatrial.documents.prediction import PredictedBy
    from seatrial.planner.predict.closed_form import Seconds
    from seatrial.planner.predict.copy_model import Copy
    from seatrial_load.documents.request import TargetKnee
    from seatrial_load.documents.result import Detector
    from seatrial_load.measure.curves import Reading

_LIMIT_PARTS = {
    Limit.MEMORY: "reading weights and KV cache takes {share:.0%} of it",
    Limit.COMPUTE: "arithmetic takes {share:.0%} of it",
    Limit.LINK: "the all-reduces between {degree} accelerators take {share:.0%} of it",
    Limit.HOST: "server work on sequences and prompts takes {share:.0%} of it",
}
_GROWING = {
    Limit.MEMORY: "a further request mostly adds reading of its KV cache",
    Limit.COMPUTE: "a further request mostly adds arithmetic",
    Limit.LINK: "a further request mostly adds all-reduce traffic",
    Limit.HOST: "a further request mostly adds server work",
}
_FLOPS_PER_PARAMETER = 2  # a multiplication and an addition
_ATTENTION_FLOPS = 4  # a multiplication and an addition, for the scores and for the values
_WORTHWHILE = 1.5  # of doubled concurrency: half of what doubling could bring at best
_BY: Mapping[Detector, PredictedBy] = {"slo": "slo", "saturation": "saturation", "gate": "gate"}


def step_sentence(copy: Copy, concurrency: int, batch: float, step: Seconds) -> str:
    """Return what bounds a step at a concurrency: `At 1 request in flight a step of 31.0 ms is bound by memory: …`."""
    name = step.largest
    some = "" if round(batch) >= concurrency else f", of which {round(batch):,} run at once,"
    start = f"At {_in_flight(concurrency)}{some} a step of {tenths(step.total * MS_PER_S)} ms is bound by "
    if name == Limit.HOST and launches(copy, batch):
        spent = costs_of(copy).host * MS_PER_S
        return f"{start}the host: launching kernels takes {tenths(spent)} ms of every step, at any batch size."
    words = _LIMIT_PARTS[name].format(share=getattr(step, name) / step.total, degree=copy.degree)
    return f"{start}{name if name in {Limit.MEMORY, Limit.COMPUTE} else f'the {name}'}: {words}."


def launches(copy: Copy, batch: float) -> bool:
    """Tell whether launching kernels takes the host longer than the server's work on the sequences of a batch."""
    costs = costs_of(copy)
    return not costs.compiled and costs.host >= max(costs.device(batch * costs.verified), batch * costs.sequence)


def growth_sentence(copy: Copy, limit: Limit, concurrency: int, admitted: float) -> str:
    """Return what keeps throughput from growing past a concurrency.

    Args:
        concurrency: From where doubling the load brings less than half as much throughput more.
        admitted: Sequences that the admission of prompts keeps running.
    """
    if limit == Limit.KV:
        return f"The KV cache holds {counted(copy.kv_limited_batch, 'sequence')}; further requests wait."
    if limit == Limit.BATCH_LIMIT:
        return f"The engine batches at most {counted(copy.max_num_seqs, 'sequence')}; further requests wait."
    if limit == Limit.ADMISSION:
        prompts, steps = counted(copy.prompts_per_prefill, "prompt"), copy.engine.steps_between_prefills
        rate = f"The engine admits {prompts} every {counted(steps, 'decode step')}"
        if copy.engine.scheduler == "chunked":
            rate = f"The engine takes {counted(copy.batched_tokens, 'token')} an iteration"
        return f"{rate}, so {counted(round(admitted), 'sequence')} run; further requests wait."
    return f"Beyond {_in_flight(concurrency)}, {_GROWING[limit]}."


def _in_flight(concurrency: int) -> str:
    return f"{counted(concurrency, 'request')} in flight"


def regime_of(copy: Copy, gate: int, levels: Iterable[int]) -> Regime:
    """Say what bounds a copy.

    Args:
        copy: A copy whose KV room holds at least one sequence.
        gate: Concurrency per copy at which the objectives must hold.
    """
    at_gate = level_regime(copy, gate)
    limit, full = growth_limit(copy)
    batch, bound = running_batch(copy, gate)
    kept_out = () if bound is None else (growth_sentence(copy, bound, gate, batch),)
    sentences = dict.fromkeys([step_sentence(copy, gate, batch, mean_step(copy, batch)), *kept_out])
    sentences[growth_sentence(copy, limit, full, running_batch(copy, 2 * full)[0])] = None
    return Regime(
        arithmetic_intensity_flops_per_byte=arithmetic_intensity(copy, batch),
        machine_balance_flops_per_byte=machine_balance(copy),
        critical_batch_size=critical_batch_size(copy),
        bound_by=at_gate.bound_by,
        growth_limit=limit,
        sentence=" ".join(sentences),
        per_level=tuple(level_regime(copy, level) for level in levels),
    )


def level_regime(copy: Copy, concurrency: int) -> LevelRegime:
    """Return what bounds a copy at one concurrency."""
    batch, _ = running_batch(copy, concurrency)
    step = mean_step(copy, batch)
    shares = tuple((part, float(getattr(step, part)) / step.total) for part in STEP_PARTS)
    return LevelRegime(concurrency=concurrency, bound_by=predict_at(copy, concurrency).limit, share_of_step=shares)


def arithmetic_intensity(copy: Copy, batch: float) -> float:
    """Return FLOPs over bytes of a decode step in the middle of its requests, over all accelerators."""
    plain = replace(copy, calibration=Calibration())
    costs, shape = costs_of(plain), copy.architecture
    context = batch * shape.attended_tokens(copy.input_tokens + int(copy.running_output_tokens) // 2)
    tokens = batch * costs.verified
    product = product_of(copy)
    flops = costs.arithmetic(tokens) * copy.degree * copy.hardware.flops * product.compute_efficiency
    attention = _ATTENTION_FLOPS * shape.layers * shape.attention_heads * shape.head_dim * context * costs.verified
    bandwidth = copy.hardware.memory_bandwidth_bytes_s * product.memory_efficiency
    cache_bytes = copy.attention_degree * context * copy.kv_bytes_per_token
    read_bytes = copy.degree * costs.read(tokens) * bandwidth + cache_bytes
    return (flops + attention) / read_bytes


def machine_balance(copy: Copy) -> float:
    """Return the FLOPs per byte at which arithmetic takes as long as reading, as matrix products reach both."""
    product, hardware = product_of(copy), copy.hardware
    reached_flops = hardware.flops * product.compute_efficiency
    return reached_flops / (hardware.memory_bandwidth_bytes_s * product.memory_efficiency)


def critical_batch_size(copy: Copy) -> int:
    """Return the articles' critical batch size: 116 for 16-bit weights on an A10G (70 TFLOPS, 600 GB/s)."""
    bytes_per_parameter = copy.weights_bytes / copy.architecture.params_active
    ratio = copy.hardware.flops / copy.hardware.memory_bandwidth_bytes_s
    return math.floor(ratio * bytes_per_parameter / _FLOPS_PER_PARAMETER)


def growth_limit(copy: Copy) -> tuple[Limit, int]:
    """Return what keeps throughput from growing, and the load from which doubling brings less than half as much more.

    It is what keeps further requests out of the batch there, or the part of the step that grows the most.
    """
    full = 1
    while predict_at(copy, 2 * full).output_tok_s >= _WORTHWHILE * predict_at(copy, full).output_tok_s:
        full *= 2
    batch, bound = running_batch(copy, 2 * full)
    if bound is not None:
        return bound, full
    before, after = mean_step(copy, running_batch(copy, full)[0]), mean_step(copy, batch)
    return max(STEP_PARTS, key=lambda part: getattr(after, part) - getattr(before, part)), full


class PredictedTarget(NamedTuple):
    """The knee, the target that it gives in requests in flight per copy, and why it leads."""

    knee: PredictedKnee
    concurrency: float
    because: str


def predicted_target(
    throughputs: Sequence[Reading],
    *,
    capacity: int,
    batch_limit: int,
    gate: int,
    target_knee: TargetKnee,
    utilization: float,
) -> PredictedTarget:
    """Return the target that a trial would find if every level were as predicted.

    Args:
        throughputs: Predicted throughput of one copy by concurrency, ascending.
        capacity: Highest concurrency of one copy that is predicted to meet every objective.
        utilization: Target utilization, above 0 and at most 1.
    """
    saturated_at = saturation(throughputs)
    saturated = None if saturated_at is None else min(saturated_at.load, float(batch_limit))
    planned = float(gate if saturated_at is None else saturated_at.planned(gate, utilization))
    knees = (
        Knee(detector="slo", concurrency=float(capacity), because=""),
        Knee(detector="saturation", concurrency=saturated, because="no level is predicted"),
        Knee(detector="gate", concurrency=planned, because=""),
    )
    leads = leading_knee(knees, has_slo=True, target_knee=target_knee, utilization=utilization)
    knee = leads.knee or knees[0]
    predicted = PredictedKnee(concurrency=max(1, int(knee.concurrency or 1)), detector=_BY[knee.detector])
    return PredictedTarget(predicted, round(leads.target, 1), leads.because)
