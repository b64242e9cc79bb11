"""What every candidate deployment is judged against, read once from the spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seatrial.units import MS_PER_S

if TYPE_CHECKING:
    from seatrial.catalog.architecture import Architecture
    from seatrial.catalog.engines import Engine
    from seatrial.plan.document import CurvePoint
    from seatrial.spec.endpoint import EndpointSpec, Percentiles, ServingOverrides, Slo
    from seatrial.spec.environment import GuardRails

Metric = Literal["ttft_ms", "tpot_ms", "e2e_latency_ms"]


@dataclass(frozen=True, slots=True)
class Objective:
    """An upper bound on one predicted mean; of several percentiles the tightest bound counts.

    Attributes:
        path: The field that set it.
        metric: The field of a curve point.
        bound_ms: The bound.
    """

    path: tuple[str, ...]
    metric: Metric
    bound_ms: float

    def ratio(self, point: CurvePoint) -> float:
        """Return the predicted mean as a multiple of the bound: above 1 it misses."""
        predicted: float = getattr(point, self.metric)
        return predicted / self.bound_ms

    def __str__(self) -> str:
        return f"{'.'.join(self.path)} of {self.bound_ms:,g} ms"


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of every candidate.

    Attributes:
        endpoint: The spec.
        rails: The environment's guard rails.
        architecture: The model's shape.
        engine: What is known about the engine.
        max_model_len: Longest sequence in tokens.
        batched_tokens: Prompt tokens of one engine iteration.
        objectives: What the predicted means must keep; the request timeout is always among them, last.
        slo_miss_accepted: The SLO's latencies are not among the objectives, because nothing meets them.
    """

    endpoint: EndpointSpec
    rails: GuardRails
    architecture: Architecture
    engine: Engine
    max_model_len: int
    batched_tokens: int
    objectives: tuple[Objective, ...]
    slo_miss_accepted: bool = False

    @property
    def overrides(self) -> ServingOverrides:
        """What the spec fixed beforehand."""
        return self.endpoint.serving.overrides

    @property
    def kept(self) -> str:
        """What a deployment that satisfies the demand keeps, in words."""
        return "the request timeout" if self.slo_miss_accepted else "every objective"

    @property
    def tokens(self) -> int:
        """Tokens of one request, prompt and output."""
        return self.endpoint.workload.input_tokens + self.endpoint.workload.output_tokens


def read_objectives(endpoint: EndpointSpec) -> tuple[Objective, ...]:
    """Return the tightest bound of each latency, and the timeout after which a request ends."""
    metrics: tuple[Metric, ...] = ("ttft_ms", "tpot_ms", "e2e_latency_ms")
    found = [_tightest(endpoint.slo, metric) for metric in metrics]
    timeout_ms = endpoint.trial.request_timeout_s * MS_PER_S
    timeout = Objective(("trial", "request_timeout_s"), "e2e_latency_ms", timeout_ms)
    return (*(objective for objective in found if objective), timeout)


def _tightest(slo: Slo, metric: Metric) -> Objective | None:
    percentiles: Percentiles = getattr(slo, metric)
    bounds = {name: bound for name, bound in percentiles.model_dump().items() if bound is not None}
    if not bounds:
        return None
    name = min(bounds, key=lambda percentile: (bounds[percentile], percentile))
    return Objective(("slo", metric, name), metric, bounds[name])
