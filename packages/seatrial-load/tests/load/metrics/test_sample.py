from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.documents.distribution import Interval
from seatrial_load.metrics.aggregate import distribution_of, merged, sample_of
from seatrial_load.metrics.histogram import Histogram, percentile_bounds

LATENCIES_MS = st.lists(st.floats(min_value=0.05, max_value=60_000.0), min_size=1, max_size=60)


def test_nothing_measured_is_none() -> None:
    assert sample_of([]) is None
    assert distribution_of(None) is None
    assert merged([None, None]) is None


def test_one_value_is_every_statistic_and_nearly_no_interval() -> None:
    summary = distribution_of(sample_of([3_000.0]))
    assert summary is not None
    assert (summary.count, summary.mean, summary.p50, summary.p90, summary.p95, summary.p99, summary.max) == (
        (1,) + (3_000.0,) * 6
    )  # fmt: skip
    assert summary.intervals["mean"] == summary.intervals["p50"] == Interval(low=None, high=None)
    assert summary.intervals["p99"] == Interval(low=3_000.0, high=None)  # only one of a hundred lies above p99


def test_the_histogram_is_of_microseconds() -> None:
    summary = distribution_of(sample_of([0.5, 1.0, 1.0]))
    assert summary is not None
    assert Histogram.decode(summary.histogram).counts == {500: 1, 1_000: 2}


def test_intervals() -> None:
    summary = distribution_of(sample_of([float(number) for number in range(1, 11)]))
    assert summary is not None
    assert list(summary.intervals) == ["mean", "p50", "p90", "p95", "p99"]
    low, high = summary.intervals["mean"].low, summary.intervals["mean"].high
    assert (low, high) == pytest.approx((3.334, 7.666), abs=1e-3)  # 5.5 ± 2.262 x 3.028 / sqrt(10)
    median = summary.intervals["p50"]
    assert (median.low, median.high) == pytest.approx((2.0, 9.0), rel=1e-3)
    assert summary.intervals["p95"].high is None


def test_gaps_of_one_answer_are_not_independent_and_get_no_intervals() -> None:
    summary = distribution_of(sample_of([20.0] * 100), independent=False)
    assert summary is not None
    assert summary.intervals == {}


@given(LATENCIES_MS)
def test_mean_and_maximum_are_exact_and_percentiles_within_a_thousandth(values_ms: list[float]) -> None:
    summary = distribution_of(sample_of(values_ms))
    assert summary is not None
    assert summary.mean == math.fsum(values_ms) / len(values_ms)
    assert summary.max == max(values_ms)
    for percent, measured in ((50, summary.p50), (90, summary.p90), (95, summary.p95), (99, summary.p99)):
        assert measured == pytest.approx(float(np.percentile(values_ms, percent)), rel=1e-3, abs=5.1e-4)


@given(st.lists(LATENCIES_MS, min_size=1, max_size=5))
def test_merging_is_taking_together(shares: list[list[float]]) -> None:
    whole = sample_of([value for share in shares for value in share])
    together = merged([sample_of(share) for share in shares])
    assert whole is not None
    assert together is not None
    assert together.histogram == whole.histogram
    assert (together.count, together.min_ms, together.max_ms) == (whole.count, whole.min_ms, whole.max_ms)
    assert together.total_ms == pytest.approx(whole.total_ms, rel=1e-12)
    assert together.total_squares_ms2 == pytest.approx(whole.total_squares_ms2, rel=1e-12)


def test_bounds_at_another_confidence_come_from_the_histogram() -> None:
    summary = distribution_of(sample_of([float(number) for number in range(1, 46)]))
    assert summary is not None
    bounds = percentile_bounds(summary, 95, tail=0.1)
    assert bounds is not None
    assert (bounds.low, bounds.high) == pytest.approx((41.0, 45.0), rel=1e-3)
    surer = percentile_bounds(summary, 95, tail=0.05)
    assert surer is not None
    assert surer.low == pytest.approx(40.0, rel=1e-3)
    assert surer.high is None  # 59 requests would bound it from above
    assert percentile_bounds(replace(summary, histogram=""), 95, tail=0.1) is None
