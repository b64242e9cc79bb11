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


def test_a_pool_without_a_price_breaks_the_rail_whatever_the_others_cost(ask: Ask) -> None:
    pools = {"instance_pools": [G5, "ml.p5e.48xlarge"]}
    asked = {"serving": {"overrides": {"tensor_parallel_degree": 1}}, "hosting": pools}
    assert problems(ask, rails={"usd_per_hour": 1e9}, **asked) == [("SEA111", "scaling.max_copies")]
    assert make_plan(ask(**asked)).instance_type.value == G5


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


IN_S3 = {"s3_uri": "s3://weights/llama/", "architecture": "meta-llama/Llama-2-7b-chat-hf", "licence": "llama2"}
JOB = ("optimization", 0, "awq", "job")
AT = "optimization[0].awq.job"


def with_job(ask: Ask, rails: dict[str, object], *entries: object) -> list[tuple[str, str]]:
    """Return what a plan whose recipe has jobs breaks."""
    try:
        make_plan(ask(rails=rails, model=IN_S3, optimization=list(entries)))
    except PlanError as error:
        return [(each.rule, each.field) for each in error.problems]
    return []


@pytest.mark.parametrize(
    ("job", "rails", "broken"),
    [
        ({"instance_type": "ml.p5.48xlarge", "max_hours": 120}, {"usd_per_hour": 12}, [("SEA111", AT)]),
        ({"instance_type": "ml.p5.48xlarge", "max_hours": 0.01}, {"usd_per_hour": 12}, [("SEA111", AT)]),
        ({"instance_type": "ml.p5.48xlarge", "max_hours": 120}, {"usd_per_hour": 64}, []),
        ({"instance_type": "ml.p5.48xlarge", "max_hours": 120}, {"job_usd": 7595}, [("SEA111", AT)]),
        ({"instance_type": "ml.p5.48xlarge", "max_hours": 120}, {"job_usd": 7596}, []),
        ({"max_hours": 10}, {"job_usd": 15.14}, [("SEA111", AT)]),
        ({"max_hours": 10}, {"job_usd": 15.16}, []),
        (True, {"job_usd": 18.1}, [("SEA111", AT)]),  # 12 hours by default
        (True, {"job_usd": 18.2, "usd_per_hour": 3.1}, []),
        ({"instance_type": "ml.p5e.48xlarge", "max_hours": 0.1}, {"job_usd": 1e9}, [("SEA111", AT)]),  # no price
        ({"instance_type": "ml.p5e.48xlarge", "max_hours": 0.1}, {"usd_per_hour": 1e9}, [("SEA111", AT)]),
        (
            {"instance_type": "ml.p5.48xlarge", "max_hours": 120},
            {"job_usd": 1, "usd_per_hour": 12},
            [("SEA111", AT), ("SEA111", AT)],
        ),
    ],
)
def test_an_optimization_job_is_within_the_rails_on_money(
    job: object, rails: dict[str, object], broken: list[tuple[str, str]], ask: Ask
) -> None:
    assert with_job(ask, rails, {"awq": {"job": job}}) == broken


def test_the_jobs_of_one_recipe_are_one_with_the_longest_time(ask: Ask) -> None:
    entries = ({"awq": {"job": {"max_hours": 2}}}, {"eagle3": {"job": {"max_hours": 10}}})
    assert with_job(ask, {"job_usd": 15.16}, *entries) == []
    assert with_job(ask, {"job_usd": 15.14}, *entries) == [("SEA111", "optimization[1].eagle3.job")]


def test_a_compiler_that_needs_a_job_has_one_for_the_rails_too(ask: Ask) -> None:
    entry = {"compile": {"target": "trtllm", "when": "ahead_of_time"}}
    assert ("SEA111", "optimization[0].compile") in with_job(ask, {"job_usd": 1}, entry)


def test_the_job_of_a_further_model_or_of_a_variant_counts(ask: Ask) -> None:
    rails = {"job_usd": 40, "usd_per_hour": 12}
    loaded = ask(rails=rails, model=IN_S3, optimization=[{"awq": {"job": True}}])
    plan = make_plan(loaded)
    other = (loaded.endpoint, plan)
    assert created_problems(plan, loaded, Beside(guests=(other,))) == ()
    for beside in (Beside(guests=(other, other)), Beside(guests=(other,), variants={"a": other})):
        (problem,) = created_problems(plan, loaded, beside)
        assert (problem.rule, problem.field) == ("SEA111", AT)
        assert problem.message.startswith("$54.54 at list prices for 3 x 12 h of ml.g5.2xlarge exceeds $40.00")


def test_one_job_without_a_price_breaks_the_rail_whatever_the_others_cost(ask: Ask) -> None:
    loaded = ask(rails={"job_usd": 1e9}, model=IN_S3, optimization=[{"awq": {"job": True}}])
    plan, job = make_plan(loaded), {"instance_type": "ml.p5e.48xlarge"}
    other = ask(rails={"job_usd": 1e9}, model=IN_S3, optimization=[{"awq": {"job": job}}]).endpoint
    (problem,) = created_problems(plan, loaded, Beside(guests=((other, plan),)))
    assert (problem.rule, problem.field) == ("SEA111", "hosting.more_models")
    assert problem.message.startswith("an unknown price at list prices for 12 h of ml.g5.2xlarge, 12 h of ml.p5e.48x")


def test_the_job_of_another_model_is_told_where_it_is_hosted(ask: Ask) -> None:
    rails = {"job_usd": 10}
    plan = make_plan(ask(model=IN_S3, optimization=[{"awq": {"job": True}}]))
    with_one = ask(model=IN_S3, optimization=[{"awq": {"job": True}}]).endpoint
    host = ask(rails=rails)
    found = [
        created_problems(plan, host, Beside(guests=((with_one, plan),))),
        created_problems(plan, host, Beside(variants={"a": (with_one, plan)})),
    ]
    assert [[each.field for each in problems] for problems in found] == [["hosting.more_models"], ["hosting.variants"]]
