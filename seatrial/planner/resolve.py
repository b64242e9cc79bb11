"""Resolves what is asked: the model, the engine and its image, the instance types, the demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.planner.calibration import read_calibrated
from seatrial.planner.decisions.batching import choose_batched_tokens, choose_max_model_len
from seatrial.planner.engine import choose_engine
from seatrial.planner.inputs import allowed_instances, arrivals_of, check_model_fields
from seatrial.planner.nearest_recipe import recipe_engine, refuse_recipe
from seatrial.planner.search.capacity import trial_protocol
from seatrial.planner.search.demand import Demand, read_objectives
from seatrial.planner.speculation import speculation_of
from seatrial.specs.architecture import read_architecture

if TYPE_CHECKING:
    from seatrial.documents.plan import Decision
    from seatrial.planner.engine import EngineChoice
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.instances import Instance


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a spec and its environment ask for, resolved before anything is searched.

    Attributes:
        demand: What every candidate is compared with.
        choice: The engine.
        allowed: Instance types that may be used.
        max_model_len: The longest request that a deployment must hold, in tokens.
        batched_tokens: Prompt tokens of one iteration.
        warnings: What was said on the way.
    """

    demand: Demand
    choice: EngineChoice
    allowed: tuple[Instance, ...]
    max_model_len: Decision[int]
    batched_tokens: Decision[int]
    warnings: tuple[str, ...]


def resolve(loaded: LoadedSpec) -> Resolved:
    """Resolve what is asked.

    Raises:
        PlanError: When the model, the engine's image or every instance type is unknown, or the recipe can't be served.
    """
    architecture = read_architecture(loaded)
    check_model_fields(loaded, architecture)
    choice = choose_engine(loaded)
    allowed, unknown = allowed_instances(loaded)
    refuse_recipe(loaded, choice, allowed)
    endpoint = loaded.endpoint
    overrides = endpoint.serving.overrides
    calibrated, misfit = read_calibrated(loaded, choice)
    max_model_len = choose_max_model_len(endpoint, loaded.lengths, architecture, compiled=choice.facts.compiled_shapes)
    batched_tokens = choose_batched_tokens(endpoint, loaded.lengths, choice.facts, max_model_len.value)
    demand = Demand(
        endpoint=endpoint,
        rails=loaded.environment.guard_rails,
        architecture=architecture,
        engine=choice.facts,
        max_model_len=max_model_len.value,
        batched_tokens=batched_tokens.value,
        objectives=read_objectives(endpoint),
        protocol=trial_protocol(endpoint.trial),
        lengths=loaded.lengths,
        speculation=speculation_of(overrides.speculative_decoding, architecture),
        calibrated=calibrated,
        recipe_engine=recipe_engine(choice),
        arrivals=arrivals_of(loaded),
        purchase=loaded.environment.purchase,
    )
    return Resolved(demand, choice, allowed, max_model_len, batched_tokens, (*unknown, *misfit))
