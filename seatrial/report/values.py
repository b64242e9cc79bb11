"""Values as they are shown: rounded, with the exact one behind, or missing with the reason. Never a silent 0."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from seatrial_base.table import DASH, Cell
from seatrial_base.units import digits, exported, fine_percent, tenths, usd, whole_or_tenths

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seatrial_load.documents.distribution import Interval
    from seatrial_load.documents.request import Metric, Objective
    from seatrial_load.documents.result import LevelResult


OfLevelT = TypeVar("OfLevelT")
NO_SUCCESS = "no request succeeded"
NO_TOKEN_COUNT = "the endpoint did not report output tokens"  # noqa: S105 (a sentence about tokens of text)
NO_INPUT_COUNT = "the endpoint did not report input tokens"
NOT_STREAMED = "no answer was streamed"
NO_SECOND_TOKEN = "no request streamed two tokens or more"  # noqa: S105 (likewise)
NO_DURATION = "the measured window is empty"
MOST_DRAWN = 32
"""Levels with a curve of their own in a chart; more can't be told apart."""
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


def missing_cell(because: str) -> Cell:
    """Return the cell of a value that isn't there."""
    return Cell(DASH, missing_because=because)


def number_cell(value: float | None, because: str, *, unit: str = "") -> Cell:
    """Return the cell of a number with about three digits, or a dash with the reason."""
    if value is None:
        return missing_cell(because)
    return Cell(f"{digits(value)} {unit}".rstrip(), exact=repr(value))


def as_set(value: float) -> Cell:
    """Return the cell of a number that is set elsewhere to what is written here, such as the target of scaling."""
    return Cell(exported(value), exact=repr(value))


def with_interval(cell: Cell, interval: Interval | None, write: Callable[[float], Cell]) -> Cell:
    """Return a cell with the ends of its 95 % interval, written as the value itself."""
    if interval is None or cell.missing_because:
        return cell
    low, high = (None if end is None else write(end) for end in (interval.low, interval.high))
    return replace(cell, low=low, high=high)


def measured_cell(value: float | None, because: str, interval: Interval | None) -> Cell:
    """Return the cell of a measured number with its interval, or a dash with the reason."""
    return with_interval(number_cell(value, because), interval, lambda end: number_cell(end, ""))


def count_cell(value: int) -> Cell:
    """Return the cell of a whole number, written in full."""
    return Cell(f"{value:,}", exact=str(value))


def load_value(value: float) -> Cell:
    """Return the cell of a load in requests in flight, which may lie between two levels."""
    return Cell(whole_or_tenths(value), exact=repr(value))


def money_cell(value: float | None, because: str) -> Cell:
    """Return the cell of an amount of US dollars, or a dash with the reason."""
    return missing_cell(because) if value is None else Cell(usd(value), exact=repr(value))


def share_cell(value: float) -> Cell:
    """Return the cell of a share (0 to 1) in percent, one decimal."""
    return Cell(percent(value), exact=repr(value))


def percent(value: float) -> str:
    """Write a share in percent, one decimal; only 0 itself reads as 0."""
    if value == 0:
        return "0 %"
    return "<0.1 %" if value < 0.0005 else f"{value * 100:.1f} %"  # noqa: PLR2004 (half of 0.1 %)


def seconds(value_s: float) -> str:
    """Write a duration: `48.2 s`, `4 min 12 s`."""
    minutes, rest = divmod(round(value_s), 60)
    return f"{minutes} min {rest} s" if minutes else f"{value_s:.1f} s"


def drawn(levels: Sequence[OfLevelT]) -> tuple[OfLevelT, ...]:
    """Return the levels that a chart draws one by one: all, or as many as can be told apart, with first and last."""
    if len(levels) <= MOST_DRAWN:
        return tuple(levels)
    last = len(levels) - 1
    return tuple(levels[round(index * last / (MOST_DRAWN - 1))] for index in range(MOST_DRAWN))


def drawn_of(count: int) -> str:
    """Return how many levels are drawn, as a sentence; empty where all are."""
    return f"Of {count:,} levels, {MOST_DRAWN} are drawn; the table has all." if count > MOST_DRAWN else ""


def load_name(concurrency: int, rate_per_s: float | None) -> Cell:
    """Return a level's concurrency, of an open loop with its rate."""
    cell = count_cell(concurrency)
    return cell if rate_per_s is None else replace(cell, text=f"{cell.text} at {rate_per_s:.3g}/s")


def level_name(level: LevelResult) -> Cell:
    """Return a level's concurrency, of an open loop with its rate, with a ring when it is void or cut."""
    cell = load_name(level.concurrency, level.offered_requests_per_s)
    return cell if level.valid else replace(cell, text=f"○ {cell.text}")


def why_missing(level: LevelResult, otherwise: str) -> str:
    """Return why a level lacks a value: nothing succeeded there, or the reason given."""
    return f"{NO_SUCCESS} at {level.concurrency}" if not level.succeeded else otherwise


def signed_percent(share: float) -> str:
    """Write a relative change in percent with its sign, one decimal."""
    return f"{share * 100:+.1f} %".replace("-", "−")  # noqa: RUF001 (the minus sign, as wide as the plus)


def sentence(clause: str) -> str:
    """Return a clause of a result as a sentence: metrics by their names, its first letter raised, and a full stop.

    Of nothing it makes nothing.
    """
    text = plain(clause)
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def plain(text: str) -> str:
    """Write a text of a result with the names of metrics instead of those of its fields."""
    return _FIELD.sub(lambda match: _FIELDS[match[1]], text)


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
    """Write a measured value as the verdict's sentences do, fine enough to compare with its bound."""
    return fine_percent(value) if metric == "error_rate" else f"{tenths(value, grouped=True)} {_unit(metric)}"


def _unit(metric: Metric) -> str:
    return "tok/s" if metric == "output_tok_s" else "ms"
