from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.bench.distribution import Distribution, distribution, percentile


def test_nothing_measured_is_none() -> None:
    assert distribution([]) is None


def test_one_value_is_every_statistic() -> None:
    assert distribution([3.0]) == Distribution(count=1, mean=3.0, p50=3.0, p90=3.0, p95=3.0, p99=3.0, max=3.0)


def test_linear_interpolation_between_ranks() -> None:
    # five values: p90 lies at rank (5 - 1) x 0.9 = 3.6, so 40 + 0.6 x (100 - 40) = 76
    assert percentile([10.0, 20.0, 30.0, 40.0, 100.0], 90) == pytest.approx(76.0)


def test_order_does_not_matter() -> None:
    summary = distribution([3.0, 1.0, 2.0])
    assert summary is not None
    assert (summary.count, summary.mean, summary.p50, summary.max) == (3, 2.0, 2.0, 3.0)


@given(st.lists(st.floats(min_value=0, max_value=1e6), min_size=1), st.sampled_from([50, 90, 95, 99]))
def test_percentiles_are_numpys_default(values: list[float], percent: int) -> None:
    assert percentile(sorted(values), percent) == pytest.approx(float(np.percentile(values, percent)))
