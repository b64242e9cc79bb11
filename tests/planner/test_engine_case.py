"""What the rules of the engine choice look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.planner.engine import case_of
from seatrial.specs.architecture import read_architecture
from seatrial_base.catalog.engines import EngineCase
from seatrial_base.catalog.instances import find_instance

if TYPE_CHECKING:
    from tests.planner.conftest import Ask


@pytest.mark.parametrize(
    ("types", "accelerators", "named"),
    [
        (("ml.g5.2xlarge",), "gpu", "ml.g5.2xlarge"),
        (("ml.g5.2xlarge", "ml.g6.2xlarge"), "gpu", "every allowed instance type"),
        (("ml.inf2.xlarge",), "neuron", "ml.inf2.xlarge"),
        (("ml.g5.2xlarge", "ml.inf2.xlarge"), "both", "every allowed instance type"),
    ],
)
def test_a_case_knows_its_accelerators(types: tuple[str, ...], accelerators: str, named: str, ask: Ask) -> None:
    loaded = ask()
    allowed = [found for name in types if (found := find_instance(name))]
    case = case_of(loaded.endpoint.serving, read_architecture(loaded), allowed)

    assert case == EngineCase({"accelerators": accelerators, "architecture": "llama"}, named)


def test_a_case_knows_what_is_asked_of_the_engine(ask: Ask) -> None:
    drafted = {"draft_tokens": 3, "acceptance_rate": 0.7, "method": "eagle3", "model": "a/b"}
    model = {"hub_id": "TheBloke/Llama-2-7B-Chat-AWQ"}
    loaded = ask(model=model, serving={"overrides": {"quantization": "awq", "speculative_decoding": drafted}})

    assert case_of(loaded.endpoint.serving, read_architecture(loaded), ()).facts == {
        "accelerators": "gpu",
        "architecture": "llama",
        "quantization": "awq",
        "speculation": "eagle3",
    }


def test_a_quantized_checkpoint_counts_without_being_asked_for(ask: Ask) -> None:
    loaded = ask(model={"hub_id": "openai/gpt-oss-20b"})

    assert case_of(loaded.endpoint.serving, read_architecture(loaded), ()).facts["quantization"] == "mxfp4"
