"""The deployments that were not chosen: those that nothing beats in everything, and the nearest losers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.report.terminal.tables import UNKNOWN, add_columns, add_row, heading, short, table
from seatrial.units import usd

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seatrial.plan.document import Alternative, Plan

FRONT = (
    "No other deployment is better in price, single-request latency and highest throughput together. > marks the plan."
)
_TEN, _THOUSAND = 10, 1_000


def pareto_view(plan: Plan) -> RenderableType:
    """Return the deployments of the Pareto front; the chosen one carries an arrow head."""
    names = ("degree", "copies", "$/h", "$/1M\noutput", "tok/s\nat load", "tok/s\nat most", "ms/token\nalone")
    made = table(words=("instance type",), numbers=names, gap=1)
    made.columns[0].no_wrap = True
    for alternative in plan.pareto:
        add_row(made, *_alternative(alternative))
    return Group(heading("Pareto front"), Text(FRONT), made)


def rejected_view(plan: Plan) -> RenderableType:
    """Return the nearest losers, each with the reason it lost."""
    made = table(words=("instance type",), numbers=("degree", "$/h", "tok/s"))
    add_columns(made, "left", ("because",))
    for loser in plan.rejected:
        speed = short(loser.output_tok_s, "")
        price = money(loser.usd_per_hour)
        add_row(made, loser.instance_type, str(loser.tensor_parallel_degree), price, speed, loser.because)
    return Group(heading("Considered and rejected"), made)


def money(amount: float | None) -> str:
    """Write an amount of US dollars for a narrow column: cents from ten dollars on, a question mark if unknown."""
    if amount is None:
        return UNKNOWN
    return f"${amount:,.2f}" if _TEN <= amount < _THOUSAND else usd(amount)


def _alternative(alternative: Alternative) -> tuple[str, ...]:
    sign = ">" if alternative.chosen else " "
    instances = "" if alternative.instance_count == 1 else f"{alternative.instance_count} x "
    return (
        f"{sign} {instances}{alternative.instance_type}",
        str(alternative.tensor_parallel_degree),
        str(alternative.copy_count),
        money(alternative.usd_per_hour),
        money(alternative.usd_per_million_output_tokens),
        short(alternative.output_tok_s),
        short(alternative.highest_tok_s),
        short(alternative.ms_per_token_alone),
    )
