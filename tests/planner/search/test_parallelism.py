from __future__ import annotations

import pytest

from seatrial.planner.search.fitting import possible_degrees
from seatrial_base.catalog.models import find_model


@pytest.mark.parametrize(
    ("hub_id", "accelerators", "degrees"),
    [
        ("meta-llama/Llama-2-7b-hf", 1, (1,)),
        ("meta-llama/Llama-2-7b-hf", 8, (1, 2, 4, 8)),
        ("tiiuae/falcon-7b", 8, (1,)),  # 71 heads are prime
        ("Qwen/Qwen2.5-7B", 8, (1, 2, 4)),  # 28 heads
        ("tiiuae/falcon-40b", 16, (1, 2, 4, 8, 16)),  # past 8 KV heads each accelerator holds one of its own
    ],
)
def test_a_degree_divides_the_heads(hub_id: str, accelerators: int, degrees: tuple[int, ...]) -> None:
    architecture = find_model(hub_id)

    assert architecture is not None
    assert possible_degrees(architecture, accelerators) == degrees
