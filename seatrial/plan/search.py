"""Goes through every allowed deployment and asks, in turn: does it fit, keep the objectives, and stay affordable?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial.catalog.instances import PRICE_REGION
from seatrial.plan.batching import ENGINE_BATCH_LIMIT
from seatrial.plan.candidate import Candidate, Loss, Offer
from seatrial.plan.copies import Load, capacity, copies_needed, spread
from seatrial.plan.cost import usd_per_hour
from seatrial.plan.latency import Copy, predict
from seatrial.plan.memory import fit_memory, missing_bytes, weights_bytes
from seatrial.plan.parallelism import possible_degrees
from seatrial.plan.words import counted
from seatrial.spec.endpoint import MOST_COPIES
from seatrial.units import gib, usd

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial.catalog.instances import Instance
    from seatrial.plan.candidate import Stage
    from seatrial.plan.demand import Demand
    from seatrial.plan.document import MemoryFit


def search(demand: Demand, instances: Iterable[Instance]) -> tuple[list[Offer], list[Loss]]:
    """Judge every instance type with every degree; what fails says why."""
    judged = [result for instance in instances for result in _judge_instance(demand, instance)]
    offers = [result for result in judged if isinstance(result, Offer)]
    return offers, [result for result in judged if isinstance(result, Loss)]


def _judge_instance(demand: Demand, instance: Instance) -> Iterator[Offer | Loss]:
    unplannable = _unplannable(demand, instance)
    if unplannable:
        yield _loss(instance, instance.accelerator_count, "specifications", unplannable)
        return
    fixed = demand.overrides.tensor_parallel_degree
    degrees = possible_degrees(demand.architecture, instance.accelerator_count) if fixed is None else (fixed,)
    for degree in degrees:
        yield _judge(demand, instance, degree) if degree <= instance.accelerator_count else _too_few(instance, degree)


def _too_few(instance: Instance, degree: int) -> Loss:
    count, field = instance.accelerator_count, ("serving", "overrides", "tensor_parallel_degree")
    because, hint = (
        f"It has {counted(count, 'accelerator')}, too few for a degree of {degree}.",
        f"set it to at most {count}",
    )
    return _loss(instance, degree, "degree", because, gap=degree - count, field=field, hint=hint)


def _unplannable(demand: Demand, instance: Instance) -> str:
    if instance.link == "neuron":
        return "Its accelerators are AWS Neuron, for which LMI images have been frozen since 0.29: not planned."
    if instance.flops_16bit is None or instance.memory_bandwidth_bytes_s is None:
        return f"FLOPS and memory bandwidth of its {instance.accelerator} are unknown."
    if demand.overrides.dtype == "bf16" and not instance.has_bf16:
        return f"Its {instance.accelerator} has no bf16, which the spec fixes."
    return ""


def _judge(demand: Demand, instance: Instance, degree: int) -> Offer | Loss:
    quantization = demand.overrides.quantization
    memory = fit_memory(
        demand.architecture, instance, demand.engine, degree=degree, quantization=quantization, tokens=demand.tokens
    )
    missing = missing_bytes(memory, demand.architecture.cached_tokens(demand.max_model_len))
    if missing > 0:
        because = (
            f"Each of its accelerators holds {gib(memory.accelerator_memory_bytes)}, but {gib(memory.weights_bytes)} "
            f"of weights, a reserve of {gib(memory.reserve_bytes)} and one sequence of {demand.max_model_len:,} "
            f"tokens need {gib(missing)} more."
        )
        return _loss(instance, degree, "memory", because, gap=missing * degree)
    return _judge_speed(demand, _candidate(demand, instance, degree, memory))


def _candidate(demand: Demand, instance: Instance, degree: int, memory: MemoryFit) -> Candidate:
    overrides, workload = demand.overrides, demand.endpoint.workload
    published = demand.architecture.dtype if overrides.dtype == "auto" else overrides.dtype
    flops, bandwidth = _speed(instance, overrides.quantization)
    copy = Copy(
        architecture=demand.architecture,
        engine=demand.engine,
        link=instance.link,
        degree=degree,
        flops=flops,
        memory_bandwidth_bytes_s=bandwidth,
        weights_bytes=weights_bytes(demand.architecture, overrides.quantization),
        kv_bytes_per_token=memory.kv_bytes_per_token,
        kv_limited_batch=memory.kv_limited_batch,
        max_num_seqs=overrides.max_num_seqs or ENGINE_BATCH_LIMIT,
        batched_tokens=demand.batched_tokens,
        input_tokens=workload.input_tokens,
        output_tokens=workload.output_tokens,
    )
    dtype = published if instance.has_bf16 else "fp16"
    return Candidate(instance, degree, instance.accelerator_count // degree, dtype, memory, copy)


def _speed(instance: Instance, quantization: str | None) -> tuple[float, float]:
    """Return FLOPS and memory bandwidth; only FP8 weights on an accelerator with FP8 compute in 8 bits."""
    flops, bandwidth = instance.flops_16bit, instance.memory_bandwidth_bytes_s
    if flops is None or bandwidth is None:
        raise ValueError(f"{instance.instance_type} has no known speed")
    if quantization == "fp8" and instance.flops_8bit is not None:
        flops = instance.flops_8bit
    return float(flops), float(bandwidth)


def _judge_speed(demand: Demand, candidate: Candidate) -> Offer | Loss:
    instance, degree = candidate.instance, candidate.degree
    alone = predict(candidate.copy, 1)
    worst = max(demand.objectives, key=lambda objective: objective.ratio(alone))
    if worst.ratio(alone) > 1:
        predicted: float = getattr(alone, worst.metric)
        because = f"Even a single request is predicted to take a mean of {predicted:,.1f} ms against {worst}."
        hint = f"allow {math.ceil(predicted):,} ms, or allow faster instance types"
        return _loss(instance, degree, "slo", because, gap=worst.ratio(alone), field=worst.path, hint=hint)
    highest = capacity(candidate.copy, demand.objectives)
    needed = copies_needed(candidate.copy, demand.endpoint.workload, highest)
    most = demand.endpoint.scaling.max_copies
    if needed > most:
        because = (
            f"A copy is predicted to keep the objectives up to {counted(highest, 'request')} in flight: the workload "
            f"needs {counted(needed, 'copy', 'copies')}, and max_copies is {most}."
        )
        raised = f"set max_copies to at least {needed}, or " if needed <= MOST_COPIES else ""
        hint = f"{raised}allow faster instance types"
        return _loss(instance, degree, "copies", because, gap=needed / most, field=("scaling", "max_copies"), hint=hint)
    return _judge_size(demand, candidate, highest, max(needed, demand.endpoint.scaling.min_copies))


def _judge_size(demand: Demand, candidate: Candidate, highest: int, copy_count: int) -> Offer | Loss:
    workload, scaling = demand.endpoint.workload, demand.endpoint.scaling
    asked_tok_s = demand.endpoint.slo.output_tok_s or 0.0
    load = spread(candidate.copy, workload, copy_count)
    while load.output_tok_s < asked_tok_s and load.copy_count < scaling.max_copies and load.concurrency_per_copy > 1:
        load = spread(candidate.copy, workload, load.copy_count + 1)  # beyond one request each, copies only idle
    reached = load.output_tok_s
    if reached < asked_tok_s:
        copies = counted(load.copy_count, "copy", "copies")
        because = f"With {copies} the workload is predicted to give {reached:,.0f} output tokens per second, "
        because += f"and slo.output_tok_s is {asked_tok_s:,.0f}."
        field, gap = ("slo", "output_tok_s"), asked_tok_s / reached
        what = "max_copies or " if load.concurrency_per_copy > 1 else ""
        hint = f"ask for at most {math.floor(reached):,}, or raise {what}the workload's traffic"
        return _loss(candidate.instance, candidate.degree, "copies", because, gap=gap, field=field, hint=hint)
    if demand.endpoint.objective == "throughput":
        load = spread(candidate.copy, workload, max(load.copy_count, _affordable_copies(demand, candidate)))
    return _judge_cost(demand, candidate, highest, load)


def _affordable_copies(demand: Demand, candidate: Candidate) -> int:
    """Return the copies that the budget pays for, up to max_copies: as many as possible give the most throughput."""
    most, budget = demand.endpoint.scaling.max_copies, demand.endpoint.budget.usd_per_hour
    price = candidate.instance.usd_per_hour
    if budget is None or price is None:
        return most
    return min(most, math.floor(budget / price) * candidate.copies_per_instance)


def _judge_cost(demand: Demand, candidate: Candidate, highest: int, load: Load) -> Offer | Loss:
    instance = candidate.instance
    offer = Offer(
        candidate=candidate,
        capacity=highest,
        load=load,
        instance_count=math.ceil(load.copy_count / candidate.copies_per_instance),
        usd_per_hour=usd_per_hour(instance, math.ceil(load.copy_count / candidate.copies_per_instance)),
        alone=predict(candidate.copy, 1),
        highest_tok_s=load.copy_count * predict(candidate.copy, highest).output_tok_s,
    )
    budget, rail = demand.endpoint.budget.usd_per_hour, demand.rails.usd_per_hour
    if instance.usd_per_hour is None or offer.usd_per_hour is None:
        if budget is None and rail is None:
            return offer
        because = f"Its price in {PRICE_REGION} is unknown, so it can't be held against the budget."
        return _loss(instance, candidate.degree, "price", because)
    peak = math.ceil(demand.endpoint.scaling.max_copies / candidate.copies_per_instance) * instance.usd_per_hour
    if budget is not None and offer.usd_per_hour > budget:
        many = counted(offer.instance_count, "instance")
        because = f"It costs {offer.price} for {many}, above the budget of {usd(budget)}."
        return _too_dear(offer, offer.usd_per_hour, because, ("budget", "usd_per_hour"))
    if rail is not None and peak > rail:
        because = f"At max_copies {demand.endpoint.scaling.max_copies} it costs {usd(peak)} per hour, above the "
        because += f"environment's guard rail of {usd(rail)}."
        return _too_dear(offer, peak, because, ("scaling", "max_copies"))
    return offer


def _too_dear(offer: Offer, price: float, because: str, field: tuple[str, ...]) -> Loss:
    return Loss(
        instance_type=offer.candidate.instance.instance_type,
        degree=offer.candidate.degree,
        stage="budget",
        because=because,
        gap=price,
        field=field,
        usd_per_hour=offer.usd_per_hour,
        output_tok_s=offer.load.output_tok_s,
    )


def _loss(
    instance: Instance,
    degree: int,
    stage: Stage,
    because: str,
    *,
    gap: float = 0.0,
    field: tuple[str, ...] = ("serving", "instance_types"),
    hint: str = "",
) -> Loss:
    return Loss(instance.instance_type, degree, stage, because, gap, field, hint)
