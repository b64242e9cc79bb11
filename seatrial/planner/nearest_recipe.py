"""Refuses a recipe that can't be served, and names the nearest one that can."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from seatrial.planner.engine import choose_engine
from seatrial.planner.inputs import allowed_instances
from seatrial.planner.predict.memory import weights_bytes
from seatrial.planner.quantized_weights import compiled_refusals, weights_refusals
from seatrial.planner.recipe_limits import (
    RecipeEngine,
    RecipeRefusal,
    accelerator_refusals,
    build_refusal,
    engine_refusals,
)
from seatrial.specs.architecture import read_architecture
from seatrial.specs.load import with_recipe
from seatrial.specs.optimization import SPECULATIONS, WEIGHTS
from seatrial.specs.recipe import parse_recipe, recipe_name
from seatrial_base.catalog.engine_versions import read_version
from seatrial_base.errors import PlanError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.planner.engine import EngineChoice
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.optimization import OptimizationSpec, Recipe
    from seatrial_base.catalog.instances import Instance
    from seatrial_base.findings import Finding

_NEEDS_NOTHING = {WEIGHTS: "fp8", SPECULATIONS: "ngram"}  # of each kind, what needs neither weights nor a draft


def recipe_engine(choice: EngineChoice) -> RecipeEngine:
    """Return the engine that a recipe is held against."""
    version = read_version(choice.option.engine, choice.version.value)
    return RecipeEngine(choice.option.name, choice.option.title, version)


def refuse_recipe(loaded: LoadedSpec, choice: EngineChoice, allowed: Sequence[Instance]) -> None:
    """Refuse a recipe that the engine, or every allowed instance type, can't run; each with the nearest that runs.

    Raises:
        PlanError: SEA230 and SEA232 for weights that are others by their config.json, SEA233 for the engine, SEA234 for
            its version, SEA235 for the accelerators, SEA236 for what excludes each other, SEA237 for an optimization
            job, SEA239 for a build that takes too long.
    """
    if not loaded.endpoint.optimization:
        return
    found = recipe_refusals(loaded, choice, allowed)
    if found:
        hint = f"the nearest recipe that runs: {recipe_name(nearest_recipe(loaded))}"
        raise PlanError([_problem(loaded, refusal, hint) for refusal in found])


def recipe_refusals(loaded: LoadedSpec, choice: EngineChoice, allowed: Sequence[Instance]) -> tuple[RecipeRefusal, ...]:
    """Return what the engine can't do of a recipe; when it can do all, why no allowed instance type can."""
    engine, recipe = recipe_engine(choice), loaded.endpoint.optimization
    found = engine_refusals(loaded.endpoint, engine)
    if not found:
        architecture = read_architecture(loaded)
        found = weights_refusals(loaded.endpoint, architecture)
        found = found or compiled_refusals(loaded.endpoint, architecture, engine)
        found = found or build_refusal(recipe, weights_bytes(architecture, None))
    refused = [accelerator_refusals(recipe, engine, instance) for instance in allowed]
    if found or not all(refused):
        return found
    return tuple(dict.fromkeys(refusal for each in refused for refusal in each))


def _problem(loaded: LoadedSpec, refusal: RecipeRefusal, hint: str) -> Finding:
    return loaded.problem(("optimization", refusal.index), refusal.rule, refusal.message, hint)


def nearest_recipe(loaded: LoadedSpec) -> Recipe:
    """Return the recipe that runs with the fewest changes to that of the spec; the empty one at last.

    A quantization is replaced by `fp8` and speculation by `ngram`, which need nothing beside, before either is dropped.
    """
    return next((recipe for recipe in _variants(loaded.endpoint.optimization) if runs(loaded, recipe)), ())


def runs(loaded: LoadedSpec, recipe: Recipe) -> bool:
    """Tell whether a spec could be served with a recipe by some allowed instance type, its size aside."""
    try:
        other = with_recipe(loaded, recipe)
        return not recipe_refusals(other, choose_engine(other), allowed_instances(other)[0])
    except (SpecError, PlanError):
        return False


def _variants(recipe: Recipe) -> Iterator[Recipe]:
    """Yield what a recipe becomes by replacing and dropping optimizations, the fewest changes first."""
    ways = [_ways(entry) for entry in recipe]
    tried = {recipe_name(recipe)}
    for choice in sorted(product(*(range(len(way)) for way in ways)), key=lambda each: _distance(each, ways)):
        chosen = [way[index] for way, index in zip(ways, choice, strict=True)]
        variant = tuple(entry for entry in chosen if entry is not None)
        if recipe_name(variant) not in tried:
            tried.add(recipe_name(variant))
            yield variant


def _distance(choice: tuple[int, ...], ways: Sequence[tuple[OptimizationSpec | None, ...]]) -> tuple[int, int]:
    changed = sum(index > 0 for index in choice)
    return changed, sum(way[index] is None for way, index in zip(ways, choice, strict=True))


def _ways(entry: OptimizationSpec) -> tuple[OptimizationSpec | None, ...]:
    simple = next((parse_recipe(name)[0] for kind, name in _NEEDS_NOTHING.items() if entry.name in kind), None)
    return (entry, None) if simple in (None, entry) else (entry, simple, None)
