"""The custom resource's attributes: what the stack and its readers learn from a trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_base.units import exported
from seatrial_cdk.trials.runtime.store import report_key
from seatrial_load.knee.scaling_target import at_load
from seatrial_load.slo.verdict import up_to_gate

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.order import Attributes
    from seatrial_load.documents.result import Detector, TrialResult
    from seatrial_load.knee.scaling_target import LoadPoint
    from seatrial_load.measure.crossing import Reading

UNKNOWN = "unknown"
NOT_TRIED = "not tried"
LOCAL_ENGINE = "not measured: local engine"
NO_KNEE = "none: the plan's target"
FIRST_RELEASE = "none: first release"
S_PER_HOUR = 3600.0

UNMEASURED = (
    "KneeConcurrencyPerCopy",
    "SloKneeConcurrencyPerCopy",
    "SaturationKneeConcurrencyPerCopy",
    "TargetKnee",
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
    """What of a trial stands for the whole: the load at its knee, and what the endpoint does there.

    Attributes:
        knee: The load in requests in flight per copy: the knee that the scaling target comes from; of a pass without a
            knee, the gate. None otherwise, and of an open loop without a knee.
        at: What was measured at the knee, without one at the gate, or interpolated between two levels; of an open loop
            without a knee, at the rate of the gate.
    """

    knee: float | None
    at: LoadPoint | None


def headline(result: TrialResult) -> Headline:
    """Return what stands for the whole trial."""
    knee, gate = result.knee, float(result.request.gate_concurrency)
    found = None if knee is None else knee.concurrency
    gated = up_to_gate(result.levels, result.request.load)
    opened = [level for level in gated if level.offered_requests_per_s is not None]
    if opened and found is None:
        return Headline(None, at_load(opened[-1:], gate))
    known = gate if found is None and result.verdict.status == "pass" else found
    return Headline(known, at_load(result.levels, gate if found is None else found))


def trial_usd(result: TrialResult) -> float | None:
    """Return what the trial's copies cost while it ran: copies x price per hour x hours.

    None without a price, and of a local engine.
    """
    price = result.request.usd_per_hour_per_copy
    return (
        None
        if price is None or result.engine_note
        else result.request.copy_count * price * result.duration_s / S_PER_HOUR
    )


def measured_attributes(result: TrialResult, uri: str) -> Attributes:
    """Return the attributes of a trial that was measured; throughput and latencies are those of its headline."""
    told = headline(result)
    at = told.at
    return {
        "TargetConcurrencyPerCopy": _number(result.target_concurrency_per_copy),
        "KneeConcurrencyPerCopy": _number(told.knee),
        "SloKneeConcurrencyPerCopy": _knee(result, "slo"),
        "SaturationKneeConcurrencyPerCopy": _knee(result, "saturation"),
        "TargetKnee": result.target_detector or NO_KNEE,
        "OutputTokensPerSecond": _number(None if at is None else at.output_tok_s),
        "TtftP50Ms": _number(None if at is None else value_of(at.ttft_p50_ms)),
        "TtftP95Ms": _number(None if at is None else value_of(at.ttft_p95_ms)),
        "TpotP95Ms": _number(None if at is None else value_of(at.tpot_p95_ms)),
        "E2eP95Ms": _number(None if at is None else value_of(at.e2e_p95_ms)),
        "UsdPerMillionOutputTokens": _usd(result, result.usd_per_million_output_tokens),
        "BlendedUsdPerMillionTokens": _usd(result, result.blended_usd_per_million_tokens),
        "TrialUsd": _usd(result, trial_usd(result)),
        "Comparison": FIRST_RELEASE if result.comparison is None else result.comparison.status,
        "Verdict": result.verdict.status,
        "Verified": "true" if result.verdict.status == "pass" and result.request.manner != "verify" else "false",
        "ResultUri": uri,
        "ReportUri": report_key(uri),
    }


def attribute_names() -> tuple[str, ...]:
    """Return the names of what `Trial` answers.

    They are a property of it: CloudFormation keeps the attributes of a resource that it doesn't update, and a new name
    would be none of them.
    """
    return (*unmeasured_attributes(0.0), "ResultsBucket")


def unmeasured_attributes(fallback_target: float, *, verdict: str = UNKNOWN, uri: str = UNKNOWN) -> Attributes:
    """Return the attributes where no trial answers: the plan's own target, and nothing verified."""
    return {
        "TargetConcurrencyPerCopy": _number(fallback_target),
        **dict.fromkeys(UNMEASURED, UNKNOWN),
        "Verdict": verdict,
        "Verified": "false",
        "ResultUri": uri,
    }


def copies_attributes(copies: int, verdict: str, uri: str = UNKNOWN) -> Attributes:
    """Return the attributes of `Candidate`: the copies that an update of the component carries, and what was tried."""
    return {"CopyCount": f"{copies}", "Verdict": verdict, "ResultUri": uri}


def value_of(reading: Reading | None) -> float | None:
    """Return the value of a metric; None where it was not measured."""
    return None if reading is None else reading.value


def _knee(result: TrialResult, detector: Detector) -> str:
    """Return the load of a detector's knee; where the SLO is met at every measured load, that it is at least this."""
    found = next((knee for knee in result.knees if knee.detector == detector), None)
    if found is None or found.concurrency is None:
        return UNKNOWN
    open_ended = found.interval is not None and found.interval.high is None
    return f"at least {exported(found.concurrency)}" if open_ended else exported(found.concurrency)


def _usd(result: TrialResult, amount: float | None) -> str:
    return LOCAL_ENGINE if result.engine_note else _number(amount)


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else exported(value)
