"""The custom resource's attributes: what the stack and its readers learn from a trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.bench.distribution import Distribution
    from seatrial.bench.result import LevelResult, TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import Attributes

UNKNOWN = "unknown"


def measured_attributes(result: TrialResult, uri: str) -> Attributes:
    """Return the attributes of a trial that was measured.

    The knee is the one that the scaling target comes from; throughput and latencies are those of its level, without a
    knee those of the gate's level.
    """
    knees = (knee.concurrency for knee in result.knees if knee.detector == result.target_detector)
    knee = next(knees, None)
    level = _level(result, result.request.gate_concurrency if knee is None else knee)
    return {
        "TargetConcurrencyPerCopy": _number(result.target_concurrency_per_copy),
        "KneeConcurrencyPerCopy": _number(knee),
        "OutputTokensPerSecond": _number(None if level is None else level.output_tok_s),
        "TtftP95Ms": _p95(None if level is None else level.ttft_ms),
        "TpotP95Ms": _p95(None if level is None else level.tpot_ms),
        "UsdPerMillionOutputTokens": _number(result.usd_per_million_output_tokens),
        "Verdict": result.verdict.status,
        "Verified": "true" if result.verdict.status == "pass" else "false",
        "ResultUri": uri,
    }


def unmeasured_attributes(fallback_target: float, *, verdict: str = UNKNOWN, uri: str = UNKNOWN) -> Attributes:
    """Return the attributes where no trial answers: the plan's own target, and nothing verified."""
    return {
        "TargetConcurrencyPerCopy": _number(fallback_target),
        "KneeConcurrencyPerCopy": UNKNOWN,
        "OutputTokensPerSecond": UNKNOWN,
        "TtftP95Ms": UNKNOWN,
        "TpotP95Ms": UNKNOWN,
        "UsdPerMillionOutputTokens": UNKNOWN,
        "Verdict": verdict,
        "Verified": "false",
        "ResultUri": uri,
    }


def _level(result: TrialResult, concurrency: int) -> LevelResult | None:
    return next((level for level in result.levels if level.concurrency == concurrency), None)


def _p95(measured: Distribution | None) -> str:
    return _number(None if measured is None else measured.p95)


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.6g}"
