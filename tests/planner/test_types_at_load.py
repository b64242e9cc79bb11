from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.planner.comparisons import types_at_load

if TYPE_CHECKING:
    from tests.planner.conftest import Ask

TYPES = {"instance_types": ["ml.g5.2xlarge", "ml.p4d.24xlarge"], "engine": "tgi", "engine_version": "1.1.0"}


def test_the_cheapest_deployment_of_a_type_that_keeps_all(ask: Ask) -> None:
    small, _ = types_at_load(ask(serving=TYPES))
    assert (small.instance_type, small.tensor_parallel_degree, small.exceeds) == ("ml.g5.2xlarge", 1, None)
    assert small.usd_per_hour == small.instance_count * 1.515


def test_a_type_above_the_budget_misses_no_slo(ask: Ask) -> None:
    loads = {each.instance_type: each for each in types_at_load(ask(serving=TYPES, budget={"usd_per_hour": 10}))}
    assert loads["ml.p4d.24xlarge"].exceeds == "budget"
    assert loads["ml.p4d.24xlarge"].instance_count == 0


def test_one_that_is_too_slow_and_one_whose_price_no_budget_can_be_held_against(ask: Ask) -> None:
    serving = {"instance_types": ["ml.g5.2xlarge", "ml.p5e.48xlarge"]}
    asked = ask(serving=serving, slo={"tpot_ms": {"p95": 10}}, budget={"usd_per_hour": 100})
    assert {each.instance_type: each.exceeds for each in types_at_load(asked)} == {
        "ml.g5.2xlarge": "slo",
        "ml.p5e.48xlarge": "price",
    }
