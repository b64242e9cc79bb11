"""The result as files that the page carries: the JSON as it is, and one row for each level as CSV."""

from __future__ import annotations

import base64
import csv
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_base.secrets import redacted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_load.measure.distribution import Distribution, Interval
    from seatrial_load.model.result import LevelResult, TrialResult

PLAIN = (
    "concurrency", "offered_requests_per_s", "arrival", "requests", "succeeded", "error_rate", "window", "window_s",
    "duration_s", "ramp_requests", "output_tok_s", "total_tok_s", "requests_per_s", "goodput_requests_per_s",
    "input_tokens_mean", "output_tokens_mean", "meets_slo",
)  # fmt: skip
LATENCIES = ("ttft_ms", "tpot_ms", "itl_ms", "ms_per_token", "e2e_latency_ms")
STATISTICS = ("count", "mean", "p50", "p90", "p95", "p99", "max")


@dataclass(frozen=True, slots=True)
class Download:
    """One file.

    Attributes:
        name: Its name.
        label: What the link says.
        uri: The file itself, as a `data:` URI.
    """

    name: str
    label: str
    uri: str


def downloads_of(result: TrialResult) -> tuple[Download, ...]:
    """Return the result as JSON and its levels as CSV; of credentials, only the first characters are left."""
    return (
        Download("report.json", "JSON", _uri("application/json", redacted(render_json(result)))),
        Download("report.csv", "CSV", _uri("text/csv", redacted(render_csv(result)))),
    )


def render_json(result: TrialResult) -> str:
    """Write the result as indented JSON."""
    return json.dumps(json.loads(result.to_json()), indent=2) + "\n"


def render_csv(result: TrialResult) -> str:
    """Write one row for each level, its columns named by the fields of the JSON; what is missing is empty."""
    out = io.StringIO()
    rows = [dict(_cells(level)) for level in result.levels]
    writer = csv.DictWriter(out, fieldnames=list(rows[0]) if rows else list(PLAIN), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _cells(level: LevelResult) -> Iterator[tuple[str, object]]:
    for name in PLAIN:
        yield name, getattr(level, name)
    yield from _ends("output_tok_s", level.output_tok_s_interval)
    yield from _ends("error_rate", level.error_rate_interval)
    for field in LATENCIES:
        values: Distribution | None = getattr(level, field)
        for name in STATISTICS:
            yield f"{field}_{name}", None if values is None else getattr(values, name)
        for name in STATISTICS[1:-1]:
            yield from _ends(f"{field}_{name}", None if values is None else values.intervals.get(name))
    yield "void_because", level.void_because


def _ends(name: str, interval: Interval | None) -> Iterator[tuple[str, float | None]]:
    yield f"{name}_low", None if interval is None else interval.low
    yield f"{name}_high", None if interval is None else interval.high


def _uri(kind: str, text: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
