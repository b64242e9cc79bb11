"""The predicted curve of one copy: a plot, a table, and how far off it may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.report.quantity import band_text
from seatrial.report.terminal.knee import MEANING, predicted_knee
from seatrial.report.terminal.plot import Dot, Plot
from seatrial.report.terminal.tables import add_columns, add_row, heading, percent, short, table
from seatrial.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType

    from seatrial.plan.document import CurvePoint, Plan
    from seatrial.spec.endpoint import Percentiles, Slo

NAMES: Mapping[str, str] = {"ttft_ms": "TTFT", "tpot_ms": "TPOT", "e2e_latency_ms": "end-to-end latency"}
_COLUMNS = (("TTFT", "ms"), ("TPOT", "ms"), ("e2e", "s"))


@dataclass(frozen=True, slots=True)
class Drawn:
    """The latency that the plot shows: the field of a curve point, its name, the SLO's bound and what that bounds."""

    field: str
    name: str
    bound_ms: float | None = None
    bounded: str = ""

    def of(self, point: CurvePoint) -> float:
        """Return the latency of a point, in milliseconds."""
        return float(getattr(point, self.field))


ALONE = Drawn("ms_per_token_p90", "latency per token p90")


def curve_view(plan: Plan, slo: Slo) -> RenderableType:
    """Return the predicted curve as plot and table, with how far it may be off."""
    title = heading("Predicted for one copy; simulated, not measured")
    if not plan.curve:
        return Group(title, Text("The plan has no levels."))
    drawn, knee = drawn_latency(plan, slo), predicted_knee(plan.curve)
    plot = plot_of(plan, drawn, knee)
    reading = Text(f"{legend(plan, drawn, knee)}\n")
    return Group(title, Text(f"{band_text(plan)}\n"), plot, Text(), reading, _points(plan, _signs(plan, knee)))


def drawn_latency(plan: Plan, slo: Slo) -> Drawn:
    """Return the bounded latency that is nearest to its bound at the gate, or the latency per token without a bound."""
    gate = plan.gate_concurrency_per_copy.value
    point = min(plan.curve, key=lambda level: abs(level.concurrency - gate))
    return max(bounded_latencies(slo), key=lambda drawn: drawn.of(point) / (drawn.bound_ms or 1.0), default=ALONE)


def plot_of(plan: Plan, drawn: Drawn, knee: int | None) -> Plot:
    """Return latency over throughput; the gate's level carries a G, the knee's a K."""
    signs = _signs(plan, knee)
    dots = (
        Dot(
            x=point.output_tok_s,
            y=drawn.of(point),
            name=f"{signs.get(point.concurrency, '')} {point.concurrency}".lstrip(),
            marked=point.concurrency in signs,
        )
        for point in plan.curve
    )
    return Plot("output tok/s of one copy", f"{drawn.name}, ms", tuple(dots), drawn.bound_ms)


def legend(plan: Plan, drawn: Drawn, knee: int | None) -> str:
    """Say what the plot's signs mean."""
    gate = plan.gate_concurrency_per_copy.value
    parts = ["Dots are levels, with their concurrency"]
    if any(point.concurrency == gate for point in plan.curve):
        parts.append(f"G is the gate, {gate:,}")
    else:
        parts.append(f"the gate, {gate:,}, is none of them")
    parts.append(
        f"K is the knee where the curve bends, {knee:,}: {MEANING}" if knee else "no knee was found in this range"
    )
    if drawn.bound_ms is not None:
        shown = plot_of(plan, drawn, knee).drawn_bound
        parts.append(f"the {'dashed line is the' if shown else 'plot ends below the'} SLO's bound, {drawn.bounded}")
    return f"{'; '.join(parts)}."


def bounded_latencies(slo: Slo) -> Iterator[Drawn]:
    """Yield the latencies that have bounds: a median is held against the mean, every higher percentile against p95."""
    for metric, name in NAMES.items():
        percentiles: Percentiles = getattr(slo, metric)
        for statistic, bound_ms in percentiles.model_dump().items():
            if bound_ms is not None:
                median = statistic == "p50"
                field = metric if median else f"{metric.removesuffix('_ms')}_p95_ms"
                shown = f"{name} {'mean' if median else 'p95'}"
                yield Drawn(field, shown, bound_ms, f"{name} {statistic} {bound_ms:,g} ms")


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


def _signs(plan: Plan, knee: int | None) -> dict[int, str]:
    """Return the letters of the knee's level and of the gate's, by concurrency."""
    gate = plan.gate_concurrency_per_copy.value
    if knee is None:
        return {gate: "G"}
    return {knee: "KG"} if knee == gate else {knee: "K", gate: "G"}
