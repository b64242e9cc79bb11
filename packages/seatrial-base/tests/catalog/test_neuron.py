from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_base.catalog import neuron
from seatrial_base.catalog.engines import ENGINE_CANDIDATES
from seatrial_base.catalog.instances import INSTANCES, find_instance
from seatrial_base.catalog.models import find_model

if TYPE_CHECKING:
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.instances import Instance

NEURON = [instance for instance in INSTANCES.rows if neuron.is_neuron(instance)]


def instance(name: str) -> Instance:
    found = find_instance(name)
    assert found is not None
    return found


def model(name: str) -> Architecture:
    found = find_model(name)
    assert found is not None
    return found


@pytest.mark.parametrize("known", NEURON, ids=lambda known: known.instance_type)
def test_every_neuron_type_has_its_chip_and_whole_cores(known: Instance) -> None:
    cores = neuron.chip_of(known).cores
    seen = neuron.in_cores(known)

    assert seen.accelerator_count == known.accelerator_count * cores
    assert seen.accelerator_memory_bytes * cores == known.accelerator_memory_bytes
    assert seen.accelerator_count * (seen.memory_bandwidth_bytes_s or 0) == known.accelerator_count * (
        known.memory_bandwidth_bytes_s or 0
    )
    assert neuron.device_count(seen) == neuron.device_count(known) == known.accelerator_count


@pytest.mark.parametrize(
    ("name", "cores", "gib_each"),
    [
        ("ml.inf2.xlarge", 2, 16),
        ("ml.inf2.48xlarge", 24, 16),
        ("ml.trn1.32xlarge", 32, 16),
        ("ml.trn2.48xlarge", 64, 24),
    ],
)
def test_knows_the_cores_and_the_memory_of_each(name: str, cores: int, gib_each: int) -> None:
    seen = neuron.in_cores(instance(name))

    assert (seen.accelerator_count, seen.accelerator_memory_bytes) == (cores, gib_each * 2**30)


def test_a_gpu_is_counted_as_it_is() -> None:
    gpu = instance("ml.g5.12xlarge")

    assert neuron.in_cores(gpu) is gpu
    assert neuron.neuron_devices("ml.g5.12xlarge", 4) == 4
    assert neuron.neuron_devices("ml.unknown.xlarge", 3) == 3


@pytest.mark.parametrize(
    ("name", "degree", "chips"),
    [
        ("ml.inf2.xlarge", 1, 1),
        ("ml.inf2.xlarge", 2, 1),
        ("ml.inf2.48xlarge", 8, 4),
        ("ml.inf2.48xlarge", 24, 12),
        ("ml.trn2.48xlarge", 4, 1),
        ("ml.trn2.48xlarge", 64, 16),
    ],
)
def test_sagemaker_counts_whole_chips(name: str, degree: int, chips: int) -> None:
    assert neuron.neuron_devices(name, degree) == chips


@pytest.mark.parametrize(
    ("name", "where", "degrees"),
    [
        ("meta-llama/Llama-3.1-8B", "ml.inf2.xlarge", (2,)),  # 32 heads, 8 KV heads
        ("meta-llama/Llama-3.1-8B", "ml.inf2.48xlarge", (2, 4, 8, 24)),
        ("meta-llama/Llama-2-7b-hf", "ml.inf2.48xlarge", (2, 4, 8)),  # 32 KV heads: 24 does not divide them
        ("meta-llama/Llama-2-7b-hf", "ml.trn1.32xlarge", (2, 8, 16, 32)),
        ("tiiuae/falcon-7b", "ml.inf2.48xlarge", (2, 4, 8, 24)),  # 71 heads are filled up; one KV head is copied
    ],
)
def test_degrees_are_those_of_the_chip_that_shard_the_model(name: str, where: str, degrees: tuple[int, ...]) -> None:
    assert neuron.degrees(model(name), neuron.in_cores(instance(where))) == degrees


def test_every_engine_is_an_option_and_has_known_chips() -> None:
    names = {option.name for option in ENGINE_CANDIDATES.rows if "neuronx" in option.flavours}

    assert {engine.option for engine in neuron.NEURON_ENGINES.rows} == names
    chips = {chip.accelerator for chip in neuron.CHIPS.rows}
    assert chips == {known.accelerator for known in NEURON}
    assert all(chips.issuperset(engine.accelerators) for engine in neuron.NEURON_ENGINES.rows)
    assert neuron.NEURON_ENGINES.get("lmi-vllm") is None
