"""A trial's numbers as CloudWatch metrics: one line of the log in the embedded metric format.

Source of the form: "Specification: Embedded metric format", Amazon CloudWatch user guide. The line costs no call and no
permission: CloudWatch Logs makes the metrics of it. What was not measured is left out, never 0.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from seatrial_cdk.trial_service.runtime.attributes import headline, value_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_load.model.result import TrialResult

NAMESPACE: Final = "Seatrial"
DIMENSIONS: Final = ("Endpoint", "Environment")
UNITS: Final[Mapping[str, str]] = {
    "TtftP95Ms": "Milliseconds",
    "TpotP95Ms": "Milliseconds",
    "E2eP95Ms": "Milliseconds",
    "OutputTokensPerSecond": "Count/Second",
    "KneeConcurrencyPerCopy": "Count",
    "ErrorRate": "None",
    "UsdPerMillionOutputTokens": "None",
    "Passed": "Count",
}
"""Each metric's unit; `ErrorRate` is a share from 0 to 1, `Passed` is 1 or 0."""

MS_PER_S = 1000


def metrics_line(result: TrialResult, *, now_s: float) -> str:
    """Return the line; the numbers are those of the trial's headline."""
    values = {name: value for name, value in _values(result).items() if value is not None}
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [list(DIMENSIONS)],
        "Metrics": [{"Name": name, "Unit": UNITS[name]} for name in values],
    }
    root = {
        "_aws": {"Timestamp": int(now_s * MS_PER_S), "CloudWatchMetrics": [directive]},
        "Endpoint": result.request.endpoint,
        "Environment": result.request.environment,
        **values,
    }
    return json.dumps(root, separators=(",", ":"), allow_nan=False)


def _values(result: TrialResult) -> dict[str, float | None]:
    told = headline(result)
    at = told.at
    return {
        "TtftP95Ms": None if at is None else value_of(at.ttft_p95_ms),
        "TpotP95Ms": None if at is None else value_of(at.tpot_p95_ms),
        "E2eP95Ms": None if at is None else value_of(at.e2e_p95_ms),
        "OutputTokensPerSecond": None if at is None else at.output_tok_s,
        "KneeConcurrencyPerCopy": told.knee,
        "ErrorRate": None if at is None else value_of(at.errors),
        "UsdPerMillionOutputTokens": result.usd_per_million_output_tokens,
        "Passed": int(result.verdict.status == "pass"),
    }
