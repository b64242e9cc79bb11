"""The deployments that were not chosen, and why: the alternatives, the nearest losers, one instance type by degree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.report.terminal.tables import UNKNOWN, add_columns, add_row, heading, short, table
from seatrial_base.units import usd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from seatrial.planner.document import Alternative, Plan
    from seatrial.planner.why import DegreeVerdict


FRONT = (
    "No other deployment is better in price, single-request latency and highest throughput together. > marks the plan."
)
UNPRICED = "Predicted to meet the SLO. Chosen only where the spec names the type or with --allow-unknown-price."
_TEN, _THOUSAND = 10, 1_000


def pareto_view(plan: Plan) -> RenderableType:
    """Return the deployments of the Pareto front; the chosen one carries an arrow head."""
    names = ("degree", "copies", "$/h", "$/1M\noutput", "tok/s\nat load", "tok/s\nat most", "ms/token\nalone")
    made = table(words=("instance type",), numbers=names, gap=1)
    made.columns[0].no_wrap = True
    for alternative in plan.pareto:
        add_row(made, *_alternative(alternative))
    return Group(heading("Pareto front"), Text(FRONT), made)


def unpriced_view(plan: Plan) -> RenderableType:
    """Return the deployments on instance types without a price, with their predictions."""
    names = ("degree", "copies", "tok/s\nat load", "tok/s\nat most", "ms/token\nalone")
    made = table(words=("instance type", "price"), numbers=names, gap=1)
    for one in plan.unpriced:
        instances = "" if one.instance_count == 1 else f"{one.instance_count} x "
        speeds = (short(one.output_tok_s), short(one.highest_tok_s), short(one.ms_per_token_alone))
        name = f"{instances}{one.instance_type}"
        add_row(made, name, "unknown", str(one.tensor_parallel_degree), str(one.copy_count), *speeds)
    return Group(heading("Price unknown"), Text(UNPRICED), made)


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


def why_view(instance_type: str, verdicts: Sequence[DegreeVerdict]) -> RenderableType:
    """Return one row for each degree of an instance type."""
    if not verdicts:
        return Text(f"{instance_type}: no tensor parallel degree to try.")
    made = table(numbers=("degree", "$/h", "tok/s"))
    add_columns(made, "left", ("verdict", "because"))
    for verdict in verdicts:
        speed = short(verdict.output_tok_s, "")
        price = "" if verdict.usd_per_hour is None else money(verdict.usd_per_hour)
        add_row(made, str(verdict.tensor_parallel_degree), price, speed, outcome(verdict), verdict.because)
    return Group(Text(why_title(instance_type, verdicts), style="bold"), made)


def why_title(instance_type: str, verdicts: Sequence[DegreeVerdict]) -> str:
    """Say in one line whether an instance type is the plan."""
    won = [verdict.tensor_parallel_degree for verdict in verdicts if verdict.won]
    return f"{instance_type} is the plan, with degree {won[0]}" if won else f"{instance_type} is not the plan"


def outcome(verdict: DegreeVerdict) -> str:
    """Write a verdict in two words at most: `chosen`, `outdone`, `not allowed`, or at which question it failed."""
    if verdict.won:
        return "chosen"
    return {"ranking": "outdone", "allowed": "not allowed"}.get(verdict.stage, f"fails: {verdict.stage}")
