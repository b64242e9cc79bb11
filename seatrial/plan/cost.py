"""What a deployment costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.plan.document import Cost
from seatrial.units import S_PER_HOUR

if TYPE_CHECKING:
    from seatrial.catalog.instances import Instance

_MILLION = 1_000_000
_TOKENS_PER_OUTPUT_TOKEN = 4  # three input tokens to one output token


def usd_per_hour(instance: Instance, instance_count: int) -> float | None:
    """Return the price of some instances; `None` when the catalog has no price."""
    return None if instance.usd_per_hour is None else instance.usd_per_hour * instance_count


def cost_of(instance: Instance, *, instance_count: int, copies_per_instance: int, output_tok_s: float) -> Cost:
    """Return the cost of a deployment at its planned load.

    Args:
        instance: The instance type with its price.
        instance_count: Instances of the planned size.
        copies_per_instance: Copies that share one instance.
        output_tok_s: Output tokens per second of all copies at the planned load.
    """
    hourly = usd_per_hour(instance, instance_count)
    if hourly is None or instance.usd_per_hour is None:
        return Cost(
            usd_per_hour=None,
            usd_per_hour_per_copy=None,
            usd_per_million_output_tokens=None,
            blended_usd_per_million_tokens=None,
            price_source=None,
            price_date=None,
        )
    per_million = hourly / (output_tok_s * S_PER_HOUR) * _MILLION
    return Cost(
        usd_per_hour=round(hourly, 4),
        usd_per_hour_per_copy=round(instance.usd_per_hour / copies_per_instance, 4),
        usd_per_million_output_tokens=round(per_million, 4),
        blended_usd_per_million_tokens=round(per_million / _TOKENS_PER_OUTPUT_TOKEN, 4),
        price_source=instance.price_source,
        price_date=instance.price_date,
    )
