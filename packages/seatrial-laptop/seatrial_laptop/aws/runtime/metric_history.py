"""The metrics of `AWS/SageMaker` in virtual time: what alarms and target tracking see."""

from __future__ import annotations

import math
import re
import threading
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

SAMPLE_S: Final = 10.0
"""Virtual seconds between two samples."""
KEPT_S: Final = 3 * 3600.0
"""Virtual seconds that samples are kept, as long as CloudWatch keeps those of high resolution."""

Dimensions = frozenset[tuple[str, str]]
"""Names and values; their order means nothing."""
Values = Mapping[str, Sequence[float]]
"""Every value of each metric within one sample."""


@dataclass(frozen=True, slots=True)
class MetricSample:
    """The values of the ten virtual seconds that end at `end_s`."""

    end_s: float
    values: Values


@dataclass(slots=True)
class MetricHistory:
    """The samples of every set of dimensions, oldest first; threads may share it."""

    _samples: defaultdict[Dimensions, deque[MetricSample]] = field(default_factory=lambda: defaultdict(deque))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, dimensions: Dimensions, end_s: float, values: Values) -> None:
        """Keep a sample, and forget those that are too old."""
        with self._lock:
            samples = self._samples[dimensions]
            samples.append(MetricSample(end_s, values))
            while samples[0].end_s <= end_s - KEPT_S:
                samples.popleft()

    def forget(self, dimensions: Dimensions) -> None:
        """Forget the samples of what was deleted; its successor of the same name starts without."""
        with self._lock:
            self._samples.pop(dimensions, None)

    def values(self, dimensions: Dimensions, metric: str, *, after_s: float, until_s: float) -> list[float]:
        """Return the values of a metric in the samples that end after one moment and until another."""
        with self._lock:
            samples = [each for each in self._samples.get(dimensions, ()) if after_s < each.end_s <= until_s]
        return [value for each in samples for value in each.values.get(metric, ())]


def metric_dimensions(pairs: Sequence[Mapping[str, object]]) -> Dimensions:
    """Return the dimensions of a list of `Name` and `Value`, as the API writes them."""
    return frozenset((str(pair["Name"]), str(pair["Value"])) for pair in pairs)


def statistic(name: str, values: Sequence[float]) -> float | None:
    """Return a statistic of the values, a percentile (`p95`, `p99.9`) too; None without values.

    Percentiles are interpolated between the two nearest ranks.

    Raises:
        ValueError: There is no such statistic here.
    """
    if not is_statistic(name):
        raise ValueError(f"the embedded AWS has no statistic {name}")
    if not values:
        return None
    if simple := SIMPLE.get(name):
        return simple(values)
    return _percentile(float(name.removeprefix("p")), sorted(values))


def is_statistic(name: str) -> bool:
    """Return whether a statistic is computed here."""
    return name in SIMPLE or PERCENTILE.fullmatch(name) is not None


def _sum(values: Sequence[float]) -> float:
    return math.fsum(values)


def _maximum(values: Sequence[float]) -> float:
    return max(values)


def _minimum(values: Sequence[float]) -> float:
    return min(values)


def _average(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _count(values: Sequence[float]) -> float:
    return float(len(values))


SIMPLE: Final = {"Sum": _sum, "Maximum": _maximum, "Minimum": _minimum, "Average": _average, "SampleCount": _count}
"""Every statistic that isn't a percentile."""


PERCENTILE: Final = re.compile(r"p(\d{1,2}(\.\d{1,10})?|100)")


def _percentile(percent: float, ordered: Sequence[float]) -> float:
    rank = percent / 100 * (len(ordered) - 1)
    low, high = ordered[math.floor(rank)], ordered[math.ceil(rank)]
    return low + (high - low) * (rank - math.floor(rank))
