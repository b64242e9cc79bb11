"""The custom resource's attributes: what the stack and its readers learn from a trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.units import exported
from seatrial_cdk.trial_service.runtime.store import report_key

if TYPE_CHECKING:
    from seatrial.bench.distribution import Distribution
    from seatrial.bench.result import LevelResult, TrialResult
    from seatrial_cdk.trial_service.runtime.custom_resource import Attributes

UNKNOWN = "unknown"
S_PER_HOUR = 3600.0

UNMEASURED = (
    "KneeConcurrencyPerCopy",
    "OutputTokensPerSecond",
    "TtftP50Ms",
    "TtftP95Ms",
    "TpotP95Ms",
    "E2eP95Ms",
    "UsdPerMillionOutputTokens",
    "BlendedUsdPerMillionTokens",
    "TrialUsd",
    "Comparison",
    "ReportUri",
)
"""What a trial alone can tell."""


@dataclass(frozen=True, slots=True)
class Headline:
    """What of a trial stands for the whole: the knee that the scaling target comes from, and the level there.

    Without a knee it is the gate's level; None where there is no such knee or level.
    """

    knee: int | None
    level: LevelResult | None


def headline(result: TrialResult) -> Headline:
    """Return what stands for the whole trial."""
    knee = next((knee.concurrency for knee in result.knees if knee.detector == result.target_detector), None)
    concurrency = result.request.gate_concurrency if knee is None else knee
    return Headline(knee, next((level for level in result.levels if level.concurrency == concurrency), None))


def trial_usd(result: TrialResult) -> float | None:
    """Return what the trial's copies cost while it ran: copies x price per hour x hours; None without a price."""
    price = result.request.usd_per_hour_per_copy
    return None if price is None else result.request.copy_count * price * result.duration_s / S_PER_HOUR


def measured_attributes(result: TrialResult, uri: str) -> Attributes:
    """Return the attributes of a trial that was measured; throughput and latencies are those of its headline."""
    told = headline(result)
    level = told.level
    return {
        "TargetConcurrencyPerCopy": _number(result.target_concurrency_per_copy),
        "KneeConcurrencyPerCopy": _number(told.knee),
        "OutputTokensPerSecond": _number(None if level is None else level.output_tok_s),
        "TtftP50Ms": _number(_p50(None if level is None else level.ttft_ms)),
        "TtftP95Ms": _number(p95(None if level is None else level.ttft_ms)),
        "TpotP95Ms": _number(p95(None if level is None else level.tpot_ms)),
        "E2eP95Ms": _number(p95(None if level is None else level.e2e_latency_ms)),
        "UsdPerMillionOutputTokens": _number(result.usd_per_million_output_tokens),
        "BlendedUsdPerMillionTokens": _number(result.blended_usd_per_million_tokens),
        "TrialUsd": _number(trial_usd(result)),
        "Comparison": UNKNOWN if result.comparison is None else result.comparison.status,
        "Verdict": result.verdict.status,
        "Verified": "true" if result.verdict.status == "pass" else "false",
        "ResultUri": uri,
        "ReportUri": report_key(uri),
    }


def unmeasured_attributes(fallback_target: float, *, verdict: str = UNKNOWN, uri: str = UNKNOWN) -> Attributes:
    """Return the attributes where no trial answers: the plan's own target, and nothing verified."""
    return {
        "TargetConcurrencyPerCopy": _number(fallback_target),
        **dict.fromkeys(UNMEASURED, UNKNOWN),
        "Verdict": verdict,
        "Verified": "false",
        "ResultUri": uri,
    }


def p95(measured: Distribution | None) -> float | None:
    """Return a distribution's 95th percentile; None without one."""
    return None if measured is None else measured.p95


def _p50(measured: Distribution | None) -> float | None:
    return None if measured is None else measured.p50


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else exported(value)
