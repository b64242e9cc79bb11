"""The searches of the benchmark: where, for which SLO, from which gate, with how wrong a plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.search.endpoints import Place, calibrated, copy_at, level_of, value_of
from seatrial.documents.calibration import Calibration
from seatrial_load.documents.request import Objective

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.planner.predict.copy_model import Copy
    from seatrial_load.documents.request import Metric
    from seatrial_load.documents.result import LevelResult

Bounds: TypeAlias = "tuple[tuple[Metric, float], ...]"


@dataclass(frozen=True, slots=True)
class Suite:
    """The places, plans, gates and SLOs that are combined.

    Attributes:
        places: What is tried where.
        wrong: Factors of the time of a step that doesn't depend on the batch, and of that which does: a plan too fast
            or too slow.
        gates: Where the SLO must hold.
        slos: Bounds of 95th percentiles, as multiples of what the real endpoint does with a single request.
        falling: SLOs under which an endpoint is tried, too, whose throughput falls from `FALLS_FROM` in flight on.
    """

    places: tuple[Place, ...]
    wrong: tuple[tuple[float, float], ...]
    gates: tuple[int, ...]
    slos: Mapping[str, Bounds]
    falling: tuple[str, ...] = ("loose", "none")


FALLS_FROM = 6
LOOSE: Bounds = (("e2e_latency_ms", 1_000),)  # holds at every load
TUNED = Suite(
    places=(
        Place("meta-llama/Llama-2-7b-hf", "ml.g5.2xlarge", 1, "tgi", "1.1.0", 256, 256, 1_000),
        Place("meta-llama/Llama-2-7b-hf", "ml.g5.2xlarge", 1, "lmi", "0.36.0", 256, 256, 256),
        Place("meta-llama/Llama-2-7b-hf", "ml.g5.12xlarge", 4, "tgi", "1.1.0", 256, 256, 1_000),
        Place("meta-llama/Llama-2-7b-hf", "ml.p4d.24xlarge", 8, "lmi", "0.36.0", 256, 256, 256),
        Place("meta-llama/Llama-2-7b-hf", "ml.g6e.2xlarge", 1, "lmi", "0.36.0", 1_024, 128, 64),
        Place("Qwen/Qwen2.5-7B", "ml.g6e.2xlarge", 1, "lmi", "0.36.0", 512, 256, 256),
        Place("Qwen/Qwen2.5-1.5B", "ml.g5.2xlarge", 1, "lmi", "0.36.0", 128, 64, 512),
        Place("mistralai/Mixtral-8x7B-v0.1", "ml.p4d.24xlarge", 8, "lmi", "0.36.0", 512, 512, 256),
        Place("Qwen/Qwen2.5-32B", "ml.g6e.12xlarge", 4, "lmi", "0.36.0", 2_048, 256, 32),
    ),
    wrong=((1.0, 1.0), (0.3, 0.3), (3.0, 3.0), (0.5, 2.0), (2.0, 0.5)),
    gates=(4, 16, 64),
    slos={
        "tpot p95 x1.5": (("tpot_ms", 1.5),),
        "tpot p95 x3": (("tpot_ms", 3),),
        "ttft p95 x4": (("ttft_ms", 4),),
        "ttft p95 x20": (("ttft_ms", 20),),
        "e2e p95 x2": (("e2e_latency_ms", 2),),
        "both": (("ttft_ms", 10), ("tpot_ms", 2)),
        "loose": LOOSE,
        "none": (),
    },
)
# Nothing of the search was chosen by how it fares on these.
HELD_OUT = Suite(
    places=(
        Place("meta-llama/Llama-3.1-8B", "ml.g6.12xlarge", 4, "lmi", "0.36.0", 400, 200, 128),
        Place("meta-llama/Llama-2-13b-hf", "ml.g5.12xlarge", 4, "tgi", "1.1.0", 512, 128, 1_000),
        Place("Qwen/Qwen3-4B", "ml.g6.2xlarge", 1, "lmi", "0.36.0", 256, 128, 96),
        Place("Qwen/Qwen2.5-14B", "ml.g5.48xlarge", 8, "lmi", "0.36.0", 1_024, 256, 256),
        Place("meta-llama/Llama-3.1-70B", "ml.p5.48xlarge", 8, "lmi", "0.36.0", 1_500, 300, 256),
        Place("mistralai/Mistral-7B-Instruct-v0.2", "ml.g5.xlarge", 1, "lmi", "0.36.0", 300, 150, 24),
    ),
    wrong=((1.0, 1.0), (0.4, 0.4), (2.5, 2.5), (0.6, 1.7), (1.7, 0.6)),
    gates=(8, 24, 50),
    slos={
        "tpot p95 x2": (("tpot_ms", 2),),
        "ttft p95 x8": (("ttft_ms", 8),),
        "e2e p95 x1.5": (("e2e_latency_ms", 1.5),),
        "e2e p95 x4": (("e2e_latency_ms", 4),),
        "both": (("ttft_ms", 15), ("tpot_ms", 1.7)),
        "loose": LOOSE,
        "none": (),
    },
)


@dataclass(frozen=True, slots=True)
class Case:
    """One search: where, for which SLO, from which gate, with how wrong a plan."""

    place: Place
    slo: str
    objectives: tuple[Objective, ...]
    gate: int
    wrong: tuple[float, float] | None
    falls_from: int | None = None

    @property
    def real(self) -> Copy:
        """The copy that answers; the plan's own without a plan."""
        fixed, marginal = self.wrong or (1.0, 1.0)
        return calibrated(copy_at(self.place), Calibration(fixed=fixed, marginal=marginal))


def cases(suite: Suite) -> Iterator[Case]:
    """Yield every case of a suite."""
    for place in suite.places:
        for wrong in (*suite.wrong, None):
            fixed, marginal = wrong or (1.0, 1.0)
            alone = level_of(calibrated(copy_at(place), Calibration(fixed=fixed, marginal=marginal)), 1, ())
            for name, bounds in suite.slos.items():
                objectives = tuple(_p95(metric, factor, alone) for metric, factor in bounds)
                for gate in suite.gates:
                    yield Case(place, name, objectives, gate, wrong)
                    if name in suite.falling and wrong in {(1.0, 1.0), None}:
                        yield Case(place, name, objectives, gate, wrong, FALLS_FROM)


def _p95(metric: Metric, factor: float, alone: LevelResult) -> Objective:
    """Bound a 95th percentile by a multiple of what a single request takes."""
    one = Objective(metric=metric, statistic="p95", bound=0.0, sense="at_most")
    return replace(one, bound=factor * (value_of(alone, one) or 0.0))
