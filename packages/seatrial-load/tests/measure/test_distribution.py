from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.measure.interval import percentile


def test_linear_interpolation_between_ranks() -> None:
    # five values: p90 lies at rank (5 - 1) x 0.9 = 3.6, so 40 + 0.6 x (100 - 40) = 76
    assert percentile([10.0, 20.0, 30.0, 40.0, 100.0], 90) == pytest.approx(76.0)


@given(st.lists(st.floats(min_value=0, max_value=1e6), min_size=1), st.sampled_from([50, 90, 95, 99]))
def test_percentiles_are_numpys_default(values: list[float], percent: int) -> None:
    assert percentile(sorted(values), percent) == pytest.approx(float(np.percentile(values, percent)))
