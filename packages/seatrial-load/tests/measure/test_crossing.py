from __future__ import annotations

import pytest

from seatrial_load.measure.crossing import Reading, crossing, saturation


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


def test_an_endpoint_saturates_where_its_unloaded_pace_would_give_its_highest_throughput() -> None:
    found = saturation(readings((1, 50.0), (8, 350.0), (64, 1_000.0), (128, 900.0)))
    assert found is not None
    assert (found.load, found.is_reached) == (19.0, True)  # 950 / 50: both levels are full


def test_one_level_above_the_others_does_not_move_the_load_by_itself() -> None:
    quiet = saturation(readings((1, 50.0), (8, 350.0), (64, 1_000.0), (128, 1_000.0)))
    noisy = saturation(readings((1, 50.0), (8, 350.0), (64, 1_000.0), (128, 1_080.0)))
    assert quiet is not None
    assert noisy is not None
    assert noisy.load / quiet.load == pytest.approx(1.04)


def test_the_unloaded_pace_is_that_of_all_levels_on_which_throughput_rises() -> None:
    """Latency is 1 s + 0.1 s for each in flight; that of a single request was measured a tenth too long."""
    pairs = [(load, load / (1 + 0.1 * load)) for load in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)]
    exact = saturation(readings(*pairs))
    noisy = saturation(readings((1.0, pairs[0][1] / 1.1), *pairs[1:]))
    assert exact is not None
    assert noisy is not None
    assert exact.load == pytest.approx(1.1 * exact.highest.value)
    assert 1 < noisy.load / exact.load < 1.05


def test_where_noise_turns_the_line_downward_the_lowest_level_says_the_pace() -> None:
    found = saturation(readings((1, 50.0), (2, 120.0), (4, 260.0), (64, 1_000.0)))
    assert found is not None
    assert found.load == 20.0


def test_a_throughput_in_proportion_to_the_load_saturates_nowhere_below_the_highest() -> None:
    found = saturation(readings((2, 100.0), (4, 200.0), (8, 400.0)))
    assert found is not None
    assert (found.load, found.is_reached) == (8.0, False)


def test_nothing_measured_saturates_nowhere() -> None:
    assert saturation([]) is None
    assert saturation(readings((1, 0.0))) is None
