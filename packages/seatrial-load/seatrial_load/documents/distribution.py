"""The distribution of measurements of one kind, and the interval of a number."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 (the strict reader resolves the fields' types)
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The range of the true value with 95 % confidence; None is a bound that too few measurements can't give."""

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
