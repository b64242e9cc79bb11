"""The layout of the chosen deployment: degree, copies, instances, and each copy's share of the host."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial.documents.plan import AT_PEAK, Decision, Layout
from seatrial.planner.predict.regime import predicted_target
from seatrial.planner.search.candidate import known
from seatrial.planner.search.demand import groups_words
from seatrial.planner.search.sizing import cost_of, instances_for, surge_instances, usd_per_hour
from seatrial.specs.scaling import copies_replaced_at_once
from seatrial_base.catalog import neuron
from seatrial_base.catalog.instances import SHARE_OF_CPUS, find_instance
from seatrial_base.units import counted, gib, hourly_words
from seatrial_load.measure.curves import Reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seatrial.planner.predict.regime import PredictedTarget
    from seatrial.planner.search.candidate import FeasibleCandidate
    from seatrial.planner.search.capacity import Levels
    from seatrial.planner.search.demand import Demand
    from seatrial.specs.endpoint import WorkloadSpec


# ml.g5.xlarge accepted 1,024 MiB and refused 4,096: what can be reserved is far below the host's memory.
_HOST_MEMORY_MB = 1024


def lay_out(best: FeasibleCandidate, demand: Demand) -> Layout:
    """Lay out the chosen deployment."""
    candidate, scaling = best.candidate, demand.endpoint.scaling
    return Layout(
        instance_count=decide_instance_count(best, demand),
        tensor_parallel_degree=decide_degree(best, demand),
        copies_per_instance=decide_copies_per_instance(best),
        copy_count=decide_copy_count(best, demand),
        max_instances=instances_for(candidate, scaling.max_copies),
        copies_replaced_at_once=copies_replaced_at_once(scaling.min_copies, scaling.max_copies),
        surge_instances=decide_surge(best, demand),
        dtype=decide_dtype(best, demand),
        cpu_cores_per_copy=cpu_cores_per_copy(best, demand.endpoint.hosting.instance_pools or ()),
        memory_min_mb=decide_host_memory(),
        cost=cost_of(best, demand.discount),
        expert_parallel_degree=decide_experts(best, demand),
    )


def decide_experts(best: FeasibleCandidate, demand: Demand) -> Decision[int] | None:
    """Return over how many accelerators experts are dealt out because the engine starts only so; else `None`."""
    degree, experts = best.candidate.degree, best.candidate.copy.expert_parallel_degree
    if experts == demand.groups(degree).experts:
        return None
    because = "Whole experts on each accelerator: cut by the degree, the engine ends at load (SEA254)."
    return Decision(value=experts, because=because)


def decide_degree(best: FeasibleCandidate, demand: Demand) -> Decision[int]:
    """Return the accelerators of one copy."""
    memory, degree = best.candidate.memory, best.candidate.degree
    spread = groups_words(demand.groups(degree), degree)
    if demand.overrides.tensor_parallel_degree is not None:
        return Decision(value=degree, because=f"The spec fixes it.{spread}")
    if neuron.is_neuron(best.candidate.instance):
        chips = counted(neuron.neuron_devices(best.candidate.instance.instance_type, degree), "accelerator")
        heads = demand.architecture.attention_heads
        filled = "" if heads % degree == 0 else f" The {heads} attention heads are filled up to a multiple of {degree}."
        because = (
            f"In NeuronCores, {chips} for SageMaker. Per core of {gib(memory.accelerator_memory_bytes)}: "
            f"{gib(memory.weights_bytes)} weights, {gib(memory.kv_room_bytes)} KV cache.{filled}"
        )
        return Decision(value=degree, because=because)
    because = (
        f"Per accelerator of {gib(memory.accelerator_memory_bytes)}: {gib(memory.weights_bytes)} weights, "
        f"{gib(memory.kv_room_bytes)} KV cache. {degree} divides the {demand.architecture.attention_heads} attention "
        f"heads.{spread}"
    )
    return Decision(value=degree, because=because)


def decide_copies_per_instance(best: FeasibleCandidate) -> Decision[int]:
    """Return the copies that share an instance."""
    count, degree = best.candidate.instance.accelerator_count, best.candidate.degree
    what = "NeuronCore" if neuron.is_neuron(best.candidate.instance) else "accelerator"
    because = f"An instance has {counted(count, what)}; each copy uses {degree}."
    return Decision(value=best.candidate.copies_per_instance, because=because)


def decide_copy_count(best: FeasibleCandidate, demand: Demand) -> Decision[int]:
    """Return the copies that run from the start, and what peak and floor need."""
    scaling, load = demand.endpoint.scaling, best.load
    highest, peak = counted(best.capacity, "concurrent request"), demand.endpoint.workload.concurrency
    peak_words = f"{peak:,}" if peak is not None else _traffic(demand.endpoint.workload)
    if best.sustained is not None:
        highest = f"{best.sustained.rate_per_s:.3g} requests per second"
    headroom = "" if peak is not None else f", with objective.headroom {demand.endpoint.objective.headroom:g}"
    because = (
        f"One copy sustains {highest}; peak is {peak_words}: at least {counted(best.needed, 'copy', 'copies')}"
        f"{headroom}. Autoscaling runs {scaling.min_copies} to {scaling.max_copies}"
    )
    more = _why_more(best, demand)
    if not scaling.min_copies:  # an idle endpoint has neither copies nor instances
        fate = "wait" if demand.endpoint.hosting.asynchronous else "are refused"
        more += f"; at 0 copies no instance runs: $0.00 per hour, and requests {fate} until a copy has started"
    return Decision(value=load.copy_count, because=f"{because}{more}.")


def _why_more(best: FeasibleCandidate, demand: Demand) -> str:
    """Return why there are more copies than the workload needs at least."""
    scaling, count = demand.endpoint.scaling, best.load.copy_count
    if count == best.needed:
        return ""
    if count == scaling.min_copies:
        return f"; min_copies is {count}"
    if demand.endpoint.objective.goal == "throughput":
        return f"; {count} give the most throughput within max_copies and the budget"
    if demand.endpoint.slo.output_tok_s is not None:
        return f"; {count} reach slo.output_tok_s"
    return f"; {count} fill the instances at the same price"


def decide_instance_count(best: FeasibleCandidate, demand: Demand) -> Decision[int]:
    """Return the instances of the planned size."""
    copies, each = best.load.copy_count, best.candidate.copies_per_instance
    price = hourly_words(known(best.score.usd_per_hour), demand.discount)
    because = f"{counted(copies, 'copy', 'copies')}, up to {each} per instance: {price}."
    return Decision(value=best.instance_count, because=because)


def decide_surge(best: FeasibleCandidate, demand: Demand) -> Decision[int]:
    """Return the instances that an update needs on top of those for the most copies: new copies run beside old ones."""
    scaling, each = demand.endpoint.scaling, best.candidate.copies_per_instance
    most = scaling.max_copies
    batch = copies_replaced_at_once(scaling.min_copies, most)
    beside = most if batch is None else batch
    before, more = math.ceil(most / each), surge_instances(best.candidate, scaling)
    meanwhile = before + more
    price = hourly_words(usd_per_hour(best.candidate.instance, more, demand.discount), demand.discount)
    room = (
        "no further instances." if not more else f"{counted(meanwhile, 'instance')} instead of {before}, {price} more."
    )
    manner = "all copies at once" if batch is None else f"copies {batch} at a time"
    because = (
        f"During an update ({manner}), up to {counted(beside, 'new copy', 'new copies')} and "
        f"{counted(most, 'old copy', 'old copies')} run: {room}"
    )
    return Decision(value=more, because=because)


def decide_gate(best: FeasibleCandidate, demand: Demand) -> Decision[int]:
    """Return the load per copy at which the SLO must hold."""
    copies = counted(best.load.copy_count, "copy", "copies")
    because = f"{_traffic(demand.endpoint.workload)} over {copies}, rounded up."
    return Decision(value=best.load.concurrency_per_copy, because=because)


def predict_target(
    best: FeasibleCandidate, demand: Demand, batch_limit: int, levels: Levels, loads: Iterable[int]
) -> PredictedTarget:
    """Return the knee of the chosen deployment that a trial would find at these loads, and what scaling takes of it."""
    trial, gate = demand.endpoint.trial, best.load.concurrency_per_copy
    target = predicted_target(
        [Reading(load=float(load), value=levels.at(load).output_tok_s) for load in loads],
        capacity=best.capacity,
        batch_limit=batch_limit,
        gate=gate,
        target_knee=trial.target,
        utilization=demand.endpoint.scaling.target_utilization,
    )
    # A copy holds more requests in flight than it carries a rate: above what is in flight at the peak, scaling in would
    # leave fewer copies than carry it.
    if demand.endpoint.workload.requests_per_second is None or best.load.copy_count == 1 or target.concurrency <= gate:
        return target
    because = f"{target.because}; at most {gate}, which are in flight at the peak rate: fewer copies do not carry it"
    return target._replace(concurrency=float(gate), because=because)


def decide_target(best: FeasibleCandidate, demand: Demand, predicted: PredictedTarget) -> Decision[float]:
    """Return the autoscaling target: what the predicted knee gives."""
    scaling, knee = demand.endpoint.scaling, predicted.knee
    at = counted(knee.concurrency, "concurrent request")
    source = "The gate" if knee.detector == "gate" else f"{scaling.target_utilization:.0%} of the predicted knee"
    because = (
        f"{source}, {at} ({knee.detector}); {predicted.because}. Peak traffic needs "
        f"{counted(_copies_at(best, predicted.concurrency), 'copy', 'copies')}; max_copies is {scaling.max_copies}."
    )
    return Decision(value=predicted.concurrency, because=because)


def _copies_at(best: FeasibleCandidate, target: float) -> int:
    """Return the copies that autoscaling asks for when the whole workload is in flight."""
    return math.ceil(best.load.concurrency_per_copy * best.load.copy_count / target)


def target_warnings(best: FeasibleCandidate, demand: Demand, predicted: PredictedTarget) -> tuple[str, ...]:
    """Warn when autoscaling will run more copies at the peak than the plan counts and prices."""
    most, planned = demand.endpoint.scaling.max_copies, best.load.copy_count
    wanted = min(most, _copies_at(best, predicted.concurrency))
    if wanted <= planned:
        return ()
    instances = instances_for(best.candidate, wanted)
    price = hourly_words(usd_per_hour(best.candidate.instance, instances, demand.discount), demand.discount)
    warning = f"{AT_PEAK}{wanted} copies instead of the planned {planned}: {price}."
    return (warning,)


def decide_dtype(best: FeasibleCandidate, demand: Demand) -> Decision[str]:
    """Return the type of weights and activations."""
    dtype, published = best.candidate.dtype, demand.architecture.dtype
    if demand.overrides.dtype != "auto":
        return Decision(value=dtype, because="The spec fixes it.")
    if dtype == published:
        return Decision(value=dtype, because=f"{demand.architecture.id} is published in {dtype}.")
    accelerator = best.candidate.instance.accelerator
    return Decision(value=dtype, because=f"The {accelerator} has no {published}, the published type.")


def decide_host_memory() -> Decision[int]:
    """Return the host memory that is reserved for one copy."""
    because = "Reserved small: SageMaker refuses values near the instance's memory."
    return Decision(value=_HOST_MEMORY_MB, because=because)


def cpu_cores_per_copy(best: FeasibleCandidate, pools: Sequence[str]) -> float:
    """Return the virtual CPUs reserved for one copy: half of its share of the host, an assumption.

    Of several pools that with the least: a component has one size, and more than its share there would leave
    accelerators without copies.

    Args:
        pools: The instance types, the planned one first; empty for that alone.
    """
    shares = [best.candidate.instance.vcpus / best.candidate.copies_per_instance]
    for instance in filter(None, map(find_instance, pools[1:])):
        copies = neuron.in_cores(instance).accelerator_count // best.candidate.degree
        shares.append(instance.vcpus / max(copies, 1))
    return min(shares) * SHARE_OF_CPUS


def _traffic(workload: WorkloadSpec) -> str:
    if workload.concurrency is not None:
        return counted(workload.concurrency, "concurrent request")
    return f"{workload.requests_per_second:g} requests per second"
