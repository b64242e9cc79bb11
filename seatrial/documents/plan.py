"""The plan: every decision with its reason, the predicted curve, the cost. JSON in, JSON out, no behaviour."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Annotated, Generic, Literal, TypeVar

from pydantic import JsonValue

from seatrial.documents.prediction import Band, Limit, MemoryFit, PredictedKnee, Regime
from seatrial.specs.endpoint import TrialUpdate
from seatrial_base.catalog import neuron
from seatrial_base.catalog.engine_options import options_decided_by
from seatrial_base.catalog.instances import Purchase
from seatrial_base.field_facts import Facts, facts_of
from seatrial_base.frozen_model import FrozenModel, SealedModel, digest, model_field, models_in

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "PLAN_SCHEMA",
    "Adopted",
    "Alternative",
    "CopyPrediction",
    "Cost",
    "CurvePoint",
    "Decision",
    "Image",
    "Layout",
    "Plan",
    "PlannedEndpoint",
    "Probe",
    "Promoted",
    "Proposal",
    "RatePoint",
    "Rejected",
    "ServingLimits",
    "SizedDeployment",
    "copy_values",
    "hardware_words",
    "tried_fields",
    "values_digest",
]

PLAN_SCHEMA = "3"
STAND_IN = "The model_type "
"""The beginning of the warning that names the family which is used for an unknown one."""
UNPREDICTED = "Not in the prediction: "
AT_PEAK = "At peak, autoscaling runs "
"""The beginning of the warning that names what changes memory or speed and the prediction does not know."""

Value = TypeVar("Value")


class Decision(FrozenModel, Generic[Value]):
    """One value with the reason it was chosen, a full sentence."""

    value: Value
    because: Annotated[str, Facts(explains=True)]


class CurvePoint(FrozenModel):
    """What one copy is predicted to do at one concurrency: simulated under the trial's protocol, not measured.

    Attributes:
        concurrency: Requests in flight on the copy.
        output_tok_s: Output tokens over the time of the whole level.
        ttft_ms: Mean time to first token, queueing included.
        tpot_ms: Mean time per output token after the first.
        e2e_latency_ms: Mean time from request to last token.
        ms_per_token: Mean end-to-end latency over output tokens.
        ttft_p95_ms: 95th percentile of the time to first token.
        tpot_p95_ms: 95th percentile of the time per output token.
        e2e_latency_p95_ms: 95th percentile of the end-to-end latency.
        ms_per_token_p90: 90th percentile of end-to-end latency over output tokens: the published tables' latency.
        late: Share of the requests that take longer than the trial's request timeout.
        limit: What bounds it there.
    """

    concurrency: int
    output_tok_s: float
    ttft_ms: float
    tpot_ms: float
    e2e_latency_ms: float
    ms_per_token: float
    ttft_p95_ms: float
    tpot_p95_ms: float
    e2e_latency_p95_ms: float
    ms_per_token_p90: float
    late: float
    limit: Limit


class RatePoint(FrozenModel):
    """What one copy is predicted to do at one rate of requests: simulated with their arrivals, not measured.

    Attributes:
        requests_per_second: Of all copies.
        per_copy: Of this copy.
        utilization: Share of the rate at which the queue grows without end.
        in_flight: Mean number of requests in flight on the copy.
        output_tok_s: Output tokens per second that are requested of this copy.
        queue_p95_ms: 95th percentile of the time until the first tokens of a prompt are computed.
        ttft_ms: Mean time to first token, queueing included.
        ttft_p95_ms: Its 95th percentile.
        ttft_p99_ms: Its 99th percentile.
        tpot_ms: Mean time per output token after the first.
        tpot_p95_ms: Its 95th percentile.
        itl_p99_ms: 99th percentile of the pause between two tokens.
        e2e_latency_ms: Mean time from request to last token.
        e2e_latency_p95_ms: Its 95th percentile.
        late: Share of the requests that take longer than the trial's request timeout.
    """

    requests_per_second: float
    per_copy: float
    utilization: float
    in_flight: float
    output_tok_s: float
    queue_p95_ms: float
    ttft_ms: float
    ttft_p95_ms: float
    ttft_p99_ms: float
    tpot_ms: float
    tpot_p95_ms: float
    itl_p99_ms: float
    e2e_latency_ms: float
    e2e_latency_p95_ms: float
    late: float


class Cost(SealedModel):
    """What the planned size costs; `None` where no price is known, and why is among the plan's warnings.

    Attributes:
        usd_per_hour: All planned instances.
        usd_per_hour_per_copy: One copy's share of its instance.
        usd_per_million_output_tokens: At the planned load.
        blended_usd_per_million_tokens: At three input tokens to one output token.
        discount: Share off the list price that every price of the plan has; 0 for the list price.
        price_source: Where the price was read.
        price_date: When it was valid.
        savings_plan_usd_per_hour: All planned instances under a Savings Plan; `None`, and not written, when unknown.
        purchase: How the instance hours are bought whose price this is; not written on demand.
        on_demand_usd_per_hour: All planned instances on demand, where they are bought otherwise.
        price_region: The region whose price it is, where none is known for the environment's; not written else.
        usd_per_session: Of a conversation, or of an agent's session with its sub-agents, at the planned load; not
            written of single requests.
    """

    usd_per_hour: float | None
    usd_per_hour_per_copy: float | None
    usd_per_million_output_tokens: float | None
    blended_usd_per_million_tokens: float | None
    discount: float = 0.0
    price_source: str | None
    price_date: str | None
    savings_plan_usd_per_hour: float | None = model_field(None, since="0.1")
    purchase: Purchase = model_field("on_demand", since="0.2")
    on_demand_usd_per_hour: float | None = model_field(None, since="0.2")
    usd_per_session: float | None = model_field(None, since="0.2")
    price_region: str | None = model_field(None, since="0.2")

    @property
    def elsewhere(self) -> str:
        """Whose price it is where none is known for the environment's region, after a blank; else empty."""
        return f" (the price of {self.price_region}: this region's is not known)" if self.price_region else ""


class SizedDeployment(FrozenModel):
    """Copies of the model on instances of one type.

    Attributes:
        tensor_parallel_degree: Accelerators of a copy.
        copy_count: Copies of the planned size.
        usd_per_hour: All its instances; `None` where no price is known.
    """

    instance_type: str
    tensor_parallel_degree: int
    copy_count: int
    instance_count: int
    usd_per_hour: float | None

    @property
    def words(self) -> str:
        """As it is shown: `2 x ml.g6e.xlarge, TP 2`."""
        return f"{self.instance_count} x {hardware_words(self.instance_type, self.tensor_parallel_degree)}"


def hardware_words(instance_type: str, degree: int) -> str:
    """Write what one copy runs on: `ml.g6e.xlarge, TP 2`."""
    return f"{instance_type}, TP {degree}"


class Alternative(SizedDeployment):
    """A deployment that no other beats in price, in latency of a single request and in throughput at once.

    Attributes:
        usd_per_million_output_tokens: At the planned load.
        output_tok_s: Of all copies at the planned load.
        highest_tok_s: Of all copies, each loaded as far as the objectives hold.
        ms_per_token_alone: End-to-end latency of a single request over its output tokens.
        chosen: This is the plan's.
    """

    copies_per_instance: int
    usd_per_million_output_tokens: float | None
    output_tok_s: float
    highest_tok_s: float
    ms_per_token_alone: float
    chosen: bool


class Probe(SizedDeployment):
    """One level of a cheaper deployment; measured, it decides between that deployment and the plan.

    Attributes:
        saving_usd_per_hour: How much less than the plan that is.
        concurrency_per_copy: Requests in flight on one copy: the level to measure.
        field: The objective that it is predicted to miss by less than the band, as in the spec.
        predicted: What is predicted of it, in milliseconds or output tokens per second.
        bound: Its bound, in the same unit.
        chance: That the measured value meets the bound, with the band as 80 % of the errors.
        because: Full sentences.
    """

    usd_per_hour: float
    saving_usd_per_hour: float
    concurrency_per_copy: int
    field: str
    predicted: float
    bound: float
    chance: float
    because: Annotated[str, Facts(explains=True)]


class SaferDeployment(SizedDeployment):
    """The cheapest of the more expensive deployments that misses the SLO half as likely as the plan does, or less.

    Attributes:
        more_usd_per_hour: How much more than the plan that is.
        concurrency_per_copy: Requests in flight on one copy at the workload.
        chance: That it meets the SLO, with the band as 80 % of the errors.
    """

    usd_per_hour: float
    more_usd_per_hour: float
    concurrency_per_copy: int
    chance: float


class Proposal(SizedDeployment):
    """A deployment with narrower weights that beats the plan; it is never taken by itself.

    Attributes:
        quantization: What `serving.overrides.quantization` would say.
        output_tok_s: Of all copies at the planned load.
        highest_tok_s: Of all copies, each loaded as far as the objectives hold.
        ms_per_token_alone: End-to-end latency of a single request over its output tokens.
        because: Its gain, a full sentence.
        gives_up: What it costs in another way, full sentences.
    """

    quantization: str
    output_tok_s: float
    highest_tok_s: float
    ms_per_token_alone: float
    because: Annotated[str, Facts(explains=True)]
    gives_up: str


class Rejected(SealedModel):
    """A deployment that was considered and rejected.

    Attributes:
        feasible: It is predicted to satisfy all requirements; another is better.
        instance_count: Instances of the size that would serve; 1, and not written, where it serves not.
    """

    instance_type: str
    tensor_parallel_degree: int
    usd_per_hour: float | None
    output_tok_s: float | None
    because: Annotated[str, Facts(explains=True)]
    feasible: bool = model_field(default=False, since="0.1")
    instance_count: int = model_field(default=1, since="0.2")


class Image(FrozenModel):
    """The container image: `account.dkr.ecr.region.suffix/repository:tag`."""

    uri: str
    repository: str
    tag: str


class Adopted(FrozenModel):
    """A decision that was set by hand in the lock.

    Attributes:
        planned: What the planner decided.
        adopted: What was set.
    """

    planned: JsonValue
    adopted: JsonValue


class Promoted(SealedModel):
    """The passed trial of another environment, on the strength of which a plan was promoted.

    Attributes:
        plan_digest: Digest of the plan that was tried there.
        spec_digest: Digest of the spec and environment that that plan was made from.
        result_uri: Of the trial's result.
        report_uri: Of its short report.
        request_id: CloudFormation's request that it was made for; `None` where it is unknown.
        ended_at: When the trial ended, ISO 8601 in UTC, from its result.
        knee_concurrency_per_copy: The measured knee; `None` where the trial found none.
        engine_note: How a simulated engine announced itself; written only where it was one.
        promoted_at: When the plan was promoted, ISO 8601 in UTC: the age of its trial is judged at this time.
    """

    source: str
    plan_digest: str
    spec_digest: str
    result_uri: str
    report_uri: str
    request_id: str | None
    verdict: Literal["pass"]
    ended_at: str
    knee_concurrency_per_copy: float | None
    engine_note: str = model_field("", since="0.2")
    promoted_at: str = model_field("", since="0.2")


class PlannedEndpoint(FrozenModel):
    """The endpoint that is planned, and the engine and instance type that serve it.

    Attributes:
        spec_digest: Digest of the spec and environment that it was made from.
        model_name: The model as it is shown and addressed.
        architecture: Catalog id, or the file, that the architecture was read from.
    """

    schema_version: str = PLAN_SCHEMA
    endpoint: str
    environment: str
    spec_digest: str
    model_name: str
    architecture: str
    engine: Decision[str]
    engine_version: Decision[str]
    image: Decision[Image]
    inference_ami_version: Decision[str | None]
    instance_type: Decision[str]
    accelerators_per_instance: int


class Layout(FrozenModel):
    """How many instances and copies there are, how they are placed, and what they cost.

    Attributes:
        copy_count: Copies that run from the start.
        max_instances: Instances that `max_copies` need.
        copies_replaced_at_once: Copies that an update replaces at a time; `None` when it replaces all of them at once.
        surge_instances: Instances that an update needs for a while, on top of `max_instances`; a candidate copy, which
            is gone before the update's own copies start, needs no more.
        memory_min_mb: Host memory reserved for one copy, in MiB (the API's `…InMb`).
        expert_parallel_degree: Accelerators that each hold whole experts, where the engine starts only so and the spec
            does not say it; else `None`.
    """

    instance_count: Decision[int]
    tensor_parallel_degree: Decision[int]
    copies_per_instance: Decision[int]
    copy_count: Decision[int]
    max_instances: int
    copies_replaced_at_once: int | None
    surge_instances: Decision[int]
    dtype: Decision[str]
    cpu_cores_per_copy: float
    memory_min_mb: Decision[int]
    cost: Cost
    expert_parallel_degree: Decision[int] | None = model_field(None, since="0.2")


class ServingLimits(FrozenModel):
    """The limits of the engine, the service and the trial.

    Attributes:
        trial_update: How an update of the endpoint is tried, and what that needs and costs.
        max_num_seqs: Sequences that one copy batches at once.
        max_num_batched_tokens: Tokens of one engine iteration (prefill limit).
        max_queued_requests: Requests that wait at one copy before one is refused.
        max_queued_tokens: Prompt tokens of requests without a first token before one is refused; written only where
            the engine bounds them, and spec or `serving.overload` does.
        knee: The predicted knee of one copy, and its detector.
        target_concurrency_per_copy: Autoscaling target until a trial has measured the knee.
        gate_concurrency_per_copy: Load at which the SLO must hold.
        concurrency_levels: Levels of the trial, per copy.
        warnings: What the team should know of the plan, full sentences.
    """

    trial_update: Decision[TrialUpdate]
    max_model_len: Decision[int]
    max_num_seqs: Decision[int]
    max_num_batched_tokens: Decision[int]
    max_queued_requests: Decision[int]
    startup_timeout_s: Decision[int]
    download_timeout_s: Decision[int]
    knee: PredictedKnee
    target_concurrency_per_copy: Decision[float]
    gate_concurrency_per_copy: Decision[int]
    concurrency_levels: Decision[tuple[int, ...]]
    max_queued_tokens: Decision[int] | None = model_field(None, since="0.2")
    warnings: tuple[str, ...] = model_field((), explains=True)


class CopyPrediction(FrozenModel):
    """What one copy is predicted to do.

    Attributes:
        memory: How the memory of one accelerator is divided.
        curve: Prediction at each level of the trial.
        band: How far the predictions may be off.
        regime: What bounds the copy, and what keeps its throughput from growing with the load.
        rates: Prediction at shares of the planned rate; written only where the workload is a rate.
        carried_chance: That all copies together carry that rate, with the band of throughput as 80 % of the errors;
            written likewise.
        saturation_requests_per_second: Predicted rate of all copies together beyond which their queue grows without
            end: at this rate the chance is one half; written likewise.
    """

    memory: MemoryFit
    curve: tuple[CurvePoint, ...]
    band: Band
    regime: Regime
    rates: tuple[RatePoint, ...] = model_field((), since="0.2")
    carried_chance: float | None = model_field(None, ge=0, le=1, since="0.2", explains=True)
    saturation_requests_per_second: float | None = model_field(None, since="0.2", explains=True)


class Plan(CopyPrediction, ServingLimits, Layout, PlannedEndpoint, SealedModel):
    """What will be deployed for one endpoint in one environment, and why.

    Its parts are written as one flat document: a lock has each decision by its name.

    Attributes:
        pareto: The deployments that no other beats in everything, by price; the chosen one is marked.
        rejected: The nearest losers, each with one sentence why.
        unpriced: The best deployment of each instance type that has no price and is not ranked; written only where
            there is one.
        chance: That the plan meets the SLO, with the band as 80 % of the errors; written only where the SLO bounds
            something.
        safer: The cheapest deployment that more likely meets it; written only where the plan is in doubt and there is
            one.
        probe: What to measure before the plan is believed, as a cheaper deployment is predicted to miss the SLO by less
            than the band; written only where there is one.
        proposals: Deployments with narrower weights that beat the plan; written only where there are some.
        adopted: The decisions that were set by hand, by field; written only where there are some.
        promoted: The trial of another environment that it was promoted after; written only where there is one.
        generation: Which endpoint this is, counted from 1: one more when something changes that an endpoint in service
            can't change (`seatrial.locks.changes`); written from 2 on.
        volume_size_gb: Size of each instance's volume, in GiB (the API's `…InGB`); written only for instance types
            without local NVMe, as the service refuses it for the others.
        volume_kms_key_arn: Key of that volume; written only where there is one.
        hosting_kind: How SageMaker hosts the model: `single_model`, or `asynchronous` for a single-model endpoint with
            asynchronous inference; written only where the model is no inference component.
    """

    max_copies: int
    quantization: str | None
    pareto: tuple[Alternative, ...]
    rejected: tuple[Rejected, ...]
    unpriced: tuple[Alternative, ...] = model_field((), since="0.1", explains=True)
    chance: float | None = model_field(None, ge=0, le=1, since="0.2", explains=True)
    safer: SaferDeployment | None = model_field(None, since="0.2", explains=True)
    probe: Probe | None = model_field(None, since="0.1", explains=True)
    proposals: tuple[Proposal, ...] = model_field((), since="0.1", explains=True)
    adopted: dict[str, Adopted] = model_field({}, since="0.1")
    promoted: Promoted | None = model_field(None, since="0.2", explains=True)
    generation: int = model_field(1, ge=1, since="0.1")
    volume_size_gb: Decision[int] | None = model_field(None, since="0.1")
    volume_kms_key_arn: str | None = model_field(None, since="0.1")
    hosting_kind: Decision[Literal["single_model", "asynchronous"]] | None = model_field(None, since="0.2")

    @property
    def deployment(self) -> SizedDeployment:
        """What is deployed, without the reasons."""
        return SizedDeployment(
            instance_type=self.instance_type.value,
            tensor_parallel_degree=self.tensor_parallel_degree.value,
            copy_count=self.copy_count.value,
            instance_count=self.instance_count.value,
            usd_per_hour=self.cost.usd_per_hour,
        )

    @property
    def accelerators_per_copy(self) -> int:
        """Accelerators of a copy as SageMaker counts them: GPUs, or chips of AWS Neuron where a degree counts cores."""
        return neuron.neuron_devices(self.instance_type.value, self.tensor_parallel_degree.value)

    @property
    def digest(self) -> str:
        """Digest of everything that the plan decides and predicts: the trial runs again exactly when it changes."""
        return values_digest(self.model_dump(mode="json"))


_EXPLANATIONS = frozenset(
    name for model in models_in(Plan) for name, facts in facts_of(model).items() if facts.explains
)


def values_digest(document: Mapping[str, object]) -> str:
    """Return the digest of a plan as it is written in JSON, without its texts: another wording is the same plan.

    What it holds of deployments that are not chosen for want of a price, a probe or a precision counts as text; so do
    its chances, which follow from its band and its predictions, and where it was promoted from.
    """
    return digest(json.dumps(_values(document), sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def _values(written: object) -> object:
    if isinstance(written, dict):
        return {name: _values(value) for name, value in written.items() if name not in _EXPLANATIONS}
    return [_values(value) for value in written] if isinstance(written, list) else written


_TRIED = (
    "architecture",
    "engine",
    "engine_version",
    "image",
    "inference_ami_version",
    "instance_type",
    "accelerators_per_instance",
    "copies_per_instance",
    "quantization",
    "cpu_cores_per_copy",
    "memory_min_mb",
    "memory",
    "volume_size_gb",
)


@cache
def tried_fields() -> tuple[str, ...]:
    """Return the fields of a plan that decide how one copy serves."""
    return (*_TRIED, *options_decided_by("planner"))


def copy_values(plan: Plan) -> Mapping[str, object]:
    """Return everything of a plan that decides how one copy serves; an image by its tag, as each Region has its own."""
    written = plan.model_dump(mode="json", include={*tried_fields()})
    return {name: _values(value) for name, value in written.items()} | {"image": plan.image.value.tag}
