"""One deployment under consideration, and what comes of it: an estimate, then feasible or rejected."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from seatrial.planner.predict.band import DATA_PARALLEL, band_of, doubted

if TYPE_CHECKING:
    from seatrial.documents.prediction import Band, MemoryFit
    from seatrial.planner.predict.copy_model import Copy
    from seatrial.planner.predict.simulation import Level
    from seatrial.planner.search.capacity import Levels, LoadSpread
    from seatrial.planner.search.demand import Demand, LatencyBound
    from seatrial_base.catalog.instances import Instance

Stage = Literal["specifications", "degree", "memory", "start", "slo", "copies", "price", "budget"]
STAGES: tuple[Stage, ...] = get_args(Stage)
"""In the order in which a deployment passes them: the last one reached is the nearest to a deployment."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to place copies on an instance type; it holds the model.

    A copy's speed does not depend on its neighbours in the model of performance, so as many copies share an instance
    as its accelerators take: fewer would cost the same and serve less.

    Attributes:
        degree: Accelerators of one copy.
        levels: One copy as the performance model sees it, and what it is simulated to do.
    """

    instance: Instance
    degree: int
    copies_per_instance: int
    dtype: str
    memory: MemoryFit
    levels: Levels

    @property
    def copy(self) -> Copy:
        """One copy."""
        return self.levels.copy

    @property
    def alone(self) -> Level:
        """What a single request meets."""
        return self.levels.at(1)

    @property
    def place(self) -> tuple[str, int]:
        """Instance type and degree, which distinguish candidates of one demand."""
        return self.instance.instance_type, self.degree

    def __str__(self) -> str:
        return f"{self.instance.instance_type} with degree {self.degree}"


@dataclass(frozen=True, slots=True)
class Score:
    """What deployments are compared by.

    Attributes:
        usd_per_hour: All instances of the planned size; infinite when unknown.
        usd_per_million_output_tokens: At the planned load; infinite when unknown.
        ms_per_token_alone: End-to-end latency of a single request over its output tokens.
        highest_tok_s: Of all copies loaded to their capacity.
        offer_is_unknown: Whether nobody knows that the environment's region offers the instance type.
    """

    usd_per_hour: float
    usd_per_million_output_tokens: float
    ms_per_token_alone: float
    output_tok_s: float
    highest_tok_s: float
    offer_is_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the closed form says of a candidate, a little better than the simulation will.

    Attributes:
        capacity: Concurrency per copy that the objectives are thought to allow: where the simulation begins.
        score: What it would be compared by.
        shortfall: By how much it is thought to fail: copies first, then price; (0, 0) when it comes into question.
    """

    candidate: Candidate
    capacity: int
    score: Score
    shortfall: tuple[int, float]

    @property
    def comes_into_question(self) -> bool:
        """Whether no requirement is thought to fail."""
        return self.shortfall[0] == 0


class SustainedRate(NamedTuple):
    """The highest rate of one copy that is simulated to keep every objective.

    Attributes:
        in_flight: Requests in flight then, on average.
        busiest: So many are in flight in 99 % of the time.
    """

    rate_per_s: float
    in_flight: float
    busiest: int


@dataclass(frozen=True, slots=True)
class Size:
    """A candidate of some size.

    Attributes:
        load: The workload spread over its copies.
        usd_per_hour: All of them; infinite when unknown.
    """

    candidate: Candidate
    load: LoadSpread
    instance_count: int
    usd_per_hour: float

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the `SizedDeployment` that documents have of it."""
        return {
            "instance_type": self.candidate.instance.instance_type,
            "tensor_parallel_degree": self.candidate.degree,
            "copy_count": self.load.copy_count,
            "instance_count": self.instance_count,
            "usd_per_hour": known(self.usd_per_hour),
        }


def known(price: float) -> float | None:
    """Return a price to a hundredth of a cent, `None` for an unknown one."""
    return round(price, 4) if math.isfinite(price) else None


@dataclass(frozen=True, slots=True)
class FeasibleCandidate:
    """A candidate that satisfies every requirement, by simulation.

    Attributes:
        capacity: Highest concurrency per copy at which every objective holds.
        sustained: The highest rate of a copy at which every objective holds, of the chosen deployment whose trial is
            an open loop; `None` elsewhere.
        chance: That it meets the SLO, of a deployment that was ranked; `None` where the spec bounds nothing.
    """

    candidate: Candidate
    capacity: int
    needed: int
    load: LoadSpread
    instance_count: int
    score: Score
    sustained: SustainedRate | None = None
    chance: float | None = None

    @property
    def size(self) -> Size:
        """Its size and price."""
        return Size(self.candidate, self.load, self.instance_count, self.score.usd_per_hour)

    @property
    def at_gate(self) -> Level:
        """What one copy does at the planned load."""
        return self.candidate.levels.under(self.load)


@dataclass(frozen=True, slots=True)
class Miss:
    """An objective that a candidate misses, and the value that it is simulated to reach."""

    objective: LatencyBound
    predicted_ms: float


@dataclass(frozen=True, slots=True)
class Excess:
    """A bound on money that a size exceeds.

    Attributes:
        price: What it costs, in the unit of the bound.
    """

    field: tuple[str, ...]
    price: float
    bound: float
    because: str


@dataclass(frozen=True, slots=True)
class RejectedCandidate:
    """A candidate that fails, and at which question.

    Attributes:
        stage: The check that it fails, in the order in which they are made.
        gap: How far it misses, to compare rejections of one stage; in the stage's own unit.
        field: The field of the spec that it fails against.
        usd_per_hour: Price of the size that it would have; `None` when unknown or not reached.
        output_tok_s: Predicted throughput of that size; `None` when not reached.
        excesses: The bounds on money that it exceeds.
    """

    instance_type: str
    degree: int
    stage: Stage
    because: str
    gap: float
    field: tuple[str, ...] = ("serving", "instance_types")
    hint: str = ""
    usd_per_hour: float | None = None
    output_tok_s: float | None = None
    misses: tuple[Miss, ...] = ()
    excesses: tuple[Excess, ...] = ()

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that documents have of it."""
        return {
            "instance_type": self.instance_type,
            "tensor_parallel_degree": self.degree,
            "because": self.because,
            "usd_per_hour": None if self.usd_per_hour is None else known(self.usd_per_hour),
            "output_tok_s": None if self.output_tok_s is None else round(self.output_tok_s, 1),
        }


def band_for(demand: Demand, candidate: Candidate) -> Band:
    """Return how far the predictions for a deployment may be off."""
    own = demand.calibrated
    measured = own is not None and own.holds_for(candidate.instance.instance_type, candidate.degree)
    band = band_of(
        demand.engine,
        demand.engine_version,
        demand.architecture,
        candidate.instance,
        degree=candidate.degree,
        quantization=demand.quantization,
        speculation=demand.speculation,
        input_tokens=demand.prompt_tokens,
        calibrated=own.band if own is not None and measured else None,
    )
    # A calibrated deployment was measured as it is split: nothing is in doubt then.
    doubts = (DATA_PARALLEL,) if candidate.copy.attention_data_parallel_degree > 1 and not band.points else ()
    return doubted(band, doubts)
