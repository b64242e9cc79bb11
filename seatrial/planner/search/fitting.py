"""Which deployments hold the model: instance types with their degrees, and the copies that share an instance."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.planner.decisions.batching import compiled_batch
from seatrial.planner.predict.copy_model import hardware_of, place_copy
from seatrial.planner.predict.memory import adapters_bytes, fit_memory, missing_bytes, shared_prefix
from seatrial.planner.predict.simulation import AT_RANDOM
from seatrial.planner.recipe_limits import accelerator_refusals
from seatrial.planner.search.candidate import Candidate, RejectedCandidate
from seatrial.planner.search.capacity import Levels
from seatrial_base.catalog import neuron
from seatrial_base.catalog.architecture import shards_evenly
from seatrial_base.catalog.instances import find_instance, has_kernels
from seatrial_base.units import MS_PER_S, counted, gib

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial.documents.plan import Layout
    from seatrial.documents.prediction import MemoryFit
    from seatrial.planner.predict.copy_model import Copy, Hardware
    from seatrial.planner.predict.simulation import Level
    from seatrial.planner.search.candidate import Stage
    from seatrial.planner.search.demand import Demand
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.instances import Instance
    from seatrial_base.findings import Finding

_POWERS_OF_TWO = (1, 2, 4, 8, 16)


def possible_degrees(architecture: Architecture, accelerators: int) -> tuple[int, ...]:
    """Return the tensor parallel degrees worth considering: powers of two and the whole instance."""
    tried = {degree for degree in (*_POWERS_OF_TWO, accelerators) if degree <= accelerators}
    return tuple(sorted(degree for degree in tried if shards_evenly(architecture, degree)))


def degrees_on(architecture: Architecture, instance: Instance) -> tuple[int, ...]:
    """Return the tensor parallel degrees worth considering on an instance type: on AWS Neuron those of its runtime."""
    if neuron.is_neuron(instance):
        return neuron.degrees(architecture, instance)
    return possible_degrees(architecture, instance.accelerator_count)


def candidates(demand: Demand, instance: Instance) -> Iterator[Candidate | RejectedCandidate]:
    """Return a candidate for each degree with which an instance type holds the model; what doesn't says why."""
    because = _unplannable(demand, instance)
    hardware = None if because else hardware_of(instance, demand.quantization)
    if hardware is None:
        because = because or f"FLOPS and memory bandwidth of the {instance.accelerator} are unknown."
        yield rejection_of(instance, instance.accelerator_count, "specifications", because)
        return
    fixed = demand.overrides.tensor_parallel_degree
    degrees = degrees_on(demand.architecture, instance) if fixed is None else (fixed,)
    if not degrees:
        because = f"{demand.architecture.id} can't be sharded over any degree of the {instance.accelerator}."
        yield rejection_of(instance, instance.accelerator_count, "degree", because)
    count, single = instance.accelerator_count, demand.endpoint.hosting.kind == "single_model"
    for degree in degrees:
        if degree > count:
            because = f"{counted(count, 'accelerator')}, too few for degree {degree}."
            yield _wrong_degree(instance, degree, because, f"set it to at most {count}")
        elif single and degree < count:
            because = f"A model in a production variant takes the whole instance: {count} accelerators, not {degree}."
            hint = f"set it to {count}, or host the model as an inference component"
            yield _wrong_degree(instance, degree, because, hint)
        else:
            yield _fitted(demand, instance, hardware, degree)


def sharing(holding: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return candidates of which equal copies share their simulated levels.

    Instance types of one family with the same accelerators differ in price and host memory alone, which no copy sees.
    """
    every: dict[tuple[Copy, str], dict[int, Level]] = {}

    def seen(candidate: Candidate) -> dict[int, Level]:
        hardware = candidate.copy.hardware
        family = hardware.instance_type.rpartition(".")[0]
        copy = replace(candidate.copy, hardware=replace(hardware, instance_type=family))
        return every.setdefault((copy, candidate.dtype), {})

    return tuple(replace(each, levels=replace(each.levels, seen=seen(each))) for each in holding)


def rejection_of(instance: Instance, degree: int, stage: Stage, because: str, *, gap: float = 0.0) -> RejectedCandidate:
    """Return a rejection against the allowed instance types."""
    return RejectedCandidate(instance.instance_type, degree, stage, because, gap)


def _wrong_degree(instance: Instance, degree: int, because: str, hint: str) -> RejectedCandidate:
    gap, field = abs(degree - instance.accelerator_count), ("serving", "overrides", "tensor_parallel_degree")
    return RejectedCandidate(instance.instance_type, degree, "degree", because, gap, field, hint)


def _unplannable(demand: Demand, instance: Instance) -> str:
    if neuron.is_neuron(instance):
        serving, pools = demand.endpoint.serving, demand.endpoint.hosting.instance_pools
        named = instance.instance_type in (*(serving.instance_types or ()), *(pools or ()))
        for_gpus = "The engine's image is for NVIDIA GPUs: name types with AWS Neuron alone to plan for them."
        because = "" if demand.engine.compiled_shapes else for_gpus
        return because if named else "AWS Neuron is planned only where serving.instance_types names it."
    if demand.engine.compiled_shapes:
        return "The engine's image is for AWS Neuron."
    if demand.overrides.dtype == "bf16" and not instance.has_bf16:
        return f"The {instance.accelerator} has no bf16, which the spec sets."
    quantization = demand.quantization
    if quantization is not None and not has_kernels(instance, quantization):
        return f"There are no {quantization} kernels for the {instance.accelerator}."
    engine = demand.recipe_engine
    refused = () if engine is None else accelerator_refusals(demand.endpoint.optimization, engine, instance)
    return " ".join(refusal.message for refusal in refused)


def memory_of(demand: Demand, instance: Instance, degree: int, experts: int = 1) -> MemoryFit:
    """Divide the memory of one accelerator for the demand, whose sequences may all be at their full length at once.

    `experts`: groups that the experts are dealt out to.
    """
    lora = None if demand.engine.compiled_shapes else demand.overrides.lora
    return fit_memory(
        demand.architecture,
        instance,
        demand.engine,
        degree=degree,
        quantization=demand.quantization,
        tokens=demand.max_model_len if demand.engine.compiled_shapes else demand.running_tokens,
        tokens_stddev=0.0 if demand.engine.compiled_shapes else demand.tokens_stddev,
        batched_tokens=demand.batched_tokens,
        kv_bits=demand.kv_bits,
        draft=demand.speculation.draft if demand.speculation else None,
        attention_data_parallel_degree=demand.groups(degree).attention,
        adapters=adapters_bytes(demand.architecture, lora, degree, experts_groups=experts),
        shared=shared_prefix(demand.endpoint.workload, demand.lengths),
    )


def missing_for_one(demand: Demand, memory: MemoryFit) -> float:
    """Return the bytes that an accelerator lacks for a single sequence of the longest length; 0 or less if it fits."""
    return missing_bytes(memory, demand.architecture.cached_tokens(demand.max_model_len))


def _fitted(demand: Demand, instance: Instance, hardware: Hardware, degree: int) -> Candidate | RejectedCandidate:
    published = demand.architecture.dtype if demand.overrides.dtype == "auto" else demand.overrides.dtype
    dtype = published if instance.has_bf16 else "fp16"
    groups, refusals = demand.started(instance, degree, dtype)
    if groups.refused:
        return rejection_of(instance, degree, "degree", groups.refused)
    memory = memory_of(demand, instance, degree, groups.experts)
    missing = missing_for_one(demand, memory)
    if missing > 0 or not memory.kv_limited_batch:
        because = (
            f"{gib(missing)} short per accelerator of {gib(memory.accelerator_memory_bytes)}: "
            f"{gib(memory.weights_bytes)} weights, {gib(memory.activation_bytes)} activations, "
            f"{gib(memory.reserve_bytes)} reserve{_adapters_words(memory)} and one sequence of "
            f"{demand.max_model_len:,} tokens."
        )
        return rejection_of(instance, degree, "memory", because, gap=missing * degree)
    if refusals:
        because = " ".join(f"{each.because} ({each.row}: {each.source})" for each in refusals)
        return rejection_of(instance, degree, "start", because)
    overrides, workload = demand.overrides, demand.endpoint.workload
    most = min(demand.engine.batch_limit, memory.kv_limited_batch)
    largest_batch = compiled_batch(most, most) if demand.engine.compiled_shapes else most
    copy = place_copy(
        demand.architecture,
        hardware,
        demand.engine,
        memory,
        degree=degree,
        quantization=demand.quantization,
        input_tokens=demand.prompt_tokens,
        output_tokens=workload.output_tokens,
        batched_tokens=demand.batched_tokens,
        max_num_seqs=overrides.max_num_seqs or largest_batch,
        speculation=demand.speculation,
        calibration=demand.calibration_of(instance.instance_type, degree),
        prefix_hit_rate=workload.prefix_hit_rate,
        max_model_len=demand.max_model_len,
        lengths=demand.lengths,
        expert_parallel_degree=groups.experts,
        attention_data_parallel_degree=groups.attention,
        shared=shared_prefix(workload, demand.lengths),
        adapters=overrides.lora,
    )
    # As many copies as the accelerators take: fewer would cost the same.
    candidate = Candidate(
        instance=instance,
        degree=degree,
        copies_per_instance=instance.accelerator_count // degree,
        dtype=dtype,
        memory=memory,
        levels=Levels(copy, demand.protocol, demand.timeout.bound_ms / MS_PER_S, demand.arrivals or AT_RANDOM),
    )
    if not candidate.copy.most_running:
        because = (
            f"The KV cache is too small for one request of {demand.tokens:,} tokens in blocks of the engine's size."
        )
        return rejection_of(instance, degree, "memory", because)
    return candidate


def _adapters_words(memory: MemoryFit) -> str:
    return f", {gib(memory.adapters_bytes)} adapters" if memory.adapters_bytes else ""


def pool_problems(loaded: LoadedSpec, demand: Demand, layout: Layout) -> Iterator[Finding]:
    """Yield each pool that can't hold a copy: a component has one size, whatever instance it runs on.

    Args:
        layout: The deployment on the first pool: degree and type of a copy.
    """
    degree = layout.tensor_parallel_degree.value
    serving = demand.endpoint.serving
    overrides = serving.overrides.model_copy(update={"tensor_parallel_degree": degree, "dtype": layout.dtype.value})
    serving = serving.model_copy(update={"overrides": overrides})
    fixed = replace(demand, endpoint=demand.endpoint.model_copy(update={"serving": serving}))
    pools = loaded.endpoint.hosting.instance_pools or ()
    for index, name in enumerate(pools[1:], 1):
        pool_type, path = find_instance(name), ("hosting", "instance_pools", index)
        instance = None if pool_type is None else neuron.in_cores(pool_type)
        if instance is None:
            hint = "name types of the catalog: a copy must be known to fit"
            yield loaded.problem(path, "SEA110", f"{name} is not in the catalog", hint)
        elif because := _why_not(fixed, instance):
            hint = f"remove it, or order the pools so that the smallest is first: {pools[0]} needs degree {degree}"
            yield loaded.problem(path, "SEA212", f"{name} can't hold a copy: {because}", hint)


def _why_not(demand: Demand, instance: Instance) -> str:
    judged = list(candidates(demand, instance))
    if any(isinstance(each, Candidate) for each in judged):
        return ""
    return " ".join(each.because for each in judged if not isinstance(each, Candidate))
