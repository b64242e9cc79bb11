"""What every candidate deployment is compared with, read once from the spec."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seatrial.planner.search.parallel_options import Groups, groups_at
from seatrial_base.units import MS_PER_S

if TYPE_CHECKING:
    from seatrial.documents.calibration import Calibrated, Calibration
    from seatrial.planner.predict.closed_form import EstimatedLevel
    from seatrial.planner.predict.copy_model import Speculation
    from seatrial.planner.predict.open_loop import Arrivals, OpenLevel
    from seatrial.planner.predict.simulation import Protocol, SimulatedLevel
    from seatrial.planner.recipe_limits import RecipeEngine
    from seatrial.specs.endpoint import EndpointSpec, ServingOverrides
    from seatrial.specs.guardrails.limits import GuardRails
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.engines import Engine
    from seatrial_base.catalog.instances import Instance, Purchase
    from seatrial_load.measure.lengths import RequestLengths


Metric = Literal["ttft_ms", "tpot_ms", "e2e_latency_ms"]
METRICS: tuple[Metric, ...] = ("ttft_ms", "tpot_ms", "e2e_latency_ms")


@dataclass(frozen=True, slots=True)
class LatencyBound:
    """An upper bound on one simulated latency.

    Attributes:
        path: The field that set it.
        metric: The latency.
        statistic: Of the requests at one concurrency: `p50`, `p90`, `p95`, `p99` or `highest`.
        bound_ms: The bound.
    """

    path: tuple[str, ...]
    metric: Metric
    statistic: str
    bound_ms: float

    def predicted(self, outcome: SimulatedLevel | OpenLevel) -> float:
        """Return the simulated value in milliseconds."""
        value: float = getattr(getattr(outcome, self.metric), self.statistic)
        return value

    def ratio(self, outcome: SimulatedLevel | OpenLevel) -> float:
        """Return the simulated value as a multiple of the bound: above 1 it misses."""
        return self.predicted(outcome) / self.bound_ms

    def out_of_reach(self, point: EstimatedLevel, slack: float = 1.0) -> bool:
        """Tell whether the closed form's mean is above the bound with some slack."""
        return self.mean_ratio(point) > slack

    def mean_ratio(self, point: EstimatedLevel) -> float:
        """Return the closed form's mean as a multiple of the bound."""
        mean: float = getattr(point, self.metric)
        return mean / self.bound_ms

    def __str__(self) -> str:
        return f"{'.'.join(self.path)} of {self.bound_ms:,.12g} ms"


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of every candidate.

    Attributes:
        endpoint: The spec.
        rails: The environment's guard rails.
        architecture: The model's shape.
        engine: What is known about the engine.
        max_model_len: The longest request that a deployment must hold, in tokens.
        batched_tokens: Prompt tokens of one engine iteration.
        objectives: What the simulated latencies must keep; the request timeout is always among them, last.
        protocol: How the trial sends.
        slo_miss_accepted: The SLO's latencies are not among the objectives, because nothing meets them.
        speculation: Speculative decoding, as the spec assumes it.
        calibrated: What was measured of one deployment of this endpoint; `None` when nothing was.
        unknown_price_accepted: Instance types without a price may be chosen, also where the spec does not name them.
        lengths: How long prompts and answers are.
        recipe_engine: The engine that the spec's recipe is held against; `None` where none is.
        arrivals: When requests arrive; `None` where the workload is a number of requests in flight.
    """

    endpoint: EndpointSpec
    rails: GuardRails
    architecture: Architecture
    engine: Engine
    max_model_len: int
    batched_tokens: int
    objectives: tuple[LatencyBound, ...]
    protocol: Protocol
    lengths: RequestLengths
    slo_miss_accepted: bool = False
    speculation: Speculation | None = None
    calibrated: Calibrated | None = None
    unknown_price_accepted: bool = False
    recipe_engine: RecipeEngine | None = None
    arrivals: Arrivals | None = None
    purchase: Purchase = "on_demand"

    def may_choose(self, instance: Instance) -> bool:
        """Tell whether an instance type may be chosen: without a price, only where it is named or that is accepted."""
        named = self.endpoint.serving.instance_types or ()
        return instance.usd_per_hour is not None or self.unknown_price_accepted or instance.instance_type in named

    @property
    def open_trial(self) -> bool:
        """Whether the trial sends by a schedule, whatever is answered: its SLO is that of a rate alone."""
        return self.endpoint.workload.arrivals != "closed"

    @property
    def overrides(self) -> ServingOverrides:
        """What the spec fixed beforehand."""
        return self.endpoint.serving.overrides

    @property
    def quantization(self) -> str | None:
        """How the served weights are quantized, by the spec or in the published checkpoint."""
        return self.architecture.quantization(self.overrides.quantization)

    @property
    def kv_bits(self) -> int:
        """Bits of a cached element: 8 where the spec asks for an FP8 cache."""
        return 8 if (self.overrides.kv_cache_dtype or "auto").startswith("fp8") else 16

    @property
    def kept(self) -> str:
        """What a deployment that satisfies the demand keeps, in words."""
        bounded = len(self.objectives) > 1
        return "meet the SLO" if bounded else "answer within request_timeout_s"

    @property
    def tokens(self) -> int:
        """Tokens of one request on average, prompt and output."""
        return self.prompt_tokens + self.endpoint.workload.output_tokens

    @property
    def prompt_tokens(self) -> int:
        """Tokens of a prompt on average; of conversations, with all that was said before."""
        return round(self.lengths.input.mean)

    @property
    def running_tokens(self) -> int:
        """Tokens that one of the running requests has in the end on average: long answers run longer."""
        workload = self.endpoint.workload
        return self.prompt_tokens + round(workload.output_tokens * (1 + self.lengths.output.relative_variance))

    @property
    def tokens_stddev(self) -> float:
        """Their standard deviation."""
        return math.hypot(self.lengths.input.stddev, self.lengths.output.stddev)

    @property
    def discount(self) -> float:
        """Share off the list price; a Savings Plan and a capacity block take no other discount."""
        return self.endpoint.budget.discount if self.purchase == "on_demand" else 0.0

    def groups(self, degree: int) -> Groups:
        """Return how the spec's options spread experts and attention over the accelerators of a copy."""
        if self.engine.compiled_shapes:
            return Groups()
        return groups_at(self.overrides.extra, self.architecture, degree)

    def calibration_of(self, instance_type: str, degree: int) -> Calibration | None:
        """Return what was measured of a deployment of this endpoint; `None` for one that nothing was measured of."""
        own = self.calibrated
        return own.calibration if own is not None and own.holds_for(instance_type, degree) else None

    def is_measured(self, instance_type: str, degree: int, concurrency: int) -> bool:
        """Tell whether a deployment of this endpoint was measured with this many requests in flight per copy."""
        own = self.calibrated
        return own is not None and own.holds_for(instance_type, degree) and concurrency in own.levels

    @property
    def timeout(self) -> LatencyBound:
        """The time after which a request ends."""
        return self.objectives[-1]


def read_objectives(endpoint: EndpointSpec) -> tuple[LatencyBound, ...]:
    """Return every bound of the SLO on its own percentile, and the timeout that no request may pass."""
    found = [
        LatencyBound(("slo", metric, name), metric, name, bound)
        for metric in METRICS
        for name, bound in getattr(endpoint.slo, metric).model_dump().items()
        if bound is not None
    ]
    timeout_ms = endpoint.trial.request_timeout_s * MS_PER_S
    return (*found, LatencyBound(("trial", "request_timeout_s"), "e2e_latency_ms", "max", timeout_ms))
