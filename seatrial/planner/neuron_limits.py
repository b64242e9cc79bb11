"""What AWS Neuron can't serve: models without code, degrees that its runtime lacks, features that are not compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.specs.recipe import fields_of
from seatrial_base.catalog import neuron
from seatrial_base.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.instances import Instance
    from seatrial_base.catalog.neuron import NeuronEngine
    from seatrial_base.findings import Finding

_UNKNOWN_FAMILY = "inline"  # a shape that is written in the spec names no architecture
_FEATURES = (
    ("pipeline_parallel_degree", 1),
    ("kv_cache_dtype", "auto"),
    ("prefix_caching", False),
    ("chunked_prefill", False),
    ("lora", None),
    ("speculative_decoding", None),
    ("rope_scaling", None),
    ("dynamic_batching", None),
)  # each with the value that asks for nothing


def refuse_on_neuron(loaded: LoadedSpec, architecture: Architecture, allowed: Sequence[Instance], option: str) -> None:
    """Refuse what an engine for AWS Neuron can't serve, every problem at once; an engine for GPUs is not looked at.

    Args:
        loaded: The spec.
        architecture: The model.
        allowed: The allowed instance types, in NeuronCores.
        option: The engine, as in `engine_choice.json`.

    Raises:
        PlanError: SEA225 for a model or a chip that the engine has no code for, SEA226 for a degree that the chips or
            the model do not take, SEA227 for a feature that is not there.
    """
    engine = neuron.NEURON_ENGINES.get(option)
    chips = [instance for instance in allowed if neuron.is_neuron(instance)]
    if engine is None or not chips:
        return
    problems = [
        *_model_problems(loaded, architecture, engine),
        *_chip_problems(loaded, chips, engine),
        *_degree_problems(loaded, architecture, chips),
        *_feature_problems(loaded, architecture),
    ]
    if problems:
        raise PlanError(problems)


def _model_problems(loaded: LoadedSpec, architecture: Architecture, engine: NeuronEngine) -> Iterator[Finding]:
    family = architecture.family
    if family == _UNKNOWN_FAMILY or family in engine.families:
        return
    others = [each.option for each in neuron.NEURON_ENGINES.rows if family in each.families]
    hint = f"serve with {_setting(others[0])}" if others else f"it serves {', '.join(engine.families)}; or use GPUs"
    message = f"{engine.option} has no code for {architecture.id} (model_type {family})"
    yield loaded.problem(("model",), "SEA225", message, hint)


def _setting(option: str) -> str:
    name = option.removesuffix("-neuronx")
    return "serving.backend: neuronx" if name == "lmi" else f"serving.engine: {name}"


def _chip_problems(loaded: LoadedSpec, chips: Sequence[Instance], engine: NeuronEngine) -> Iterator[Finding]:
    supported = [instance for instance in chips if instance.accelerator in engine.accelerators]
    if supported:
        return
    message = f"{engine.option} has no image for the {chips[0].accelerator} of {chips[0].instance_type}"
    hint = f"it runs on {', '.join(engine.accelerators)}"
    yield loaded.problem(("serving", "instance_types"), "SEA225", message, hint)


def _degree_problems(loaded: LoadedSpec, architecture: Architecture, chips: Sequence[Instance]) -> Iterator[Finding]:
    degree = loaded.endpoint.serving.overrides.tensor_parallel_degree
    possible = sorted({each for instance in chips for each in neuron.degrees(architecture, instance)})
    if degree is None and possible:
        return
    if degree in possible:
        return
    valid = ", ".join(map(str, possible)) or "none"
    asked = (
        f"tensor_parallel_degree {degree} is" if degree is not None else "there is no tensor_parallel_degree that is"
    )
    message = (
        f"{asked} {'not ' if degree is not None else ''}one that {chips[0].instance_type} takes for "
        f"{architecture.attention_heads} attention heads and {architecture.kv_heads} KV heads; it counts NeuronCores"
    )
    field = ("serving", "overrides", "tensor_parallel_degree")
    yield loaded.problem(field, "SEA226", message, f"valid: {valid}; or name a larger instance type")


def _feature_problems(loaded: LoadedSpec, architecture: Architecture) -> Iterator[Finding]:
    overrides = loaded.endpoint.serving.overrides
    of_recipe = fields_of(loaded.endpoint.optimization)  # they are refused with the nearest recipe (SEA233)
    for name, nothing in _FEATURES:
        value = getattr(overrides, name)
        if value is not None and value != nothing and name not in of_recipe:
            yield loaded.problem(
                ("serving", "overrides", name), "SEA227", f"{name} is not supported on AWS Neuron", "leave it out"
            )
    quantization = architecture.quantization(overrides.quantization)
    if quantization is not None and "quantization" not in of_recipe:
        written = overrides.quantization is not None
        path: tuple[str, ...] = ("serving", "overrides", "quantization") if written else ("model",)
        message = f"{quantization} weights are not supported on AWS Neuron"
        yield loaded.problem(
            path, "SEA227", message, "leave quantization out and give a repository with 16-bit weights"
        )
