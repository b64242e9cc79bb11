"""Where quantized weights come from: the checkpoint has them, or the engine makes them when it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.planner.predict.memory import weights_bytes
from seatrial.planner.recipe_limits import RecipeRefusal
from seatrial.specs.recipe import PRECISIONS, is_quantized_at_start, quantizes
from seatrial_base.catalog import optimizations

if TYPE_CHECKING:
    from seatrial.planner.recipe_limits import RecipeEngine
    from seatrial.specs.endpoint import EndpointSpec
    from seatrial_base.catalog.architecture import Architecture


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
    index, told = recipe.index(entry), f"the weights are {own or 'at 16 bits'} by {endpoint.model.config_file}"
    if own is not None:
        return (RecipeRefusal("SEA230", index, f"{told}, so {entry.name} can't be made from them"),)
    if getattr(entry, entry.name).job or is_quantized_at_start(endpoint, architecture):
        return ()
    return (RecipeRefusal("SEA232", index, f"{entry.name} needs quantized weights, and {told}"),)


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
