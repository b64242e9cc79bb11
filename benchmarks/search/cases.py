"""The searches of the benchmark: where, for which SLO, from which gate, with how wrong a plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.search.endpoints import Place, calibrated, copy_at, level_of, value_of
from seatrial.bench.request import Objective
from seatrial.predict.copy import Calibration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.request import Metric
    from seatrial.bench.result import LevelResult
    from seatrial.predict.copy import Copy

GATES = (4, 16, 64)
PLACES = (
    Place("meta-llama/Llama-2-7b-hf", "ml.g5.2xlarge", 1, "tgi", "1.1.0", 256, 256, 1_000),
    Place("meta-llama/Llama-2-7b-hf", "ml.g5.2xlarge", 1, "lmi", "0.36.0", 256, 256, 256),
    Place("meta-llama/Llama-2-7b-hf", "ml.g5.12xlarge", 4, "tgi", "1.1.0", 256, 256, 1_000),
    Place("meta-llama/Llama-2-7b-hf", "ml.p4d.24xlarge", 8, "lmi", "0.36.0", 256, 256, 256),
    Place("meta-llama/Llama-2-7b-hf", "ml.g6e.2xlarge", 1, "lmi", "0.36.0", 1_024, 128, 64),
    Place("Qwen/Qwen2.5-7B", "ml.g6e.2xlarge", 1, "lmi", "0.36.0", 512, 256, 256),
    Place("Qwen/Qwen2.5-1.5B", "ml.g5.2xlarge", 1, "lmi", "0.36.0", 128, 64, 512),
    Place("mistralai/Mixtral-8x7B-v0.1", "ml.p4d.24xlarge", 8, "lmi", "0.36.0", 512, 512, 256),
    Place("Qwen/Qwen2.5-32B", "ml.g6e.12xlarge", 4, "lmi", "0.36.0", 2_048, 256, 32),
)
# Factors of the time of a step that doesn't depend on the batch, and of that which does: a plan too fast or too slow.
WRONG = ((1.0, 1.0), (0.3, 0.3), (3.0, 3.0), (0.5, 2.0), (2.0, 0.5))

SLOS: dict[str, tuple[tuple[Metric, float], ...]] = {
    "tpot p95 x1.5": (("tpot_ms", 1.5),),
    "tpot p95 x3": (("tpot_ms", 3),),
    "ttft p95 x4": (("ttft_ms", 4),),
    "ttft p95 x20": (("ttft_ms", 20),),
    "e2e p95 x2": (("e2e_latency_ms", 2),),
    "both": (("ttft_ms", 10), ("tpot_ms", 2)),
    "none": (),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One search: where, for which SLO, from which gate, with how wrong a plan."""

    place: Place
    slo: str
    objectives: tuple[Objective, ...]
    gate: int
    wrong: tuple[float, float] | None

    @property
    def real(self) -> Copy:
        """The copy that answers; the plan's own without a plan."""
        fixed, marginal = self.wrong or (1.0, 1.0)
        return calibrated(copy_at(self.place), Calibration(fixed=fixed, marginal=marginal))


def cases() -> Iterator[Case]:
    """Yield every case: the SLO's bounds are multiples of what the real endpoint does with a single request."""
    for place in PLACES:
        for wrong in (*WRONG, None):
            fixed, marginal = wrong or (1.0, 1.0)
            alone = level_of(calibrated(copy_at(place), Calibration(fixed=fixed, marginal=marginal)), 1, ())
            for name, bounds in SLOS.items():
                objectives = tuple(_p95(metric, factor, alone) for metric, factor in bounds)
                for gate in GATES:
                    yield Case(place, name, objectives, gate, wrong)


def _p95(metric: Metric, factor: float, alone: LevelResult) -> Objective:
    """Bound a 95th percentile by a multiple of what a single request takes."""
    one = Objective(metric=metric, statistic="p95", bound=0.0, sense="at_most")
    return replace(one, bound=factor * (value_of(alone, one) or 0.0))
