"""Guard rails on costs: held against list prices of everything that may run, whatever discount the spec says it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.locks.guard_rails import Beside, created_problems
from seatrial.planner.planner import make_plan
from seatrial_base.errors import PlanError

if TYPE_CHECKING:
    from tests.planner.conftest import Ask

P4D = {"instance_types": ["ml.p4d.24xlarge"]}
G5 = "ml.g5.2xlarge"


def problems(ask: Ask, **fields: object) -> list[tuple[str, str]]:
    with pytest.raises(PlanError) as caught:
        make_plan(ask(**fields))
    return [(each.rule, each.field) for each in caught.value.problems]


@pytest.mark.parametrize("discount", [0, 0.5, 0.99])
@pytest.mark.parametrize(
    ("rail", "bound", "field"),
    [
        ("usd_per_hour", 3.0, "scaling.max_copies"),
        ("usd_per_million_output_tokens", 0.1, "serving.instance_types"),
        ("blended_usd_per_million_tokens", 0.02, "serving.instance_types"),
    ],
)
def test_a_discount_of_the_spec_lifts_no_rail(rail: str, bound: float, field: str, discount: float, ask: Ask) -> None:
    asked = {"rails": {rail: bound}, "serving": P4D, "scaling": {"max_copies": 2}, "budget": {"discount": discount}}
    assert problems(ask, **asked) == [("SEA206", field)]


def test_a_budget_is_held_against_the_discounted_price(ask: Ask) -> None:
    assert make_plan(ask(budget={"usd_per_hour": 0.8, "discount": 0.5})).cost.discount == 0.5


def test_the_instances_of_an_update_count(ask: Ask) -> None:
    assert problems(ask, rails={"usd_per_hour": 3.02}) == [("SEA206", "scaling.max_copies")]
    assert make_plan(ask(rails={"usd_per_hour": 3.03})).surge_instances.value == 1


def test_the_dearest_pool_counts(ask: Ask) -> None:
    pools = {"instance_pools": [G5, "ml.p4d.24xlarge"]}
    fixed = {"overrides": {"tensor_parallel_degree": 1}}
    assert problems(ask, rails={"usd_per_hour": 3.1}, serving=fixed, hosting=pools) == [
        ("SEA111", "scaling.max_copies")
    ]
    assert make_plan(ask(rails={"usd_per_hour": 51}, serving=fixed, hosting=pools)).instance_type.value == G5


@pytest.mark.parametrize(
    ("hosting", "most"),
    [
        (
            {"shadow": {"image": "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:a", "instance_count": 5}},
            12,
        ),
        ({"variants": [{"name": "a", "instance_count": 3}, {"name": "b", "spec": "other"}]}, 6),
    ],
)
def test_the_instances_of_variants_and_shadows_count(hosting: dict[str, object], most: int, ask: Ask) -> None:
    single = {"hosting": {"kind": "single_model", **hosting}, "trial": {"mode": "off"}}
    assert make_plan(ask(rails={"usd_per_hour": most * 1.515 + 0.01}, **single)).instance_type.value == G5
    assert problems(ask, rails={"usd_per_hour": most * 1.515 - 0.01}, **single) == [("SEA206", "scaling.max_copies")]


def test_the_copies_of_further_models_count(ask: Ask) -> None:
    loaded = ask(rails={"max_copies": 4}, scaling={"max_copies": 2})
    plan = make_plan(loaded)
    assert created_problems(plan, loaded, Beside(guest_copies=2)) == ()
    (problem,) = created_problems(plan, loaded, Beside(guest_copies=3))
    assert (problem.rule, problem.field) == ("SEA111", "hosting.more_models")
    assert problem.message.startswith("5 copies of all models and variants exceed 4")
