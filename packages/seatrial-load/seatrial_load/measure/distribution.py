"""What is shown of many measurements of one thing."""

from __future__ import annotations

import math
from collections.abc import Mapping  # noqa: TC003 (the strict reader resolves the fields' types)
from dataclasses import dataclass, field
from typing import Protocol


class Ranked(Protocol):
    """Values in ascending order, found by rank from 0."""

    def __len__(self) -> int:
        """Return how many there are."""

    def __getitem__(self, rank: int, /) -> float:
        """Return one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Where the true value lies with 95 % confidence; None is a bound that so few measurements can't give."""

    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Count, mean, percentiles and maximum, in the unit of the metric.

    Attributes:
        intervals: The two-sided 95 % interval of `mean`, `p50`, `p90`, `p95` and `p99`, by name; none of gaps between
            tokens, since those of one answer hang together.
        histogram: All measurements as an HDR histogram of microseconds, three significant digits, in its compressed
            standard encoding (V2, base64); empty when none was kept.
    """

    count: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    histogram: str = ""


def percentile(ordered: Ranked, percent: float) -> float:
    """Return the percentile of sorted, non-empty values by linear interpolation between the closest ranks.

    Position (n - 1) x percent / 100, counted from 0: numpy's default, Hyndman and Fan's type 7, what vLLM's benchmark
    reports. Few values make a high percentile nearly the maximum.
    """
    position = (len(ordered) - 1) * percent / 100
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)
