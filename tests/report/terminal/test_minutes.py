from __future__ import annotations

import pytest

from seatrial_base.units import minutes


@pytest.mark.parametrize(
    ("seconds", "written"), [(0.4, "0 s"), (2.0, "2 s"), (59.6, "1:00 min"), (65.0, "1:05 min"), (3_600.0, "60:00 min")]
)
def test_a_time_below_a_minute_is_written_in_seconds(seconds: float, written: str) -> None:
    """It read `0:02 min gone`."""
    assert minutes(seconds) == written
