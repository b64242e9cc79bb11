from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import boto3
import pytest
from botocore.stub import Stubber

from seatrial.account.prices import SOURCE, read_region, read_savings_plans
from seatrial_base.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_pricing import PricingClient


REGION = "eu-west-1"


def product(usage: str, usd: str, *, component: str = "Hosting", unit: str = "Hrs", date: str = "2026-10-01") -> str:
    """Write a product as the Price List API does: a string that holds JSON."""
    dimension = {"unit": unit, "pricePerUnit": {"USD": usd}}
    return json.dumps(
        {
            "product": {"attributes": {"component": component, "usagetype": usage, "regionCode": REGION}},
            "terms": {"OnDemand": {"A.B": {"priceDimensions": {"A.B.C": dimension}}}},
            "publicationDate": f"{date}T12:00:00Z",
        }
    )


def asked(**more: str) -> dict[str, object]:
    filters = [
        {"Type": "TERM_MATCH", "Field": "regionCode", "Value": REGION},
        {"Type": "TERM_MATCH", "Field": "component", "Value": "Hosting"},
    ]
    return {"ServiceCode": "AmazonSageMaker", "FormatVersion": "aws_v1", "Filters": filters, **more}


class Answers:
    """Answers a question with one page after the other."""

    def __init__(self, *pages: Mapping[str, object]) -> None:
        self.pages = [*pages]

    def get_products(self, **_given: object) -> Mapping[str, object]:
        return self.pages.pop(0)


def pricing(*pages: Mapping[str, object]) -> PricingClient:
    return cast("PricingClient", Answers(*pages))


def test_reads_every_page_as_the_api_writes_it() -> None:
    client = boto3.client("pricing", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    first = {"PriceList": [product("EU-Host:ml.g5.xlarge", "1.5700000000")], "NextToken": "more"}
    second = {"PriceList": [product("EU-Host:ml.g5.12xlarge", "7.91", date="2026-09-30")]}
    with Stubber(client) as stub:
        stub.add_response("get_products", first, asked())
        stub.add_response("get_products", second, asked(NextToken="more"))
        found = read_region(client, REGION)
        stub.assert_no_pending_responses()

    assert found.usd_per_hour == {"ml.g5.12xlarge": 7.91, "ml.g5.xlarge": 1.57}
    assert (found.date, found.source) == ("2026-10-01", SOURCE)


@pytest.mark.parametrize(
    "other",
    [
        product("EU-Train:ml.g5.12xlarge", "9"),
        product("EU-Host:ml.g5.12xlarge", "9", component="Training"),
        product("EU-Host:ml.g5.12xlarge", "0.0000000000"),
        product("EU-Host:ml.g5.12xlarge", "9", unit="GB-Mo"),
        product("EU-Host:ml.g5.12xlarge", "a lot"),
        product("EU-Host:ml.g99.12xlarge", "9"),
        "{}",
    ],
    ids=["training", "component", "free", "storage", "no number", "no type of the catalog", "empty"],
)
def test_other_products_are_passed_over(other: str) -> None:
    found = read_region(pricing({"PriceList": [other, product("Host:ml.g5.xlarge", "1.57")]}), REGION)

    assert found.usd_per_hour == {"ml.g5.xlarge": 1.57}


@pytest.mark.parametrize(
    "page",
    [
        {"PriceList": []},
        {},
        {"PriceList": ["not JSON"]},
        {"PriceList": ["[]"]},
        {"PriceList": [product("Host:ml.g5.xlarge", "1.57", date="soon")]},
        {"PriceList": [product("Host:ml.g5.xlarge", "1.57"), product("EU-Host:ml.g5.xlarge", "1.58")]},
    ],
    ids=["nothing", "no list", "no JSON", "no object", "no date", "two prices"],
)
def test_a_list_that_can_not_be_used_is_refused(page: Mapping[str, object]) -> None:
    with pytest.raises(BenchError) as caught:
        read_region(pricing(page), REGION)

    assert [(problem.rule, problem.where) for problem in caught.value.problems] == [("SEA523", REGION)]


def test_an_answer_without_an_end_is_given_up() -> None:
    class Endless(Answers):
        def get_products(self, **_given: object) -> Mapping[str, object]:
            return {"PriceList": [], "NextToken": "again"}

    with pytest.raises(BenchError, match="SEA523"):
        read_region(cast("PricingClient", Endless()), REGION)


@pytest.mark.parametrize(
    ("code", "rule"), [("AccessDeniedException", "SEA511"), ("InvalidParameterException", "SEA523")]
)
def test_a_refusal_says_why(code: str, rule: str) -> None:
    client = boto3.client("pricing", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(client) as stub:
        stub.add_client_error("get_products", code)
        with pytest.raises(BenchError) as caught:
            read_region(client, REGION)

    assert [problem.rule for problem in caught.value.problems] == [rule]


def test_savings_plans_of_one_and_three_years_are_read() -> None:
    client = boto3.client("savingsplans", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")

    def rate(usage: str, value: str, years: int = 1) -> dict[str, object]:
        offering = {"durationSeconds": years * 31_536_000, "paymentOption": "No Upfront", "planType": "SageMaker"}
        return {"usageType": usage, "rate": value, "savingsPlanOffering": offering}

    rows = [
        rate("EU-Host:ml.g5.xlarge", "1.1"),
        rate("EU-Host:ml.g5.2xlarge", "0.9", years=3),
        rate("EU-Host:ml.g5.2xlarge", "0.8", years=2),
        rate("EU-Train:ml.g5.4xlarge", "2"),
    ]
    with Stubber(client) as stub:
        stub.add_response("describe_savings_plans_offering_rates", {"searchResults": rows, "nextToken": ""})
        found = read_savings_plans(client, REGION)

    assert found == {
        "savings_plan_usd_per_hour": {"ml.g5.xlarge": 1.1},
        "savings_plan_3y_usd_per_hour": {"ml.g5.2xlarge": 0.9},
    }
