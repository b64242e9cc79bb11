"""Makes the plan: reads what is asked, searches, and writes down every decision with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.plan.batching import settle_max_model_len
from seatrial.plan.calibrated import model_name
from seatrial.plan.copies import copies_replaced_at_once
from seatrial.plan.cost import cost_of
from seatrial.plan.document import Decision, Plan
from seatrial.plan.failure import no_deployment
from seatrial.plan.finding import search_for
from seatrial.plan.pareto import alternatives
from seatrial.plan.placement import (
    cpu_cores_per_copy,
    decide_copies_per_instance,
    decide_copy_count,
    decide_degree,
    decide_dtype,
    decide_host_memory,
    decide_instance_count,
    decide_target,
)
from seatrial.plan.ranking import rejections, why_best
from seatrial.plan.settled import Findings, curve_point, settle
from seatrial.predict.regime import regime_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.plan.search import Found
    from seatrial.plan.settled import Settled
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
    reading, found = search_for(loaded, accept_slo_miss=accept_slo_miss)
    if not found.ranked:
        raise no_deployment(loaded, reading.demand, found.losses)
    best = found.ranked[0]
    findings = Findings(
        loaded, reading.demand, reading.choice, best, reading.max_model_len, reading.batched_tokens, reading.warnings
    )
    return plan_of(findings, found)


def plan_of(findings: Findings, found: Found) -> Plan:
    """Return the plan of a deployment that was found, or that someone chose."""
    return _write_down(findings, settle(findings), found)


def _write_down(found: Findings, settled: Settled, search: Found) -> Plan:
    """Put the parts of the document together; nothing is decided here."""
    parts = (_identity(found), _size(found, settled, search), _limits(found, settled), _prediction(found, settled))
    fields = {name: value for part in parts for name, value in part.items()}
    goal = found.loaded.endpoint.objective
    rejected = rejections(search.ranked, search.losses, goal)
    return Plan.model_validate(
        {**fields, "pareto": alternatives(search.ranked), "rejected": rejected, "warnings": settled.warnings}
    )


def _identity(found: Findings) -> Mapping[str, object]:
    """Return what names the plan, its model and its engine."""
    endpoint, choice = found.loaded.endpoint, found.choice
    return {
        "endpoint": endpoint.name,
        "environment": found.loaded.environment.name,
        "spec_digest": found.loaded.digest,
        "model_name": model_name(endpoint),
        "architecture": found.demand.architecture.id,
        "engine": choice.engine,
        "engine_version": choice.version,
        "image": choice.image,
        "inference_ami_version": choice.ami_version,
        "quantization": found.demand.overrides.quantization,
        "dtype": decide_dtype(found.best, found.demand),
    }


def _size(found: Findings, settled: Settled, search: Found) -> Mapping[str, object]:
    """Return instances, copies and each copy's share of the host."""
    best, demand, scaling = found.best, found.demand, found.loaded.endpoint.scaling
    instance = best.candidate.instance
    because = why_best(search.ranked, search.considered, demand)
    return {
        "instance_type": Decision(value=instance.instance_type, because=because),
        "accelerators_per_instance": instance.accelerator_count,
        "instance_count": decide_instance_count(best, demand),
        "tensor_parallel_degree": decide_degree(best, demand),
        "copies_per_instance": decide_copies_per_instance(best),
        "copy_count": decide_copy_count(best, demand),
        "max_copies": scaling.max_copies,
        "max_instances": settled.max_instances,
        "copies_replaced_at_once": copies_replaced_at_once(scaling.min_copies, scaling.max_copies),
        "surge_instances": settled.surge,
        "cpu_cores_per_copy": cpu_cores_per_copy(best),
        "memory_min_mb": decide_host_memory(),
        "memory": best.candidate.memory,
        "cost": cost_of(
            instance,
            instance_count=best.instance_count,
            copies_per_instance=best.candidate.copies_per_instance,
            output_tok_s=best.load.output_tok_s,
            discount=demand.discount,
        ),
    }


def _limits(found: Findings, settled: Settled) -> Mapping[str, object]:
    """Return what the engine, the service and the trial are told to keep."""
    return {
        "max_model_len": settle_max_model_len(
            found.max_model_len, found.demand, found.best.candidate.memory, found.batched_tokens.value
        ),
        "max_num_seqs": settled.max_num_seqs,
        "max_num_batched_tokens": found.batched_tokens,
        "max_queued_requests": settled.max_queued,
        "startup_timeout_s": settled.startup,
        "download_timeout_s": settled.download,
        "target_concurrency_per_copy": decide_target(found.best, found.demand, settled.max_num_seqs.value),
        "gate_concurrency_per_copy": settled.gate,
        "concurrency_levels": settled.concurrency_levels,
    }


def _prediction(found: Findings, settled: Settled) -> Mapping[str, object]:
    """Return what the copy is predicted to do."""
    levels, gate = settled.concurrency_levels.value, found.best.load.concurrency_per_copy
    return {
        "curve": tuple(curve_point(settled.levels, level) for level in levels),
        "band": settled.band,
        "regime": regime_of(settled.levels.copy, gate, levels),
    }
