"""The trial's output document: what was measured, what it means, and what it was measured on."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 (the strict reader resolves the fields' types)
from dataclasses import dataclass
from typing import Literal, TypeAlias

from seatrial.bench.distribution import Distribution  # noqa: TC001 (likewise)
from seatrial.bench.document import read_document, write_document
from seatrial.bench.request import Objective, TrialRequest  # noqa: TC001 (likewise)

SCHEMA_VERSION: Literal["1"] = "1"
Detector: TypeAlias = Literal["slo", "kneedle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelResult:
    """One concurrency, measured.

    Attributes:
        concurrency: Requests in flight per copy.
        requests: Requests that ended; all of the level's.
        succeeded: Those answered in full.
        errors: How many failed, by error class.
        first_errors: A few failures in the service's own words, each class once.
        window_s: First request sent to last request ended.
        output_tok_s: Output tokens per second, all copies together; None when the endpoint didn't tell counts.
        requests_per_s: Successful requests per second, all copies together.
        goodput_requests_per_s: Those of them that met every per-request objective.
        ttft_ms: Time to first token; None when nothing streamed.
        tpot_ms: Time per output token after the first; None when no request had two.
        itl_ms: Gaps between token events, pooled.
        ms_per_token: End-to-end latency by output tokens, to compare with published tables.
        e2e_latency_ms: Request sent to last token.
        input_tokens_mean: Prompt length by the endpoint's own count.
        output_tokens_mean: Generated tokens per successful request.
        meets_slo: Whether some request succeeded and every objective was proven met.
        misses: One sentence for each objective that wasn't.
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

    @property
    def error_rate(self) -> float:
        """Share of requests that failed, 0 to 1."""
        return (self.requests - self.succeeded) / self.requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """The concurrency per copy past which more load doesn't pay, by a named detector; None with the reason."""

    detector: Detector
    concurrency: int | None
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One objective held against one level; `met` is None when there was nothing to measure."""

    objective: Objective
    measured: float | None
    met: bool | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the SLO holds at the gate's concurrency, and why."""

    status: Literal["pass", "fail", "inconclusive"]
    because: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveProof:
    """What the control plane said the live endpoint was; `proven` is False when nothing was asked."""

    proven: bool
    endpoint_config_name: str | None
    model_name: str | None
    copy_count: int | None
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """One trial, whole.

    Attributes:
        schema_version: Of this document.
        request: What was asked.
        started_at: ISO 8601, UTC.
        duration_s: Seconds of the trial, proofs and warm-up included.
        engine_note: How a simulated or local engine announced itself; empty on AWS.
        live: What was proven live before and after the measurement.
        levels: The levels measured in full, ascending.
        knees: One for each detector.
        verdict: Whether the SLO holds at the gate's concurrency.
        target_concurrency_per_copy: What scaling shall track.
        target_detector: The detector whose knee it comes from; None when it comes from no knee.
        target_because: Where this number comes from.
        usd_per_million_output_tokens: At the knee the target comes from; None without price, knee or token count.
        stopped_because: Why no further level was measured.
    """

    schema_version: Literal["1"]
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
    stopped_because: str

    def to_json(self) -> str:
        """Write the result as one line of JSON."""
        return write_document(self)

    @classmethod
    def from_json(cls, text: str) -> TrialResult:
        """Read a result strictly.

        Raises:
            BenchError: SEA501, with every unknown key and wrong type.
        """
        return read_document(cls, text, where="trial result")
