"""What it costs: planned, and measured where the measured thing is what is paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.cell import Cell, money, percent
from seatrial.report.section import Section
from seatrial.report.table import Column, Table

if TYPE_CHECKING:
    from seatrial.bench.result import TrialResult
    from seatrial.plan.document import Plan

NO_PRICE = "the catalog has no price for this instance type"
NO_MEASURED_COST = "it needs a price, a knee and the endpoint's token counts"
FORMULA = "Per million output tokens: price per hour / (3600 × tok/s) × 10⁶."


def cost_section(result: TrialResult, plan: Plan) -> Section:
    """Return the planned cost; the measured one beside it only for a real endpoint."""
    paragraphs = [FORMULA]
    if result.engine_note:
        paragraphs.append(
            "No cost follows from this trial's throughput: the tokens per second are those of a small random model on "
            f"a CPU, the price is that of {plan.instance_type.value}; their quotient would describe neither."
        )
    cost = plan.cost
    off = f", less the spec's discount of {percent(cost.discount)}" if cost.discount else ""
    source = (f"Price: {cost.price_source}, {cost.price_date}{off}.",) if cost.price_source else ()
    tables = (cost_table(result, plan),)
    return Section(anchor="cost", heading="Cost", paragraphs=tuple(paragraphs), tables=tables, remarks=source)


def cost_table(result: TrialResult, plan: Plan) -> Table:
    """Return planned amounts, then the measured one if there can be one."""
    columns = (Column("cost", kind="text"), Column("amount", "US dollars"), Column("of what", kind="prose"))
    return Table("Cost, planned and measured", columns, (*_planned(plan), *_measured(result)))


def _planned(plan: Plan) -> tuple[tuple[Cell, ...], ...]:
    cost, size = plan.cost, f"{plan.instance_count.value} × {plan.instance_type.value}"
    rows = (
        ("planned, per hour", cost.usd_per_hour, size),
        ("planned, per hour and copy", cost.usd_per_hour_per_copy, "one copy's share of its instance"),
        (
            "planned, per million output tokens",
            cost.usd_per_million_output_tokens,
            "predicted throughput, planned load",
        ),
        (
            "planned, blended, per million tokens",
            cost.blended_usd_per_million_tokens,
            "3 input tokens to 1 output token",
        ),
    )
    return tuple((Cell(name), money(amount, NO_PRICE), Cell(what)) for name, amount, what in rows)


def _measured(result: TrialResult) -> tuple[tuple[Cell, ...], ...]:
    if result.engine_note:
        return ()
    amount = money(result.usd_per_million_output_tokens, NO_MEASURED_COST)
    return ((Cell("measured, per million output tokens"), amount, Cell("throughput at the scaling target's knee")),)
