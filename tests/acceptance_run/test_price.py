"""What a run costs: expected step by step, counted while it runs, and stopped before the budget is spent."""

from __future__ import annotations

from math import ceil

import pytest

from tests.acceptance.account.price import (
    HOUR_S,
    LONGEST_REMOVAL_S,
    OTHER_USD,
    STEPS,
    Spending,
    expected_usd,
    list_price,
    price_lines,
    running_instances,
)
from tests.acceptance.account.run import Options
from tests.acceptance.endpoint import INSTANCE_TYPES

TYPE = "ml.g4dn.xlarge"


def price(instance_type: str) -> float:
    return {TYPE: 0.72}[instance_type]


def test_every_type_of_the_suite_has_a_price() -> None:
    assert [list_price(each) > 0 for each in INSTANCE_TYPES] == [True] * len(INSTANCE_TYPES)
    with pytest.raises(KeyError, match=r"ml\.none"):
        list_price("ml.none")


def test_the_default_budget_lasts_for_each_step_and_the_longest_removal_behind_it() -> None:
    usd_per_hour, usd = min(map(list_price, INSTANCE_TYPES)), OTHER_USD
    for step in STEPS:
        usd += step.hours * usd_per_hour
        assert (
            usd + ceil(step.instances) * usd_per_hour * LONGEST_REMOVAL_S / HOUR_S < Options(environment="x").budget_usd
        )


def test_the_expected_price_is_the_sum_of_its_lines() -> None:
    head, _, *rows, total = price_lines(TYPE, 0.72)
    assert head.startswith("ml.g4dn.xlarge at 0.7200 USD per hour")
    assert len(rows) == len(STEPS) + len(["functions"])
    shown = sum(float(row.split()[-1]) for row in rows)
    assert float(total.split()[-1]) == pytest.approx(shown, abs=0.01 * len(rows))
    assert total.split()[-1] == f"{expected_usd(0.72):.2f}"


def test_time_is_counted_at_the_larger_of_two_rates() -> None:
    spending = Spending(price, dearest=10.0)
    spending.look({TYPE: 0}, 0.0)
    spending.look({TYPE: 2}, 1_800.0)  # they may have run since the last look
    spending.look({TYPE: 0}, 3_600.0)  # and until this one
    assert spending.usd == pytest.approx(OTHER_USD + 2 * 0.72)


def test_a_look_without_an_answer_counts_on() -> None:
    spending = Spending(price, dearest=10.0)
    spending.look({TYPE: 1}, 0.0)
    spending.look(None, 3_600.0)
    spending.look(None, 7_200.0)
    assert spending.usd == pytest.approx(OTHER_USD + 2 * 0.72)


def test_a_type_without_a_price_counts_as_the_dearest() -> None:
    spending = Spending(price, dearest=10.0)
    spending.look({"ml.unknown": 1}, 0.0)
    spending.look({}, 360.0)
    assert spending.usd == pytest.approx(OTHER_USD + 1.0)


def test_the_budget_keeps_the_price_of_the_removal() -> None:
    spending = Spending(lambda _: 3_600.0, dearest=0.0, removal_s=10.0)  # a dollar a second
    spending.look({TYPE: 1}, 0.0)
    assert not spending.would_exceed(OTHER_USD + 15.0, next_look_s=5.0)
    assert spending.would_exceed(OTHER_USD + 14.9, next_look_s=5.0)


class _SageMaker:
    """Two endpoints of the environment, one of which is being created, and another team's."""

    def get_paginator(self, name: str) -> _SageMaker:
        assert name == "list_endpoints"
        return self

    def paginate(self, **_: str) -> list[dict[str, list[dict[str, str]]]]:
        names = ("sandbox-chat", "sandbox-doze", "my-sandbox-other")
        return [{"Endpoints": [{"EndpointName": name}]} for name in names]

    def describe_endpoint(self, **asked: str) -> dict[str, object]:
        variants = {
            "sandbox-chat": [{"VariantName": "v", "CurrentInstanceCount": 2, "DesiredInstanceCount": 3}],
            "sandbox-doze": [{"VariantName": "v"}],
        }
        return {"EndpointConfigName": "c", "ProductionVariants": variants[asked["EndpointName"]]}

    def describe_endpoint_config(self, **_: str) -> dict[str, object]:
        return {"ProductionVariants": [{"VariantName": "v", "InstanceType": TYPE}]}


def test_instances_that_are_asked_for_count_and_those_of_others_do_not() -> None:
    assert running_instances(_SageMaker(), "sandbox-") == {TYPE: 3}
