from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from seatrial.planner.predict.copy_model import hardware_of, place_copy
from seatrial.planner.predict.memory import fit_memory
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model

if TYPE_CHECKING:
    from seatrial.planner.predict.copy_model import Copy
    from seatrial_base.catalog.engines import Engine

TGI = find_engine("tgi", "1.1.0")


class PlaceCopy(Protocol):
    """Places a copy: Llama 2 7B on one A10G with TGI 1.1, 256 + 256 tokens, unless told otherwise."""

    def __call__(
        self,
        hub_id: str = ...,
        instance_type: str = ...,
        *,
        degree: int = ...,
        input_tokens: int = ...,
        output_tokens: int = ...,
        engine: Engine = ...,
        quantization: str | None = ...,
        prefix_hit_rate: float = ...,
        attention_data_parallel_degree: int = ...,
    ) -> Copy: ...


@pytest.fixture(scope="session")
def copy_of() -> PlaceCopy:
    return placed


def placed(
    hub_id: str = "meta-llama/Llama-2-7b-hf",
    instance_type: str = "ml.g5.2xlarge",
    *,
    degree: int = 1,
    input_tokens: int = 256,
    output_tokens: int = 256,
    engine: Engine = TGI,
    quantization: str | None = None,
    prefix_hit_rate: float = 0.0,
    attention_data_parallel_degree: int = 1,
) -> Copy:
    architecture, instance = find_model(hub_id), find_instance(instance_type)
    assert architecture is not None
    assert instance is not None
    hardware = hardware_of(instance, quantization)
    assert hardware is not None
    batched = max(engine.default_batched_tokens, input_tokens)
    memory = fit_memory(
        architecture,
        instance,
        engine,
        degree=degree,
        quantization=quantization,
        tokens=input_tokens + output_tokens,
        batched_tokens=batched,
        attention_data_parallel_degree=attention_data_parallel_degree,
    )
    return place_copy(
        architecture,
        hardware,
        engine,
        memory,
        degree=degree,
        quantization=quantization,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        batched_tokens=batched,
        max_num_seqs=1_000,
        prefix_hit_rate=prefix_hit_rate,
        attention_data_parallel_degree=attention_data_parallel_degree,
    )
