from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.planner.planner import make_plan

if TYPE_CHECKING:
    from tests.planner.conftest import Ask


def only(*names: str, **overrides: object) -> dict[str, object]:
    return {"instance_types": [*names], "overrides": overrides}


def test_fp8_is_proposed_where_the_accelerator_has_it_and_never_taken(ask: Ask) -> None:
    plan = make_plan(ask(serving=only("ml.g6.2xlarge", "ml.g5.2xlarge")))
    proposed = {proposal.quantization: proposal for proposal in plan.proposals}

    assert plan.quantization is None
    assert set(proposed) == {"fp8"}
    assert proposed["fp8"].instance_type == "ml.g6.2xlarge"
    assert proposed["fp8"].usd_per_hour is not None
    assert plan.cost.usd_per_hour is not None
    assert proposed["fp8"].usd_per_hour <= plan.cost.usd_per_hour
    assert proposed["fp8"].gives_up


@pytest.mark.parametrize(
    "serving",
    [only("ml.g5.2xlarge"), only("ml.g6.2xlarge", quantization="fp8")],
    ids=["no FP8", "the spec fixes it"],
)
def test_nothing_is_proposed_in_vain(serving: dict[str, object], ask: Ask) -> None:
    plan = make_plan(ask(serving=serving))

    assert plan.proposals == ()
    assert "proposals" not in plan.model_dump(mode="json")


def test_4_bits_are_proposed_on_blackwell_alone(ask: Ask) -> None:
    here = make_plan(ask(serving=only("ml.g7e.2xlarge")))
    hopper = make_plan(ask(serving=only("ml.p5.4xlarge")))

    assert "nvfp4" in {proposal.quantization for proposal in here.proposals}
    assert "nvfp4" not in {proposal.quantization for proposal in hopper.proposals}
