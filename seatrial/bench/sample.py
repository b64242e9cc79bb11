"""Many measurements of one thing, in a form that can be shipped, merged and summed up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.bench.hdr import HIGHEST_US, Histogram
from seatrial.measure.distribution import Distribution, Interval, percentile
from seatrial.measure.interval import BOTH_TAILS, mean_interval, percentile_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seatrial.measure.distribution import Ranked

US_PER_MS = 1_000.0
PERCENTS: Mapping[str, float] = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Measurements in milliseconds: exact sums and extremes, the rest in a histogram.

    Attributes:
        count: How many there are, at least one.
        total_ms: Their sum.
        total_squares_ms2: The sum of their squares.
        min_ms: The least.
        max_ms: The greatest.
        histogram: All of them, as in `Distribution.histogram`.
    """

    count: int
    total_ms: float
    total_squares_ms2: float
    min_ms: float
    max_ms: float
    histogram: str


def sample_of(values_ms: Sequence[float]) -> Sample | None:
    """Take measurements together; None when there are none."""
    if not values_ms:
        return None
    histogram = Histogram()
    for value_ms in values_ms:
        histogram.add(value_ms * US_PER_MS)
    return Sample(
        count=len(values_ms),
        total_ms=math.fsum(values_ms),
        total_squares_ms2=math.fsum(value_ms * value_ms for value_ms in values_ms),
        min_ms=min(values_ms),
        max_ms=max(values_ms),
        histogram=histogram.encode(),
    )


def merged(samples: Sequence[Sample | None]) -> Sample | None:
    """Take the measurements of several together; None when none has any."""
    known = [sample for sample in samples if sample is not None]
    if len(known) <= 1:
        return known[0] if known else None
    histogram = Histogram()
    for sample in known:
        histogram.merge(Histogram.decode(sample.histogram))
    return Sample(
        count=sum(sample.count for sample in known),
        total_ms=math.fsum(sample.total_ms for sample in known),
        total_squares_ms2=math.fsum(sample.total_squares_ms2 for sample in known),
        min_ms=min(sample.min_ms for sample in known),
        max_ms=max(sample.max_ms for sample in known),
        histogram=histogram.encode(),
    )


def distribution_of(sample: Sample | None, *, independent: bool = True) -> Distribution | None:
    """Sum up a sample; None without one.

    Count, mean and maximum are exact. Percentiles are interpolated between the closest ranks (`percentile`), with the
    histogram's values: they are within 0.1 % of the exact ones, or within half a microsecond.

    Args:
        sample: The measurements.
        independent: Whether they come from different requests. The gaps of one answer don't, so they get no intervals.
    """
    if sample is None:
        return None
    ordered = _Milliseconds(
        Histogram.decode(sample.histogram).ranked(
            lowest_us=sample.min_ms * US_PER_MS, highest_us=sample.max_ms * US_PER_MS
        )
    )
    return Distribution(
        count=sample.count,
        mean=sample.total_ms / sample.count,
        p50=percentile(ordered, 50),
        p90=percentile(ordered, 90),
        p95=percentile(ordered, 95),
        p99=percentile(ordered, 99),
        max=sample.max_ms,
        intervals=_intervals(sample, ordered) if independent else {},
        histogram=sample.histogram,
    )


def percentile_bounds(values: Distribution, percent: float, *, tail: float) -> Interval | None:
    """Bound a percentile of a distribution with other confidence than its own intervals; None without a histogram."""
    if not values.histogram:
        return None
    ranked = Histogram.decode(values.histogram).ranked(highest_us=min(values.max * US_PER_MS, HIGHEST_US))
    return percentile_interval(_Milliseconds(ranked), percent, tail=tail)


@dataclass(frozen=True, slots=True)
class _Milliseconds:
    ranked_us: Ranked

    def __len__(self) -> int:
        return len(self.ranked_us)

    def __getitem__(self, rank: int, /) -> float:
        return self.ranked_us[rank] / US_PER_MS


def _intervals(sample: Sample, ordered: Ranked) -> dict[str, Interval]:
    mean = sample.total_ms / sample.count
    variance = (sample.total_squares_ms2 - sample.total_ms * mean) / (sample.count - 1) if sample.count > 1 else 0.0
    deviation = math.sqrt(max(variance, 0.0))  # equal values leave a rounding error, which may be below 0
    of_mean = mean_interval(mean=mean, deviation=deviation, count=sample.count, tail=BOTH_TAILS)
    of_percentiles = {
        name: percentile_interval(ordered, percent, tail=BOTH_TAILS) for name, percent in PERCENTS.items()
    }
    return {"mean": of_mean, **of_percentiles}
