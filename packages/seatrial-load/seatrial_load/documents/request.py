"""The trial's input document: what to load, how hard, what is good, and what the live endpoint must be."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from typing import Literal, TypeAlias

from seatrial_load.documents.strict_json import write_document

Arrival: TypeAlias = Literal["closed", "poisson", "gamma", "constant", "recorded", "ramp", "replay"]
Search: TypeAlias = Literal["sweep", "adaptive", "every_level"]
TargetKnee: TypeAlias = Literal["lowest", "slo"]
Goal: TypeAlias = Literal["knee", "max_concurrency", "max_goodput"]
PreparedBy: TypeAlias = Literal["seatrial", "jumpstart-2024"]
Manner: TypeAlias = Literal["load", "in_place", "verify"]
Metric: TypeAlias = Literal["ttft_ms", "tpot_ms", "e2e_latency_ms", "error_rate", "output_tok_s"]
Statistic: TypeAlias = Literal["p50", "p90", "p95", "p99", "mean", "value"]
PayloadSchema: TypeAlias = Literal["lmi", "tgi", "openai_chat", "openai_completions"]
Api: TypeAlias = Literal["invoke", "openai"]
QualityMetric: TypeAlias = Literal["exact_match", "mean_logprob", "perplexity"]
LISTED_RATES: tuple[Arrival, ...] = ("poisson", "gamma", "constant", "recorded")
"""Open loops whose levels are the listed rates."""
JUMPSTART_LEVELS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Concurrency per copy of the published protocol `jumpstart-2024`."""
_CAME_LATER = {
    "workload": (
        "input_tokens_stddev",
        "output_tokens_stddev",
        "lengths",
        "times_s",
        "turns",
        "turns_stddev",
        "turn_delay_s",
        "turn_delay_stddev_s",
        "conversations",
        "delays_s",
        "sends_prefix_id",
        "api",
    ),
    "load": ("arrival_smoothness", "rates_for_copies", "gate_rate_per_s"),
}
PER_REQUEST_METRICS: tuple[Metric, ...] = ("ttft_ms", "tpot_ms", "e2e_latency_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How hard to load, and for how long.

    A level first sends `ramp_per_concurrency` x C requests, which are not measured, then at least
    `requests_per_concurrency` x C; it goes on until the interval of its end-to-end latency is narrower than `precision`
    or `max_requests_per_concurrency` x C are sent.

    Attributes:
        concurrency_levels: Requests in flight per copy, ascending; of an adaptive search, the bounds are the first and
            the last of them.
        requests_per_concurrency: A level measures at least this many requests for each request in flight.
        warmup_requests: Requests sent before the first level, not measured.
        budget_s: No measurement goes on past this time, warm-up included; a level cut by it isn't reported.
        request_timeout_s: A request not answered in full by then has failed.
        ramp_per_concurrency: A level's first requests, for each in flight: they fill the batch and aren't measured.
        max_requests_per_concurrency: The cap of a level's measured requests, for each in flight; None is no going on.
        requests: A level measures exactly this many requests, whatever its concurrency; None leaves it to those above.
        precision: Half the 95 % interval of the median end-to-end latency, over it, at which a level is measured well
            enough.
        arrival: `closed` keeps C requests in flight; the others send at times of their own, whatever is answered:
            `recorded` at those of the workload, `replay` at those of a trace.
        arrival_smoothness: Shape of the gamma distribution of the gaps between requests (`gamma`): 1 is a Poisson
            process, less comes in bursts, more comes evenly. Their coefficient of variation is 1 / its square root.
        rates_per_s: The levels of an open loop (`LISTED_RATES`): requests per second, all copies together, ascending;
            the start and the end of a `ramp`.
        rates_for_copies: The rates are for so many copies: where another number is live, they change with it. None
            leaves them as they are.
        gate_rate_per_s: The listed rate at which the SLO must hold; higher ones look for the knee, while the SLO holds
            and time is left. None is the highest, and looks for no knee beyond.
        level_s: How long a level of an open loop sends.
        max_connections: Most requests in flight of an open loop.
        max_retries: How often a request is repeated that was throttled, or whose model wasn't ready; every repetition
            is counted, and its time is part of the request's.
        stall_timeout_s: A stream that is silent for so long has failed; None waits for `request_timeout_s`.
        search: `sweep` measures the levels in turn until more load can't change the scaling target, `every_level` all
            of them; `adaptive` chooses the next level from what was measured.
        goal: What the search looks for: the knee, the highest concurrency within the SLO, or the most goodput.
        budget_usd: The trial ends before it costs more, at the copies' price; None is no such bound.
        workers: Processes that load; None chooses by the number of streams and of cores.
        protocol: Whose way of measuring this is, for the reader of the result.
    """

    concurrency_levels: tuple[int, ...]
    requests_per_concurrency: int
    warmup_requests: int
    budget_s: float
    request_timeout_s: float
    ramp_per_concurrency: int = 0
    max_requests_per_concurrency: int | None = None
    requests: int | None = None
    precision: float = 0.05
    arrival: Arrival = "closed"
    arrival_smoothness: float = 1.0
    rates_per_s: tuple[float, ...] = ()
    rates_for_copies: int | None = None
    gate_rate_per_s: float | None = None
    level_s: float = 30.0
    max_connections: int = 512
    max_retries: int = 0
    stall_timeout_s: float | None = None
    search: Search = "sweep"
    goal: Goal = "knee"
    budget_usd: float | None = None
    workers: int | None = None
    protocol: PreparedBy = "seatrial"


def closed_loop(load: Load) -> Load:
    """Return a load without arrivals of its own: each request follows an answer."""
    return replace(
        load, arrival="closed", arrival_smoothness=1.0, rates_per_s=(), rates_for_copies=None, gate_rate_per_s=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedLevel:
    """What the planner predicts of one concurrency: the prior of a search, and of the theory's knee.

    Attributes:
        concurrency: Requests in flight per copy.
        output_tok_s: Output tokens per second, one copy.
        ttft_p95_ms: Time to first token.
        e2e_mean_ms: End-to-end latency, mean.
    """

    concurrency: int
    output_tok_s: float
    ttft_p95_ms: float
    e2e_mean_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """What the plan says before anything is measured.

    Attributes:
        levels: The predicted curve, ascending; may be empty.
        batch_limit: Sequences that one copy batches at once (`max_num_seqs` and the KV room, the lesser); None unknown.
    """

    levels: tuple[PredictedLevel, ...] = ()
    batch_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialTarget:
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
    """The requests of a trial; when they come is said by its `Load`.

    Attributes:
        input_tokens: Length of a prompt; where lengths differ, the mean.
        output_tokens: Length of an answer; where lengths differ, the mean.
        schema: The body's schema.
        stream: Whether tokens are asked for as they are made.
        source: Where prompts come from: made up, or read from a file of prompts or of a recorded trace.
        source_digest: SHA-256 of that file; empty for made-up prompts.
        shared_prefix_tokens: So many first tokens of a prompt are those of the others of its group; a prompt that is
            no longer keeps one token of its own.
        prefix_groups: So many different shared beginnings, taken in turn.
        input_tokens_stddev: Standard deviation of the length of a made-up prompt; 0 is one length.
        output_tokens_stddev: Standard deviation of the length of its answer; 0 is one length.
        lengths: Prompt and answer of requests that were counted, in tokens: made-up prompts have these lengths, taken
            in turn; empty where the means say them.
        times_s: When each of these came, in seconds from the first, ascending: `recorded` arrivals have their gaps, at
            the rate of each level; the lengths are taken in order then. Empty where they have no times.
        turns: Requests of a conversation, mean; above 1 the prompt of a request holds the prompts and answers before
            it, and lengths are of what it adds.
        turns_stddev: Their standard deviation; 0 is one number.
        turn_delay_s: How long a user thinks before a further turn, mean, in seconds.
        turn_delay_stddev_s: Its standard deviation.
        conversations: How many turns each counted conversation has: `lengths` are of their turns, in order; empty
            where `turns` says it.
        delays_s: What the user thought before each of these turns, in seconds; empty for `turn_delay_s`.
        sends_prefix_id: Whether each conversation has a `X-Amzn-SageMaker-Prefix-Aware-Id` of its own, by which
            SageMaker's prefix-aware routing sends its turns to one instance.
        api: Which of SageMaker's paths the requests take: `InvokeEndpoint`, or the one of OpenAI clients with bearer
            tokens.
    """

    input_tokens: int
    output_tokens: int
    schema: PayloadSchema
    stream: bool = True
    source: Literal["synthetic", "jsonl", "trace"] = "synthetic"
    source_digest: str = ""
    shared_prefix_tokens: int = 0
    prefix_groups: int = 1
    input_tokens_stddev: float = 0.0
    output_tokens_stddev: float = 0.0
    lengths: tuple[tuple[int, ...], ...] = ()
    times_s: tuple[float, ...] = ()
    turns: int = 1
    turns_stddev: float = 0.0
    turn_delay_s: float = 0.0
    turn_delay_stddev_s: float = 0.0
    conversations: tuple[int, ...] = ()
    delays_s: tuple[float, ...] = ()
    sends_prefix_id: bool = False
    api: Api = "invoke"


def single_requests(workload: Workload) -> Workload:
    """Return a workload without conversations: each request is one turn."""
    return replace(
        workload,
        turns=1,
        turns_stddev=0.0,
        turn_delay_s=0.0,
        turn_delay_stddev_s=0.0,
        conversations=(),
        delays_s=(),
        sends_prefix_id=False,
    )


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
class ChatMessage:
    """One message of a chat.

    Attributes:
        role: Who says it: `system`, `user` or `assistant`.
        content: Its text.
    """

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPrompt:
    """One prompt: a text or a chat.

    Attributes:
        id: Its name in the set.
        prompt: The text; empty where messages are asked.
        messages: The chat; empty where a text is asked.
        reference: The right answer; None without one.
    """

    id: str
    prompt: str = ""
    messages: tuple[ChatMessage, ...] = ()
    reference: str | None = None

    @property
    def text(self) -> str:
        """The prompt or the chat in words."""
        return self.prompt or "\n".join(f"{message.role}: {message.content}" for message in self.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityObjective:
    """One bound on the quality.

    Attributes:
        metric: What it bounds.
        bound: The bound.
        sense: Its side.
    """

    metric: QualityMetric
    bound: float
    sense: Literal["at_most", "at_least"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityFloor:
    """The evaluation set of a trial and what its answers must be worth.

    Attributes:
        evaluation_set: Digest of the set.
        prompts: The set.
        objectives: The bounds.
        most_tokens: Tokens that an answer may have.
    """

    evaluation_set: str
    prompts: tuple[EvaluationPrompt, ...]
    objectives: tuple[QualityObjective, ...]
    most_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledValue:
    """A value of the spec in whose place the laptop has another, which its small engine carries.

    Attributes:
        field: The field of the spec.
        asked: What the spec says, as text.
        used: What the laptop has, as text.
    """

    field: str
    asked: str
    used: str


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
        target_knee: Which knee scaling takes: `lowest` of where the SLO begins to be missed and where more load buys
            little throughput, or that of the SLO alone.
        gate: When a measurement is proof enough.
        prior: What the plan predicts.
        manner: `load` loads as hard as `load` says, and looks for the knee; `in_place` adds load beside users'
            requests, up to the gate; `verify` sends a few single requests, and no load.
        alarms: Names of CloudWatch alarms; a trial beside users' requests ends when one is in ALARM.
        quality: The evaluation set that is asked after the levels, and its bounds; None asks nothing.
        scaled: What the laptop has in place of what the spec asks; empty elsewhere.
    """

    endpoint: str
    environment: str
    plan_digest: str
    target: TrialTarget
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
    manner: Manner = "load"
    alarms: tuple[str, ...] = ()
    quality: QualityFloor | None = None
    target_knee: TargetKnee = "lowest"
    scaled: tuple[ScaledValue, ...] = ()

    def to_json(self) -> str:
        """Write the request as one line of JSON; a field that came later is left out where it has its default.

        So what was written before is still written alike, and a function of an older release refuses only what it does
        not know how to send.
        """
        document: dict[str, dict[str, object]] = json.loads(write_document(self))
        for part, kind in (("workload", Workload), ("load", Load)):
            for each in fields(kind):
                if each.name in _CAME_LATER[part] and getattr(getattr(self, part), each.name) == each.default:
                    del document[part][each.name]
        if self.target_knee == "lowest":
            del document["target_knee"]
        if not self.scaled:
            del document["scaled"]
        return json.dumps(document, separators=(",", ":"))
