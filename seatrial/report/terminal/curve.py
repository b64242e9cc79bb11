"""The predicted curve of one copy: a table, how far off it may be, and its knee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.report.quantities import band_text
from seatrial.report.terminal.tables import add_columns, add_row, heading, percent, short, table
from seatrial_base.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType

    from seatrial.planner.document import CurvePoint, Plan


_COLUMNS = (("TTFT", "ms"), ("TPOT", "ms"), ("e2e", "s"))


def curve_view(plan: Plan) -> RenderableType:
    """Return the predicted curve as a table, with how far it may be off."""
    title = heading("Predicted for one copy; simulated, not measured")
    if not plan.curve:
        return Group(title, Text("The plan has no levels."))
    reading = Text(f"{legend(plan)}\n")
    return Group(title, Text(f"{band_text(plan)}\n"), reading, _points(plan, _signs(plan)))


def legend(plan: Plan) -> str:
    """Say what the table's signs mean."""
    gate = plan.gate_concurrency_per_copy.value
    if any(point.concurrency == gate for point in plan.curve):
        marked = f"G: gate, {gate:,}"
    else:
        marked = f"The gate, {gate:,}, is not among the levels"
    knee = plan.knee
    sign = "K, " if any(point.concurrency == knee.concurrency for point in plan.curve) else ""
    return f"{marked}; the predicted knee is {sign}{knee.concurrency:,} ({knee.detector}: {knee.meaning})."


def _points(plan: Plan, signs: Mapping[int, str]) -> RenderableType:
    made = table(numbers=("concurrency",))
    late = any(point.late for point in plan.curve)
    pairs = (f"{name}\n{statistic}\n{unit}" for name, unit in _COLUMNS for statistic in ("mean", "p95"))
    add_columns(made, "left", ("",))
    add_columns(made, "right", ("tok/s", *pairs, *(("late",) if late else ())))
    add_columns(made, "left", ("limited by",))
    for point in plan.curve:
        level = f"{point.concurrency:,}", signs.get(point.concurrency, ""), short(point.output_tok_s)
        add_row(made, *level, *_latencies(point), *((percent(point.late),) if late else ()), point.limit)
    return made


def _latencies(point: CurvePoint) -> Iterator[str]:
    yield from map(short, (point.ttft_ms, point.ttft_p95_ms, point.tpot_ms, point.tpot_p95_ms))
    yield from (short(value / MS_PER_S) for value in (point.e2e_latency_ms, point.e2e_latency_p95_ms))


def _signs(plan: Plan) -> dict[int, str]:
    """Return the letters of the knee's level and of the gate's, by concurrency."""
    gate = plan.gate_concurrency_per_copy.value
    knee = plan.knee.concurrency
    return {knee: "KG"} if knee == gate else {knee: "K", gate: "G"}
