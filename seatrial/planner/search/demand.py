"""The requirements of every candidate deployment, read once from the spec.

Options in `serving.overrides.extra` spread experts or attention over a copy's accelerators:

| engine | experts | attention | source |
|---|---|---|---|
| vLLM | `enable_expert_parallel`: over all | - | docs.vllm.ai, expert parallel deployment |
| SGLang | `ep_size` | `dp_size` with `enable_dp_attention` | docs.sglang.io, server arguments |
| TensorRT-LLM | `moe_expert_parallel_size` | `enable_attention_dp`: over all | djl-serving; docs.nvidia.com/dynamo |

Without `enable_dp_attention`, `data_parallel_size` starts further copies of the model on accelerators of their own
(vLLM, SGLang), which a plan does not count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from seatrial_base.catalog.engine_limits import Start, start_cautions, start_refusals
from seatrial_base.units import MS_PER_S
from seatrial_load.documents.arrivals import ARRIVALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seatrial.documents.calibration import Calibrated, Calibration
    from seatrial.planner.predict.closed_form import EstimatedLevel
    from seatrial.planner.predict.copy_model import Speculation
    from seatrial.planner.predict.simulation import Level, Protocol
    from seatrial.planner.recipe_limits import RecipeEngine
    from seatrial.specs.endpoint import EndpointSpec, ServingOverrides
    from seatrial.specs.guardrails.limits import GuardRails
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.engine_limits import StartRefusal
    from seatrial_base.catalog.engines import Engine
    from seatrial_base.catalog.instances import Instance, Purchase
    from seatrial_lint.engines.engine_options import OptionValue
    from seatrial_load.documents.arrivals import Arrivals
    from seatrial_load.measure.lengths import RequestLengths

Metric = Literal["ttft_ms", "tpot_ms", "e2e_latency_ms"]
METRICS: tuple[Metric, ...] = ("ttft_ms", "tpot_ms", "e2e_latency_ms")
_EXPERTS_EVERYWHERE = ("enable_expert_parallel",)
_EXPERT_GROUPS = ("ep_size", "ep", "expert_parallel_size", "moe_expert_parallel_size")
_ATTENTION_EVERYWHERE = ("enable_attention_dp",)
_GROUPED_ATTENTION = ("enable_dp_attention",)
_GROUPS = ("dp_size", "dp", "data_parallel_size")
_DEALS_EXPERTS = ("vllm", "sglang")  # engines for which `engines/render.py` writes the option


@dataclass(frozen=True, slots=True)
class LatencyBound:
    """An upper bound on one simulated latency.

    Attributes:
        path: The field that set it.
        statistic: Of the requests at one concurrency: `p50`, `p90`, `p95`, `p99` or `highest`.
    """

    path: tuple[str, ...]
    metric: Metric
    statistic: str
    bound_ms: float

    def predicted(self, outcome: Level) -> float:
        """Return the simulated value in milliseconds."""
        value: float = getattr(getattr(outcome, self.metric), self.statistic)
        return value

    def ratio(self, outcome: Level) -> float:
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
    """The requirements of every candidate.

    Attributes:
        engine_version: As the image names it; bands depend on its release.
        max_model_len: The longest request that a deployment must hold, in tokens.
        batched_tokens: Prompt tokens of one engine iteration.
        objectives: What the simulated latencies must keep; the request timeout is always among them, last.
        slo_miss_accepted: The SLO's latencies are not among the objectives, because nothing meets them.
        calibrated: What was measured of one deployment of this endpoint; `None` when nothing was.
        unknown_price_accepted: Instance types without a price may be chosen, also where the spec does not name them.
        recipe_engine: The engine that the spec's recipe is held against; `None` where none is.
        loads: The code that loads the weights, and its version; `None` where no engine is known.
        arrivals: When requests arrive; `None` where the workload is a number of requests in flight.
    """

    endpoint: EndpointSpec
    rails: GuardRails
    architecture: Architecture
    engine: Engine
    engine_version: str
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
    loads: tuple[str, tuple[int, ...] | None] | None = None
    arrivals: Arrivals | None = None
    purchase: Purchase = "on_demand"

    def may_choose(self, instance: Instance) -> bool:
        """Tell whether an instance type may be chosen: without a price, only where it is named or that is accepted."""
        named = self.endpoint.serving.instance_types or ()
        return instance.usd_per_hour is not None or self.unknown_price_accepted or instance.instance_type in named

    @property
    def open_trial(self) -> bool:
        """Whether the trial sends by a schedule, whatever is answered: its SLO is that of a rate alone."""
        return ARRIVALS[self.endpoint.workload.arrivals].is_open

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
        """Tokens of a prompt on average; of conversations, with all earlier turns."""
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

    def started(self, instance: Instance, degree: int, dtype: str) -> tuple[Groups, tuple[StartRefusal, ...]]:
        """Return how a copy is spread, and why its engine ends at load so; nothing where it starts.

        Experts are dealt out where the spec does not say how, and whole experts are all that the engine lacks.
        """
        groups = self.groups(degree)
        if self.loads is None or self.engine.compiled_shapes or groups.refused:
            return groups, ()
        engine, version = self.loads
        where = (instance.accelerator, dtype, self.architecture)
        start = Start(engine, version, self.quantization, degree, groups.experts, *where)
        refusals = start_refusals(start)
        dealt = groups.experts == 1 and not _named(self.overrides.extra, (*_EXPERTS_EVERYWHERE, *_EXPERT_GROUPS))
        if refusals and dealt and engine in _DEALS_EXPERTS and all(each.of_experts for each in refusals):
            whole = start_refusals(replace(start, expert_degree=degree))
            return (groups, refusals) if whole else (replace(groups, experts=degree), ())
        return groups, refusals

    def cautions(self, instance: Instance) -> tuple[str, ...]:
        """Return what nobody measured of the engine on an instance type."""
        if self.loads is None or self.engine.compiled_shapes:
            return ()
        start = Start(*self.loads, self.quantization, 1, 1, instance.accelerator)
        return tuple(f"SEA257: {caution}" for caution in start_cautions(start))

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
    bounds = [
        LatencyBound(("slo", metric, name), metric, name, bound)
        for metric in METRICS
        for name, bound in getattr(endpoint.slo, metric).model_dump().items()
        if bound is not None
    ]
    # Always the last objective: whoever leaves out the SLO keeps it (`objectives[-1:]`).
    timeout_ms = endpoint.trial.request_timeout_s * MS_PER_S
    return (*bounds, LatencyBound(("trial", "request_timeout_s"), "e2e_latency_ms", "max", timeout_ms))


@dataclass(frozen=True, slots=True)
class Groups:
    """How a copy's accelerators share experts and attention.

    Attributes:
        experts: Groups that the experts are dealt out to.
        attention: Groups that attend to sequences of their own.
        refused: Why the engine does not start at this degree; empty where it does.
    """

    experts: int = 1
    attention: int = 1
    refused: str = ""


def groups_at(extra: Mapping[str, OptionValue], architecture: Architecture, degree: int) -> Groups:
    """Return the groups that the options of a spec make of a copy's accelerators."""
    experts = degree if _has(extra, _EXPERTS_EVERYWHERE) else _number(extra, _EXPERT_GROUPS)
    experts = 1 if architecture.experts is None else experts
    attention = _number(extra, _GROUPS) if _has(extra, _GROUPED_ATTENTION) else 1
    attention = degree if _has(extra, _ATTENTION_EVERYWHERE) else attention
    for option, groups in ((_EXPERT_GROUPS, experts), (_GROUPS, attention)):
        if degree % groups:
            return Groups(refused=f"{_named(extra, option)[0]} {groups} does not divide degree {degree}.")
    return Groups(experts, attention)


def groups_words(groups: Groups, degree: int) -> str:
    """Say how experts and attention are spread, a sentence each behind a space; empty for tensor parallelism alone."""
    words = ""
    if groups.experts > 1:
        words += f" Experts are dealt out to {groups.experts} groups of {degree // groups.experts}."
    if groups.attention > 1:
        words += (
            f" Attention runs in {groups.attention} groups of {degree // groups.attention}, each with its requests."
        )
    return words


def unplanned_copies(extra: Mapping[str, OptionValue]) -> tuple[str, ...]:
    """Warn of data parallelism that takes more accelerators than are planned."""
    named = _named(extra, _GROUPS)
    if not named or _number(extra, _GROUPS) == 1 or _has(extra, _GROUPED_ATTENTION):
        return ()
    name = named[0]
    more = f"{name} {extra[name]} starts so many copies of the model on accelerators of their own"
    return (f"{more}, which the plan does not count: leave it out, and let the plan place copies.",)


def _named(extra: Mapping[str, OptionValue], names: Iterable[str]) -> list[str]:
    """Return the options of these names that are written, in the order of the names."""
    written = {name.lower(): name for name in extra}
    return [written[name] for name in names if name in written]


def _has(extra: Mapping[str, OptionValue], names: Iterable[str]) -> bool:
    """Tell whether a flag is set: SGLang's environment variable is so with an empty value, too."""
    return any(str(extra[name]).lower() in {"true", "1", ""} for name in _named(extra, names))


def _number(extra: Mapping[str, OptionValue], names: Iterable[str]) -> int:
    """Return the number of an option; 1 where it is not written, or is no number, which the engine refuses itself."""
    for name in _named(extra, names):
        text = str(extra[name])
        return max(1, int(text)) if text.isdecimal() else 1
    return 1
