"""The error when no deployment satisfies everything: the best that can be reached, and what would have to give."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from seatrial.planner.predict.memory import weights_bytes
from seatrial.planner.search.candidate import STAGES
from seatrial.planner.search.fitting import degrees_on, memory_of, missing_for_one
from seatrial.planner.search.sizing import bounds_money
from seatrial.specs.prices import priced
from seatrial_base.catalog import neuron
from seatrial_base.catalog.instances import INSTANCES, find_instance
from seatrial_base.errors import PlanError
from seatrial_base.units import MS_PER_S, counted, gib, tenths, usd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.planner.search.candidate import Excess, Miss, RejectedCandidate, Stage
    from seatrial.planner.search.demand import Demand
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.findings import Finding


_RULES: dict[Stage, str] = {
    "budget": "SEA206",
    "price": "SEA207",
    "copies": "SEA205",
    "slo": "SEA205",
    "memory": "SEA202",
    "start": "SEA254",
    "degree": "SEA204",
    "specifications": "SEA210",
}
_AS_SECONDS = 10  # times the bound: what is so far from it was meant in seconds, where a thousand times it is reached
_WHAT: dict[Stage, str] = {
    "budget": "no deployment that meets the SLO is within the budget",
    "price": "no deployment that meets the SLO has a known price",
    "copies": "no deployment can serve the workload",
    "slo": "no deployment is predicted to meet the SLO",
    "start": "the engine starts on no allowed deployment that holds the model",
    "degree": "no allowed instance type has enough accelerators",
    "specifications": "no allowed instance type can be planned",
}


def no_deployment(loaded: LoadedSpec, demand: Demand, rejections: Sequence[RejectedCandidate]) -> PlanError:
    """Return the error for the rejections that came furthest: the nearest of them says what is missing.

    Where a guard rail narrows the instance types, each hint says so.
    """
    types = loaded.rails.instance_types
    error = _furthest(loaded, demand, rejections)
    if not loaded.has_spec:
        assumed = f"max_copies {demand.endpoint.scaling.max_copies} is assumed"
        hint = f"{assumed}: --save FILE writes a spec, where you set it"
        error = PlanError(replace(each, hint=hint) if "max_copies" in each.field else each for each in error.problems)
    if types is None:
        return error
    allowed_words = f"{loaded.environment.name} allows only {', '.join(types)} ({loaded.set_by('instance_types')})"
    return PlanError(
        replace(each, hint=f"{each.hint}; {allowed_words}" if each.hint else allowed_words) for each in error.problems
    )


def _furthest(loaded: LoadedSpec, demand: Demand, rejections: Sequence[RejectedCandidate]) -> PlanError:
    reached = {rejection.stage for rejection in rejections}
    # What came furthest lacks the least, so its stage is what to change.
    stage = next(stage for stage in reversed(STAGES) if stage in reached)
    furthest = sorted(
        (rejection for rejection in rejections if rejection.stage == stage),
        key=lambda rejection: (rejection.gap, rejection.instance_type, rejection.degree),
    )
    nearest = furthest[0]
    if stage == "slo":
        return PlanError(_missed_objectives(loaded, furthest))
    if stage == "budget":
        return PlanError(
            _exceeded(loaded, excess, each) for each in _one_per_bound(furthest) for excess in each.excesses
        )
    if stage == "memory":
        return _too_big(loaded, demand, nearest)
    message = f"{_WHAT[stage]}; the nearest is {_place(nearest)}: {nearest.because}"
    return PlanError(
        [loaded.problem(nearest.field, _RULES[stage], message, nearest.hint or _hint(stage, demand, nearest))]
    )


def _one_per_bound(rejections: Sequence[RejectedCandidate]) -> Iterator[RejectedCandidate]:
    """Yield the nearest, and of those that keep what it exceeds the nearest: another bound refuses that one."""
    nearest = rejections[0]
    exceeded = {excess.field for excess in nearest.excesses}
    yield nearest
    keeping = (each for each in rejections if not exceeded & {excess.field for excess in each.excesses})
    yield from islice(keeping, 1)


def _place(rejection: RejectedCandidate) -> str:
    return f"{rejection.instance_type} with degree {rejection.degree}"


def _hint(stage: Stage, demand: Demand, nearest: RejectedCandidate) -> str:
    if stage == "start":
        return "allow other instance types or degrees, set another engine_version, or take weights of another format"
    if stage != "price":
        return "allow other instance types"
    if bounds_money(demand):
        return "remove the budget, or allow an instance type with a known price"
    known = find_instance(nearest.instance_type)
    guess = known.estimated_usd_per_hour if known else None
    estimate = "" if guess is None else f"; estimated {usd(guess)} per hour for an instance"
    return f"plan with --allow-unknown-price, or take weights of fewer bits{estimate}"


def _missed_objectives(loaded: LoadedSpec, rejections: Sequence[RejectedCandidate]) -> Iterator[Finding]:
    """Return a problem for each objective that nothing reaches; where some reach each, what the nearest lacks.

    The rejections are those that miss something with a single request, nearest first; whatever fits is among them.
    """
    missed = {miss.objective: None for rejection in rejections for miss in rejection.misses}
    reached = {
        objective: [(miss, each) for each in rejections for miss in each.misses if miss.objective == objective]
        for objective in missed
    }
    hopeless = [pairs_of for pairs_of in reached.values() if len(pairs_of) == len(rejections)]
    for pairs in sorted(hopeless, key=lambda pairs: pairs[0][0].objective.path):
        miss, rejection = min(pairs, key=lambda pair: pair[0].predicted_ms)
        message = (
            f"no deployment is predicted to meet the SLO: the bound is {miss.objective.bound_ms:,.12g} ms, the best "
            f"{tenths(miss.predicted_ms, grouped=True)} ms, for a single request on {_place(rejection)}"
        )
        yield loaded.problem(miss.objective.path, "SEA205", message, _allow(miss))
    for miss in () if hopeless else rejections[0].misses:
        message = (
            f"no deployment is predicted to meet every objective; the nearest is {_place(rejections[0])}: "
            f"{tenths(miss.predicted_ms, grouped=True)} ms for a single request, bound "
            f"{miss.objective.bound_ms:,.12g} ms"
        )
        yield loaded.problem(miss.objective.path, "SEA205", message, _allow(miss))


def _allow(miss: Miss) -> str:
    """Return what the objective would have to allow, in its own unit."""
    if miss.objective.path[0] == "slo":
        bound_ms = miss.objective.bound_ms
        meant = bound_ms * MS_PER_S >= miss.predicted_ms >= _AS_SECONDS * bound_ms
        unit = f"; bounds are in ms: {bound_ms:,.12g} s is {bound_ms * MS_PER_S:,.12g}" if meant else ""
        return f"raise the bound to {math.ceil(miss.predicted_ms):,} ms, or allow faster instance types{unit}"
    return f"raise the bound to {math.ceil(miss.predicted_ms / MS_PER_S):,} s, or allow faster instance types"


def _exceeded(loaded: LoadedSpec, excess: Excess, rejection: RejectedCandidate) -> Finding:
    known = find_instance(rejection.instance_type)
    instance = None if known is None else priced(known, loaded)
    unsure = "" if instance is None or instance.is_offered else f", not known to be offered in {instance.region}"
    if instance is not None and instance.has_other_price:
        unsure += f" (at {instance.price_region}'s price, since this region's is not known)"
    message = f"{_WHAT['budget']}; the nearest is {_place(rejection)}{unsure}: {excess.because}"
    if excess.field[0] == "scaling":
        with_rail = f"{message.removesuffix('.')} ({loaded.set_by('usd_per_hour')})"
        return loaded.problem(
            excess.field, "SEA206", with_rail, "lower max_copies, or raise the environment's guard rail"
        )
    unit = {
        "usd_per_hour": "per hour",
        "usd_per_million_output_tokens": "per million output tokens",
        "blended_usd_per_million_tokens": "per million tokens, blended",
    }[excess.field[1]]
    enough = usd(math.ceil(excess.price * 100) / 100)
    if excess.field[0] == "guard_rails":
        with_rail = f"{message.removesuffix('.')} ({loaded.set_by(excess.field[1])})"
        hint = f"relax the SLO, allow cheaper instance types, or raise the environment's guard rail to {enough} {unit}"
        return loaded.problem(("serving", "instance_types"), "SEA206", with_rail, hint)
    hint = f"raise the budget to {enough} {unit}, relax the SLO, or allow cheaper instance types"
    return loaded.problem(excess.field, "SEA206", message, hint)


def _too_big(loaded: LoadedSpec, demand: Demand, nearest: RejectedCandidate) -> PlanError:
    """SEA203 when the spec fixes the degree or a single instance type, else SEA202."""
    overrides, allowed = demand.overrides, loaded.endpoint.serving.instance_types or ()
    size = f"{gib(weights_bytes(demand.architecture, demand.quantization))} of weights"
    lack = f"{gib(nearest.gap)} short on {counted(nearest.degree, 'accelerator')}"
    compiled = demand.engine.compiled_shapes
    seen = (neuron.in_cores(each) for each in INSTANCES.rows if neuron.is_neuron(each) == compiled)
    holding = [
        instance
        for instance in seen
        if any(
            missing_for_one(demand, memory_of(demand, instance, degree)) <= 0
            for degree in degrees_on(demand.architecture, instance)
        )
    ]
    holding.sort(key=lambda instance: (instance.usd_per_hour or float("inf"), instance.instance_type))
    names = ", ".join(instance.instance_type for instance in holding[:4])
    advice = [f"allow a larger instance type ({names})"] if names else []
    if demand.quantization is None and not compiled:
        smaller = gib(weights_bytes(demand.architecture, "fp8"))
        advice.append(f"set overrides.quantization: fp8 ({smaller} of weights)")
    hint = ", or ".join(advice) or "shorten workload.max_model_len"
    if overrides.tensor_parallel_degree is not None or len(allowed) == 1:
        fixed = overrides.tensor_parallel_degree is not None
        field = ("serving", "overrides", "tensor_parallel_degree") if fixed else ("serving", "instance_types")
        message = f"{size} do not fit on {_place(nearest)}: {lack}. {nearest.because}"
        return PlanError([loaded.problem(field, "SEA203", message, hint)])
    message = f"{size} fit on no allowed instance type; the nearest is {_place(nearest)}: {lack}. {nearest.because}"
    return PlanError([loaded.problem(("serving", "instance_types"), "SEA202", message, hint)])
