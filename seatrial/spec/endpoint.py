"""The endpoint spec: what a platform engineer asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StringConstraints

from seatrial import bounds
from seatrial.bounds import MOST_IN_FLIGHT, MOST_REQUESTS, MOST_TOKENS, MOST_USD
from seatrial.model import FrozenModel
from seatrial.spec import shapes
from seatrial.spec.engine_options import (
    Backend,
    DraftMethod,
    DynamicBatching,
    KvCacheDtype,
    Lora,
    OutputFormat,
    RopeScaling,
)
from seatrial.spec.model_shape import ModelShape

if TYPE_CHECKING:
    from pydantic.config import JsonDict


LONGEST_BUDGET_MINUTES = 50  # CloudFormation waits an hour for a custom resource; the rest is for proof and clean-up
Level = Annotated[int, Field(ge=1, le=4096)]
Requests = Annotated[int, Field(ge=0, le=MOST_REQUESTS)]
Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
Positive = Annotated[int, Field(gt=0, le=MOST_REQUESTS)]


class TrialSpec(FrozenModel):
    """The sea trial that every changed plan is put through."""

    mode: Literal["rollback", "report", "off"] = Field("rollback", description="What a failed trial does.")
    search: Literal["sweep", "adaptive"] = Field(
        "sweep",
        description="`sweep` measures every level; `adaptive` chooses the next level from what it measured, between "
        "the lowest and the highest.",
    )
    goal: Literal["knee", "max_concurrency", "max_goodput"] = Field(
        "knee", description="What an adaptive search looks for."
    )
    concurrency_levels: Annotated[tuple[Level, ...], Field(min_length=1)] | None = Field(
        None, description="Requests in flight per copy."
    )
    ramp_per_concurrency: Annotated[int, Field(ge=0, le=10)] = Field(
        1, description="First requests of a level, times its concurrency, that fill the batch and are not measured."
    )
    requests_per_concurrency: Positive = Field(
        3, description="Measured requests of a level at least, times its concurrency."
    )
    max_requests_per_concurrency: Positive | None = Field(
        None,
        description="Measured requests of a level at most, times its concurrency, where `precision` wants more; left "
        "out, twice `requests_per_concurrency`.",
    )
    precision: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.05, description="Half the 95 % interval of the median end-to-end latency, over it, that is narrow enough."
    )
    warmup_requests: Requests = Field(2, description="Requests before the first level.")
    shared_prefix_tokens: Tokens = Field(0, description="First tokens of a prompt that other prompts share.")
    prefix_groups: Positive = Field(1, description="Different shared beginnings.")
    budget_minutes: Annotated[float, Field(gt=0, le=LONGEST_BUDGET_MINUTES)] = Field(
        10, description="The trial ends after this."
    )
    budget_usd: Annotated[float, Field(gt=0, le=MOST_USD)] | None = Field(
        None, description="The trial ends before its copies cost more than this."
    )
    request_timeout_s: Annotated[float, Field(gt=0, le=480)] = Field(60, description="A request ends after this.")
    stall_timeout_s: Annotated[float, Field(gt=0, le=480)] | None = Field(
        None, description="A stream that is silent for so long has failed; none waits for `request_timeout_s`."
    )
    max_retries: Annotated[int, Field(ge=0, le=10)] = Field(
        0, description="Repetitions of a request that was throttled or whose model was not ready; each is counted."
    )
    confidence: Annotated[float, Field(ge=0, le=0.999)] = Field(
        0.9,
        description="An objective is proven when its one-sided interval of this confidence says so; 0 takes the "
        "measured value as it is.",
    )
    on_inconclusive: Literal["fail", "pass"] = Field("fail", description="What a trial that proves nothing does.")
    on_regression: Literal["fail", "warn", "ignore"] = Field(
        "warn", description="What a result worse than the last release's does."
    )
    regression_tolerance: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.1, description="Share by which a result may be worse before it is a regression."
    )


EndpointName = Annotated[str, StringConstraints(pattern=shapes.ENDPOINT_NAME, max_length=40)]
InstanceType = Annotated[str, StringConstraints(pattern=shapes.INSTANCE_TYPE)]
InstanceTypes = Annotated[tuple[InstanceType, ...], Field(min_length=1)]
ModelUri = Annotated[str, StringConstraints(pattern=shapes.MODEL_URI)]
ImageUri = Annotated[str, StringConstraints(pattern=shapes.IMAGE_URI)]
Secret = Annotated[str, StringConstraints(pattern=shapes.SECRET_NAME)]
HubId = Annotated[str, StringConstraints(pattern=shapes.HUB_ID, max_length=193)]  # twice 96 and the slash
Revision = Annotated[str, StringConstraints(pattern=shapes.REVISION, max_length=255)]
JumpStartId = Annotated[str, StringConstraints(pattern=shapes.JUMPSTART_ID, max_length=128)]
ModelPath = Annotated[str, StringConstraints(pattern=shapes.MODEL_PATH, max_length=1024)]
EngineVersion = Annotated[str, StringConstraints(pattern=shapes.ENGINE_VERSION, max_length=128)]
OptionName = Annotated[str, StringConstraints(pattern=shapes.OPTION_NAME, max_length=128)]
FilePath = Annotated[str, StringConstraints(min_length=1, max_length=4096)]  # PATH_MAX of Linux
TokenCount = Annotated[int, Field(gt=0, le=bounds.MOST_TOKENS)]
Milliseconds = Annotated[float, Field(gt=0, le=bounds.LONGEST_LATENCY_MS)]
Usd = Annotated[float, Field(gt=0, le=bounds.MOST_USD)]
Degree = Annotated[int, Field(gt=0, le=1024)]
Cooldown = Annotated[int, Field(gt=0, le=bounds.MOST_SECONDS)]
MOST_COPIES = 1000  # a bound against slips of the hand, not one of the service
InFlight = Annotated[int, Field(ge=1, le=MOST_IN_FLIGHT)]
Copies = Annotated[int, Field(ge=1, le=MOST_COPIES)]
Fraction = Annotated[float, Field(gt=0, le=1)]
Discount = Annotated[float, Field(ge=0, lt=1)]
MOST_DRAFT_TOKENS = 16
DEFAULT_DRAFT_COST = 0.05  # of a decode step: a draft model of some twentieth of the model's size
OptionValue = str | int | float | bool


def _left_out_or_mapping(schema: JsonDict) -> None:
    """Make the schema of an optional mapping that of the mapping: editors complete it, and null is left out."""
    options = schema.pop("anyOf")
    if isinstance(options, list) and isinstance(options[0], dict):
        schema["$ref"] = options[0]["$ref"]


class ModelSpec(FrozenModel):
    """Which model, and where its weights come from: exactly one of `hub_id`, `s3_uri` and `jumpstart_id`."""

    hub_id: HubId | None = Field(None, description="Hugging Face hub id, for example `meta-llama/Llama-2-7b-chat-hf`.")
    revision: Revision | None = Field(None, description="Commit of the hub repository; pin it, a branch moves.")
    s3_uri: ModelUri | None = Field(
        None, description="S3 prefix of the uncompressed weights, with its final slash, or a `.tar.gz` of them."
    )
    jumpstart_id: JumpStartId | None = Field(
        None, description="JumpStart model id; its artifact is looked up in the catalog."
    )
    jumpstart_metadata: FilePath | None = Field(
        None, description="JumpStart's specification of the model: a JSON file or a folder, relative to the spec."
    )
    accept_eula: bool = Field(default=False, description="You have read and accept the model's licence.")
    architecture: HubId | None = Field(None, description="Catalog id whose architecture this model shares.")
    config_file: FilePath | None = Field(None, description="The model's `config.json`, relative to the spec.")
    shape: ModelShape | None = Field(
        None,
        description="The architecture's numbers, where there is neither a catalog row nor a `config.json`.",
        json_schema_extra=_left_out_or_mapping,
    )
    hub_token_secret: Secret | None = Field(None, description="Secrets Manager name or ARN of the hub token.")
    trust_remote_code: bool = Field(default=False, description="Run the Python code of the model's repository.")


class WorkloadSpec(FrozenModel):
    """The traffic that the endpoint is planned for: exactly one of `concurrency` and `requests_per_second`."""

    input_tokens: TokenCount = Field(description="Typical prompt length, in tokens; `max_model_len` is the limit.")
    output_tokens: TokenCount = Field(description="Typical answer length, in tokens.")
    max_model_len: TokenCount | None = Field(
        None,
        description="Longest request: prompt + answer, in tokens; a longer one is refused. Left out: twice the typical "
        "request and at least 4,096, as far as the model's context and the KV room allow.",
    )
    concurrency: Annotated[int, Field(gt=0, le=bounds.MOST_REQUESTS)] | None = Field(
        None, description="Requests in flight at peak, over all copies."
    )
    requests_per_second: Annotated[float, Field(gt=0, le=bounds.MOST_REQUESTS)] | None = Field(
        None, description="Requests per second at peak."
    )


class Percentiles(FrozenModel):
    """Upper bounds at percentiles, in milliseconds."""

    p50: Milliseconds | None = None
    p90: Milliseconds | None = None
    p95: Milliseconds | None = None
    p99: Milliseconds | None = None


class Slo(FrozenModel):
    """The service level objectives; a latency or throughput that is left out is not judged."""

    ttft_ms: Percentiles = Field(Percentiles(), description="Time to first token, queueing included.")
    tpot_ms: Percentiles = Field(Percentiles(), description="Time per output token after the first.")
    e2e_latency_ms: Percentiles = Field(Percentiles(), description="Request sent to last token.")
    error_rate: Annotated[float, Field(ge=0, lt=1)] = Field(0.01, description="At most this share of requests fails.")
    output_tok_s: Annotated[float, Field(gt=0, le=bounds.MOST_TOK_S)] | None = Field(
        None, description="At least this many output tokens per second."
    )


class Budget(FrozenModel):
    """What the endpoint may cost at its planned size and load."""

    usd_per_hour: Usd | None = Field(None, description="At most this many US dollars per hour.")
    usd_per_million_output_tokens: Usd | None = Field(
        None, description="At most this many US dollars per million output tokens, at the planned load."
    )
    blended_usd_per_million_tokens: Usd | None = Field(
        None, description="At most this many US dollars per million tokens of both kinds, three input to one output."
    )
    discount: Discount = Field(
        0, description="Share off the list price, such as a Savings Plan gives; it applies to every price of the plan."
    )


class SpeculativeDecodingSpec(FrozenModel):
    """Drafted tokens that the model only checks. The acceptance rate is your assumption until it is measured."""

    draft_tokens: Annotated[int, Field(ge=1, le=MOST_DRAFT_TOKENS)] = Field(description="Tokens drafted per step.")
    acceptance_rate: Annotated[float, Field(gt=0, lt=1)] = Field(
        description="Probability that a drafted token is accepted: an assumption of yours until it is measured."
    )
    draft_cost: Annotated[float, Field(ge=0, lt=1)] = Field(
        DEFAULT_DRAFT_COST, description="Cost of drafting one token, as a share of one decode step of the model."
    )
    method: DraftMethod | None = Field(None, description="Who drafts; left out, it is planned but not configured.")
    model: ModelPath | None = Field(None, description="Hub id or path of the draft model, where the method has one.")


class ServingOverrides(FrozenModel):
    """Values that the planner must take as given."""

    tensor_parallel_degree: Degree | None = Field(None, description="GPUs that one copy is sharded over.")
    max_model_len: TokenCount | None = Field(None, description="As `workload.max_model_len`, which see.")
    max_num_seqs: InFlight | None = Field(None, description="Sequences batched at once (the batch limit).")
    max_num_batched_tokens: TokenCount | None = Field(None, description="Tokens of one engine iteration.")
    max_queued_requests: InFlight | None = Field(None, description="Requests that wait before one is refused.")
    dtype: Literal["auto", "fp16", "bf16"] = Field("auto", description="Type of weights and activations.")
    quantization: Literal["fp8", "awq", "gptq"] | None = Field(None, description="Quantization of the weights.")
    speculative_decoding: SpeculativeDecodingSpec | None = Field(
        None,
        description="What the plan assumes of speculative decoding; left out, none.",
        json_schema_extra=_left_out_or_mapping,
    )
    pipeline_parallel_degree: Degree | None = Field(None, description="Stages that the layers are split into.")
    kv_cache_dtype: KvCacheDtype | None = Field(None, description="Type of the KV cache.")
    prefix_caching: bool | None = Field(None, description="Prompts share the cache of their common beginnings.")
    chunked_prefill: bool | None = Field(None, description="Long prompts are computed between decode steps.")
    enforce_eager: bool | None = Field(None, description="No CUDA graphs.")
    lora: Lora | None = Field(None, description="LoRA adapters.", json_schema_extra=_left_out_or_mapping)
    rope_scaling: RopeScaling | None = Field(
        None, description="Positions beyond the trained length.", json_schema_extra=_left_out_or_mapping
    )
    dynamic_batching: DynamicBatching | None = Field(
        None, description="Whole requests are batched.", json_schema_extra=_left_out_or_mapping
    )
    output_format: OutputFormat | None = Field(None, description="Shape of the response, where the engine has several.")
    extra: dict[OptionName, OptionValue] = Field({}, description="Options passed to the engine as they are.")


class ServingSpec(FrozenModel):
    """The engine, the instance types that may be used, and what is fixed beforehand."""

    engine: Literal["auto", "lmi", "tgi", "vllm", "sglang"] = Field(
        "auto", description="Serving container; `auto` decides."
    )
    backend: Backend = Field("auto", description="What runs the model inside LMI; `auto` is its newest vLLM form.")
    engine_version: EngineVersion | None = Field(None, description="Container version as the catalog writes it.")
    image: ImageUri | None = Field(None, description="URI in a private ECR repository to use as it is.")
    code: FilePath | None = Field(None, description="Folder with `model.py`, `requirements.txt`; relative to the spec.")
    instance_types: InstanceTypes | None = Field(None, description="The planner chooses among these.")
    overrides: ServingOverrides = ServingOverrides()


class ScalingSpec(FrozenModel):
    """How many copies, and how fast their number changes."""

    min_copies: Copies = Field(1, description="Copies that always run.")
    max_copies: Copies = Field(1, description="Copies at most.")
    target_utilization: Fraction = Field(0.8, description="Share of the knee that a copy is loaded to.")
    scale_out_cooldown_s: Cooldown = Field(60, description="Pause after adding copies.")
    scale_in_cooldown_s: Cooldown = Field(300, description="Pause after removing copies.")


class EndpointSpec(FrozenModel):
    """One endpoint, as asked for in one environment (overrides merged)."""

    name: EndpointName = Field(description="Name of the endpoint; the environment's name is put before it.")
    description: Annotated[str, StringConstraints(max_length=2048)] = Field("", description="For people.")
    model: ModelSpec
    workload: WorkloadSpec
    objective: Literal["cost", "cost_per_token", "latency", "throughput"] = Field(
        "cost",
        description="What is best among what fits: `cost` is per hour, `cost_per_token` per million output tokens at "
        "the planned load.",
    )
    slo: Slo = Slo()
    budget: Budget = Budget()
    serving: ServingSpec = ServingSpec()
    scaling: ScalingSpec = ScalingSpec()
    trial: TrialSpec = TrialSpec()
