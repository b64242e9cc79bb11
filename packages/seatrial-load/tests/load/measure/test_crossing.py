from __future__ import annotations

import pytest

from seatrial_load.documents.result import Interval
from seatrial_load.measure.crossing import Reading, crossing

BOUND = 100.0


def read(load: float, value: float, off: float = 0.1) -> Reading:
    """A latency, off by a tenth at most."""
    return Reading(load=load, value=value, interval=Interval(low=value * (1 - off), high=value * (1 + off)))


def test_a_level_in_doubt_may_lie_on_either_side() -> None:
    """One level of 7 that was slow by chance held the knee at 8.4, though 8, 10 and 12 were fast enough."""
    measured = [read(6, 70), read(7, 101), read(8, 84), read(10, 92), read(12, 98), read(16, 120)]
    found = crossing(measured, measured[0], measured[1], BOUND)
    assert 10 < found.load < 12


def test_it_lies_between_the_loads_that_are_beyond_doubt() -> None:
    measured = [read(4, 50), read(6, 104, 0.01), read(8, 60), read(12, 70)]
    found = crossing(measured, measured[0], measured[1], BOUND)
    assert found.load <= 6


def test_more_levels_make_its_interval_narrower() -> None:
    few = [read(8, 80), read(12, 120)]
    many = [*few, *(read(load, 10 * load) for load in (9, 11, 13, 7))]
    widths = []
    for measured in (few, sorted(many, key=lambda one: one.load)):
        interval = crossing(measured, few[0], few[1], BOUND).interval
        assert interval is not None
        assert interval.low is not None
        assert interval.high is not None
        widths.append(interval.high - interval.low)
    assert widths[1] < 0.7 * widths[0]


def test_a_metric_that_may_not_rise_at_all_leaves_the_whole_range_open() -> None:
    measured = [read(8, 99), read(9, 101)]
    assert crossing(measured, *measured, BOUND).interval == Interval(
        low=pytest.approx(8 / 1.2), high=pytest.approx(9 * 1.2)
    )


def test_a_throughput_that_should_stay_above_its_bound() -> None:
    measured = [read(4, 200), read(8, 110), read(16, 60)]
    assert crossing(measured, measured[1], measured[2], BOUND).load == pytest.approx(8.9, abs=0.2)
