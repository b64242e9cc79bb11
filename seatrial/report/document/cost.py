"""The cost: planned, and measured where the measured thing is what is paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.document.section import Section
from seatrial.report.values import NO_TOKEN_COUNT, count_cell, money_cell, number_cell, percent, why_missing
from seatrial_base.table import CONCURRENCY, Cell, Column, Table
from seatrial_load.knee import blended_cost_at, cost_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.documents.plan import Plan
    from seatrial_load.documents.result import LevelResult, TrialResult

NO_PRICE = "the catalog has no price for this instance type"
NO_MEASURED_COST = "it needs a price, a knee and the endpoint's token counts"
NO_LEVEL_COST = "it needs a price and the endpoint's token counts"
FORMULA = (
    "Cost of a million output tokens: price per hour / (3600 × tok/s) × 10⁶. Blended 3:1, per million tokens of input "
    "and output: a quarter of that."
)


def cost_section(result: TrialResult, plan: Plan | None) -> Section:
    """Return the planned cost; the measured one as well only for a real endpoint."""
    if plan is None:
        tables = _measured_tables(result)
        paragraphs = tuple(_paragraphs(result, plan)) if tables else ()
        return Section(anchor="cost", heading="Cost", paragraphs=paragraphs, tables=tables)
    cost = plan.cost
    off = f", less the spec's discount of {percent(cost.discount)}" if cost.discount else ""
    return Section(
        anchor="cost",
        heading="Cost",
        half=True,
        paragraphs=tuple(_paragraphs(result, plan)),
        tables=(cost_table(result, plan),),
        remarks=(f"Price: {cost.price_source}, {cost.price_date}{off}{cost.elsewhere}.",) if cost.price_source else (),
    )


def level_cost_section(result: TrialResult, plan: Plan | None) -> Section:
    """Return the measured cost of each level, where the cost of the knee is above; else empty."""
    tables = () if plan is None else _measured_tables(result)
    return Section(
        anchor="level-cost",
        heading="Cost by level",
        paragraphs=(FORMULA,) if tables else (),
        tables=tables,
        detail=True,
    )


def cost_table(result: TrialResult, plan: Plan) -> Table:
    """Return planned amounts, then the measured ones if there can be any."""
    columns = (Column("cost", kind="text"), Column("amount", "US dollars"), Column("of what", kind="prose"))
    cost = plan.cost
    per_token, blended = cost.usd_per_million_output_tokens, cost.blended_usd_per_million_tokens
    size = f"{plan.instance_count.value} × {plan.instance_type.value}"
    rows = (
        ("planned, per hour", cost.usd_per_hour, size),
        ("planned, per hour and copy", cost.usd_per_hour_per_copy, "one copy's share of its instance"),
        ("planned, per million output tokens", per_token, "predicted throughput, planned load"),
        ("planned, blended, per million tokens", blended, "3 input tokens to 1 output token"),
    )
    return Table(
        "Cost, planned and measured",
        columns,
        (*((Cell(name), money_cell(amount, NO_PRICE), Cell(of)) for name, amount, of in rows), *_measured(result)),
    )


def level_cost_table(result: TrialResult) -> Table:
    """Return the cost of tokens at each level that counts: the articles' formulas with the measured throughput."""
    columns = (
        CONCURRENCY,
        Column("output per copy", "tok/s"),
        Column("per million output tokens", "US dollars"),
        Column("blended 3:1, per million", "US dollars"),
    )
    rows = tuple(tuple(_level_row(level, result)) for level in result.levels if level.valid)
    return Table("Measured cost by level", columns, rows)


def _paragraphs(result: TrialResult, plan: Plan | None) -> Iterator[str]:
    if plan is None:
        yield FORMULA
    elif result.engine_note:
        yield (f"No measured cost: the throughput is from a CPU, the price from {plan.instance_type.value}.")
    price = result.request.usd_per_hour_per_copy
    if price is not None and not result.engine_note:
        yield f"Measured cost is based on ${price:,g} per hour and copy."


def _measured(result: TrialResult) -> tuple[tuple[Cell, ...], ...]:
    if result.engine_note:
        return ()
    plain = money_cell(result.usd_per_million_output_tokens, NO_MEASURED_COST)
    mixed = money_cell(result.blended_usd_per_million_tokens, NO_MEASURED_COST)
    at_knee = Cell("throughput at the knee that sets the target")
    return (
        (Cell("measured, per million output tokens"), plain, at_knee),
        (Cell("measured, blended, per million tokens"), mixed, Cell("the same, 3 input tokens to 1 output token")),
    )


def _measured_tables(result: TrialResult) -> tuple[Table, ...]:
    # Tokens of a CPU at the price of a GPU would be a number of nothing.
    priced = result.request.usd_per_hour_per_copy is not None and not result.engine_note
    return (level_cost_table(result),) if priced and any(level.valid for level in result.levels) else ()


def _level_row(level: LevelResult, result: TrialResult) -> Iterator[Cell]:
    per_copy = None if level.output_tok_s is None else level.output_tok_s / result.request.copy_count
    yield count_cell(level.concurrency)
    yield number_cell(per_copy, why_missing(level, NO_TOKEN_COUNT))
    yield money_cell(cost_at(result.request, level), NO_LEVEL_COST)
    yield money_cell(blended_cost_at(result.request, level), NO_LEVEL_COST)
