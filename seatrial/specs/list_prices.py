"""The price of an instance type for one environment: the team's prices file first, the catalog after it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_base.catalog.instances import find_instance

if TYPE_CHECKING:
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.instances import Instance


def priced(instance: Instance, loaded: LoadedSpec) -> Instance:
    """Return an instance type with the price that the team's file gives for the environment's region.

    Where the file lacks the region or the type, the catalog's price stays, with the region that it is of.
    """
    region = loaded.environment.region
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
