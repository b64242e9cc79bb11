"""The trial's input document: target, workload, load, objectives, and the expected deployment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from seatrial_base.bounds import (
    LONGEST_DELAY_S,
    MOST_IN_FLIGHT,
    MOST_REQUESTS,
    MOST_SECONDS,
    MOST_SMOOTHNESS,
    MOST_TOKENS,
    MOST_TURNS,
    MOST_USD,
    MOST_WORKERS,
)
from seatrial_base.field_facts import Option, data_field, facts, without
from seatrial_base.units import S_PER_MINUTE
from seatrial_load.documents.strict_json import write_document

Arrival: TypeAlias = Literal["closed", "poisson", "gamma", "constant", "recorded", "ramp", "replay"]
Search: TypeAlias = Literal["sweep", "adaptive", "every_level"]
Start: TypeAlias = Literal["spread", "together"]
TargetKnee: TypeAlias = Literal["lowest", "slo"]
OverloadProof: TypeAlias = Literal["off", "prove", "require"]
Goal: TypeAlias = Literal["knee", "max_concurrency", "max_goodput"]
PreparedBy: TypeAlias = Literal["seatrial", "jumpstart-2024"]
Manner: TypeAlias = Literal["load", "in_place", "verify"]
Metric: TypeAlias = Literal["ttft_ms", "tpot_ms", "e2e_latency_ms", "error_rate", "output_tok_s"]
Statistic: TypeAlias = Literal["p50", "p90", "p95", "p99", "mean", "value"]
PayloadSchema: TypeAlias = Literal["lmi", "tgi", "openai_chat", "openai_completions"]
Api: TypeAlias = Literal["invoke", "openai"]
QualityMetric: TypeAlias = Literal["exact_match", "mean_logprob", "perplexity"]
# Concurrency per copy of the published protocol `jumpstart-2024`.
JUMPSTART_LEVELS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
LIMITS, OPEN_LOOP, CONVERSATIONS, MADE_UP = "Limits", "an open loop", "conversations", "made-up lengths"
SERVER = ("--url",)  # otherwise a spec has it
PER_REQUEST_METRICS: tuple[Metric, ...] = ("ttft_ms", "tpot_ms", "e2e_latency_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How hard to load, and for how long.

    A level first sends `ramp_per_concurrency` x C requests, which are not measured, then at least
    `requests_per_concurrency` x C; it goes on until the interval of its end-to-end latency is narrower than `precision`
    or `max_requests_per_concurrency` x C are sent.
    """

    concurrency_levels: tuple[int, ...] = field(
        metadata=facts(
            "Requests in flight per copy, ascending; of an adaptive search, the bounds are the first and the last.",
            at_most=MOST_IN_FLIGHT,
            option=Option("--levels", help="Concurrency per copy, as in 1,2,4."),
        )
    )
    requests_per_concurrency: int = field(
        metadata=facts(
            "Fewest measured requests per level, as a multiple of its concurrency.", above=0, at_most=MOST_REQUESTS
        )
    )
    warmup_requests: int = field(
        metadata=facts("Warm-up requests before the first level.", at_least=0, at_most=MOST_REQUESTS)
    )
    budget_s: float = field(
        metadata=facts(
            "Time limit of the trial, warm-up included. A level cut by it keeps its numbers, and proves nothing.",
            above=0,
            at_most=MOST_SECONDS,
            option=Option("--budget", LIMITS, metavar="MINUTES", default=10.0, unit=S_PER_MINUTE),
        )
    )
    request_timeout_s: float = field(
        metadata=facts(
            "Time limit of a request, in seconds.",
            above=0,
            at_most=MOST_SECONDS,
            option=Option("--timeout", LIMITS, metavar="S", default=60.0),
        )
    )
    ramp_per_concurrency: int = data_field(
        0, "Unmeasured ramp requests per level, as a multiple of its concurrency; they fill the batch.", at_least=0
    )
    max_requests_per_concurrency: int | None = data_field(
        None,
        "Most measured requests per level, as a multiple of its concurrency, if `precision` needs them; null: no more "
        "than the fewest.",
    )
    requests: int | None = data_field(
        None,
        "Measured requests per level, whatever its concurrency. Null leaves it to the multiples.",
        above=0,
        at_most=MOST_REQUESTS,
        option=Option("--requests"),
    )
    precision: float = data_field(
        0.05,
        "A level ends early once half the 95 % interval of its median end-to-end latency is below this share of it.",
        above=0,
    )
    arrival: Arrival = data_field(
        "closed",
        "`closed` keeps the concurrency in flight; the others send at times of their own, whatever is answered: "
        "`recorded` at those of the workload, `replay` at those of a trace.",
        of=OPEN_LOOP,
        option=Option(
            "--arrival",
            help="Arrival process.",
            needs=("--rate",),
            choices=("poisson", "gamma", "constant", "ramp"),
            default="poisson",
        ),
    )
    arrival_smoothness: float = data_field(
        1.0,
        "Shape of `gamma` arrivals: 1 is Poisson, less comes in bursts, more comes evenly.",
        since="0.2",
        above=0,
        at_most=MOST_SMOOTHNESS,
        of=OPEN_LOOP,
        option=Option(
            "--smoothness",
            help="With --arrival gamma: 1 is Poisson, less comes in bursts, more comes evenly.",
            needs=("--rate",),
        ),
    )
    rates_per_s: tuple[float, ...] = data_field(
        (),
        "Levels of an open loop: requests per second, all copies together, ascending; the start and the end of a "
        "`ramp`.",
        at_most=MOST_REQUESTS,
        of=OPEN_LOOP,
        option=Option("--rate", help="Open loop: requests per second, as in 1,2,4; for a ramp: start,end."),
    )
    rates_for_copies: int | None = data_field(
        None,
        "Number of copies that the rates are for: where another number is live, they change with it. Null: they stay.",
        since="0.2",
        above=0,
        of=OPEN_LOOP,
    )
    gate_rate_per_s: float | None = data_field(
        None,
        "The listed rate at which the SLO must hold; higher ones look for the knee, while the SLO holds and time is "
        "left. Null: the highest, and no knee beyond is looked for.",
        since="0.2",
        of=OPEN_LOOP,
    )
    level_s: float = data_field(
        30.0,
        "Duration of a level of an open loop.",
        above=0,
        at_most=MOST_SECONDS,
        option=Option("--level-seconds", metavar="S", needs=("--rate",)),
    )
    max_connections: int = data_field(
        512,
        "Most requests in flight of an open loop.",
        above=0,
        at_most=MOST_IN_FLIGHT,
        option=Option("--connections", needs=("--rate", "--trace")),
    )
    max_retries: int = data_field(
        0,
        "Most retries of a request that was throttled or whose model was not ready; each is counted.",
        at_least=0,
        option=Option("--retries", LIMITS),
    )
    stall_timeout_s: float | None = data_field(
        None,
        "Longest gap between two parts of a stream, in seconds; then the request fails. Default: only "
        "`request_timeout_s`.",
        above=0,
        at_most=MOST_SECONDS,
        option=Option("--stall-timeout", LIMITS, metavar="S"),
    )
    search: Search = data_field(
        "sweep",
        "`sweep` measures the levels upward until more load can't change verdict or target; `adaptive` chooses each "
        "level from the earlier results, between the lowest and the highest; `every_level` measures all.",
        option=Option(
            "--search",
            help="Measure levels upward until more load can't change the target, choose levels between the lowest and "
            "the highest, or measure every level. Default with --levels: every level.",
        ),
    )
    goal: Goal = data_field("knee", "Goal of an adaptive search.", option=Option("--goal"))
    start: Start = data_field(
        "together",
        "First requests of a closed loop's level: `spread` over the time of one request, at random, so that clients of "
        "one length keep out of step, as users do; `together`, as published tables were measured.",
        since="0.2",
        option=Option("--start", default="spread"),
    )
    budget_usd: float | None = data_field(
        None,
        "Cost limit of the trial, in US dollars.",
        above=0,
        at_most=MOST_USD,
        option=Option("--budget-usd", LIMITS),
    )
    workers: int | None = data_field(
        None,
        "Number of load processes. Null: by the number of streams and of cores.",
        above=0,
        at_most=MOST_WORKERS,
        option=Option("--workers"),
    )
    protocol: PreparedBy = data_field(
        "seatrial",
        "Whose way of measuring this is, for the reader of the result.",
        option=Option(
            "--protocol", help="Protocol of the JumpStart article of January 2024.", choices=("jumpstart-2024",)
        ),
    )


def closed_loop(load: Load) -> Load:
    """Return a load without arrivals of its own: each request follows an answer."""
    return without(load, OPEN_LOOP)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedLevel:
    """The planner's prediction for one concurrency: the prior of a search, and of the theory's knee.

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
    """The plan's prediction before anything is measured.

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
        endpoint_name: SageMaker's name of the endpoint; of an OpenAI-compatible server, the name for reports.
        inference_component: The component that holds the model; None when the variant holds it.
        region: The region, which also signs.
        endpoint_url: The runtime API's URL; None is boto3's endpoint variables, else the region's public URL. Of an
            OpenAI-compatible server, its base URL (`http://localhost:8000/v1`).
        kind: What speaks there: SageMaker's runtime API, or an OpenAI-compatible server without SageMaker before it.
        model: The `model` of an OpenAI-compatible request; None leaves the field out.
        api_key_variable: The environment variable that holds an OpenAI-compatible server's key; the key itself is
            in no document.
        target_variant: SageMaker's `X-Amzn-SageMaker-Target-Variant`; None lets the endpoint choose.
        session_id: SageMaker's `X-Amzn-SageMaker-Session-Id`, which sends all requests to one instance; None is none.
    """

    endpoint_name: str
    inference_component: str | None
    region: str
    endpoint_url: str | None = data_field(
        None, option=Option("--url", help="Base URL of an OpenAI-compatible server, instead of SPEC.")
    )
    kind: Literal["sagemaker", "openai"] = "sagemaker"
    model: str | None = data_field(None, option=Option("--model", help="Model name in requests.", needs=SERVER))
    api_key_variable: str | None = data_field(
        None,
        option=Option(
            "--api-key-variable", help="Environment variable with the API key.", metavar="NAME", needs=SERVER
        ),
    )
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
    """The requests of a trial; its `Load` has their times."""

    input_tokens: int = field(
        metadata=facts(
            "Mean prompt length, in tokens.",
            above=0,
            at_most=MOST_TOKENS,
            option=Option("--input-tokens", needs=SERVER, default=256),
        )
    )
    output_tokens: int = field(
        metadata=facts(
            "Mean answer length, in tokens.",
            above=0,
            at_most=MOST_TOKENS,
            option=Option("--output-tokens", needs=SERVER, default=128),
        )
    )
    schema: PayloadSchema = field(metadata=facts("Schema of the body."))
    stream: bool = data_field(default=True, help="Whether tokens are requested as they are made.")
    source: Literal["synthetic", "jsonl", "trace"] = data_field(
        "synthetic", "Where prompts come from: made up, or read from a file of prompts or of a recorded trace."
    )
    source_digest: str = data_field("", "SHA-256 of that file; empty for made-up prompts.")
    shared_prefix_tokens: int = data_field(
        0,
        "Length of the prefix that prompts share, in tokens.",
        at_least=0,
        at_most=MOST_TOKENS,
        of=MADE_UP,
        option=Option("--shared-prefix-tokens", metavar="TOKENS", needs=SERVER),
    )
    prefix_groups: int = data_field(
        1,
        "Number of different shared prefixes.",
        above=0,
        at_most=MOST_REQUESTS,
        of=MADE_UP,
        option=Option("--prefix-groups", needs=("--shared-prefix-tokens",)),
    )
    input_tokens_stddev: float = data_field(
        0.0,
        "Standard deviation of the prompt length, in tokens; at most half of the mean. 0: one length.",
        since="0.2",
        at_least=0,
        at_most=MOST_TOKENS,
        stddev_of="input_tokens",
        of=MADE_UP,
        option=Option("--input-tokens-stddev", metavar="TOKENS", needs=SERVER),
    )
    output_tokens_stddev: float = data_field(
        0.0,
        "Standard deviation of the answer length, in tokens; at most half of the mean. 0: one length.",
        since="0.2",
        at_least=0,
        at_most=MOST_TOKENS,
        stddev_of="output_tokens",
        of=MADE_UP,
        option=Option("--output-tokens-stddev", metavar="TOKENS", needs=SERVER),
    )
    lengths: tuple[tuple[int, ...], ...] = data_field(
        (),
        "Prompt and answer of requests that were counted, in tokens: made-up prompts have these lengths, taken in "
        "turn; empty where the means decide.",
        since="0.2",
        of=MADE_UP,
    )
    times_s: tuple[float, ...] = data_field(
        (),
        "When each of these came, in seconds from the first, ascending: `recorded` arrivals have their gaps, at the "
        "rate of each level; the lengths are taken in order then. Empty where they have no times.",
        since="0.2",
        of=MADE_UP,
    )
    turns: int = data_field(
        1,
        "Mean number of turns of a conversation. Above 1, `input_tokens` and `output_tokens` are what a turn adds; its "
        "prompt holds the prompts and answers before it.",
        since="0.2",
        at_least=1,
        at_most=MOST_TURNS,
        of=CONVERSATIONS,
        option=Option("--turns", needs=SERVER),
    )
    turns_stddev: float = data_field(
        0.0,
        "Standard deviation of the number of turns; at most half of the mean less 1. 0: one number.",
        since="0.2",
        at_least=0,
        at_most=MOST_TURNS,
        stddev_of="turns",
        of=CONVERSATIONS,
        option=Option("--turns-stddev", needs=("--turns",)),
    )
    turn_delay_s: float = data_field(
        0.0,
        "Mean time that a user thinks before a further turn, in seconds.",
        since="0.2",
        at_least=0,
        at_most=LONGEST_DELAY_S,
        of=CONVERSATIONS,
        option=Option("--turn-delay", metavar="S", needs=("--turns",)),
    )
    turn_delay_stddev_s: float = data_field(
        0.0,
        "Standard deviation of that time, in seconds; at most half of the mean.",
        since="0.2",
        at_least=0,
        at_most=LONGEST_DELAY_S,
        stddev_of="turn_delay_s",
        of=CONVERSATIONS,
        option=Option("--turn-delay-stddev", metavar="S", needs=("--turn-delay",)),
    )
    conversations: tuple[int, ...] = data_field(
        (),
        "How many turns each counted conversation has: `lengths` are of their turns, in order; empty where `turns` "
        "decides.",
        since="0.2",
        of=CONVERSATIONS,
    )
    delays_s: tuple[float, ...] = data_field(
        (),
        "What the user thought before each of these turns, in seconds; empty for `turn_delay_s`.",
        since="0.2",
        of=CONVERSATIONS,
    )
    sends_prefix_id: bool = data_field(
        default=False,
        help="Whether each conversation has a `X-Amzn-SageMaker-Prefix-Aware-Id` of its own, by which SageMaker's "
        "prefix-aware routing sends its turns to one instance.",
        since="0.2",
        of=CONVERSATIONS,
    )
    api: Api = data_field(
        "invoke",
        "Which of SageMaker's paths the requests take: `InvokeEndpoint`, or the one of OpenAI clients with bearer "
        "tokens.",
        since="0.2",
        option=Option(
            "--api",
            "Load",
            "With SPEC: path of the requests, SageMaker's OpenAI path or its own. Default: that of the spec.",
        ),
    )
    omits_ignore_eos: bool = data_field(
        default=False,
        help="Let answers end where their text does, up to the requested length: their lengths vary.",
        since="0.2",
        option=Option("--no-ignore-eos"),
    )
    omits_temperature: bool = data_field(
        default=False, help="Leave out `temperature`, else 0.", since="0.2", option=Option("--no-temperature")
    )
    omits_stream_options: bool = data_field(
        default=False,
        help="Leave out `stream_options`: tokens are counted by parts.",
        since="0.2",
        option=Option("--no-stream-options"),
    )
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = data_field(
        "max_tokens", "Field of OpenAI's schemas that limits an answer; the first request finds it out.", since="0.2"
    )


def replays_sessions(workload: Workload) -> bool:
    """Return whether requests are turns of recorded sessions, which keep their place while their tools run."""
    return workload.source == "trace" and bool(workload.conversations)


def single_requests(workload: Workload) -> Workload:
    """Return a workload without conversations: each request is one turn."""
    return without(workload, CONVERSATIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The proof that a trial needs, and the result of an inconclusive one."""

    confidence: float = data_field(
        0.0,
        "Confidence of the one-sided interval that must prove each objective; 0 compares the measured value alone.",
        at_least=0,
        below=1,
    )
    on_inconclusive: Literal["pass", "fail"] = data_field("fail", "Result of an inconclusive trial.")
    regression_tolerance: float = data_field(0.1, "Largest relative change that is not yet a regression.")
    on_regression: Literal["fail", "warn", "ignore"] = data_field(
        "warn", "Action after a regression against the last release."
    )
    max_error_rate: float | None = data_field(
        None,
        "Largest share of failed requests per level, as measured. Null: no bound but the objectives.",
        at_least=0,
        at_most=1,
        option=Option("--max-error-rate", "Target", metavar="SHARE", needs=SERVER, default=0.01),
    )
    max_error_rate_up_to: int | None = data_field(
        None,
        "A level up to this concurrency per copy fails the trial by it; one beyond misses it, as an objective. Null is "
        "every level.",
    )


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
        role: Its author: `system`, `user` or `assistant`.
        content: Its text.
    """

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPrompt:
    """One prompt: a text or a chat.

    Attributes:
        id: Its name in the set.
        prompt: The text; empty of a chat.
        messages: The chat; empty of a text.
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
    """The evaluation set of a trial and the bounds on its quality.

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
    """A value of the spec that the laptop replaces by one that its small engine carries.

    Attributes:
        field: The field of the spec.
        asked: The spec's value, as text.
        used: The laptop's value, as text.
    """

    field: str
    asked: str
    used: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    """The input of a trial.

    Attributes:
        endpoint: The endpoint's name in its spec.
        environment: The environment deployed to (dev, prod).
        plan_digest: The plan that the deployment was made from; also seeds the prompts.
        target: The live endpoint.
        expected: What the live endpoint must consist of; None when no deployment of ours is proven.
        workload: The kind of request.
        load: The load.
        objectives: The SLO; may be empty.
        gate_concurrency: Requests in flight per copy at which the SLO must hold.
        copy_count: Running copies; a level opens its concurrency times this many streams.
        usd_per_hour_per_copy: Price of the hardware that one copy occupies; None when unknown.
        fallback_target_concurrency: The scaling target per copy when the trial finds no knee.
        target_utilization: Share of the knee's concurrency to scale at, above 0 and at most 1.
        gate: The proof that is needed.
        prior: The plan's prediction.
        manner: `load` loads as `load` requires, and looks for the knee; `in_place` adds load alongside users'
            requests, up to the gate; `verify` sends a few single requests, and no load.
        alarms: Names of CloudWatch alarms; a trial alongside users' requests ends when one is in ALARM.
        quality: The evaluation set that is sent after the levels, and its bounds; None sends none.
        scaled: Values of the spec that the laptop replaces; empty elsewhere.
        overload: Whether the load beyond the knee is tried, and whether the verdict depends on it.
        configuration_digest: Of all that decides how one copy serves, whatever the environment; empty where nothing was
            rendered, and in requests of older releases.
    """

    endpoint: str
    environment: str
    plan_digest: str
    target: TrialTarget
    expected: Expected | None
    workload: Workload
    load: Load
    objectives: tuple[Objective, ...] = field(
        metadata=facts(
            option=Option(
                "--slo",
                help="Objective, as in ttft_ms.p95=500; may be repeated.",
                metavar="BOUND",
                needs=SERVER,
                repeats=True,
            )
        )
    )
    gate_concurrency: int = field(
        metadata=facts(
            above=0,
            at_most=MOST_IN_FLIGHT,
            option=Option(
                "--gate", help="Concurrency at which the SLO must hold. Default: the lowest level.", needs=SERVER
            ),
        )
    )
    copy_count: int = field(metadata=facts(above=0))
    mode: Literal["rollback", "report", "off"] = field(metadata=facts("Action after a failed trial."))
    usd_per_hour_per_copy: float | None = field(
        metadata=facts(above=0, option=Option("--usd-per-hour", help="Price of the server, USD/h.", needs=SERVER))
    )
    fallback_target_concurrency: float = field(metadata=facts(above=0))
    target_utilization: float = field(metadata=facts(above=0, at_most=1))
    gate: Gate = field(default_factory=Gate)
    prior: Prior = field(default_factory=Prior)
    manner: Manner = "load"
    alarms: tuple[str, ...] = ()
    quality: QualityFloor | None = None
    target_knee: TargetKnee = data_field(
        "lowest",
        "Knee that sets the autoscaling target: the lowest of SLO and saturation, or that of the SLO alone.",
        since="0.2",
    )
    scaled: tuple[ScaledValue, ...] = data_field((), since="0.2")
    overload: OverloadProof = data_field(
        "off",
        "Twice the load of the knee after the levels: what can't be served in time must be refused within 100 ms, the "
        "rest keep the SLO, and 5 s later no request wait longer. `prove` reports it, with `require` the verdict "
        "depends on it.",
        since="0.2",
        option=Option(
            "--overload",
            "Load",
            "After the levels send twice the knee's load: the verdict is `pass` only if what can't be served in time "
            "is refused at once.",
            sets="require",
        ),
    )
    configuration_digest: str = data_field("", since="0.2")

    @property
    def level_bounds(self) -> tuple[Objective, ...]:
        """The objectives, and the gate's bound on failed requests: a level that breaks it has no knee either.

        It counts at every level, also where only those up to `max_error_rate_up_to` fail the trial.
        """
        most = self.gate.max_error_rate
        if most is None:
            return self.objectives
        return (*self.objectives, Objective(metric="error_rate", statistic="value", bound=most, sense="at_most"))

    def to_json(self) -> str:
        """Write the request as one line of JSON; a field that came later is left out where it has its default.

        So older requests are still written alike, and a function of an older release refuses only what it can't send.
        """
        return write_document(self, later_defaults=False)
