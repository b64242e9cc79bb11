"""How metrics, statistics and bounds are called in every part of the report."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seatrial_base.units import fine_percent, tenths

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_load.model.request import Metric, Objective


METRICS: Mapping[Metric, str] = {
    "ttft_ms": "TTFT",
    "tpot_ms": "TPOT",
    "e2e_latency_ms": "end-to-end latency",
    "error_rate": "error rate",
    "output_tok_s": "output throughput",
}


_FIELDS: Mapping[str, str] = {
    **{str(field): name for field, name in METRICS.items()},
    "usd_per_million_output_tokens": "cost of a million output tokens",
}
_FIELD = re.compile(rf"\b({'|'.join(_FIELDS)})\b")


def plain(text: str) -> str:
    """Write a text of a result with the names of metrics instead of those of its fields."""
    return _FIELD.sub(lambda found: _FIELDS[found[1]], text)


def objective_name(objective: Objective) -> str:
    """Name what an objective bounds: `TTFT p95`, `error rate`."""
    name = METRICS[objective.metric]
    return name if objective.statistic == "value" else f"{name} {objective.statistic}"


def bound_text(objective: Objective) -> str:
    """Write an objective's bound as it was set, with its sense and unit: `≤ 2,000 ms`."""
    sense = "≤" if objective.sense == "at_most" else "≥"
    if objective.metric == "error_rate":
        return f"{sense} {objective.bound * 100:.12g} %"
    return f"{sense} {objective.bound:,.12g} {_unit(objective.metric)}"


def measured_text(value: float, metric: Metric) -> str:
    """Write a measured value as the verdict's sentences do, fine enough to stand beside its bound."""
    return fine_percent(value) if metric == "error_rate" else f"{tenths(value, grouped=True)} {_unit(metric)}"


def _unit(metric: Metric) -> str:
    return "tok/s" if metric == "output_tok_s" else "ms"
