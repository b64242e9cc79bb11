"""The endpoint spec: what a platform engineer requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, model_serializer

from seatrial.specs import shapes
from seatrial.specs.hosting import MOST_ADAPTERS, AdapterSpec, EndpointName, HostingSpec, ImageUri, InstanceType
from seatrial.specs.optimization import MOST_DRAFT_TOKENS, MOST_OPTIMIZATIONS, Recipe
from seatrial.specs.scaling import ScalingSpec
from seatrial_base import bounds
from seatrial_base.bounds import DEFAULT_DRAFT_COST, MOST_REQUESTS, MOST_TOKENS
from seatrial_base.frozen_model import FrozenModel, left_out_or_mapping, model_field, same_as
from seatrial_lint.engines.engine_options import Backend, DraftMethod, EngineOptions, OptionValue, TokenCount
from seatrial_load.documents.request import (
    Gate,
    Goal,
    Load,
    OverloadProof,
    Search,
    Start,
    TargetKnee,
    TrialRequest,
    Workload,
)

# Bounds against slips of the hand: far beyond any published model.
Layers = Annotated[int, Field(ge=1, le=1000)]
Width = Annotated[int, Field(ge=1, le=262_144)]
Heads = Annotated[int, Field(ge=1, le=4096)]
MOST_HEAD_DIM = 1024
HeadDim = Annotated[int, Field(ge=2, le=MOST_HEAD_DIM, multiple_of=2)]
Vocabulary = Annotated[int, Field(ge=1, le=10_000_000)]
ShapeTokens = Annotated[int, Field(ge=1, le=100_000_000)]
Parameters = Annotated[int, Field(ge=1_000_000, le=100_000_000_000_000)]
Experts = Annotated[int, Field(ge=2, le=10_000)]
ExpertsPerToken = Annotated[int, Field(ge=1, le=10_000)]
LONGEST_BUDGET_MINUTES = 50  # CloudFormation waits an hour for a custom resource; the rest is for proof and clean-up
Level = Annotated[int, Field(ge=1, le=4096)]
Requests = Annotated[int, Field(ge=0, le=MOST_REQUESTS)]
Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
Positive = Annotated[int, Field(gt=0, le=MOST_REQUESTS)]
TrialMode = Literal["rollback", "report", "off"]
TrialUpdate = Literal["candidate", "in_place", "verify_only"]
InstanceTypes = Annotated[tuple[InstanceType, ...], Field(min_length=1)]
ModelPackageArn = Annotated[str, StringConstraints(pattern=shapes.MODEL_PACKAGE_ARN, max_length=176)]
HubContentArn = Annotated[str, StringConstraints(pattern=shapes.HUB_CONTENT_ARN, max_length=255)]
Adapters = Annotated[tuple[AdapterSpec, ...], Field(max_length=MOST_ADAPTERS)]
ModelUri = Annotated[str, StringConstraints(pattern=shapes.MODEL_URI)]
Secret = Annotated[str, StringConstraints(pattern=shapes.SECRET_NAME)]
HubId = Annotated[str, StringConstraints(pattern=shapes.HUB_ID, max_length=193)]  # twice 96 and the slash
LicenceId = Annotated[str, StringConstraints(pattern=shapes.LICENCE_ID, max_length=64)]
Revision = Annotated[str, StringConstraints(pattern=shapes.REVISION, max_length=255)]
JumpStartId = Annotated[str, StringConstraints(pattern=shapes.JUMPSTART_ID, max_length=128)]
ModelPath = Annotated[str, StringConstraints(pattern=shapes.MODEL_PATH, max_length=1024)]
EngineVersion = Annotated[str, StringConstraints(pattern=shapes.ENGINE_VERSION, max_length=128)]
OptionName = Annotated[str, StringConstraints(pattern=shapes.OPTION_NAME, max_length=128)]
FilePath = Annotated[str, StringConstraints(min_length=1, max_length=4096)]  # PATH_MAX of Linux
Milliseconds = Annotated[float, Field(gt=0, le=bounds.LONGEST_LATENCY_MS)]
Usd = Annotated[float, Field(gt=0, le=bounds.MOST_USD)]
Discount = Annotated[float, Field(ge=0, lt=1)]
MOST_TAGS = 49  # of each resource but one: `seatrial:environment` is ours
TagKey = Annotated[str, StringConstraints(pattern=shapes.TAG_TEXT, min_length=1, max_length=128)]
TagValue = Annotated[str, StringConstraints(pattern=shapes.TAG_TEXT, max_length=256)]
Tags = Annotated[dict[TagKey, TagValue], Field(max_length=MOST_TAGS)]
TagPattern = Annotated[str, StringConstraints(pattern=shapes.TAG_PATTERN, min_length=1, max_length=256)]
TagPatterns = Annotated[tuple[TagPattern, ...], Field(min_length=1)]


class ModelShape(FrozenModel):
    """The architecture numbers of a model that the catalog lacks, as its `config.json` has them."""

    layers: Layers = Field(description="Transformer layers.")
    hidden_size: Width = Field(description="Width of the residual stream.")
    attention_heads: Heads = Field(description="Query heads.")
    kv_heads: Heads | None = Field(None, description="Key and value heads; left out, as many as attention heads.")
    head_dim: HeadDim | None = Field(
        None, description="Width of one head, an even number; left out, hidden_size / attention_heads."
    )
    vocab: Vocabulary = Field(description="Vocabulary size.")
    max_context: ShapeTokens = Field(description="Longest sequence (prompt and output), in tokens.")
    params_total: Parameters = Field(description="Number of parameters, embeddings included.")
    params_active: Parameters | None = Field(
        None, description="Parameters active per token. Default: all; fewer only with experts."
    )
    experts: Experts | None = Field(None, description="Experts per layer; left out for a dense model.")
    experts_per_token: ExpertsPerToken | None = Field(None, description="Experts active per token.")
    dtype: Literal["fp16", "bf16"] = Field("bf16", description="Type of the published weights.")
    sliding_window: ShapeTokens | None = Field(
        None, description="Attention window of a sliding layer, in tokens. Default: full attention."
    )
    sliding_layers: Layers | None = Field(None, description="Number of layers with the window. Default: all.")
    tied_embeddings: bool = Field(default=False, description="Input and output embeddings are tied.")
    parallel_attention: bool = Field(
        default=False, description="Attention and MLP run in parallel, with one all-reduce per layer (Falcon)."
    )


class TrialSpec(FrozenModel):
    """The sea trial that every changed plan is put through."""

    mode: TrialMode = same_as(TrialRequest, "mode", default="rollback")
    update: TrialUpdate = model_field(
        "candidate",
        "Trial of an update of an endpoint that serves. `candidate` tries one copy of the new model beside "
        "the copies that serve; `in_place` updates them, then adds load up to the gate less the users' requests; "
        "`verify_only` updates them, then sends a few single requests.",
        since="0.1",
    )
    search: Search = same_as(Load, "search", since="0.1")
    target: TargetKnee = same_as(TrialRequest, "target_knee")
    goal: Goal = same_as(Load, "goal", since="0.1")
    overload: OverloadProof = same_as(TrialRequest, "overload")
    start: Start = same_as(Load, "start", default="spread", since="0.2")
    concurrency_levels: Annotated[tuple[Level, ...], Field(min_length=1)] | None = Field(
        None, description="Requests in flight per copy."
    )
    ramp_per_concurrency: int = same_as(Load, "ramp_per_concurrency", default=1, since="0.1", at_most=10)
    requests_per_concurrency: int = same_as(Load, "requests_per_concurrency", default=3)
    max_requests_per_concurrency: Positive | None = model_field(
        None,
        "Most measured requests per level, as a multiple of its concurrency, if `precision` needs them. "
        "Default: twice `requests_per_concurrency`.",
        since="0.1",
    )
    precision: float = same_as(Load, "precision", since="0.1", below=1)
    warmup_requests: int = same_as(Load, "warmup_requests", default=2)
    shared_prefix_tokens: Tokens = model_field(
        0, "Older spelling of `workload.shared_prefix_tokens`, which the plan does not see.", since="0.1"
    )
    prefix_groups: Positive = model_field(1, "Older spelling of `workload.prefix_groups`.", since="0.1")
    budget_minutes: Annotated[float, Field(gt=0, le=LONGEST_BUDGET_MINUTES)] = Field(
        10, description="Time limit of the trial, in minutes."
    )
    budget_usd: float | None = same_as(Load, "budget_usd", since="0.1")
    request_timeout_s: float = same_as(Load, "request_timeout_s", default=60, at_most=480)
    stall_timeout_s: float | None = same_as(Load, "stall_timeout_s", since="0.1", at_most=480)
    max_retries: int = same_as(Load, "max_retries", since="0.1", at_most=10)
    confidence: float = same_as(Gate, "confidence", default=0.9, since="0.1", below=None, at_most=0.999)
    on_inconclusive: Literal["fail", "pass"] = same_as(Gate, "on_inconclusive", since="0.1")
    on_regression: Literal["fail", "warn", "ignore"] = same_as(Gate, "on_regression", since="0.1")
    regression_tolerance: float = same_as(Gate, "regression_tolerance", since="0.1", at_least=0, below=1)


def _no_truth(version: object) -> object:
    """Refuse what Python takes for 1."""
    if version is True:
        raise ValueError("should be a number")
    return version


SchemaVersion = Annotated[Literal[1], BeforeValidator(_no_truth)]


class ModelSpec(FrozenModel):
    """Which model; of `hub_id`, `s3_uri`, `jumpstart_id` and `model_package_arn` exactly one."""

    hub_id: HubId | None = Field(None, description="Hugging Face hub id, for example `meta-llama/Llama-2-7b-chat-hf`.")
    revision: Revision | None = Field(None, description="Commit of the hub repository. Pin it: a branch can move.")
    s3_uri: ModelUri | None = Field(
        None, description="S3 prefix of the uncompressed weights, with its final slash, or a `.tar.gz` of them."
    )
    jumpstart_id: JumpStartId | None = Field(
        None, description="JumpStart model id; its artifact is looked up in the catalog."
    )
    jumpstart_metadata: FilePath | None = model_field(
        None, "JumpStart's specification of the model: a JSON file or a folder, relative to the spec.", since="0.1"
    )
    model_package_arn: ModelPackageArn | None = model_field(
        None,
        "ARN of a model package of the SageMaker model registry, which has image and weights. "
        "Give `s3_uri` too: the model's role may read it.",
        since="0.2",
    )
    hub_content_arn: HubContentArn | None = model_field(
        None, "ARN of the content of a JumpStart private hub through which the mounted weights are read.", since="0.2"
    )
    accept_eula: bool = model_field(
        default=False, description="You have read and accept the model's licence.", planned=False
    )
    licence: LicenceId | None = model_field(
        None, "Licence of a model whose licence the catalog does not know, by its id on the hub.", planned=False
    )
    architecture: HubId | None = Field(None, description="Catalog id whose architecture this model shares.")
    config_file: FilePath | None = Field(None, description="The model's `config.json`, relative to the spec.")
    shape: ModelShape | None = model_field(
        None,
        "The architecture's dimensions, if there is neither a catalog row nor a `config.json`.",
        json_schema_extra=left_out_or_mapping,
        since="0.1",
    )
    hub_token_secret: Secret | None = model_field(None, "Secrets Manager name or ARN of the hub token.", planned=False)
    trust_remote_code: bool = Field(default=False, description="Run the Python code of the model's repository.")


class WorkloadSpec(FrozenModel):
    """The traffic that the endpoint is planned for: exactly one of `concurrency` and `requests_per_second`."""

    input_tokens: TokenCount = Field(description="Mean prompt length, in tokens; `max_model_len` is the limit.")
    input_tokens_stddev: float = same_as(Workload, "input_tokens_stddev")
    output_tokens: TokenCount = Field(description="Mean answer length, in tokens.")
    output_tokens_stddev: float = same_as(Workload, "output_tokens_stddev")
    dataset: FilePath | None = model_field(
        None,
        "File of requests whose lengths yours have, relative to the spec: JSON lines or CSV with the "
        "tokens of each prompt and answer. Its means are `input_tokens` and `output_tokens`.",
        since="0.2",
    )
    shared_prefix_tokens: int = same_as(
        Workload, "shared_prefix_tokens", "With prefix caching on, the plan counts it as cached.", since="0.2"
    )
    prefix_groups: int = same_as(Workload, "prefix_groups", since="0.2")
    turns: int = same_as(Workload, "turns")
    turns_stddev: float = same_as(Workload, "turns_stddev")
    turn_delay_s: float = same_as(Workload, "turn_delay_s")
    turn_delay_stddev_s: float = same_as(Workload, "turn_delay_stddev_s")
    max_model_len: TokenCount | None = model_field(
        None,
        "Longest request (prompt + answer), in tokens; longer ones are refused. Default: twice the "
        "mean request, at least 4,096, at most what the model's context and the KV cache allow.",
        since="0.1",
    )
    prefix_hit_rate: Annotated[float, Field(ge=0, lt=1)] = model_field(
        0.0,
        "Share of the prompt tokens that requests have in common and that the engine finds in its prefix "
        "cache: a long system prompt, for example. The plan counts them as cached, not computed.",
        since="0.1",
    )
    concurrency: Annotated[int, Field(gt=0, le=bounds.MOST_REQUESTS)] | None = Field(
        None, description="Requests in flight at peak, over all copies."
    )
    requests_per_second: Annotated[float, Field(gt=0, le=bounds.MOST_REQUESTS)] | None = Field(
        None, description="Requests per second at peak."
    )
    arrivals: Literal["closed", "poisson", "gamma", "constant", "recorded"] = model_field(
        "closed",
        "Timing of the trial's requests. `closed`: each follows an answer. `poisson`, `gamma`, "
        "`constant` and `recorded` (by the timestamps of `dataset`) send at `requests_per_second`, whatever is "
        "answered, so that latencies hold the queue.",
        since="0.2",
    )
    arrival_smoothness: float = same_as(Load, "arrival_smoothness")
    api: Literal["invoke", "openai"] | None = model_field(
        None,
        "Path of the trial's requests: `openai`, SageMaker's OpenAI path with bearer tokens, or `invoke`, "
        "`InvokeEndpointWithResponseStream`. Default: what the engine serves best, `openai` for vLLM and SGLang; LMI "
        "streams no server-sent events, and TGI counts tokens in its own schema alone. With `openai` an engine that "
        "is not fixed is AWS's vLLM container.",
        since="0.2",
    )


class Percentiles(FrozenModel):
    """Upper bounds at percentiles, in milliseconds."""

    p50: Milliseconds | None = None
    p90: Milliseconds | None = None
    p95: Milliseconds | None = None
    p99: Milliseconds | None = None


class QualitySpec(FrozenModel):
    """What the answers to an evaluation set must be worth; a bound that is left out is not judged.

    The trial asks the set after its levels. ROUGE-L is judged by `seatrial compare` alone.
    """

    evaluation_set: FilePath = Field(
        description="Prompts with their right answers, one JSON object a line, relative to the spec. At most 200 and "
        "48 KiB where a bound is set: they are part of the trial's request."
    )
    exact_match: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="Lowest share of the answers that equal their reference but for case and white space."
    )
    mean_logprob: Annotated[float, Field(le=0, ge=-100)] | None = Field(
        None, description="Lowest mean log-probability of the generated tokens, natural logarithm."
    )
    perplexity: Annotated[float, Field(ge=1, le=1e9)] | None = Field(
        None, description="Highest perplexity of the generated tokens: exp(-mean_logprob)."
    )


class Slo(FrozenModel):
    """The service level objectives; a latency or throughput that is left out is not judged."""

    ttft_ms: Percentiles = Field(Percentiles(), description="Time to first token, queueing included.")
    tpot_ms: Percentiles = Field(Percentiles(), description="Time per output token after the first.")
    e2e_latency_ms: Percentiles = Field(Percentiles(), description="Request sent to last token.")
    error_rate: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.01, description="Largest share of requests that may fail."
    )
    output_tok_s: Annotated[float, Field(gt=0, le=bounds.MOST_TOK_S)] | None = Field(
        None, description="Lowest output throughput, in tokens per second."
    )
    quality: QualitySpec | None = model_field(
        None,
        "Quality of the answers to an evaluation set. Default: not measured.",
        json_schema_extra=left_out_or_mapping,
        planned=False,
    )

    @property
    def bounds_speed(self) -> bool:
        """Whether it bounds a latency or the throughput, as a prediction can tell."""
        latencies = (self.ttft_ms, self.tpot_ms, self.e2e_latency_ms)
        return self.output_tok_s is not None or any(each.model_dump(exclude_none=True) for each in latencies)


class Budget(FrozenModel):
    """What the endpoint may cost at its planned size and load."""

    usd_per_hour: Usd | None = Field(None, description="Highest cost, in US dollars per hour.")
    usd_per_million_output_tokens: Usd | None = model_field(
        None, "Highest cost, in US dollars per million output tokens at the planned load.", since="0.1"
    )
    blended_usd_per_million_tokens: Usd | None = model_field(
        None, "Highest blended cost, in US dollars per million tokens: 3 input tokens to 1 output token.", since="0.1"
    )
    discount: Discount = model_field(
        0,
        "Discount on the list price, as a share, such as a Savings Plan gives; applies to every price of the plan.",
        since="0.1",
    )


HEADROOM = 0.95
Ranking = Literal["cost", "cost_per_token", "latency", "throughput"]


class ObjectiveSpec(FrozenModel):
    """What the plan is chosen by. A text alone is the goal: `objective: cost`."""

    goal: Ranking = Field(
        "cost",
        description="Ranking of the deployments that fit: `cost` is per hour, `cost_per_token` per million output "
        "tokens at the planned load.",
    )
    headroom: Annotated[float, Field(gt=0.5, lt=1)] = model_field(
        HEADROOM,
        "Chance that the planned copies carry `workload.requests_per_second`, by the band; only with a rate.",
        since="0.2",
    )

    @model_serializer
    def _as_written_before(self) -> str | dict[str, object]:
        """Write the goal alone where nothing else is set: digests stay what earlier releases wrote."""
        return self.goal if self.headroom == HEADROOM else dict(self)


def _in_full(objective: object) -> object:
    return {"goal": objective} if isinstance(objective, str) else objective


Objective = Annotated[ObjectiveSpec, BeforeValidator(_in_full, json_schema_input_type=Ranking | ObjectiveSpec)]


class SpeculativeDecodingSpec(FrozenModel):
    """Drafted tokens that the model only checks. The acceptance rate is your assumption until it is measured."""

    draft_tokens: Annotated[int, Field(ge=1, le=MOST_DRAFT_TOKENS)] = Field(description="Tokens drafted per step.")
    acceptance_rate: Annotated[float, Field(gt=0, lt=1)] = Field(
        description="Probability that a drafted token is accepted: your assumption until it is measured."
    )
    draft_cost: Annotated[float, Field(ge=0, lt=1)] = Field(
        DEFAULT_DRAFT_COST, description="Cost of drafting one token, as a share of one decode step of the model."
    )
    method: DraftMethod | None = Field(None, description="Drafting method. Left out: planned, but not configured.")
    model: ModelPath | None = Field(None, description="Hub id or path of the draft model, if the method has one.")


class ServingOverrides(EngineOptions):
    """Values that the planner must take as given."""

    dtype: Literal["auto", "fp16", "bf16"] = Field("auto", description="Type of weights and activations.")
    quantization: Literal["fp8", "int8", "w8a16", "awq", "gptq", "int4", "mxfp4", "nvfp4"] | None = Field(
        None, description="Quantization of the weights. All but fp8 need a checkpoint that is quantized so."
    )
    speculative_decoding: SpeculativeDecodingSpec | None = model_field(
        None,
        "Speculative decoding, as the plan assumes it. Default: none.",
        json_schema_extra=left_out_or_mapping,
        since="0.1",
    )
    extra: dict[OptionName, OptionValue] = Field(
        {}, description="Options passed to the engine as they are. The plan names those that the prediction leaves out."
    )


class ServingSpec(FrozenModel):
    """The engine, the instance types that may be used, and what is fixed beforehand."""

    engine: Literal["auto", "lmi", "tgi", "vllm", "sglang"] = Field(
        "auto", description="Serving container; `auto` decides."
    )
    backend: Backend = model_field(
        "auto", "LMI backend that runs the model; `auto` is the newest vLLM handler.", since="0.1"
    )
    engine_version: EngineVersion | None = Field(None, description="Container version, as in `seatrial images list`.")
    image: ImageUri | None = Field(None, description="Image URI in a private ECR repository, used without checks.")
    code: FilePath | None = model_field(
        None, "Folder with `model.py`, `requirements.txt`; relative to the spec.", since="0.1"
    )
    instance_types: InstanceTypes | None = Field(None, description="The planner chooses among these.")
    overload: Literal["queue", "refuse"] = model_field(
        "queue",
        "What a copy does with more requests than it serves: `queue` lets as many wait as are answered within "
        "`trial.request_timeout_s`; `refuse` refuses at once, with status 503 or the engine's own, a request that "
        "would wait longer than `slo.ttft_ms` leaves room for.",
        since="0.2",
    )
    overrides: ServingOverrides = ServingOverrides()
    adapters: Adapters = model_field(
        (), "LoRA adapters, each an inference component on the model's copies.", planned=False
    )


class EndpointSpec(FrozenModel):
    """One endpoint, as asked for in one environment (overrides merged)."""

    schema_version: SchemaVersion = model_field(
        1, "Version of the fields of this file; `seatrial migrate` brings an older file to it.", planned=False
    )
    name: EndpointName = Field(description="Name of the endpoint; the environment's name is put before it.")
    description: Annotated[str, StringConstraints(max_length=2048)] = model_field("", "For users.", planned=False)
    model: ModelSpec
    workload: WorkloadSpec
    objective: Objective = Field(
        ObjectiveSpec(), description="What the plan is chosen by: a goal alone, or with its headroom."
    )
    slo: Slo = Slo()
    budget: Budget = Budget()
    serving: ServingSpec = ServingSpec()
    optimization: Annotated[Recipe, Field(max_length=MOST_OPTIMIZATIONS)] = model_field(
        (), "Optimizations of the model's serving, each a name or a name with its settings.", since="0.2"
    )
    hosting: HostingSpec = model_field(HostingSpec(), since="0.2")
    scaling: ScalingSpec = ScalingSpec()
    trial: TrialSpec = TrialSpec()
    tags: Tags = model_field(
        {},
        "Tags of the endpoint's resources, added to the environment's; the value of `team` is its team in reports. "
        "Keys that begin with `aws:` or `seatrial:` are reserved.",
        planned=False,
    )
