from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from seatrial.planner.comparisons import basis_of
from seatrial.planner.planner import make_plan
from seatrial.specs.prices import RegionPrices, TeamPrices, prices_text
from seatrial_base.catalog import instances
from seatrial_base.errors import PlanError, SpecError

if TYPE_CHECKING:
    from seatrial.specs.load import LoadedSpec
    from tests.planner.conftest import Ask

REGION = "schema_version: '1'\nregions:\n  eu-west-1:"
FILE = Path("environments/prices.yaml")


def team(region: str = "eu-west-1", discount: float = 0.0, **prices: float) -> TeamPrices:
    """Return a prices file of one region; the names of types are written with _ for the dot."""
    types = {f"ml.{name.replace('_', '.')}": price for name, price in prices.items()}
    listed = RegionPrices(date="2026-10-01", source="AWS Price List API", usd_per_hour=types)
    return TeamPrices(schema_version="1", savings_plan_discount=discount, regions={region: listed})


def test_the_teams_price_of_the_region_counts(ask: Ask) -> None:
    before = ask(region="eu-west-1")
    FILE.write_text(prices_text(team(g5_2xlarge=1.7, discount=0.3)), encoding="utf-8")
    loaded = ask(region="eu-west-1")
    plan = make_plan(loaded)

    assert plan.cost.usd_per_hour == 1.7
    assert plan.cost.savings_plan_usd_per_hour == pytest.approx(1.19)
    assert (plan.cost.price_source, plan.cost.price_date) == ("AWS Price List API", "2026-10-01")
    assert not [warning for warning in plan.warnings if "price" in warning]
    assert loaded.digest != before.digest


def bought(ask: Ask, purchase: str, **fields: object) -> LoadedSpec:
    """Return the chat endpoint where instance hours of ml.g5.2xlarge are bought in a way, at 1.7 USD on demand."""
    FILE.parent.mkdir(exist_ok=True)
    listed = team(g5_2xlarge=1.7).regions["eu-west-1"]
    rates = {
        "savings_plan_usd_per_hour": {"ml.g5.2xlarge": 1.2},
        "savings_plan_3y_usd_per_hour": {"ml.g5.2xlarge": 0.8},
        "capacity_block_usd_per_hour": {"ml.g5.2xlarge": 1.0},
    }
    prices = TeamPrices(schema_version="1", regions={"eu-west-1": listed.model_copy(update=rates)})
    FILE.write_text(prices_text(prices), encoding="utf-8")
    return ask(region="eu-west-1", purchase=purchase, **fields)


@pytest.mark.parametrize(
    ("purchase", "usd"), [("savings_plan_1y", 1.2), ("savings_plan_3y", 0.8), ("capacity_block", 1.0)]
)
def test_a_plan_counts_the_price_that_the_environment_buys_at(ask: Ask, purchase: str, usd: float) -> None:
    discounted = {"usd_per_hour": 1.7, "discount": 0.5}
    loaded = bought(ask, purchase, budget=discounted)
    cost = make_plan(loaded).cost

    assert (cost.usd_per_hour, cost.on_demand_usd_per_hour, cost.purchase) == (usd, 1.7, purchase)
    assert loaded.digest != bought(ask, "on_demand", budget=discounted).digest


def test_guard_rails_count_list_prices_however_hours_are_bought(ask: Ask) -> None:
    rails = {"usd_per_hour": 1.5}
    with pytest.raises(PlanError) as caught:
        make_plan(bought(ask, "savings_plan_3y", rails=rails, scaling={"min_copies": 1, "max_copies": 1}))

    assert [problem.rule for problem in caught.value.problems] == ["SEA206"]


def test_a_type_whose_price_is_unknown_there_counts_on_demand_and_says_so(ask: Ask) -> None:
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(prices_text(team(g5_2xlarge=1.7)), encoding="utf-8")
    plan = make_plan(ask(region="eu-west-1", purchase="savings_plan_3y"))

    assert (plan.cost.usd_per_hour, plan.cost.purchase) == (1.7, "on_demand")
    assert plan.warnings[-1] == (
        "The price of ml.g5.2xlarge under a Savings Plan of 3 years without upfront payment is unknown, so the price "
        "on demand counts. `seatrial prices refresh` reads the current prices."
    )


def test_a_region_that_the_file_lacks_changes_nothing(ask: Ask) -> None:
    before = ask(region="eu-west-1")
    expected = make_plan(before)
    FILE.write_text(prices_text(team("us-west-2", g5_2xlarge=1.7)), encoding="utf-8")
    loaded = ask(region="eu-west-1")

    assert (loaded.digest, make_plan(loaded)) == (before.digest, expected)
    assert expected.warnings[-1] == (
        "SEA162: The price of ml.g5.2xlarge in eu-west-1 is not known: us-east-1's of 2026-09-11 stands in. "
        "`seatrial prices refresh` reads the current prices."
    )
    assert expected.cost.price_region == "us-east-1"
    assert make_plan(ask()).cost.price_region is None


def test_a_comparison_says_what_is_not_known_of_its_types_in_the_region(ask: Ask) -> None:
    serving = {"instance_types": ["ml.g5.2xlarge", "ml.g7e.2xlarge", "ml.p5en.48xlarge"]}
    assert basis_of(ask(serving=serving, region="eu-west-1")).unknown_there == (
        "The price of 3 types in eu-west-1 is not known: that of us-east-1 and us-east-2 counts. "
        "Not known to be offered in eu-west-1: ml.g7e.2xlarge, ml.p5en.48xlarge."
    )


BIG = {
    "model": {"hub_id": "openai/gpt-oss-120b"},
    "workload": {"input_tokens": 1000, "output_tokens": 300, "concurrency": 16},
}


@pytest.mark.parametrize("region", ["eu-west-1", "sa-east-1", "me-central-1"])
def test_what_is_known_to_be_offered_in_the_region_comes_first(region: str, ask: Ask) -> None:
    plan = make_plan(ask(**BIG, serving={}, region=region))
    best = plan.instance_type.value
    # ml.g7e.2xlarge is cheaper by us-east-1's prices, and nobody knows that it is offered there.
    assert make_plan(ask(**BIG, serving={})).instance_type.value == "ml.g7e.2xlarge"
    assert (region in instances.OFFERS[best].regions, plan.cost.price_region) == (True, "us-east-1")
    assert not [each for each in plan.warnings if each.startswith("SEA163")]
    assert next(each for each in plan.pareto if each.chosen).instance_type == best
    outdone = next(each for each in plan.rejected if each.instance_type == "ml.g7e.2xlarge")
    assert outdone.because == "Meets the SLO, but is not known to be offered in the region; what is ranks first."
    others = [plan.probe, plan.safer, *plan.proposals]
    assert all(region in instances.OFFERS[each.instance_type].regions for each in others if each is not None)


def test_what_nobody_knows_to_be_offered_is_planned_where_nothing_else_serves_and_says_so(ask: Ask) -> None:
    there = {**BIG, "serving": {"instance_types": ["ml.g7e.2xlarge"]}, "region": "eu-west-1"}
    plan = make_plan(ask(**there))
    (offer,) = [each for each in plan.warnings if each.startswith("SEA163")]

    assert offer == (
        "SEA163: ml.g7e.2xlarge is not known to be offered in eu-west-1. It is in eu-central-1, eu-south-2, eu-west-2 "
        "and others. `seatrial preflight` asks for the account's quota there."
    )
    FILE.write_text(prices_text(team(g7e_2xlarge=5.0)), encoding="utf-8")
    assert not [each for each in make_plan(ask(**there)).warnings if each.startswith("SEA16")]


@pytest.mark.parametrize(
    ("bounds", "names"),
    [
        ({"budget": {"usd_per_hour": 50}}, "budget.usd_per_hour"),
        ({"rails": {"usd_per_hour": 50, "job_usd": 9}}, "guard_rails.usd_per_hour, guard_rails.job_usd"),
        ({}, ""),
    ],
)
def test_no_bound_on_money_is_called_kept_by_another_price(bounds: dict[str, object], names: str, ask: Ask) -> None:
    told = [each for each in make_plan(ask(region="eu-west-1", **bounds)).warnings if each.startswith("SEA164")]
    at_home = [each for each in make_plan(ask(**bounds)).warnings if each.startswith("SEA16")]
    expected = (
        f"SEA164: Whether {names} is kept in eu-west-1 is not known: us-east-1's price was held against it. "
        "`seatrial prices refresh` reads the current prices."
    )

    assert (told, at_home) == ([expected] if names else [], [])


def test_a_savings_plan_rate_that_was_read_wins_over_the_discount() -> None:
    prices = team(g5_2xlarge=2.0).regions["eu-west-1"]
    rated = prices.model_copy(update={"savings_plan_usd_per_hour": {"ml.g5.2xlarge": 1.25}})

    assert rated.savings_plan_price("ml.g5.2xlarge", 0.5) == 1.25
    assert prices.savings_plan_price("ml.g5.2xlarge", 0.5) == 1.0
    assert prices.savings_plan_price("ml.g5.2xlarge", 0.0) is None
    assert prices.savings_plan_price("ml.g5.4xlarge", 0.5) is None


def test_the_same_prices_give_the_same_text_whatever_their_order() -> None:
    one = team(g5_2xlarge=1.7, g5_12xlarge=7.9)

    assert prices_text(one) == prices_text(team(g5_12xlarge=7.9, g5_2xlarge=1.7))
    assert TeamPrices.model_validate(yaml.safe_load(prices_text(one))) == one


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "SEA102"),
        ("{}", "SEA106"),
        ("schema_version: '2'", "SEA107"),
        (f"{REGION} {{date: '2026-10-01', source: x, usd_per_hour: {{g5: 1}}}}", "SEA107"),
        (f"{REGION} {{date: '2026-10-01', source: x, usd_per_hour: {{ml.g5.xlarge: -1}}}}", "SEA107"),
        ("schema_version: '1'\nsavings_plan_discount: 1", "SEA107"),
        ("schema_version: '1'\nregion: {}", "SEA104"),
    ],
)
def test_a_malformed_file_is_refused(text: str, rule: str, ask: Ask) -> None:
    ask()
    FILE.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        ask()

    assert [
        (problem.rule, problem.where.partition(":")[0].endswith("prices.yaml")) for problem in caught.value.problems
    ] == [(rule, True)]


def test_instance_types_without_a_price_are_shown_and_not_chosen(ask: Ask) -> None:
    fast = {"objective": "latency", "serving": {}}
    plan = make_plan(ask(**fast))
    shown = {one.instance_type: one for one in plan.unpriced}

    assert plan.cost.usd_per_hour is not None
    assert {"ml.p5e.48xlarge", "ml.p6-b200.48xlarge"} <= set(shown)
    assert all(one.usd_per_hour is None and one.output_tok_s > 0 for one in shown.values())
    assert plan.instance_type.value not in shown


def test_what_the_spec_names_or_the_user_allows_may_lack_a_price(ask: Ask) -> None:
    rails = {"instance_types": ["ml.p5e.48xlarge"]}
    with pytest.raises(PlanError) as caught:
        make_plan(ask(serving={}, rails=rails))
    allowed = make_plan(ask(serving={}, rails=rails), allow_unknown_price=True)
    named = make_plan(ask(serving={"instance_types": ["ml.p5e.48xlarge"]}))

    assert [problem.rule for problem in caught.value.problems] == ["SEA207"]
    assert allowed.instance_type.value == named.instance_type.value == "ml.p5e.48xlarge"
    assert (allowed.cost.usd_per_hour, allowed.unpriced) == (None, ())
