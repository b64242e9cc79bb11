"""The JumpStart article's table on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.report.document.jumpstart import jumpstart_table
from seatrial.report.terminal.tables import add_columns, add_row, heading, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seatrial.bench.model.result import TrialResult
    from seatrial.plan.document import Plan


def jumpstart_view(result: TrialResult, plan: Plan | None = None) -> RenderableType:
    """Return throughput and p90 latency per token over concurrency, as the article tabulates them."""
    shown = jumpstart_table(result, plan)
    made = table()
    for column in shown.columns:
        add_columns(made, "right" if column.kind == "number" else "left", (f"{column.label}\n{column.unit}",))
    for row in shown.cells:
        add_row(made, *(cell.text for cell in row))
    engine = (Text(f"measured on: {result.engine_note}", style="yellow"),) if result.engine_note else ()
    return Group(heading(shown.caption), made, *engine)
