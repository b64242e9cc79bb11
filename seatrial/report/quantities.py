"""What is predicted and measured alike: throughput of one copy, and each latency as mean and as 95th percentile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_load.slo.evaluate import latency_of, statistic_of

if TYPE_CHECKING:
    from seatrial.planner.document import CurvePoint, Plan
    from seatrial_load.model.request import Metric, Statistic
    from seatrial_load.model.result import LevelResult


@dataclass(frozen=True, slots=True)
class Quantity:
    """One quantity of a level.

    Attributes:
        field: Its field in a point of the predicted curve.
        title: Its name as a heading.
        group: Its name above columns.
        unit: Of its values.
        metric: The latency that it is a statistic of; `None` for throughput.
        statistic: Which one.
    """

    field: str
    title: str
    group: str
    unit: str = "ms"
    metric: Metric | None = None
    statistic: Statistic = "mean"

    def predicted(self, point: CurvePoint) -> float:
        """Return its prediction."""
        return float(getattr(point, self.field))

    def measured(self, level: LevelResult, copies: int) -> float | None:
        """Return what its prediction for one copy is held against: a share of the throughput, or the same statistic."""
        if self.metric is None:
            return None if level.output_tok_s is None else level.output_tok_s / copies
        return statistic_of(latency_of(level, self.metric), self.statistic)

    def band(self, plan: Plan) -> float:
        """Return the band of its prediction, as a share of it."""
        return plan.band.throughput if self.metric is None else plan.band.latency


THROUGHPUT = Quantity("output_tok_s", "Output throughput of one copy", "Output per copy", unit="tok/s")
MEANS = (
    Quantity("ttft_ms", "Time to first token, mean", "TTFT mean", metric="ttft_ms"),
    Quantity("tpot_ms", "Time per output token, mean", "TPOT mean", metric="tpot_ms"),
    Quantity("e2e_latency_ms", "End-to-end latency, mean", "End to end mean", metric="e2e_latency_ms"),
)
P95S = (
    Quantity("ttft_p95_ms", "Time to first token, p95", "TTFT p95", metric="ttft_ms", statistic="p95"),
    Quantity("tpot_p95_ms", "Time per output token, p95", "TPOT p95", metric="tpot_ms", statistic="p95"),
    Quantity(
        "e2e_latency_p95_ms", "End-to-end latency, p95", "End to end p95", metric="e2e_latency_ms", statistic="p95"
    ),
)
QUANTITIES = (THROUGHPUT, *MEANS, *P95S)
EDGES = "from value / (1 + share) to value × (1 + share)"


def edges(value: float, share: float) -> tuple[float, float]:
    """Return the band around a prediction: value / (1 + share) to value * (1 + share)."""
    return value / (1 + share), value * (1 + share)


def band_text(plan: Plan) -> str:
    """Write a plan's band and where it comes from: `Band: throughput ±4 %, latency ±5 % (measured). ...`."""
    band = plan.band
    kind = "measured" if band.measured else "assumed"
    shares = f"throughput ±{band.throughput * 100:.0f} %, latency ±{band.latency * 100:.0f} %"
    return f"Band: {shares} ({kind}). {band.because}"
