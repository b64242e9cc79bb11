from __future__ import annotations

from dataclasses import replace

import pytest

from seatrial_load.documents.distribution import Interval
from seatrial_load.measure.curves import Reading, crossing


def readings(*pairs: tuple[float, float]) -> list[Reading]:
    return [Reading(load=load, value=value) for load, value in pairs]


def test_a_power_law_is_crossed_exactly() -> None:
    every = readings((1, 3.0), (4, 6.0), (16, 12.0))  # 3 x the square root of the load
    assert crossing(every, every[1], every[2], 9.0).load == pytest.approx(9.0)


def test_levels_near_the_bracket_steady_the_line() -> None:
    """The line through the bracket's ends alone would believe both of them."""
    every = readings((8, 80.0), (10, 100.0), (12, 125.0), (14, 140.0), (16, 160.0))  # the level at 12 is noisy
    alone = crossing([every[1], every[2]], every[1], every[2], 115.0).load
    steadied = crossing(every, every[1], every[2], 115.0).load
    assert abs(steadied - 11.5) < abs(alone - 11.5)


def test_the_crossing_lies_between_the_loads_that_enclose_it() -> None:
    every = readings((6, 99.0), (8, 99.0), (10, 101.0), (12, 300.0))
    assert 8 <= crossing(every, every[1], every[2], 100.0).load <= 10


def test_a_metric_that_shall_not_fall_is_crossed_from_above() -> None:
    every = readings((2, 50.0), (8, 12.5))
    assert crossing(every, every[0], every[1], 25.0).load == pytest.approx(4.0)


def test_an_end_that_is_not_proven_may_be_left() -> None:
    """At 10 in flight the bound lies in the level's interval; levels around say that it is reached beyond."""
    every = readings((6, 60.0), (8, 80.0), (10, 104.0), (12, 116.0), (14, 139.0))
    unproven = replace(every[2], interval=Interval(low=90.0, high=118.0))
    assert crossing(every, every[1], every[2], 103.0).load <= 10
    assert 10 < crossing([*every[:2], unproven, *every[3:]], every[1], unproven, 103.0).load <= 12


BOUND = 100.0


def read(load: float, value: float, off: float = 0.1) -> Reading:
    """A latency, off by a tenth at most."""
    return Reading(load=load, value=value, interval=Interval(low=value * (1 - off), high=value * (1 + off)))


def test_a_line_that_passes_a_sure_miss_is_not_believed() -> None:
    """The line reaches the bound at 26, which 22 surely misses: all that is known is that it lies between 20 and 22."""
    measured = [read(10, 100, 0.02), read(20, 190, 0.02), read(22, 260, 0.02), read(40, 390, 0.02)]
    found = crossing(measured, measured[1], measured[2], 250.0)
    assert 20 < found.load < 22
    assert found.interval == Interval(low=20.0, high=22.0)


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
    held, missed = read(8, 99), read(9, 101)
    interval = crossing([held, missed], held, missed, BOUND).interval
    assert interval is not None
    assert interval.low == pytest.approx(8 / 1.2)
    assert interval.high == pytest.approx(9 * 1.2)
