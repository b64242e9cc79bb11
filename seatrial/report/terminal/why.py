"""Why one instance type won or lost, degree by degree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.report.terminal.rivals import money
from seatrial.report.terminal.tables import add_columns, add_row, short, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from seatrial.plan.why import Verdict


def why_view(instance_type: str, verdicts: Sequence[Verdict]) -> RenderableType:
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


def why_title(instance_type: str, verdicts: Sequence[Verdict]) -> str:
    """Say in one line whether an instance type is the plan."""
    won = [verdict.tensor_parallel_degree for verdict in verdicts if verdict.won]
    return f"{instance_type} is the plan, with degree {won[0]}" if won else f"{instance_type} is not the plan"


def outcome(verdict: Verdict) -> str:
    """Write a verdict in two words at most: `chosen`, `outdone`, `not allowed`, or at which question it failed."""
    if verdict.won:
        return "chosen"
    return {"ranking": "outdone", "allowed": "not allowed"}.get(verdict.stage, f"fails: {verdict.stage}")
