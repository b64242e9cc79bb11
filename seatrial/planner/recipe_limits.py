"""Limits of recipes and their weights, by engine, version, accelerator and optimization job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.planner.decisions.timeouts import LONGEST_S
from seatrial.planner.predict.memory import weights_bytes
from seatrial.specs.recipe import PRECISIONS, compiles, is_quantized_at_start, quantizes
from seatrial_base.catalog import neuron, optimizations
from seatrial_base.catalog.optimizations import build_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.specs.endpoint import EndpointSpec
    from seatrial.specs.optimization import OptimizationSpec, Recipe
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.instances import Instance


@dataclass(frozen=True, slots=True)
class RecipeEngine:
    """The engine that a recipe is held against.

    Attributes:
        option: Its name in `engine_choice.json`.
        version: Its version; `None` for an image of the user whose version can't be read.
    """

    option: str
    title: str
    version: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class RecipeRefusal:
    """One thing that a recipe can't have.

    Attributes:
        index: The optimization's place in the recipe.
    """

    rule: str
    index: int
    message: str


def engine_refusals(endpoint: EndpointSpec, engine: RecipeEngine) -> tuple[RecipeRefusal, ...]:
    """Return what an engine and SageMaker's optimization jobs can't do of a spec's recipe, each optimization once."""
    recipe = endpoint.optimization
    refusals = [*_exclusions(endpoint, engine), *_engines(recipe, engine), *_jobs(recipe)]
    # An optimization that is refused for several reasons is reported once, by the first of them.
    seen: dict[int, RecipeRefusal] = {}
    for refusal in refusals:
        seen.setdefault(refusal.index, refusal)
    return tuple(seen[index] for index in sorted(seen))


def accelerator_refusals(recipe: Recipe, engine: RecipeEngine, instance: Instance) -> tuple[RecipeRefusal, ...]:
    """Return why an instance type can't run a recipe; nothing when it can."""
    refused = [(index, message) for index, entry in enumerate(recipe) for message in _excluded(entry, engine, instance)]
    return tuple(RecipeRefusal("SEA235", index, message) for index, message in refused)


def accelerator_limits(recipe: Recipe, engine: RecipeEngine, instance: Instance) -> tuple[str, ...]:
    """Return what a recipe gives less of on an instance type, a sentence each."""
    return tuple(
        f"{entry.name} on {instance.instance_type} ({instance.accelerator}): {row.because}"
        for entry in recipe
        for row in optimizations.limits_on(entry.name, engine.option, engine.version, instance.accelerator)
        if row.verdict == "limits"
    )


def job_limits(recipe: Recipe, instance: Instance) -> tuple[str, ...]:
    """Return the optimization jobs whose target SageMaker's SDK does not list, though the API takes it."""
    limits = []
    for entry in recipe:
        row = next((row for row in optimizations.JOB_SUPPORT.rows if entry.name in row.optimizations), None)
        target = (entry.job.instance_type or instance.instance_type) if entry.job is not None else ""
        if row is not None and target and _family(target) not in row.families:
            listed = ", ".join(row.families)
            limits.append(f"SageMaker's SDK lists optimization jobs for {entry.name} on {listed}, not for {target}.")
    return tuple(limits)


def built_at_start_s(recipe: Recipe, weights_bytes: int) -> float:
    """Return how long TensorRT-LLM may build its engine while a container starts, in seconds; 0 without a build.

    Args:
        weights_bytes: Of all weights at 16 bits.
    """
    compilation = compiles(recipe)
    if compilation is None or compilation.target != "trtllm" or compilation.when != "startup":
        return 0
    return build_seconds(weights_bytes, quantizes=quantizes(recipe) is not None)


def build_refusal(recipe: Recipe, weights_bytes: int) -> tuple[RecipeRefusal, ...]:
    """Return the refusal of a build that takes longer than SageMaker waits for a container; nothing when it fits."""
    build_s = built_at_start_s(recipe, weights_bytes)
    if build_s <= LONGEST_S:
        return ()
    message = (
        f"TensorRT-LLM may take {build_s:,.0f} s to build its engine, and SageMaker waits {LONGEST_S:,} s for a "
        "container: build it with `compile: {target: trtllm, when: ahead_of_time}`"
    )
    index = next(index for index, entry in enumerate(recipe) if entry.compile is not None)
    return (RecipeRefusal("SEA239", index, message),)


def _excluded(entry: OptimizationSpec, engine: RecipeEngine, instance: Instance) -> Iterator[str]:
    for row in optimizations.limits_on(entry.name, engine.option, engine.version, instance.accelerator):
        if row.verdict == "excludes":
            yield f"{entry.name} does not run on the {instance.accelerator}: {row.because}"
    target = entry.compile.target if entry.compile is not None else None
    if target is not None and neuron.is_neuron(instance) != (target == "neuron"):
        yield f"compile: {target} does not run on the {instance.accelerator}."
    families = optimizations.JOB_INSTANCES.rows[0].families
    deployed = (entry.job.instance_type or instance.instance_type) if entry.job is not None else None
    if deployed is not None and _family(deployed) not in families:
        yield f"An optimization job for {entry.name} takes no {deployed}; it takes {', '.join(families)}."


def _family(instance_type: str) -> str:
    return instance_type.split(".")[1]


def _exclusions(endpoint: EndpointSpec, engine: RecipeEngine) -> Iterator[RecipeRefusal]:
    """Yield the optimizations that exclude each other, then those that an option of the engine excludes."""
    recipe = endpoint.optimization
    for row in optimizations.PAIR_LIMITS.rows:
        if not optimizations.holds(row.engines, row.until, engine.option, engine.version):
            continue
        first = [entry.name for entry in recipe if entry.name in row.first]
        for index, entry in enumerate(recipe):
            if first and entry.name in row.second:
                yield RecipeRefusal("SEA236", index, f"{first[0]} and {entry.name} exclude each other: {row.because}")
    for limit in optimizations.FEATURE_LIMITS.rows:
        value = getattr(endpoint.serving.overrides, limit.field)
        if value in (None, 1) or not optimizations.holds(limit.engines, limit.until, engine.option, engine.version):
            continue
        for index, entry in enumerate(recipe):
            if entry.name in limit.optimizations:
                message = f"{entry.name} and serving.overrides.{limit.field} exclude each other: {limit.because}"
                yield RecipeRefusal("SEA236", index, message)


def _engines(recipe: Recipe, engine: RecipeEngine) -> Iterator[RecipeRefusal]:
    for index, entry in enumerate(recipe):
        rows = optimizations.supports(entry.name, engine.option)
        supported = [row for row in rows if row.supported]
        if not supported:
            because = next((row.because for row in rows), "Nobody has described it there.")
            name = f"compile: {entry.compile.target}" if entry.compile is not None else entry.name
            yield RecipeRefusal("SEA233", index, f"{engine.title} can't run {name}: {because}")
        elif engine.version is not None and not any(
            optimizations.holds_since(row, engine.version) for row in supported
        ):
            because = next((row.because for row in supported if row.because), "")
            yield RecipeRefusal("SEA234", index, f"this version of {engine.title} can't run {entry.name}: {because}")


def _jobs(recipe: Recipe) -> Iterator[RecipeRefusal]:
    names = {entry.name for entry in recipe}
    for index, entry in enumerate(recipe):
        if entry.job is None:
            continue
        row = next((row for row in optimizations.JOB_SUPPORT.rows if entry.name in row.optimizations), None)
        if row is None or not row.allowed or row.needs not in (None, *names):
            because = row.because if row is not None else "No optimization job makes it."
            yield RecipeRefusal("SEA237", index, f"an optimization job can't make {entry.name}: {because}")
        elif entry.job.training_data_s3_uri is not None and entry.name != "eagle3":
            yield RecipeRefusal("SEA237", index, f"training_data_s3_uri is for eagle3, not for {entry.name}")


def stored_bytes(endpoint: EndpointSpec, architecture: Architecture) -> int:
    """Return the size of the weights as they are downloaded and read, in bytes: 16 bits where the engine quantizes."""
    quantization = architecture.quantization(endpoint.serving.overrides.quantization)
    at_start = is_quantized_at_start(endpoint, architecture)
    return weights_bytes(architecture, None if at_start else quantization)


def weights_refusals(endpoint: EndpointSpec, architecture: Architecture) -> tuple[RecipeRefusal, ...]:
    """Return why the weights that a config.json describes are not those that a recipe names; nothing when they are."""
    recipe = endpoint.optimization
    entry = quantizes(recipe)
    if entry is None or endpoint.model.config_file is None or getattr(entry, entry.name).checkpoint:
        return ()
    own = architecture.checkpoint_quantization
    if own == PRECISIONS[entry.name]:
        return ()
    index, weights = recipe.index(entry), f"the weights are {own or 'at 16 bits'} by {endpoint.model.config_file}"
    if own is not None:
        return (RecipeRefusal("SEA230", index, f"{weights}, so {entry.name} can't be made from them"),)
    if getattr(entry, entry.name).job or is_quantized_at_start(endpoint, architecture):
        return ()
    return (RecipeRefusal("SEA232", index, f"{entry.name} needs quantized weights, and {weights}"),)


def compiled_refusals(
    endpoint: EndpointSpec, architecture: Architecture, engine: RecipeEngine
) -> tuple[RecipeRefusal, ...]:
    """Return why an engine can't compile the weights as they are published; nothing where a recipe quantizes them."""
    recipe, own = endpoint.optimization, architecture.checkpoint_quantization
    name = next((name for name, precision in PRECISIONS.items() if precision == own), None)
    compiled = next((index for index, entry in enumerate(recipe) if entry.compile is not None), None)
    if name is None or compiled is None or quantizes(recipe) is not None:
        return ()
    rows = optimizations.supports(name, engine.option)
    if not rows or any(row.supported for row in rows):
        return ()
    return (RecipeRefusal("SEA233", compiled, f"{engine.title} can't compile {own} weights: {rows[0].because}"),)
