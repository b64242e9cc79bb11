"""What is said when no deployment satisfies everything: the nearest one, and by how much it misses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial.catalog import instances
from seatrial.errors import PlanError
from seatrial.plan.memory import fit_memory, missing_bytes, weights_bytes
from seatrial.plan.parallelism import possible_degrees
from seatrial.plan.words import counted
from seatrial.units import gib, usd

if TYPE_CHECKING:
    from seatrial.plan.candidate import Loss, Stage
    from seatrial.plan.demand import Demand
    from seatrial.spec.load import LoadedSpec

_LAST_QUESTION_FIRST: tuple[Stage, ...] = ("budget", "price", "copies", "slo", "memory", "degree", "specifications")
_RULES: dict[Stage, str] = {
    "budget": "SEA206",
    "price": "SEA207",
    "copies": "SEA205",
    "slo": "SEA205",
    "memory": "SEA202",
    "degree": "SEA204",
    "specifications": "SEA210",
}


def no_deployment(loaded: LoadedSpec, demand: Demand, losses: list[Loss]) -> PlanError:
    """Return the error for the losses that came furthest: the nearest of them tells what is missing."""
    reached = {loss.stage for loss in losses}
    stage = next(stage for stage in _LAST_QUESTION_FIRST if stage in reached)
    nearest = min((loss for loss in losses if loss.stage == stage), key=lambda loss: (loss.gap, loss.instance_type))
    if stage == "memory":
        return _too_big(loaded, demand, nearest)
    where = f"{nearest.instance_type} with degree {nearest.degree}"
    message = f"{_WHAT[stage]}; the nearest is {where}: {nearest.because}"
    hint = nearest.hint or _hint(nearest)
    return PlanError([loaded.problem(nearest.field, _RULES[stage], message, hint)])


_WHAT: dict[Stage, str] = {
    "budget": "no deployment that keeps the objectives is within the budget",
    "price": "no deployment that keeps the objectives has a known price",
    "copies": "no deployment takes the workload",
    "slo": "no deployment is predicted to meet the SLO",
    "degree": "no allowed instance type has enough accelerators",
    "specifications": "no allowed instance type can be planned",
}


def _hint(loss: Loss) -> str:
    if loss.stage == "budget" and loss.usd_per_hour is not None and loss.field[0] == "budget":
        enough = usd(math.ceil(loss.gap * 100) / 100)
        return f"allow {enough} per hour, loosen the objectives, or allow cheaper instance types"
    if loss.stage == "budget":
        return "lower max_copies, or raise the environment's guard rail"
    if loss.stage == "price":
        return "remove the budget, or allow an instance type with a known price"
    return "allow other instance types"


def _too_big(loaded: LoadedSpec, demand: Demand, nearest: Loss) -> PlanError:
    """SEA203 when the spec fixes the degree or a single instance type, else SEA202."""
    overrides, allowed = demand.overrides, loaded.endpoint.serving.instance_types or ()
    size = f"{gib(weights_bytes(demand.architecture, overrides.quantization))} of weights"
    where = f"{nearest.instance_type} with degree {nearest.degree}"
    lack = f"{gib(nearest.gap)} are missing over {counted(nearest.degree, 'accelerator')}"
    hint = _roomier(demand)
    if overrides.tensor_parallel_degree is not None or len(allowed) == 1:
        fixed = overrides.tensor_parallel_degree is not None
        field = ("serving", "overrides", "tensor_parallel_degree") if fixed else ("serving", "instance_types")
        message = f"{size} do not fit on {where}: {lack}. {nearest.because}"
        return PlanError([loaded.problem(field, "SEA203", message, hint)])
    message = f"{size} fit on no allowed instance type; the nearest is {where}: {lack}. {nearest.because}"
    return PlanError([loaded.problem(("serving", "instance_types"), "SEA202", message, hint)])


def _roomier(demand: Demand) -> str:
    """Name the cheapest instance types that hold the model as it is, and quantization where it is not used yet."""
    holding = [instance for instance in instances.every() if instance.link != "neuron" and _holds(demand, instance)]
    holding.sort(key=lambda instance: (instance.usd_per_hour or float("inf"), instance.instance_type))
    names = ", ".join(instance.instance_type for instance in holding[:4])
    advice = [f"allow an instance type that holds it ({names})"] if names else []
    if demand.overrides.quantization is None:
        smaller = gib(weights_bytes(demand.architecture, "fp8"))
        advice.append(f"set overrides.quantization: fp8 ({smaller} of weights)")
    return ", or ".join(advice) or "shorten max_model_len"


def _holds(demand: Demand, instance: instances.Instance) -> bool:
    degrees = possible_degrees(demand.architecture, instance.accelerator_count)
    tokens = demand.architecture.cached_tokens(demand.max_model_len)
    quantization = demand.overrides.quantization
    fits = (
        fit_memory(
            demand.architecture,
            instance,
            demand.engine,
            degree=degree,
            quantization=quantization,
            tokens=demand.tokens,
        )
        for degree in degrees
    )
    return any(missing_bytes(fit, tokens) <= 0 for fit in fits)
