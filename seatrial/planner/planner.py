"""Makes the plan in typed stages: resolve the requirements, search, lay out the best, derive limits, predict.

LoadedSpec -> Resolved -> SearchResult -> Chosen -> Layout, ServingLimits, CopyPrediction -> Plan
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from seatrial.documents.plan import Decision, Plan
from seatrial.locks.guard_rails import created_problems
from seatrial.planner.calibration import model_name
from seatrial.planner.decisions.derived_limits import Chosen, derive_limits, predict_copy
from seatrial.planner.decisions.placement import lay_out
from seatrial.planner.decisions.proposals import propose_precisions, propose_probe, propose_safer
from seatrial.planner.recipe_limits import stored_bytes
from seatrial.planner.resolve import search_for
from seatrial.planner.search.best_first import alternative, alternatives, rejections, unpriced_candidates, why_best
from seatrial.planner.search.candidate import band_for
from seatrial.planner.search.evaluate import chance_of
from seatrial.planner.search.fitting import pool_problems
from seatrial.planner.search.no_deployment import no_deployment
from seatrial.planner.search.sizing import settled
from seatrial_base.catalog import neuron
from seatrial_base.errors import PlanError
from seatrial_base.units import GIB, counted, gib

if TYPE_CHECKING:
    from seatrial.documents.plan import Cost
    from seatrial.planner.resolve import Resolved
    from seatrial.planner.search.best_first import SearchResult
    from seatrial.specs.endpoint import EndpointSpec
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.instances import Instance


def make_plan(loaded: LoadedSpec, *, accept_slo_miss: bool = False, allow_unknown_price: bool = False) -> Plan:
    """Plan one endpoint in one environment; equal input gives an equal plan.

    Args:
        accept_slo_miss: When no deployment is predicted to meet the SLO's latencies, plan without them all the same
            and leave the judgement to the trial; the plan's warnings say so.
        allow_unknown_price: Choose also among instance types whose price is unknown and that the spec does not name.

    Raises:
        PlanError: When the model is unknown or nothing satisfies the spec; the nearest deployment is named. SEA111 when
            what would be created breaks a guard rail by what does not depend on the deployment, such as a pool.
    """
    resolved, result = search_for(loaded, accept_slo_miss=accept_slo_miss, allow_unknown_price=allow_unknown_price)
    if not result.ranked:
        raise no_deployment(loaded, resolved.demand, result.rejections)
    plan = plan_of(loaded, resolved, result)
    # Of the finished plan: what it creates beside the deployment, such as pools, is not known before.
    if problems := created_problems(plan, loaded):
        raise PlanError(problems)
    return plan


def plan_of(loaded: LoadedSpec, resolved: Resolved, result: SearchResult) -> Plan:
    """Return the plan of the best deployment that was found, or of the one that someone chose.

    Raises:
        PlanError: SEA110, SEA212 for each instance pool that can't hold a copy of it.
    """
    chosen = Chosen(loaded, resolved, settled(result.ranked[0], resolved.demand))
    layout, derived = lay_out(chosen.best, resolved.demand), derive_limits(chosen)
    layout = layout.model_copy(update={"cost": with_session(layout.cost, loaded)})
    if problems := [*pool_problems(loaded, resolved.demand, layout)]:
        raise PlanError(problems)
    endpoint, engine = loaded.endpoint, resolved.choice
    band = band_for(resolved.demand, chosen.best.candidate)
    chance = chance_of(endpoint, chosen.best.candidate, chosen.best.load, band)
    # The limits of the copy are known now, and they may leave it less room than the search counted.
    predicted = predict_copy(chosen, derived)
    if chance is not None and predicted.carried_chance is not None:
        chance = min(chance, predicted.carried_chance)
    volume = decide_volume(
        chosen.best.candidate.instance,
        stored_bytes(endpoint, resolved.demand.architecture),
        layout.copies_per_instance.value,
    )
    because = why_best(result.ranked, result.considered, resolved.demand)
    instance_type = Decision[str](value=result.ranked[0].candidate.instance.instance_type, because=because)
    return Plan(
        **dict(layout),
        **dict(derived.limits),
        **dict(predicted),
        endpoint=endpoint.name,
        environment=loaded.environment.name,
        spec_digest=loaded.digest,
        model_name=model_name(endpoint),
        architecture=resolved.demand.architecture.id,
        engine=engine.engine,
        engine_version=engine.version,
        image=engine.image,
        inference_ami_version=engine.ami_version,
        instance_type=instance_type,
        accelerators_per_instance=neuron.device_count(chosen.best.candidate.instance),
        max_copies=endpoint.scaling.max_copies,
        quantization=resolved.demand.quantization,
        pareto=alternatives(result.ranked),
        unpriced=tuple(alternative(each) for each in unpriced_candidates(resolved.demand, result)),
        chance=None if chance is None else round(chance, 3),
        safer=None if chance is None else propose_safer(resolved.demand, result, chance),
        probe=propose_probe(resolved.demand, result),
        proposals=propose_precisions(resolved.demand, resolved.allowed, chosen.best),
        rejected=rejections(result.ranked, result.rejections, endpoint.objective.goal),
        volume_size_gb=volume,
        volume_kms_key_arn=loaded.environment.kms_key_arn if volume is not None else None,
        hosting_kind=decide_hosting_kind(endpoint),
    )


def with_session(cost: Cost, loaded: LoadedSpec) -> Cost:
    """Return a cost with that of a session: the output tokens of one at the price of a million."""
    talks, per_million = loaded.conversations, cost.usd_per_million_output_tokens
    if talks is None or per_million is None:
        return cost
    answers = talks.lengths.output.mean * talks.turns.mean * loaded.dataset.conversations_per_session
    return cost.model_copy(update={"usd_per_session": round(per_million * answers / 1_000_000, 6)})


_IN_VARIANT = "The model is in the production variant: one copy on each instance"


def decide_hosting_kind(endpoint: EndpointSpec) -> Decision[Literal["single_model", "asynchronous"]] | None:
    """Return the kind of an endpoint without inference components; `None` for one with them."""
    if endpoint.hosting.kind == "inference_component":
        return None
    if endpoint.hosting.asynchronous is None:
        return Decision(value="single_model", because=f"{_IN_VARIANT}.")
    because = f"{_IN_VARIANT}. Requests wait in a queue, and answers are written to S3."
    return Decision(value="asynchronous", because=because)


SMALLEST_GB, LARGEST_GB = 30, 512  # 30 is the size that the service gives by itself; 512 is the API's bound
_IMAGE_GB = 30  # an assumption, large on purpose: an image unpacked, and what the compiler caches
_STEP_GB = 10


def decide_volume(instance: Instance, weights_bytes: int, copies_per_instance: int) -> Decision[int] | None:
    """Return the size of an instance's volume, in GiB (the API's `VolumeSizeInGB`).

    `None` for an instance type with local NVMe, where the service puts everything, and refuses a volume size.
    """
    if instance.nvme_gb:
        return None
    wanted = 2 * weights_bytes * copies_per_instance / GIB + _IMAGE_GB
    size = min(max(SMALLEST_GB, math.ceil(wanted / _STEP_GB) * _STEP_GB), LARGEST_GB)
    copies = counted(copies_per_instance, "copy", "copies")
    because = (
        f"{instance.instance_type} has no local disk: twice {gib(weights_bytes)} of weights for {copies}, and "
        f"{_IMAGE_GB} GiB for the image (assumed); {SMALLEST_GB} to {LARGEST_GB}."
    )
    return Decision(value=size, because=because)
