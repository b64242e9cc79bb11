"""What is said when no deployment satisfies everything: the best that can be reached, and what would have to give."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial.catalog import instances
from seatrial.errors import PlanError
from seatrial.plan.fitting import memory_of, missing_for_one
from seatrial.plan.parallelism import possible_degrees
from seatrial.plan.words import counted
from seatrial.predict.memory import weights_bytes
from seatrial.units import MS_PER_S, gib, tenths, usd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.errors import Problem
    from seatrial.plan.candidate import Excess, Loss, Miss, Stage
    from seatrial.plan.demand import Demand, Objective
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
_WHAT: dict[Stage, str] = {
    "budget": "no deployment that meets the SLO is within the budget",
    "price": "no deployment that meets the SLO has a known price",
    "copies": "no deployment can serve the workload",
    "slo": "no deployment is predicted to meet the SLO",
    "degree": "no allowed instance type has enough accelerators",
    "specifications": "no allowed instance type can be planned",
}


def no_deployment(loaded: LoadedSpec, demand: Demand, losses: Sequence[Loss]) -> PlanError:
    """Return the error for the losses that came furthest: the nearest of them tells what is missing."""
    reached = {loss.stage for loss in losses}
    stage = next(stage for stage in _LAST_QUESTION_FIRST if stage in reached)
    furthest = sorted((loss for loss in losses if loss.stage == stage), key=_nearness)
    nearest = furthest[0]
    if stage == "slo":
        return PlanError(_missed_objectives(loaded, furthest))
    if stage == "budget":
        return PlanError(_exceeded(loaded, excess, nearest) for excess in nearest.excesses)
    if stage == "memory":
        return _too_big(loaded, demand, nearest)
    message = f"{_WHAT[stage]}; the nearest is {_place(nearest)}: {nearest.because}"
    return PlanError([loaded.problem(nearest.field, _RULES[stage], message, nearest.hint or _hint(stage))])


def _nearness(loss: Loss) -> tuple[float, str, int]:
    return loss.gap, loss.instance_type, loss.degree


def _place(loss: Loss) -> str:
    return f"{loss.instance_type} with degree {loss.degree}"


def _hint(stage: Stage) -> str:
    if stage == "price":
        return "remove the budget, or allow an instance type with a known price"
    return "allow other instance types"


def _missed_objectives(loaded: LoadedSpec, losses: Sequence[Loss]) -> Iterator[Problem]:
    """Return a problem for each objective that nothing reaches; where some reach each, what the nearest lacks.

    The losses are those that miss something with a single request, nearest first; whatever fits is among them.
    """
    missed = {miss.objective: None for loss in losses for miss in loss.misses}
    reached = {objective: [found for loss in losses if (found := _miss(loss, objective))] for objective in missed}
    hopeless = [found for found in reached.values() if len(found) == len(losses)]
    for pairs in sorted(hopeless, key=lambda pairs: pairs[0][0].objective.path):
        yield _out_of_reach(loaded, *min(pairs, key=lambda pair: pair[0].predicted_ms))
    for miss in () if hopeless else losses[0].misses:
        message = (
            f"no deployment is predicted to meet every objective; the nearest is {_place(losses[0])}: "
            f"{tenths(miss.predicted_ms, grouped=True)} ms for a single request, bound "
            f"{miss.objective.bound_ms:,.12g} ms"
        )
        yield loaded.problem(miss.objective.path, "SEA205", message, _allow(miss))


def _miss(loss: Loss, objective: Objective) -> tuple[Miss, Loss] | None:
    return next(((miss, loss) for miss in loss.misses if miss.objective == objective), None)


def _out_of_reach(loaded: LoadedSpec, miss: Miss, loss: Loss) -> Problem:
    message = (
        f"no deployment is predicted to meet the SLO: the bound is {miss.objective.bound_ms:,.12g} ms, the best "
        f"{tenths(miss.predicted_ms, grouped=True)} ms, for a single request on {_place(loss)}"
    )
    return loaded.problem(miss.objective.path, "SEA205", message, _allow(miss))


def _allow(miss: Miss) -> str:
    """Return what the objective would have to allow, in its own unit."""
    if miss.objective.path[0] == "slo":
        return f"raise the bound to {math.ceil(miss.predicted_ms):,} ms, or allow faster instance types"
    return f"raise the bound to {math.ceil(miss.predicted_ms / MS_PER_S):,} s, or allow faster instance types"


def _exceeded(loaded: LoadedSpec, excess: Excess, loss: Loss) -> Problem:
    message = f"{_WHAT['budget']}; the nearest is {_place(loss)}: {excess.because}"
    if excess.field[0] != "budget":
        return loaded.problem(
            excess.field, "SEA206", message, "lower max_copies, or raise the environment's guard rail"
        )
    unit = {
        "usd_per_hour": "per hour",
        "usd_per_million_output_tokens": "per million output tokens",
        "blended_usd_per_million_tokens": "per million tokens, blended",
    }[excess.field[1]]
    enough = usd(math.ceil(excess.price * 100) / 100)
    hint = f"raise the budget to {enough} {unit}, relax the SLO, or allow cheaper instance types"
    return loaded.problem(excess.field, "SEA206", message, hint)


def _too_big(loaded: LoadedSpec, demand: Demand, nearest: Loss) -> PlanError:
    """SEA203 when the spec fixes the degree or a single instance type, else SEA202."""
    overrides, allowed = demand.overrides, loaded.endpoint.serving.instance_types or ()
    size = f"{gib(weights_bytes(demand.architecture, overrides.quantization))} of weights"
    lack = f"{gib(nearest.gap)} short on {counted(nearest.degree, 'accelerator')}"
    hint = _roomier(demand)
    if overrides.tensor_parallel_degree is not None or len(allowed) == 1:
        fixed = overrides.tensor_parallel_degree is not None
        field = ("serving", "overrides", "tensor_parallel_degree") if fixed else ("serving", "instance_types")
        message = f"{size} do not fit on {_place(nearest)}: {lack}. {nearest.because}"
        return PlanError([loaded.problem(field, "SEA203", message, hint)])
    message = f"{size} fit on no allowed instance type; the nearest is {_place(nearest)}: {lack}. {nearest.because}"
    return PlanError([loaded.problem(("serving", "instance_types"), "SEA202", message, hint)])


def _roomier(demand: Demand) -> str:
    """Name the cheapest instance types that hold the model as it is, and quantization where it is not used yet."""
    holding = [instance for instance in instances.every() if instance.link != "neuron" and _holds(demand, instance)]
    holding.sort(key=lambda instance: (instance.usd_per_hour or float("inf"), instance.instance_type))
    names = ", ".join(instance.instance_type for instance in holding[:4])
    advice = [f"allow a larger instance type ({names})"] if names else []
    if demand.overrides.quantization is None:
        smaller = gib(weights_bytes(demand.architecture, "fp8"))
        advice.append(f"set overrides.quantization: fp8 ({smaller} of weights)")
    return ", or ".join(advice) or "shorten workload.max_model_len"


def _holds(demand: Demand, instance: instances.Instance) -> bool:
    degrees = possible_degrees(demand.architecture, instance.accelerator_count)
    return any(missing_for_one(demand, memory_of(demand, instance, degree)) <= 0 for degree in degrees)
