from __future__ import annotations

import pytest

from seatrial_load.documents.result import Interval
from seatrial_load.measure.crossing import Reading
from seatrial_load.measure.saturation import FILLED, saturation

ALONE, EACH = 1.0, 0.1  # seconds per token of one stream, and for each request in flight


def read(load: float, off: float = 0.0, slower: float = 1.0) -> Reading:
    value = load / (ALONE + EACH * load) / slower
    return Reading(load=load, value=value, interval=Interval(low=value * (1 - off), high=value * (1 + off)))


def test_growing_throughput_may_fill_up_to_its_asymptote() -> None:
    found = saturation([read(load) for load in (1, 4, 16)])
    assert found is not None
    assert found.load == pytest.approx(16.0)
    assert found.at_most == pytest.approx(FILLED * (ALONE + EACH) / EACH)


def test_what_levels_leave_in_doubt_may_be_more() -> None:
    """Three levels of an endpoint that fills at 20 said 16 by chance, and the search ended at the gate."""
    sure, unsure = (saturation([read(load, off) for load in (1, 4, 16)]) for off in (0.0, 0.1))
    assert sure is not None
    assert unsure is not None
    assert unsure.load == sure.load
    assert unsure.at_most > 1.1 * sure.at_most


def test_where_it_stopped_growing_it_is_that_of_the_fit_and_not_of_the_highest_level() -> None:
    """380 tok/s at 16, as at 8, made 16 the knee; another trial that measured 32 said 20."""
    found = saturation([Reading(load=load, value=min(load, 6.0)) for load in (1, 2, 4, 8, 16)])
    assert found is not None
    assert found.load == 16.0
    assert found.at_most == pytest.approx(18.0, abs=0.3)


def test_a_fall_bounds_it() -> None:
    found = saturation([read(1), read(2), read(4), read(8), read(16, slower=2.0)])
    assert found is not None
    assert found.falls_between == (8, 16)
    assert found.at_most == found.load
