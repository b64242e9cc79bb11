"""What the planned size costs, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from seatrial.report.terminal.tables import percent
from seatrial.units import usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from seatrial.plan.document import Cost


def cost_view(cost: Cost) -> RenderableType:
    """Return the cost in one paragraph."""
    return Text(f"\n{cost_sentence(cost)}", style="" if cost.usd_per_hour is not None else "yellow")


def cost_sentence(cost: Cost) -> str:
    """Say what the planned size costs, at which discount, and where the price was read."""
    if cost.usd_per_hour is None:
        return "Cost unknown: the catalog has no price for this instance type."
    return f"Cost {', '.join(_amounts(cost, cost.usd_per_hour))}. {_price(cost)}."


def _amounts(cost: Cost, usd_per_hour: float) -> Iterator[str]:
    yield f"{usd(usd_per_hour)} per hour"
    if cost.usd_per_million_output_tokens is not None:
        yield f"{usd(cost.usd_per_million_output_tokens)} per million output tokens at the planned load"
    if cost.blended_usd_per_million_tokens is not None:
        yield f"{usd(cost.blended_usd_per_million_tokens)} per million tokens blended 3:1"


def _price(cost: Cost) -> str:
    off = f" less the spec's discount of {percent(cost.discount)}" if cost.discount else ""
    return f"List price of {cost.price_date}{off}, {cost.price_source}"
