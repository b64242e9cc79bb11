"""The trial's input document: what to load, how hard, what is good, and what the live endpoint must be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial.bench.document import RULE, not_finite, read_document, write_document
from seatrial.bench.load import Load, wrong_load
from seatrial.bench.prior import Prior
from seatrial.bounds import MOST_IN_FLIGHT, MOST_TOKENS, wrong_objective, wrong_prefix
from seatrial.errors import BenchError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

Metric: TypeAlias = Literal["ttft_ms", "tpot_ms", "e2e_latency_ms", "error_rate", "output_tok_s"]
Statistic: TypeAlias = Literal["p50", "p90", "p95", "p99", "mean", "value"]
PayloadSchema: TypeAlias = Literal["lmi", "tgi", "openai_chat", "openai_completions"]
PER_REQUEST_METRICS: tuple[Metric, ...] = ("ttft_ms", "tpot_ms", "e2e_latency_ms")
WHERE = "trial request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The endpoint under trial.

    Attributes:
        endpoint_name: SageMaker's name of the endpoint; of an OpenAI-compatible server, what people call it.
        inference_component: The component that holds the model; None when the variant holds it.
        region: The region, which also signs.
        endpoint_url: The runtime API's URL; None is boto3's endpoint variables, else the region's public URL. Of an
            OpenAI-compatible server, its base URL (`http://localhost:8000/v1`).
        kind: What speaks there: SageMaker's runtime API, or an OpenAI-compatible server without SageMaker before it.
        model: The `model` of an OpenAI-compatible request; None leaves the field out.
        api_key_variable: The environment variable that holds an OpenAI-compatible server's key; the key itself stands
            in no document.
        target_variant: SageMaker's `X-Amzn-SageMaker-Target-Variant`; None lets the endpoint choose.
        session_id: SageMaker's `X-Amzn-SageMaker-Session-Id`, which sends all requests to one instance; None is none.
    """

    endpoint_name: str
    inference_component: str | None
    region: str
    endpoint_url: str | None = None
    kind: Literal["sagemaker", "openai"] = "sagemaker"
    model: str | None = None
    api_key_variable: str | None = None
    target_variant: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the live endpoint must consist of to be this deployment's: names, not ARNs.

    Attributes:
        endpoint_config_name: The endpoint configuration.
        model_name: The model of the variant or of the component's specification.
        image: The container image that the plan pinned (tag or digest); None leaves it unproven.
    """

    endpoint_config_name: str
    model_name: str
    image: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The requests of a trial.

    Attributes:
        input_tokens: Length of a prompt; of a file's, the mean.
        output_tokens: Length of an answer; of a file's, the mean.
        schema: The body's schema.
        stream: Whether tokens are asked for as they are made.
        source: Where prompts come from: made up, or read from a file of prompts or of a recorded trace.
        source_digest: SHA-256 of that file; empty for made-up prompts.
        shared_prefix_tokens: So many first tokens of a prompt are those of the others of its group.
        prefix_groups: So many different shared beginnings, taken in turn.
    """

    input_tokens: int
    output_tokens: int
    schema: PayloadSchema
    stream: bool = True
    source: Literal["synthetic", "jsonl", "trace"] = "synthetic"
    source_digest: str = ""
    shared_prefix_tokens: int = 0
    prefix_groups: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """When a measurement is proof enough, and what an inconclusive one does.

    Attributes:
        confidence: An objective is met or missed only when its one-sided interval of this confidence says so; 0 takes
            the measured value as it is.
        on_inconclusive: Whether a verdict that proves nothing lets the deployment pass or fails it.
        regression_tolerance: A result may be worse than the last release's by this share before it is a regression.
        on_regression: What a regression beyond tolerance and noise does.
        max_error_rate: The share of failed requests, 0 to 1, above which a level fails the trial, as measured; None
            asks for nothing but the objectives.
        max_error_rate_up_to: It holds of the levels up to this concurrency per copy; None is every level.
    """

    confidence: float = 0.0
    on_inconclusive: Literal["pass", "fail"] = "fail"
    regression_tolerance: float = 0.1
    on_regression: Literal["fail", "warn", "ignore"] = "warn"
    max_error_rate: float | None = None
    max_error_rate_up_to: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """One bound of the SLO; `value` is the statistic of `error_rate` (a share) and `output_tok_s` (all copies)."""

    metric: Metric
    statistic: Statistic
    bound: float
    sense: Literal["at_most", "at_least"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    """Everything that a trial needs to know.

    Attributes:
        endpoint: The endpoint's name in its spec.
        environment: The environment deployed to (dev, prod).
        plan_digest: The plan that the deployment was made from; also seeds the prompts.
        target: The live endpoint.
        expected: What the live endpoint must consist of; None when no deployment of ours is proven.
        workload: The kind of request.
        load: How hard to load.
        objectives: The SLO; may be empty.
        gate_concurrency: Requests in flight per copy at which the SLO must hold.
        copy_count: Running copies; a level opens its concurrency times this many streams.
        mode: What the deployment gate does with a failed verdict; the trial itself measures alike.
        usd_per_hour_per_copy: Price of the hardware that one copy occupies; None when unknown.
        fallback_target_concurrency: The scaling target per copy when the trial finds no knee.
        target_utilization: Share of the knee's concurrency to scale at, above 0 and at most 1.
        gate: When a measurement is proof enough.
        prior: What the plan predicts.
    """

    endpoint: str
    environment: str
    plan_digest: str
    target: Target
    expected: Expected | None
    workload: Workload
    load: Load
    objectives: tuple[Objective, ...]
    gate_concurrency: int
    copy_count: int
    mode: Literal["rollback", "report", "off"]
    usd_per_hour_per_copy: float | None
    fallback_target_concurrency: float
    target_utilization: float
    gate: Gate = field(default_factory=Gate)
    prior: Prior = field(default_factory=Prior)

    def to_json(self) -> str:
        """Write the request as one line of JSON."""
        return write_document(self)

    @classmethod
    def from_json(cls, text: str) -> TrialRequest:
        """Read a request strictly.

        Raises:
            BenchError: SEA501, with every unknown key, wrong type and impossible value.
        """
        request = read_document(cls, text, where=WHERE)
        request.check()
        return request

    def check(self) -> None:
        """Check the values that no type excludes.

        Raises:
            BenchError: SEA501, with every impossible value.
        """
        problems = [
            Problem(where=WHERE, field=field, rule=RULE, message=message) for field, message in _impossible(self)
        ]
        if problems:
            raise BenchError(problems)


def _impossible(request: TrialRequest) -> Iterator[tuple[str, str]]:
    yield from ((field, f"{number:g} is not a finite number") for field, number in not_finite(request))
    yield from _not_positive(request)
    yield from _too_large(request)
    yield from ((f"load.{field}", message) for field, message in wrong_load(request.load))
    yield from _wrong_objectives(request.objectives)
    yield from _wrong_prefix(request.workload)
    if not 0 < request.target_utilization <= 1:
        yield "target_utilization", f"{request.target_utilization:g} is not above 0 and at most 1"
    if not 0 <= request.gate.confidence < 1:
        yield "gate.confidence", f"{request.gate.confidence:g} is not from 0 and below 1"
    if request.gate.max_error_rate is not None and not 0 <= request.gate.max_error_rate <= 1:
        yield "gate.max_error_rate", f"{request.gate.max_error_rate:g} is not a share from 0 to 1"
    if request.load.budget_usd is not None and request.usd_per_hour_per_copy is None:
        yield "load.budget_usd", f"{request.load.budget_usd:g} USD bound nothing where no price per hour is known"


def _not_positive(request: TrialRequest) -> Iterator[tuple[str, str]]:
    workload = request.workload
    numbers: dict[str, float] = {
        "workload.input_tokens": workload.input_tokens,
        "workload.output_tokens": workload.output_tokens,
        "workload.prefix_groups": workload.prefix_groups,
        "gate_concurrency": request.gate_concurrency,
        "copy_count": request.copy_count,
        "fallback_target_concurrency": request.fallback_target_concurrency,
        **({} if request.usd_per_hour_per_copy is None else {"usd_per_hour_per_copy": request.usd_per_hour_per_copy}),
    }
    return ((field, f"{number:g} is not above 0") for field, number in numbers.items() if number <= 0)


def _too_large(request: TrialRequest) -> Iterator[tuple[str, str]]:
    workload = request.workload
    numbers: dict[str, tuple[int, int]] = {
        "workload.input_tokens": (workload.input_tokens, MOST_TOKENS),
        "workload.output_tokens": (workload.output_tokens, MOST_TOKENS),
        "gate_concurrency": (request.gate_concurrency, MOST_IN_FLIGHT),
    }
    return ((field, f"{number:,} is more than {most:,}") for field, (number, most) in numbers.items() if number > most)


def _wrong_prefix(workload: Workload) -> Iterator[tuple[str, str]]:
    if workload.input_tokens > 0 and (wrong := wrong_prefix(workload.shared_prefix_tokens, workload.input_tokens)):
        yield "workload.shared_prefix_tokens", wrong


def _wrong_objectives(objectives: tuple[Objective, ...]) -> Iterator[tuple[str, str]]:
    for index, objective in enumerate(objectives):
        if (objective.metric in PER_REQUEST_METRICS) == (objective.statistic == "value"):
            wanted = "a percentile or mean" if objective.metric in PER_REQUEST_METRICS else "value"
            yield f"objectives[{index}].statistic", f"{objective.metric} has {wanted}, not {objective.statistic}"
        elif wrong := wrong_objective(objective.metric, objective.bound):
            yield f"objectives[{index}].bound", f"{objective.metric}: {wrong}"
