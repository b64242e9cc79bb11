"""Looks up a level's measurements by the names that objectives use, and says why one is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.cell import NO_SUCCESS, Cell, count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.bench.request import Metric, Statistic
    from seatrial.bench.result import LevelResult
    from seatrial.measure.distribution import Distribution

NO_TOKEN_COUNT = "the endpoint did not tell how many tokens it generated"  # noqa: S105 (a sentence about tokens of text)
NO_INPUT_COUNT = "the endpoint did not tell how many tokens the prompt has"
NOT_STREAMED = "no answer was streamed"
NO_SECOND_TOKEN = "no request streamed two tokens or more"  # noqa: S105 (likewise)
NO_DURATION = "the measured window has no length"


def level_name(level: LevelResult) -> Cell:
    """Return a level's concurrency, with a ring when it is void."""
    return count(level.concurrency) if level.valid else Cell(f"○ {level.concurrency:,}", exact=str(level.concurrency))


def latency_of(level: LevelResult, metric: Metric) -> Distribution | None:
    """Return a latency's distribution; None when it wasn't measured."""
    measured: Mapping[str, Distribution | None] = {
        "ttft_ms": level.ttft_ms,
        "tpot_ms": level.tpot_ms,
        "e2e_latency_ms": level.e2e_latency_ms,
    }
    return measured[metric]


def statistic_of(values: Distribution | None, statistic: Statistic) -> float | None:
    """Return one statistic of a distribution; None when there is none."""
    if values is None:
        return None
    by_name = {"mean": values.mean, "p50": values.p50, "p90": values.p90, "p95": values.p95, "p99": values.p99}
    return by_name[statistic]


def why_missing(level: LevelResult, otherwise: str) -> str:
    """Say why a level lacks a value: nothing succeeded there, or the reason given."""
    return f"{NO_SUCCESS} at {level.concurrency}" if not level.succeeded else otherwise
