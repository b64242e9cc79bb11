"""The trial's output document: measurements, verdict, and the deployment that was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence  # noqa: TC003 (the strict reader resolves the fields' types)
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial_base.errors import BenchError
from seatrial_base.findings import Finding, Place
from seatrial_load.documents.container_metrics import ContainerMetrics  # noqa: TC001 (likewise)
from seatrial_load.documents.distribution import Distribution, Interval  # noqa: TC001 (likewise)
from seatrial_load.documents.request import (
    Arrival,  # noqa: TC001 (likewise)
    Objective,  # noqa: TC001 (likewise)
    QualityMetric,  # noqa: TC001 (likewise)
    QualityObjective,  # noqa: TC001 (likewise)
    TrialRequest,  # noqa: TC001 (likewise)
)
from seatrial_load.documents.seal import ResultSeal  # noqa: TC001 (likewise)
from seatrial_load.documents.stop import Stop, Void  # noqa: TC001 (likewise)
from seatrial_load.documents.strict_json import RULE, read_document, write_document

if TYPE_CHECKING:
    from collections.abc import Iterator


Window: TypeAlias = Literal["steady", "whole"]
Occasion: TypeAlias = Literal["first_request", "warm_up", "level", "verification"]


DoubtKind: TypeAlias = Literal[
    "ended_early", "short", "uncounted", "cached", "burst", "blank", "repeated", "same_text", "other_model"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDoubt:
    """A property of answers that succeeded, by which they may be worth less than their numbers.

    Attributes:
        kind: `ended_early` (below 90 % of the requested tokens, though the text's end was to be ignored), `short` (the
            same of a schema that can't ignore it), `uncounted` (no count of tokens, and fewer parts than a token in
            eight), `cached` (more of the prompt came from a cache than the workload shares), `burst` (every part at one
            instant: TPOT is not measured), `blank` (four tokens or more without a visible character), `repeated` (four
            or more, all of them one), `same_text` (the same text for different prompts), `other_model` (another `model`
            than requested, or several).
        answers: How many answers.
        of: Answers that succeeded.
        because: The same in words.
    """

    kind: DoubtKind
    answers: int
    of: int
    because: str

    @property
    def share(self) -> float:
        """Share of the answers, 0 to 1."""
        return self.answers / self.of if self.of else 0.0


def load_words(concurrency: int | None, rate_per_s: float | None) -> str:
    """Return the load of a level in words.

    Args:
        rate_per_s: Requests per second that an open loop offered; None in a closed loop.
    """
    return f"concurrency {concurrency} per copy" if rate_per_s is None else f"{rate_per_s:g} requests/s"


def loads_words(levels: Sequence[LevelResult]) -> str:
    """Return the loads of some levels in words: `concurrency 4, 8`; of an open loop, `2, 2.5 requests/s`."""
    rates = [f"{level.offered_load:g}" for level in levels if level.is_open]
    closed = [f"{level.concurrency}" for level in levels if not level.is_open]
    parts = ("concurrency " + ", ".join(closed) if closed else "", ", ".join(rates) + " requests/s" if rates else "")
    return " and ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmeasured:
    """Requests of which no latency and no throughput is reported, and how they ended.

    Attributes:
        occasion: `first_request`, `warm_up`, `level` (a level that was cut before it was over), or `verification`: the
            single requests of a trial that adds no load.
        concurrency: Requests in flight per copy of the level; None of the others.
        offered_requests_per_s: What an open loop offered at the level; None of the others.
        sent: Requests that left.
        succeeded: Those answered in full.
        errors: How many failed, by error class; `unanswered` are those in flight when the level was cut.
        first_errors: The service's message on the first failure of each class.
        longest_wait_s: Time of the failure that took longest; None without a failure.
        answer_s: Mean time of those answered in full; None without any.
        because: Why the level was cut; empty where every request came to its end.
        doubts: What is doubtful of the answers.
    """

    occasion: Occasion
    concurrency: int | None = None
    offered_requests_per_s: float | None = None
    sent: int
    succeeded: int
    errors: Mapping[str, int]
    first_errors: tuple[str, ...]
    longest_wait_s: float | None
    answer_s: float | None = None
    because: str = ""
    doubts: tuple[AnswerDoubt, ...] = ()

    @property
    def place(self) -> str:
        """The occasion in words."""
        names = {"first_request": "the first request", "warm_up": "the warm-up", "verification": "the verification"}
        return names.get(self.occasion) or load_words(self.concurrency, self.offered_requests_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientEvidence:
    """Measurements of the client itself at one level: whether the level measures the endpoint or the client.

    Attributes:
        workers: Processes that loaded.
        streams: Connections, all processes together.
        receive_lag_p99_ms: Time from when bytes may have arrived to their timestamp: from the return of the selector
            (of the one before, when it didn't wait) to the read; the worst process.
        delivered_concurrency: Time average of the requests in flight over the window, all processes together.
        cpu_share: CPU time of the loading thread over window, in the busiest process: 1 is a whole core.
        run_delay_share: Share of the window in which that process was ready to run but had no core; None where the
            kernel doesn't report it (`/proc/thread-self/schedstat`).
        send_lag_p99_ms: How late an open loop sent the requests that found a free connection; None in a closed loop.
        idle_ms: Mean time that a stream of a closed loop waited for the client to send its next request.
        full_share: Share of an open loop's requests that found every connection taken when they were due.
        reads_per_s: Reads of the busiest process per second; a read brings a token event, or several that had queued.
    """

    workers: int
    streams: int
    receive_lag_p99_ms: float | None
    delivered_concurrency: float | None
    cpu_share: float | None
    run_delay_share: float | None = None
    send_lag_p99_ms: float | None = None
    idle_ms: float | None = None
    full_share: float | None = None
    reads_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCalibration:
    """The capacity of this client here, measured against a server that costs nothing (plain HTTP on the loopback).

    Attributes:
        streams: Connections of the measurement.
        parts_per_s: Token events per second that arrived; the server offered `offered_parts_per_s`.
        offered_parts_per_s: Token events per second that the server would have sent to an infinitely fast client.
        cpu_s_per_1k_parts: CPU seconds of the client for a thousand token events.
        receive_lag_p99_ms: As in `ClientEvidence`.
        because: What was measured, or why nothing was, in a sentence.
    """

    streams: int
    parts_per_s: float | None
    offered_parts_per_s: float
    cpu_s_per_1k_parts: float | None
    receive_lag_p99_ms: float | None
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOverhead:
    """What SageMaker adds to the container's time, over the trial's measured time.

    Attributes:
        client_mean_ms: Mean end-to-end latency at the client.
        model_latency_mean_ms: CloudWatch `ModelLatency`, mean; None when CloudWatch had no datapoint.
        overhead_latency_mean_ms: CloudWatch `OverheadLatency`, mean.
        overhead_ms: client_mean_ms - model_latency_mean_ms: service and network.
        because: Its source, or why it is missing.
    """

    client_mean_ms: float | None
    model_latency_mean_ms: float | None
    overhead_latency_mean_ms: float | None
    overhead_ms: float | None
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomArrivals:
    """Time to first token of users who know nothing of each other, at the throughput of the gate.

    Attributes:
        rate_per_s: Requests per second, all copies together.
        apart: How far that is from what the gate's level answered, as a share.
        ttft_ms: Time to first token, from when a request was due.
        source: `measured` at a level of Poisson arrivals, or `predicted` by the plan's simulation.
    """

    rate_per_s: float
    apart: float
    ttft_ms: Distribution
    source: Literal["measured", "predicted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One objective held against one level.

    Attributes:
        objective: The objective.
        measured: The value; None when there was nothing to measure.
        met: Whether it is proven met or missed; None when there was nothing to measure, or the interval reaches over
            the bound.
        sentence: The same in words.
        bound_low: Lower end of the one-sided interval at the gate's confidence; None without one.
        bound_high: Its upper end.
    """

    objective: Objective
    measured: float | None
    met: bool | None
    sentence: str
    bound_low: float | None = None
    bound_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the SLO holds at the gate's concurrency, and why."""

    status: Literal["pass", "fail", "inconclusive"]
    because: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One number of this trial compared with the last release's, at one concurrency per copy.

    Attributes:
        metric: What is compared (`output_tok_s`, `ttft_ms p95`, …).
        concurrency: Where.
        before: The last release's value.
        after: This trial's.
        share: (after - before) / before; of the error rate, which is a share itself, after - before.
        worse: Whether it is worse beyond tolerance and noise.
        sentence: The same in words.
        better: Whether it is better beyond tolerance and noise.
    """

    metric: str
    concurrency: int
    before: float
    after: float
    share: float
    worse: bool
    sentence: str
    better: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """This trial compared with the last release's of the same workload.

    Attributes:
        status: `same` within tolerance or noise, `better`, `worse`, or `incomparable` (another workload, or none).
        because: Why, in a sentence.
        baseline_uri: The place of the last release's result; empty when unknown.
        baseline_plan_digest: Its plan.
        baseline_started_at: When it was measured.
        changes: Number by number.
    """

    status: Literal["same", "better", "worse", "incomparable"]
    because: str
    baseline_uri: str = ""
    baseline_plan_digest: str = ""
    baseline_started_at: str = ""
    changes: tuple[Change, ...] = ()


SCHEMA_VERSION: Literal["3"] = "3"
Detector: TypeAlias = Literal["slo", "saturation", "gate", "half_latency", "kneedle", "two_segment", "theory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The course of a level, in bins of equal width from its first sending on, ramp included.

    Attributes:
        bin_s: Width of a bin: a power of two of a second, so that there are at most 60.
        output_tokens: Output tokens of answered requests in each bin, all copies together; each request's are spread
            evenly from its first token to its last.
        in_flight: Requests in flight, averaged over the bin, all copies together; failed ones too.
        first_tokens: Answered requests sent in the bin that streamed a first token.
        ttft_ms: Their mean time to first token; None where there are none.
    """

    bin_s: float
    output_tokens: tuple[float, ...]
    in_flight: tuple[float, ...]
    first_tokens: tuple[int, ...]
    ttft_ms: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelResult:
    """One concurrency, measured.

    Attributes:
        concurrency: Requests in flight per copy.
        requests: Requests that ended; all of the level's but the ramp's.
        succeeded: Those answered in full.
        errors: How many failed, by error class.
        first_errors: The service's message on one failure of each class, those of the ramp too.
        window_s: Length of the window that throughput is taken over; see `window`.
        output_tok_s: Output tokens per second, all copies together; None when the endpoint reported no counts.
        requests_per_s: Successful requests per second, all copies together.
        goodput_requests_per_s: Those of them that met every per-request objective.
        ttft_ms: Time to first token, of an open loop from the time that the request was due; None when nothing
            streamed.
        tpot_ms: Time per output token after the first; None when no request had two.
        itl_ms: Gaps between token events, pooled.
        ms_per_token: End-to-end latency by output tokens, to compare with published tables.
        e2e_latency_ms: Request sent to last token, of an open loop from the time that it was due.
        input_tokens_mean: Prompt length by the endpoint's own count.
        output_tokens_mean: Generated tokens per successful request.
        meets_slo: Whether some request succeeded and every objective and the bound on failed requests were met, by the
            measured values as they are.
        misses: One sentence for each of them that wasn't.
        arrival: How requests were timed.
        offered_requests_per_s: What an open loop offered; None in a closed loop, whose `concurrency` is the load. Of an
            open loop, `concurrency` is the mean in flight per copy, rounded up.
        window: `steady`: throughput is over the time from the first measured request's sending to the last one's, while
            all streams were busy; `whole`: over the whole level, where there is no such time. A request counts by the
            share of its time inside, one of the ramp too.
        ramp_requests: Requests sent before, whose latencies aren't measured.
        ramp_errors: How many of these failed, by error class; `errors` doesn't hold them.
        retried: How many failures were repeated, by error class, those of the ramp too.
        total_tok_s: Input and output tokens per second; None when the endpoint didn't report both counts.
        output_tok_s_interval: The 95 % interval of `output_tok_s`; see `aggregate.output_tok_s_interval`.
        error_rate_interval: Wilson's 95 % interval of the error rate.
        parts_per_token: Pieces on the wire per output token: 1 is a piece a token.
        queue_share: Share of the median TTFT that the lowest level's doesn't have: waiting for other requests.
        input_tokens_p50: Median prompt length by the endpoint's own count; None without one.
        input_tokens_p95: Its 95th percentile.
        output_tokens_p50: Median of the generated tokens of a successful request.
        output_tokens_p95: Its 95th percentile.
        duration_s: From the level's first sending to its last answer, ramp included.
        enough_because: Why the level sent no more.
        client: Measurements of the client; None where there are none.
        cut: Why the level ended before it had measured what it wanted; empty of a whole one. Its numbers are of the
            requests that had ended. The upper ends of its intervals allow for those in flight that later ones had
            overtaken, whatever they would have taken. It proves nothing, and places no knee.
        void: Why the level measures the client instead of the endpoint; None when it is valid.
        timeline: The course of the level; None when it wasn't kept.
        doubts: What is doubtful of the answers.
        conversations: Measured conversations that began; 0 of single requests.
        broken_conversations: Conversations that a measured turn which failed ended: its further turns were not sent.
        in_flight_per_copy: Of an open loop, the mean number of requests in flight per copy: by Little's law, what was
            answered per second times how long it took. None in a closed loop, whose `concurrency` it is.
        cached_share: Share of the prompts' tokens that came from a cache, by the endpoint's own count; None
            without one.
        spread_s: Seconds over which a closed loop's first requests were spread at random; 0: all at once.
        convoy_share: Share of the measured requests that were sent within one step of the engine of more others than
            chance brings: their TTFT is longer than that of users who come one by one. None where too few were in
            flight, or nothing streamed.
        from_s: When it started, in seconds since the epoch by the service's clock; None where it wasn't noted.
        to_s: When it ended.
        sessions_per_h: Recorded sessions that ended in an hour while all places were taken. None, as what follows,
            where no sessions were replayed; a level's concurrency is the sessions that go on at once then.
        session_ms: Time of whole sessions, with their tools and sub-agents.
        first_turn_ttft_ms: TTFT of the measured turns that open a session.
        later_turns_ttft_ms: TTFT of the others, those of sub-agents too.
    """

    concurrency: int
    requests: int
    succeeded: int
    errors: Mapping[str, int]
    first_errors: tuple[str, ...]
    window_s: float
    output_tok_s: float | None
    requests_per_s: float | None
    goodput_requests_per_s: float | None
    ttft_ms: Distribution | None
    tpot_ms: Distribution | None
    itl_ms: Distribution | None
    ms_per_token: Distribution | None
    e2e_latency_ms: Distribution | None
    input_tokens_mean: float | None
    output_tokens_mean: float | None
    meets_slo: bool
    misses: tuple[str, ...]
    arrival: Arrival = "closed"
    offered_requests_per_s: float | None = None
    window: Window = "whole"
    ramp_requests: int = 0
    ramp_errors: Mapping[str, int] = field(default_factory=dict)
    retried: Mapping[str, int] = field(default_factory=dict)
    total_tok_s: float | None = None
    output_tok_s_interval: Interval | None = None
    error_rate_interval: Interval | None = None
    parts_per_token: float | None = None
    queue_share: float | None = None
    input_tokens_p50: float | None = None
    input_tokens_p95: float | None = None
    output_tokens_p50: float | None = None
    output_tokens_p95: float | None = None
    duration_s: float | None = None
    enough_because: str = ""
    client: ClientEvidence | None = None
    void: Void | None = None
    timeline: Timeline | None = None
    doubts: tuple[AnswerDoubt, ...] = ()
    conversations: int = 0
    broken_conversations: int = 0
    in_flight_per_copy: float | None = None
    cached_share: float | None = None
    spread_s: float = 0.0
    convoy_share: float | None = None
    from_s: float | None = None
    to_s: float | None = None
    sessions_per_h: float | None = None
    session_ms: Distribution | None = None
    first_turn_ttft_ms: Distribution | None = None
    later_turns_ttft_ms: Distribution | None = None
    cut: str = ""

    @property
    def load(self) -> float:
        """Requests in flight per copy: those that a closed loop kept, or on average those of an open one."""
        return float(self.concurrency) if self.in_flight_per_copy is None else self.in_flight_per_copy

    @property
    def is_open(self) -> bool:
        """Whether it is of an open loop: it offered a rate, whatever was answered."""
        return self.offered_requests_per_s is not None

    @property
    def offered_load(self) -> float:
        """What identifies a level of a trial: concurrency per copy; of an open loop, the rate that it offered."""
        return self.concurrency if self.offered_requests_per_s is None else self.offered_requests_per_s

    @property
    def place(self) -> str:
        """Its load in words: `concurrency 4 per copy`; of an open loop, `2.5 requests/s`."""
        return load_words(self.concurrency, self.offered_requests_per_s)

    @property
    def valid(self) -> bool:
        """Whether it was measured whole, and the endpoint was the limit, not the client."""
        return self.void is None and not self.cut

    @property
    def mark(self) -> Literal["", "void", "cut"]:
        """The name of what makes it invalid; empty when it is valid."""
        return "void" if self.void is not None else "cut" if self.cut else ""

    @property
    def invalid_because(self) -> str:
        """Why it is not valid, in words; empty when it is."""
        return self.cut if self.void is None else self.void.because

    @property
    def error_rate(self) -> float:
        """Share of requests that failed, 0 to 1."""
        return (self.requests - self.succeeded) / self.requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """The load beyond which more doesn't pay, by one detector.

    Attributes:
        detector: Which one.
        concurrency: Requests in flight per copy, interpolated between two levels; None without a knee.
        because: Its source, or why there is none.
        interval: Its 95 % interval, from those of the metric that it is read from; `high` is None where no level was
            past the knee. None where it is unknown.
    """

    detector: Detector
    concurrency: float | None
    because: str
    interval: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveProof:
    """The live endpoint by the control plane.

    Attributes:
        proven: Whether it is this deployment's; False when nothing was checked.
        endpoint_config_name: The live endpoint configuration.
        model_name: The live component's model.
        copy_count: Its running copies; the load of the trial is for this number.
        because: The evidence, in a sentence.
        planned_copy_count: Copies of the plan, where another count was live.
    """

    proven: bool
    endpoint_config_name: str | None
    model_name: str | None
    copy_count: int | None
    because: str
    planned_copy_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTime:
    """How long the copy on trial took to start.

    Attributes:
        created_at: When it was created, ISO 8601, UTC.
        seconds: From then until it was in service.
        instances_added: Instances that came up for it meanwhile; 0 where it ran on one in service.
        because: What the seconds were read from.
        simulated: Whether a simulated AWS started it.
    """

    created_at: str
    seconds: float
    instances_added: int
    because: str
    simulated: bool = False

    @property
    def words(self) -> str:
        """The same as a clause."""
        where = "with a new instance" if self.instances_added else "on an instance in service"
        return f"{'simulated, ' if self.simulated else ''}{self.seconds:.0f} s {where}, {self.because}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsersLoad:
    """The load of users on the component before the trial's first request.

    Attributes:
        concurrency_per_copy: Highest number of their concurrent requests per copy; None when it is unknown.
        because: Its source, or why it is unknown.
    """

    concurrency_per_copy: float | None
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStep:
    """Why one level was measured, in the order of measurement."""

    concurrency: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityScore:
    """One metric over an evaluation set.

    Attributes:
        metric: `exact_match`: share of the answers that equal their reference; `mean_logprob`: mean log-probability
            of the generated tokens, natural logarithm; `perplexity`: exp(-mean_logprob), from 1.
        value: The value; None where no answer has it.
        interval: With 95 % confidence, or at a requested one; None bounds where it is unknown.
        count: Answers that it comes from.
    """

    metric: QualityMetric
    value: float | None
    interval: Interval
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityCheck:
    """One objective held against the answers.

    Attributes:
        objective: The objective.
        measured: The value; None when no answer has it.
        met: Whether it is proven met or missed; None without a value, or where the interval reaches over the bound.
        sentence: The same in words.
    """

    objective: QualityObjective
    measured: float | None
    met: bool | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityResult:
    """The quality that a trial measured.

    Attributes:
        evaluation_set: Digest of the evaluation set.
        prompts: Prompts of the set.
        answered: Those that were answered in full.
        scores: The scores of the answers, with intervals of 95 % confidence; empty where nothing was sent.
        checks: The objectives; empty where nothing was sent.
        because: The outcome, or why nothing was sent, in a sentence.
        duration_s: Time that it took.
    """

    evaluation_set: str
    prompts: int
    answered: int
    scores: tuple[QualityScore, ...]
    checks: tuple[QualityCheck, ...]
    because: str
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OverloadResult:
    """What twice the load of the knee did.

    Attributes:
        status: `proved`: what could not be served in time was refused at once, the rest kept the SLO, and the wait was
            back soon; `refuted`; `unmeasured`: nothing was sent, the client was the limit, or it was no overload.
        because: Why, with the numbers.
        offered_requests_per_s: Requests per second of the burst, all copies together; None where nothing was sent.
        burst_s: Its length.
        sent: Its requests.
        admitted: Those of them that were not refused for load.
        refusals: How many were refused, by what the client saw: an HTTP status, `ModelError` (SageMaker's, of a model
            that answered 503 or 429) or `in the stream`.
        refusal_p95_ms: From request sent to refusal received, 95th percentile.
        wait_p95_ms: Time to first token of the admitted, 95th percentile; end-to-end latency where nothing streams.
        recovery_s: From the end of the burst until requests waited no longer than they may; None where they never did.
        duration_s: Time that it took.
    """

    status: Literal["proved", "refuted", "unmeasured"]
    because: str
    offered_requests_per_s: float | None = None
    burst_s: float | None = None
    sent: int = 0
    admitted: int = 0
    refusals: Mapping[str, int] = field(default_factory=dict)
    refusal_p95_ms: float | None = None
    wait_p95_ms: float | None = None
    recovery_s: float | None = None
    duration_s: float = 0.0

    @property
    def refused_share(self) -> float:
        """Share of the burst's requests that were refused, 0 to 1."""
        return (self.sent - self.admitted) / self.sent if self.sent else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """One trial, whole.

    Attributes:
        schema_version: Of this document.
        request: The input.
        started_at: ISO 8601, UTC.
        duration_s: Seconds of the trial, proofs and warm-up included.
        engine_note: How a simulated or local engine announced itself; empty on AWS.
        live: The deployment that was proven live before and after the measurement.
        levels: The levels, ascending; of one that was cut, what had been measured by then.
        knees: One for each detector; `knee` is the one that counts.
        verdict: Whether the SLO holds at the gate's concurrency.
        target_concurrency_per_copy: The scaling target.
        target_detector: The detector whose knee it comes from; None when it comes from no knee.
        target_because: The source of this number.
        usd_per_million_output_tokens: At the knee the target comes from; None without price, knee or token count, and
            of a local engine.
        stopped: Why no further level was measured.
        blended_usd_per_million_tokens: Input and output blended at 3:1, by the articles' formula; see `scaling_target`.
        search: Why each level was measured.
        unmeasured: The outcome of the first request, the warm-up and the levels that were cut, in their order.
        client: The capacity of this client; None when it wasn't measured.
        overhead: What SageMaker adds; None when CloudWatch wasn't read.
        comparison: This trial compared with the last release's; None without one.
        clock_offset_s: What was added to this machine's clock to sign with, learned from the service's refusal; None
            when the clock was right.
        words_per_token: Words of synthetic prompts per token of the endpoint's own count; None before it reported one.
        seatrial_version: The release that measured.
        users: The users' load meanwhile; None of a trial that doesn't load alongside them.
        quality: The quality of the answers to the evaluation set; None without a set.
        container: The containers' metrics in CloudWatch; None where they weren't read.
        overload: What load beyond the knee did; None where it was not tried.
        random_arrivals: TTFT at random arrivals of the gate's throughput; None where it is neither measured nor
            predicted, or no objective is on TTFT.
        start: How long the copy on trial took to start; None where the trial did not see it.
        seal: Who made it, with the signature of the trial service; None of a trial that no service made, or that could
            not be signed.
    """

    schema_version: Literal["3"]
    request: TrialRequest
    started_at: str
    duration_s: float
    engine_note: str
    live: LiveProof
    levels: tuple[LevelResult, ...]
    knees: tuple[Knee, ...]
    verdict: Verdict
    target_concurrency_per_copy: float
    target_detector: Detector | None
    target_because: str
    usd_per_million_output_tokens: float | None
    stopped: Stop
    blended_usd_per_million_tokens: float | None = None
    search: tuple[SearchStep, ...] = ()
    unmeasured: tuple[Unmeasured, ...] = ()
    client: ClientCalibration | None = None
    overhead: ServiceOverhead | None = None
    comparison: Comparison | None = None
    clock_offset_s: float | None = None
    words_per_token: float | None = None
    seatrial_version: str = ""
    users: UsersLoad | None = None
    quality: QualityResult | None = None
    container: ContainerMetrics | None = None
    overload: OverloadResult | None = None
    random_arrivals: RandomArrivals | None = None
    start: StartTime | None = None
    seal: ResultSeal | None = None

    @property
    def knee(self) -> Knee | None:
        """The knee of the trial: the one that the scaling target comes from; None where that is the fallback."""
        return next((knee for knee in self.knees if knee.detector == self.target_detector), None)

    def to_json(self) -> str:
        """Write the result as one line of JSON."""
        return write_document(self)

    @classmethod
    def from_json(cls, text: str) -> TrialResult:
        """Read a result strictly.

        Raises:
            BenchError: SEA501, with every unknown key, wrong type and value that no trial can have measured.
        """
        result = read_document(cls, text, where="trial result")
        if problems := [
            Finding(RULE, Place.at("trial result", field), message) for field, message in impossible_values(result)
        ]:
            raise BenchError(problems)
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationAnswer:
    """The answer to one prompt.

    Attributes:
        text: The generated text; empty of a failed request.
        tokens: The texts of the generated tokens; None where the engine doesn't report them.
        log_probabilities: Natural logarithm of each token's probability; None unless reported for every token.
        failure: Why there is no answer; empty when there is one.
        retried: Number of repetitions of the request.
        engine: The header by which a local engine announces itself; empty on AWS.
        cut: Whether the limit on tokens ended it, as far as the engine reports that.
    """

    id: str
    text: str
    tokens: tuple[str, ...] | None = None
    log_probabilities: tuple[float, ...] | None = None
    failure: str = ""
    retried: int = 0
    engine: str = ""
    cut: bool = False

    @property
    def answered(self) -> bool:
        """Whether the request was answered in full."""
        return not self.failure


def impossible_values(result: TrialResult) -> Iterator[tuple[str, str]]:
    """Yield the path of every value that no trial can have measured, and its problem."""
    if result.duration_s < 0:
        yield "duration_s", f"{result.duration_s:g} is below 0"
    if result.start is not None and result.start.seconds < 0:
        yield "start.seconds", f"{result.start.seconds:g} is below 0"
    try:
        _ = datetime.fromisoformat(result.started_at).astimezone(UTC) + timedelta(seconds=result.duration_s)
    except (ValueError, OverflowError):
        yield "started_at", f"{result.started_at!r} and {result.duration_s:g} s after it are no times in ISO 8601"
    loads: Counter[tuple[int, float]] = Counter()
    for index, level in enumerate(result.levels):
        yield from ((f"levels[{index}].{name}", message) for name, message in _impossible_of(level))
        rate = level.offered_requests_per_s
        loads[level.concurrency if rate is None else 0, rate or 0.0] += 1
    for (concurrency, rate), times in loads.items():
        if times > 1:
            load = f"{rate:g} requests/s" if rate else f"concurrency {concurrency}"
            yield "levels", f"{load} is listed {times} times"
    for index, seen in enumerate(result.unmeasured):
        if not 0 <= seen.succeeded <= seen.sent:
            yield f"unmeasured[{index}].succeeded", f"{seen.succeeded} of {seen.sent} sent"
    if result.verdict.status == "pass":
        yield from _unfounded(result)


def _unfounded(result: TrialResult) -> Iterator[tuple[str, str]]:
    """Yield what a trial that passed lacks: an answer that proves it, or an objective that is met."""
    verified = any(seen.succeeded for seen in result.unmeasured if seen.occasion == "verification")
    if not verified and not any(level.succeeded and level.valid for level in result.levels):
        yield "verdict.status", "pass, though no request of a valid level or of a verification was answered"
    for index, check in enumerate(result.verdict.checks):
        if check.met is not True:
            yield f"verdict.checks[{index}].met", "not met, though the verdict is pass"


def _impossible_of(level: LevelResult) -> Iterator[tuple[str, str]]:
    if level.requests < 1:
        yield "requests", f"{level.requests} is below 1"
    if not 0 <= level.succeeded <= level.requests:
        yield "succeeded", f"{level.succeeded} of {level.requests} requests"
    elif (failed := sum(level.errors.values())) > level.requests - level.succeeded or any(
        count < 0 for count in level.errors.values()
    ):
        yield "errors", f"{failed} failures of {level.requests - level.succeeded} requests that failed"
    for name in ("concurrency", "window_s", "duration_s", "output_tok_s", "requests_per_s", "goodput_requests_per_s",
                 "total_tok_s", "offered_requests_per_s", "input_tokens_mean", "output_tokens_mean",
                 "input_tokens_p50", "input_tokens_p95", "output_tokens_p50", "output_tokens_p95"):  # fmt: skip
        if (value := getattr(level, name)) is not None and value < 0:
            yield name, f"{value:g} is below 0"
    if level.cached_share is not None and not 0 <= level.cached_share <= 1:
        yield "cached_share", f"{level.cached_share:g} is no share"
    for name in ("ttft_ms", "tpot_ms", "itl_ms", "ms_per_token", "e2e_latency_ms"):
        values = getattr(level, name)
        if values is not None and min(values.count, values.mean, values.p50, values.p90, values.p95, values.p99) < 0:
            yield name, "a value is below 0"
