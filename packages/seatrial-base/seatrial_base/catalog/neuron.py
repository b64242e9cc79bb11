"""AWS Neuron: NeuronCores of each chip, the degrees of its runtime, and the models that its engines have code for.

A degree counts NeuronCores; SageMaker counts chips. The planner sees an instance in cores (`in_cores`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.rows import CatalogTable, Sourced

if TYPE_CHECKING:
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.instances import Instance


@dataclass(frozen=True, slots=True)
class Chip(Sourced):
    """One kind of Neuron chip.

    Attributes:
        cores: NeuronCores that an engine sees: logical ones of two on Trainium2.
        degrees: Tensor parallel degrees of the Neuron runtime that use whole chips, in cores.
    """

    accelerator: str
    cores: int
    degrees: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NeuronEngine(Sourced):
    """What an engine for Neuron can serve.

    Attributes:
        option: Its name in `engine_choice.json`.
        families: `model_type` of the models that it has code for.
    """

    option: str
    accelerators: tuple[str, ...]
    families: tuple[str, ...]


CHIPS: Final = CatalogTable(Chip, "neuron.json#chips", key="accelerator")
NEURON_ENGINES: Final = CatalogTable(NeuronEngine, "neuron.json#engines", key="option")


def is_neuron(instance: Instance) -> bool:
    """Return whether an instance type has AWS Neuron chips."""
    return instance.link == "neuron"


def chip_of(instance: Instance) -> Chip:
    """Return the chip of a Neuron instance type.

    Raises:
        KeyError: When the instance type has none; a test keeps every Neuron type of the catalog in the table.
    """
    return CHIPS[instance.accelerator]


def in_cores(instance: Instance) -> Instance:
    """Return an instance type whose accelerators are NeuronCores; one with GPUs as it is."""
    if not is_neuron(instance):
        return instance
    cores = chip_of(instance).cores
    return replace(
        instance,
        accelerator_count=instance.accelerator_count * cores,
        accelerator_memory_bytes=instance.accelerator_memory_bytes // cores,
        memory_bandwidth_bytes_s=_share(instance.memory_bandwidth_bytes_s, cores),
        flops_16bit=_share(instance.flops_16bit, cores),
        flops_8bit=_share(instance.flops_8bit, cores),
    )


def _share(whole: int | None, cores: int) -> int | None:
    return None if whole is None else whole // cores


def neuron_devices(instance_type: str, degree: int) -> int:
    """Return the accelerators, as SageMaker counts them, of a copy: whole chips on Neuron, else the degree itself."""
    instance = find_instance(instance_type)
    if instance is None or not is_neuron(instance):
        return degree
    return math.ceil(degree / chip_of(instance).cores)


def device_count(instance: Instance) -> int:
    """Return the accelerators of an instance type as SageMaker counts them, whether it is given in cores or not."""
    known = find_instance(instance.instance_type)
    return instance.accelerator_count if known is None else known.accelerator_count


def counted_as(instance: Instance) -> str:
    """Return what a degree counts on an instance type, for users: `accelerators` or `NeuronCores`."""
    return "NeuronCores" if is_neuron(instance) else "accelerators"


def can_be_sharded(architecture: Architecture, degree: int) -> bool:
    """Return whether a model can be sharded over so many NeuronCores.

    optimum-neuron fills up the query heads to a multiple of the degree, and copies KV heads where there are fewer than
    cores. Models whose KV heads fit neither way, or that have as many as query heads and do not divide, are left out:
    the cache would grow.
    """
    heads, kv_heads = architecture.attention_heads, architecture.kv_heads
    if degree > heads:
        return False
    if heads == kv_heads:
        return heads % degree == 0
    return degree % kv_heads == 0 or kv_heads % degree == 0


def degrees(architecture: Architecture, instance: Instance) -> tuple[int, ...]:
    """Return the degrees that the chips of an instance type support and that a model can be sharded over."""
    supported = chip_of(instance).degrees
    return tuple(
        each for each in supported if each <= instance.accelerator_count and can_be_sharded(architecture, each)
    )
