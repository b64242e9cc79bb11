"""The endpoint spec: what a platform engineer asks for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, StringConstraints

from seatrial.model import FrozenModel
from seatrial.spec import shapes

EndpointName = Annotated[str, StringConstraints(pattern=shapes.ENDPOINT_NAME, max_length=40)]
InstanceType = Annotated[str, StringConstraints(pattern=shapes.INSTANCE_TYPE)]
InstanceTypes = Annotated[tuple[InstanceType, ...], Field(min_length=1)]
S3Prefix = Annotated[str, StringConstraints(pattern=shapes.S3_PREFIX)]
ImageUri = Annotated[str, StringConstraints(pattern=shapes.IMAGE_URI)]
Secret = Annotated[str, StringConstraints(pattern=shapes.SECRET_NAME)]
MOST_COPIES = 1000  # a bound against slips of the hand, not one of the service
Copies = Annotated[int, Field(ge=1, le=MOST_COPIES)]
Fraction = Annotated[float, Field(gt=0, le=1)]
OptionValue = str | int | float | bool


class ModelSpec(FrozenModel):
    """Which model, and where its weights come from: exactly one of `hub_id`, `s3_uri` and `jumpstart_id`."""

    hub_id: str | None = Field(None, description="Hugging Face hub id, for example `meta-llama/Llama-2-7b-chat-hf`.")
    revision: str | None = Field(None, description="Commit of the hub repository; pin it, a branch moves.")
    s3_uri: S3Prefix | None = Field(None, description="S3 prefix of the uncompressed weights, with its final slash.")
    jumpstart_id: str | None = Field(None, description="JumpStart model id; give `s3_uri` of its artifact beside it.")
    accept_eula: bool = Field(default=False, description="You have read and accept the model's licence.")
    architecture: str | None = Field(None, description="Catalog id whose architecture this model shares.")
    config_file: str | None = Field(None, description="The model's `config.json`, relative to the spec.")
    hub_token_secret: Secret | None = Field(None, description="Secrets Manager name or ARN of the hub token.")
    trust_remote_code: bool = Field(default=False, description="Run the Python code of the model's repository.")


class WorkloadSpec(FrozenModel):
    """The traffic that the endpoint is planned for: exactly one of `concurrency` and `requests_per_second`."""

    input_tokens: PositiveInt = Field(description="Prompt length of a request, in tokens.")
    output_tokens: PositiveInt = Field(description="Generated length of a request, in tokens.")
    concurrency: PositiveInt | None = Field(None, description="Requests in flight at peak, over all copies.")
    requests_per_second: PositiveFloat | None = Field(None, description="Requests per second at peak.")


class Percentiles(FrozenModel):
    """Upper bounds at percentiles, in milliseconds."""

    p50: PositiveFloat | None = None
    p90: PositiveFloat | None = None
    p95: PositiveFloat | None = None
    p99: PositiveFloat | None = None


class Slo(FrozenModel):
    """The service level objectives; a latency or throughput that is left out is not judged."""

    ttft_ms: Percentiles = Field(Percentiles(), description="Time to first token, queueing included.")
    tpot_ms: Percentiles = Field(Percentiles(), description="Time per output token after the first.")
    e2e_latency_ms: Percentiles = Field(Percentiles(), description="Request sent to last token.")
    error_rate: Annotated[float, Field(ge=0, lt=1)] = Field(0.01, description="At most this share of requests fails.")
    output_tok_s: PositiveFloat | None = Field(None, description="At least this many output tokens per second.")


class Budget(FrozenModel):
    """What the endpoint may cost at its planned size."""

    usd_per_hour: PositiveFloat | None = Field(None, description="At most this many US dollars per hour.")


class ServingOverrides(FrozenModel):
    """Values that the planner must take as given."""

    tensor_parallel_degree: PositiveInt | None = Field(None, description="GPUs that one copy is sharded over.")
    max_model_len: PositiveInt | None = Field(None, description="Longest sequence, prompt and output, in tokens.")
    max_num_seqs: PositiveInt | None = Field(None, description="Sequences batched at once (the batch limit).")
    max_num_batched_tokens: PositiveInt | None = Field(None, description="Tokens of one engine iteration.")
    max_queued_requests: PositiveInt | None = Field(None, description="Requests that wait before one is refused.")
    dtype: Literal["auto", "fp16", "bf16"] = Field("auto", description="Type of weights and activations.")
    quantization: Literal["fp8", "awq", "gptq"] | None = Field(None, description="Quantization of the weights.")
    extra: dict[str, OptionValue] = Field({}, description="Options passed to the engine as they are.")


class ServingSpec(FrozenModel):
    """The engine, the instance types that may be used, and what is fixed beforehand."""

    engine: Literal["auto", "lmi", "tgi"] = Field("auto", description="Serving container; `auto` decides.")
    engine_version: str | None = Field(None, description="Container version as the catalog writes it.")
    image: ImageUri | None = Field(None, description="URI in a private ECR repository to use as it is.")
    instance_types: InstanceTypes | None = Field(None, description="The planner chooses among these.")
    overrides: ServingOverrides = ServingOverrides()


class ScalingSpec(FrozenModel):
    """How many copies, and how fast their number changes."""

    min_copies: Copies = Field(1, description="Copies that always run.")
    max_copies: Copies = Field(1, description="Copies at most.")
    target_utilization: Fraction = Field(0.8, description="Share of the knee that a copy is loaded to.")
    scale_out_cooldown_s: PositiveInt = Field(60, description="Pause after adding copies.")
    scale_in_cooldown_s: PositiveInt = Field(300, description="Pause after removing copies.")


class TrialSpec(FrozenModel):
    """The sea trial that every changed plan is put through."""

    mode: Literal["rollback", "report", "off"] = Field("rollback", description="What a failed trial does.")
    concurrency_levels: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] | None = Field(
        None, description="Requests in flight per copy."
    )
    requests_per_concurrency: PositiveInt = Field(3, description="Requests of a level, times its concurrency.")
    warmup_requests: Annotated[int, Field(ge=0)] = Field(2, description="Requests before the first level.")
    budget_minutes: Annotated[float, Field(gt=0, le=14)] = Field(10, description="The trial ends after this.")
    request_timeout_s: Annotated[float, Field(gt=0, le=480)] = Field(60, description="A request ends after this.")


class EndpointSpec(FrozenModel):
    """One endpoint, as asked for in one environment (overrides merged)."""

    name: EndpointName = Field(description="Name of the endpoint; the environment's name is put before it.")
    description: str = Field("", description="For people.")
    model: ModelSpec
    workload: WorkloadSpec
    objective: Literal["cost", "latency", "throughput"] = Field("cost", description="What is best among what fits.")
    slo: Slo = Slo()
    budget: Budget = Budget()
    serving: ServingSpec = ServingSpec()
    scaling: ScalingSpec = ScalingSpec()
    trial: TrialSpec = TrialSpec()
