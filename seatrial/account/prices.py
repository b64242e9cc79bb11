"""Reads SageMaker's Hosting prices from AWS: on demand from the Price List API, Savings Plans from their own API."""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from seatrial.account.reader import aws_failures
from seatrial.specs.prices import RegionPrices
from seatrial_base.catalog.instances import find_instance
from seatrial_base.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mypy_boto3_pricing import PricingClient
    from mypy_boto3_savingsplans import SavingsPlansClient

PRICING_REGION = "us-east-1"
"""The Price List API has endpoints in three regions only, each with the prices of all regions."""
SOURCE = "AWS Price List API, AmazonSageMaker, Hosting, on demand"
_SERVICE = "AmazonSageMaker"
_HOSTING = re.compile(r"^(?:[A-Z0-9]+-)?Host:(ml\..+)$")
_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}")
_YEAR_S = 365 * 24 * 3600
_TERMS_S: Mapping[object, str] = MappingProxyType(
    {_YEAR_S: "savings_plan_usd_per_hour", 3 * _YEAR_S: "savings_plan_3y_usd_per_hour"}
)
_HOURLY = ("Hrs", "Hour", "hour", "hrs")
_MOST_PAGES = 1_000  # of 100 products: far above the few thousand of a region


def read_region(pricing: PricingClient, region: str) -> RegionPrices:
    """Return the on-demand prices of Hosting in a region, of the instance types that the catalog knows.

    Raises:
        BenchError: SEA523 when the list has no price of Hosting there or two that differ, SEA503, SEA504 or SEA511 when
            AWS can't be asked.
    """
    prices: dict[str, float] = {}
    dates: set[str] = set()
    for product in _products(pricing, region):
        name = _hosted(_mapping(_mapping(product, "product"), "attributes"))
        price = None if name is None else _on_demand(product)
        if name is None or price is None:
            continue
        if prices.setdefault(name, price) != price:
            message = f"the price list has two prices of {name}: {prices[name]:g} and {price:g} USD per hour"
            raise BenchError.of("SEA523", message, where=region)
        dates |= set(_DATE.findall(str(product.get("publicationDate", ""))))
    if not prices or not dates:
        message = "the price list has no Hosting price with a date for this region"
        raise BenchError.of("SEA523", message, hint="check the region's name", where=region)
    return RegionPrices(date=max(dates), source=SOURCE, usd_per_hour=dict(sorted(prices.items())))


def read_savings_plans(plans: SavingsPlansClient, region: str) -> dict[str, dict[str, float]]:
    """Return the prices of Hosting under SageMaker Savings Plans without upfront payment, by field of `RegionPrices`.

    Raises:
        BenchError: SEA503, SEA504 or SEA511 when AWS can't be read, SEA523 when it responds otherwise.
    """
    given = {
        "savingsPlanTypes": ["SageMaker"],
        "products": ["SageMaker"],
        "savingsPlanPaymentOptions": ["No Upfront"],
        "filters": [{"name": "region", "values": [region]}],
    }
    by_term: dict[str, dict[str, float]] = {field: {} for field in _TERMS_S.values()}
    for page in _pages(plans.describe_savings_plans_offering_rates, given, "nextToken", region):
        entries = page.get("searchResults")
        for row in [row for row in entries if isinstance(row, dict)] if isinstance(entries, list) else []:
            name = _HOSTING.match(str(row.get("usageType", "")))
            rate = _positive(row.get("rate"))
            field = _TERMS_S.get(_mapping(row, "savingsPlanOffering").get("durationSeconds"))
            if name is not None and rate is not None and field is not None and find_instance(name[1]) is not None:
                by_term[field][name[1]] = rate
    return {field: dict(sorted(rates.items())) for field, rates in by_term.items()}


def _products(pricing: PricingClient, region: str) -> Iterator[Mapping[str, object]]:
    wanted = {"regionCode": region, "component": "Hosting"}
    filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()]
    given = {"ServiceCode": _SERVICE, "FormatVersion": "aws_v1", "Filters": filters}
    for page in _pages(pricing.get_products, given, "NextToken", region):
        listed = page.get("PriceList")
        for text in listed if isinstance(listed, list) else ():
            yield _decoded(text, region)


def _decoded(text: object, region: str) -> Mapping[str, object]:
    try:
        product = json.loads(text) if isinstance(text, str) else text
    except ValueError as error:
        raise BenchError.of("SEA523", f"a product of the price list is not JSON: {error}", where=region) from error
    if not isinstance(product, dict):
        raise BenchError.of("SEA523", "a product of the price list is not a JSON object", where=region)
    return product


def _pages(
    ask: Callable[..., Mapping[str, object]], given: Mapping[str, object], token_name: str, region: str
) -> Iterator[Mapping[str, object]]:
    """Yield every page; the token of the next one has the same name in question and answer."""
    token = ""
    for _ in range(_MOST_PAGES):
        with aws_failures(
            region, lambda error: BenchError.of("SEA523", f"AWS refused the question: {error}", where=region)
        ):
            page = ask(**given, **({token_name: token} if token else {}))
        yield page
        token = str(page.get(token_name) or "")
        if not token:
            return
    raise BenchError.of("SEA523", f"the answer has more than {_MOST_PAGES:,} pages", where=region)


def _hosted(attributes: Mapping[str, object]) -> str | None:
    """Return the instance type of a product of Hosting; `None` for another product."""
    usage = _HOSTING.match(str(attributes.get("usagetype", "")))
    if usage is None or attributes.get("component") != "Hosting":
        return None
    return usage[1] if find_instance(usage[1]) is not None else None


def _on_demand(product: Mapping[str, object]) -> float | None:
    """Return the on-demand price per hour in US dollars; `None` where a product has none, or is free."""
    terms = _mapping(_mapping(product, "terms"), "OnDemand")
    for term in terms.values():
        for dimension in _mapping(term, "priceDimensions").values():
            if _mapping(dimension).get("unit") in _HOURLY:
                return _positive(_mapping(dimension, "pricePerUnit").get("USD"))
    return None


def _positive(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if 0 < number < float("inf") else None


def _mapping(value: object, name: str | None = None) -> Mapping[str, object]:
    """Return a mapping, or the one in it by name; empty where there is none."""
    member = value if name is None else (value.get(name) if isinstance(value, dict) else None)
    return member if isinstance(member, dict) else {}
