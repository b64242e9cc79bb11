"""The team's prices: `prices.yaml` beside the environments, or the file that an environment names.

`seatrial prices refresh` writes it; regions and instance types are sorted, so that a review shows what changed.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StringConstraints

from seatrial.specs import shapes
from seatrial.specs.yaml_source import yaml_text
from seatrial_base.catalog.instances import find_instance
from seatrial_base.frozen_model import FrozenModel, digested, model_field

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.instances import Instance, Purchase


PRICES_FILE = "prices.yaml"
PRICES_SCHEMA = "1"
_DATE = r"^\d{4}-\d{2}-\d{2}$"

PURCHASES: Mapping[Purchase, str] = MappingProxyType(
    {
        "on_demand": "on demand",
        "savings_plan_1y": "under a Savings Plan of 1 year without upfront payment",
        "savings_plan_3y": "under a Savings Plan of 3 years without upfront payment",
        "capacity_block": "as reserved capacity",
    }
)
"""How instance hours are bought, in words."""
CONDITIONS: Mapping[Purchase, str] = MappingProxyType(
    {
        "on_demand": "",
        "savings_plan_1y": "paid every hour of the year, used or not",
        "savings_plan_3y": "paid every hour of three years, used or not",
        "capacity_block": "paid upfront for its whole term; hosting.capacity_reservation_arn names it",
    }
)
"""What that costs whether it is used or not."""

RegionName = Annotated[str, StringConstraints(pattern=shapes.REGION)]
TypeName = Annotated[str, StringConstraints(pattern=shapes.INSTANCE_TYPE)]
PricePerHour = Annotated[float, Field(gt=0, le=100_000)]
Discount = Annotated[float, Field(ge=0, lt=1)]


class RegionPrices(FrozenModel):
    """The prices of one region, in US dollars per instance hour."""

    date: Annotated[str, StringConstraints(pattern=_DATE)] = Field(description="Date of the price list.")
    source: Annotated[str, StringConstraints(min_length=1, max_length=500)] = Field(description="Where it was read.")
    usd_per_hour: dict[TypeName, PricePerHour] = Field({}, description="On-demand price of Hosting.")
    savings_plan_usd_per_hour: dict[TypeName, PricePerHour] = Field(
        {}, description="Price under a Savings Plan of one year without upfront payment."
    )
    savings_plan_3y_usd_per_hour: dict[TypeName, PricePerHour] = model_field(
        {}, "Price under a Savings Plan of three years without upfront payment.", since="0.2"
    )
    capacity_block_usd_per_hour: dict[TypeName, PricePerHour] = model_field(
        {}, "Price of an hour of reserved capacity (a flexible training plan), as it was offered to you.", since="0.2"
    )

    def savings_plan_price(self, instance_type: str, discount: float) -> float | None:
        """Return the price under a Savings Plan: the rate that was read, else the on-demand price less a share."""
        rate, listed = self.savings_plan_usd_per_hour.get(instance_type), self.usd_per_hour.get(instance_type)
        if rate is not None or listed is None or not discount:
            return rate
        return listed * (1 - discount)

    def purchase_price(self, instance_type: str, purchase: Purchase, discount: float) -> float | None:
        """Return the price of an instance hour that is bought in a way; `None` on demand, and where it is unknown."""
        if purchase == "savings_plan_1y":
            return self.savings_plan_price(instance_type, discount)
        rates = {
            "savings_plan_3y": self.savings_plan_3y_usd_per_hour,
            "capacity_block": self.capacity_block_usd_per_hour,
        }
        return rates.get(purchase, {}).get(instance_type)


class TeamPrices(FrozenModel):
    """The prices file."""

    schema_version: Literal["1"] = Field(description="Version of the file's format.")
    savings_plan_discount: Discount = Field(
        0.0, description="Share off the on-demand price under a Savings Plan, for types without a rate of their own."
    )
    regions: dict[RegionName, RegionPrices] = Field({}, description="Prices by region.")


def prices_path(environments: Path, named: str | None) -> Path:
    """Return the prices file of an environment: the one that it names, else `prices.yaml` next to it."""
    return environments / (named or PRICES_FILE)


def prices_text(prices: TeamPrices) -> str:
    """Return the prices as YAML; equal prices give equal text."""
    document = prices.model_dump(mode="json", exclude_defaults=True) | {"schema_version": PRICES_SCHEMA}
    return _HEAD + yaml_text(document, sort_keys=True)


_HEAD = """\
# SageMaker prices of this team, in US dollars per instance hour: written by `seatrial prices refresh`, read by
# `seatrial plan`. savings_plan_discount is kept when the file is written again.
"""


def region_document(prices: TeamPrices, region: str) -> Mapping[str, object] | None:
    """Return what the file says of one region; `None` when it says nothing."""
    of_region = prices.regions.get(region)
    if of_region is None:
        return None
    return {"prices": digested(of_region), "savings_plan_discount": prices.savings_plan_discount}


def priced(instance: Instance, loaded: LoadedSpec) -> Instance:
    """Return an instance type with the price that the team's file gives for the environment's region.

    Where the file lacks the region or the type, the catalog's price stays, with the region that it is of.
    """
    region = loaded.environment.region
    instance = replace(instance, region=region)
    prices = None if loaded.prices is None else loaded.prices.regions.get(region)
    listed = None if prices is None else prices.usd_per_hour.get(instance.instance_type)
    if loaded.prices is None or prices is None or listed is None:
        return instance
    name, discount, purchase = instance.instance_type, loaded.prices.savings_plan_discount, loaded.environment.purchase
    planned = prices.savings_plan_price(name, discount)
    bought = prices.purchase_price(name, purchase, discount)
    return replace(
        instance,
        usd_per_hour=listed,
        price_region=region,
        price_component="Hosting",
        price_source=prices.source,
        price_date=prices.date,
        savings_plan_usd_per_hour=planned,
        purchase="on_demand" if bought is None else purchase,
        purchase_usd_per_hour=bought,
    )


def list_price(instance_type: str, loaded: LoadedSpec) -> float | None:
    """Return the list price of an instance type, in US dollars per hour; `None` when it is not known.

    No discount of a spec counts: guard rails are held against it.
    """
    instance = find_instance(instance_type)
    return None if instance is None else priced(instance, loaded).usd_per_hour
