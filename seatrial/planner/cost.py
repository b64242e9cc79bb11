"""What a deployment costs: as the environment buys instance hours, else list prices less the discount of the spec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.documents.plan import Cost
from seatrial_base.units import BLENDED_TOKENS_PER_OUTPUT_TOKEN, S_PER_HOUR

if TYPE_CHECKING:
    from seatrial_base.catalog.instances import Instance

_MILLION = 1_000_000


def usd_per_hour(instance: Instance, instance_count: int, discount: float = 0.0) -> float | None:
    """Return the price of some instances; `None` when the catalog has no price.

    Args:
        instance: The instance type with its list price.
        instance_count: Instances.
        discount: Share off the list price.
    """
    if instance.purchase_usd_per_hour is not None:
        return instance.purchase_usd_per_hour * instance_count
    return None if instance.usd_per_hour is None else instance.usd_per_hour * (1 - discount) * instance_count


def usd_per_million(usd_per_hour: float, output_tok_s: float) -> float:
    """Return the price of a million output tokens: dollars per hour over millions of tokens per hour."""
    return usd_per_hour / (output_tok_s * S_PER_HOUR) * _MILLION


def blended(usd_per_million_output_tokens: float) -> float:
    """Return the price of a million tokens at three input tokens to one output token."""
    return usd_per_million_output_tokens / BLENDED_TOKENS_PER_OUTPUT_TOKEN


def cost_of(
    instance: Instance, *, instance_count: int, copies_per_instance: int, output_tok_s: float, discount: float = 0.0
) -> Cost:
    """Return the cost of a deployment at its planned load.

    Args:
        instance: The instance type with its list price.
        instance_count: Instances of the planned size.
        copies_per_instance: Copies that share one instance.
        output_tok_s: Output tokens per second of all copies at the planned load.
        discount: Share off the list price.
    """
    hourly, each = usd_per_hour(instance, instance_count, discount), usd_per_hour(instance, 1, discount)
    if hourly is None or each is None:
        return Cost(
            usd_per_hour=None,
            usd_per_hour_per_copy=None,
            usd_per_million_output_tokens=None,
            blended_usd_per_million_tokens=None,
            discount=discount,
            price_source=None,
            price_date=None,
        )
    per_million = usd_per_million(hourly, output_tok_s)
    return Cost(
        usd_per_hour=round(hourly, 4),
        usd_per_hour_per_copy=round(each / copies_per_instance, 4),
        usd_per_million_output_tokens=round(per_million, 4),
        blended_usd_per_million_tokens=round(blended(per_million), 4),
        discount=discount,
        price_source=instance.price_source,
        price_date=instance.price_date,
        savings_plan_usd_per_hour=_savings_plan(instance, instance_count),
        purchase=instance.purchase,
        on_demand_usd_per_hour=_on_demand(instance, instance_count),
    )


def _on_demand(instance: Instance, instance_count: int) -> float | None:
    """Return the list price of some instances where they are bought otherwise."""
    listed = None if instance.purchase_usd_per_hour is None else instance.usd_per_hour
    return None if listed is None else round(listed * instance_count, 4)


def _savings_plan(instance: Instance, instance_count: int) -> float | None:
    """Return the price of some instances under a Savings Plan, which takes no other discount."""
    each = instance.savings_plan_usd_per_hour
    return None if each is None else round(each * instance_count, 4)
