"""The custom resource's attributes: what the stack and its readers learn from a trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_base.units import exported
from seatrial_cdk.trials.runtime.store import report_key
from seatrial_load.knee import at_load
from seatrial_load.slo.verdict import up_to_gate

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.order import Attributes
    from seatrial_load.documents.result import Detector, TrialResult
    from seatrial_load.knee import LoadPoint
    from seatrial_load.measure.curves import Reading

UNKNOWN = "unknown"
NOT_TRIED = "not tried"
LOCAL_ENGINE = "not measured: local engine"
NO_KNEE = "none: the plan's target"
FIRST_RELEASE = "none: first release"
S_PER_HOUR = 3600.0
_AT_KNEE = "at the knee, else at the gate; interpolated between levels"
BUCKET: Final = "ResultsBucket"
"""The one attribute that the answer adds, whatever was measured."""


@dataclass(frozen=True, slots=True)
class TrialAttribute:
    """One attribute of `Trial`.

    Attributes:
        description: Its meaning.
        unmeasured: Its value where no trial answers.
        output: Name of the stack output; empty where it is none.
    """

    name: str
    description: str
    unmeasured: str = UNKNOWN
    output: str = ""

    @classmethod
    def shown(cls, name: str, description: str, unmeasured: str = UNKNOWN) -> TrialAttribute:
        """Return one that is an output of its own name."""
        return cls(name, description, unmeasured, name)


ATTRIBUTES: Final = (
    TrialAttribute.shown(
        "TargetConcurrencyPerCopy",
        "target of the scaling policy (`Fn::GetAtt`): requests in flight per copy; always a number",
    ),
    TrialAttribute.shown(
        "KneeConcurrencyPerCopy", "the knee that the target comes from; after a pass without a knee, the gate"
    ),
    TrialAttribute.shown(
        "SloKneeConcurrencyPerCopy",
        "the load where the SLO begins to be missed; `at least 64` where no measured load misses it",
    ),
    TrialAttribute.shown("SaturationKneeConcurrencyPerCopy", "the load from which more load gives no more throughput"),
    TrialAttribute.shown(
        "TargetKnee", "the knee that the target comes from: `slo`, `saturation`, `gate`, or `none: the plan's target`"
    ),
    TrialAttribute.shown("OutputTokensPerSecond", _AT_KNEE),
    TrialAttribute("TtftP50Ms", _AT_KNEE),
    TrialAttribute.shown("TtftP95Ms", _AT_KNEE),
    TrialAttribute.shown("TpotP95Ms", _AT_KNEE),
    TrialAttribute.shown("E2eP95Ms", _AT_KNEE),
    TrialAttribute.shown("UsdPerMillionOutputTokens", "at the level that the target comes from"),
    TrialAttribute.shown(
        "BlendedUsdPerMillionTokens", "input and output blended 3:1, at the level that the target comes from"
    ),
    TrialAttribute.shown("TrialUsd", "cost of the copies during the trial"),
    TrialAttribute.shown("Comparison", "with the last release: `same`, `better`, `worse` or `incomparable`"),
    TrialAttribute("ReportUri", "S3 URI of the short report beside the result", output="TrialReportUri"),
    TrialAttribute.shown("Verdict", "`pass`, `fail`, `inconclusive` or `error`"),
    TrialAttribute.shown(
        "Verified",
        "`true` when the trial of this plan passed; `false` after single requests alone (`trial.update: verify_only`)",
        "false",
    ),
    TrialAttribute("ResultUri", "S3 URI of the result", output="TrialResultUri"),
    TrialAttribute("ResultsBucket", "results bucket of the environment", output="ResultsBucket"),
)
"""The attributes of `Trial`, in the order in which templates name them: another order would update the resource."""


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
    concurrency = None if knee is None else knee.concurrency
    gated = up_to_gate(result.levels, result.request.load)
    opened = [level for level in gated if level.is_open]
    if opened and concurrency is None:
        return Headline(None, at_load(opened[-1:], gate))
    known = gate if concurrency is None and result.verdict.status == "pass" else concurrency
    return Headline(known, at_load(result.levels, gate if concurrency is None else concurrency))


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
    summary = headline(result)
    at = summary.at
    return {
        "TargetConcurrencyPerCopy": _number(result.target_concurrency_per_copy),
        "KneeConcurrencyPerCopy": _number(summary.knee),
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
    """Return the names of what `Trial` answers."""
    return tuple(each.name for each in ATTRIBUTES)


def unmeasured_attributes(fallback_target: float, *, verdict: str = UNKNOWN, uri: str = UNKNOWN) -> Attributes:
    """Return the attributes where no trial answers: the plan's own target, and nothing verified."""
    unmeasured = {each.name: each.unmeasured for each in ATTRIBUTES if each.name != BUCKET}
    return unmeasured | {
        "TargetConcurrencyPerCopy": _number(fallback_target),
        "Verdict": verdict,
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
    match = next((knee for knee in result.knees if knee.detector == detector), None)
    if match is None or match.concurrency is None:
        return UNKNOWN
    open_ended = match.interval is not None and match.interval.high is None
    return f"at least {exported(match.concurrency)}" if open_ended else exported(match.concurrency)


def _usd(result: TrialResult, amount: float | None) -> str:
    return LOCAL_ENGINE if result.engine_note else _number(amount)


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else exported(value)
