"""Makes the plan: reads what is asked, searches, and writes down every decision with its reason."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.plan.batching import (
    batch_limit_warnings,
    choose_batched_tokens,
    choose_levels,
    choose_max_model_len,
    choose_max_num_seqs,
    choose_max_queued,
)
from seatrial.plan.cautions import checkpoint_warnings, price_warnings, surge_warnings
from seatrial.plan.copies import capacity, copies_replaced_at_once
from seatrial.plan.cost import cost_of
from seatrial.plan.demand import Demand, read_objectives
from seatrial.plan.document import CurvePoint, Decision, Plan
from seatrial.plan.engine import choose_engine
from seatrial.plan.failure import no_deployment
from seatrial.plan.latency import predict
from seatrial.plan.memory import weights_bytes
from seatrial.plan.placement import (
    cpu_cores_per_copy,
    decide_copies_per_instance,
    decide_copy_count,
    decide_degree,
    decide_dtype,
    decide_gate,
    decide_host_memory,
    decide_instance_count,
    decide_surge,
    decide_target,
)
from seatrial.plan.ranking import best_first, rejections, why_best
from seatrial.plan.reading import allowed_instances, check_model_fields, read_architecture
from seatrial.plan.search import search
from seatrial.plan.timeouts import download_timeout, startup_timeout, timeout_warnings
from seatrial.plan.uncertainty import predict_uncertainty

if TYPE_CHECKING:
    from seatrial.plan.candidate import Loss, Offer
    from seatrial.plan.engine import EngineChoice
    from seatrial.plan.latency import Copy
    from seatrial.spec.load import LoadedSpec


def make_plan(loaded: LoadedSpec, *, accept_slo_miss: bool = False) -> Plan:
    """Plan one endpoint in one environment; equal input gives an equal plan.

    Args:
        loaded: What is asked for.
        accept_slo_miss: When no deployment is predicted to meet the SLO's latencies, plan without them all the same
            and leave the judgement to the trial; the plan's warnings say so.

    Raises:
        PlanError: When the model is unknown or nothing satisfies the spec; the nearest deployment is named.
    """
    architecture = read_architecture(loaded)
    check_model_fields(loaded, architecture)
    choice = choose_engine(loaded)
    allowed, unknown = allowed_instances(loaded)
    workload, overrides = loaded.endpoint.workload, loaded.endpoint.serving.overrides
    max_model_len = choose_max_model_len(overrides, workload, architecture)
    batched_tokens = choose_batched_tokens(overrides, workload, choice.facts)
    demand = Demand(
        endpoint=loaded.endpoint,
        rails=loaded.environment.guard_rails,
        architecture=architecture,
        engine=choice.facts,
        max_model_len=max_model_len.value,
        batched_tokens=batched_tokens.value,
        objectives=read_objectives(loaded.endpoint),
    )
    offers, losses = search(demand, allowed)
    if not offers and accept_slo_miss:
        unknown += (f"SEA205, accepted: {no_deployment(loaded, demand, losses).problems[0].message}",)
        demand = replace(demand, objectives=demand.objectives[-1:], slo_miss_accepted=True)
        offers, losses = search(demand, allowed)
    if not offers:
        raise no_deployment(loaded, demand, losses)
    ranked = best_first(offers, loaded.endpoint.objective)
    found = _Findings(loaded, demand, choice, tuple(ranked), tuple(losses), max_model_len, batched_tokens, unknown)
    return _write_down(found, _settle(found))


@dataclass(frozen=True, slots=True)
class _Findings:
    loaded: LoadedSpec
    demand: Demand
    choice: EngineChoice
    ranked: tuple[Offer, ...]
    losses: tuple[Loss, ...]
    max_model_len: Decision[int]
    batched_tokens: Decision[int]
    warnings: tuple[str, ...]

    @property
    def best(self) -> Offer:
        return self.ranked[0]


@dataclass(frozen=True, slots=True)
class _Settled:
    """What follows from the chosen deployment."""

    copy: Copy
    max_num_seqs: Decision[int]
    max_queued: Decision[int]
    gate: Decision[int]
    max_instances: int
    surge: Decision[int]
    levels: Decision[tuple[int, ...]]
    startup: Decision[int]
    download: Decision[int]
    uncertainty: float
    warnings: tuple[str, ...]


def _settle(found: _Findings) -> _Settled:
    best, endpoint, demand = found.best, found.loaded.endpoint, found.demand
    overrides, memory = demand.overrides, best.candidate.memory
    uncertainty, unfitted = predict_uncertainty(
        demand.engine,
        found.choice.version.value,
        demand.architecture,
        best.candidate.instance,
        overrides.quantization,
    )
    batch = choose_max_num_seqs(overrides, memory, best.capacity, uncertainty)
    copy = replace(best.candidate.copy, max_num_seqs=batch.value)
    timeout = demand.objectives[-1]
    in_time = capacity(copy, (timeout,))
    gate = decide_gate(best, demand)
    most = math.ceil(endpoint.scaling.max_copies / best.candidate.copies_per_instance)
    surge = decide_surge(best, demand)
    size = weights_bytes(demand.architecture, overrides.quantization)
    startup, download = startup_timeout(endpoint.model, size), download_timeout(endpoint.model, size)
    return _Settled(
        copy=copy,
        max_num_seqs=batch,
        max_queued=choose_max_queued(overrides, batch.value, in_time, endpoint.trial.request_timeout_s),
        gate=gate,
        max_instances=most,
        surge=surge,
        levels=choose_levels(endpoint.trial.concurrency_levels, batch.value, gate.value),
        startup=startup,
        download=download,
        uncertainty=uncertainty,
        warnings=(
            *found.warnings,
            *found.choice.warnings,
            *((unfitted,) if unfitted else ()),
            *checkpoint_warnings(demand.architecture, overrides.quantization),
            *batch_limit_warnings(overrides, memory),
            *timeout_warnings(startup, download),
            *price_warnings(best.candidate.instance, found.loaded.environment.region),
            *surge_warnings(best.candidate.instance, most, surge.value, demand.rails),
        ),
    )


def _write_down(found: _Findings, settled: _Settled) -> Plan:
    """Fill in the document: one field a line, nothing is decided here."""
    loaded, best, demand, choice = found.loaded, found.best, found.demand, found.choice
    endpoint, candidate, instance = loaded.endpoint, best.candidate, best.candidate.instance
    copies_per_instance = candidate.copies_per_instance
    return Plan(
        endpoint=endpoint.name,
        environment=loaded.environment.name,
        spec_digest=loaded.digest,
        model_name=endpoint.model.hub_id or endpoint.model.jumpstart_id or endpoint.name,
        architecture=demand.architecture.id,
        engine=choice.engine,
        engine_version=choice.version,
        image=choice.image,
        inference_ami_version=choice.ami_version,
        instance_type=Decision(
            value=instance.instance_type, because=why_best(list(found.ranked), endpoint.objective, demand.kept)
        ),
        accelerators_per_instance=instance.accelerator_count,
        instance_count=decide_instance_count(best),
        tensor_parallel_degree=decide_degree(best, demand),
        copies_per_instance=decide_copies_per_instance(best),
        copy_count=decide_copy_count(best, demand),
        max_copies=endpoint.scaling.max_copies,
        max_instances=settled.max_instances,
        copies_replaced_at_once=copies_replaced_at_once(endpoint.scaling.min_copies, endpoint.scaling.max_copies),
        surge_instances=settled.surge,
        max_model_len=found.max_model_len,
        max_num_seqs=settled.max_num_seqs,
        max_num_batched_tokens=found.batched_tokens,
        max_queued_requests=settled.max_queued,
        dtype=decide_dtype(best, demand),
        quantization=demand.overrides.quantization,
        cpu_cores_per_copy=cpu_cores_per_copy(best),
        memory_min_mb=decide_host_memory(),
        startup_timeout_s=settled.startup,
        download_timeout_s=settled.download,
        target_concurrency_per_copy=decide_target(best, demand, settled.max_num_seqs.value),
        gate_concurrency_per_copy=settled.gate,
        concurrency_levels=settled.levels,
        memory=candidate.memory,
        curve=tuple(_rounded(predict(settled.copy, level)) for level in settled.levels.value),
        uncertainty=settled.uncertainty,
        cost=cost_of(
            instance,
            instance_count=best.instance_count,
            copies_per_instance=copies_per_instance,
            output_tok_s=best.load.output_tok_s,
        ),
        rejected=rejections(list(found.ranked), found.losses, endpoint.objective),
        warnings=settled.warnings,
    )


def _rounded(point: CurvePoint) -> CurvePoint:
    """Two decimals are more than the prediction is worth, and keep the lock readable."""
    numbers = ("output_tok_s", "ttft_ms", "tpot_ms", "e2e_latency_ms", "ms_per_token")
    return point.model_copy(update={name: round(getattr(point, name), 2) for name in numbers})
