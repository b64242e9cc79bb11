from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_load.knee import kneedle_knee, throughputs
from tests.load.conftest import lagging

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.result import LevelResult

    MakeLevel = Callable[..., LevelResult]


def curve(level: MakeLevel, points: dict[int, float | None]) -> list[LevelResult]:
    return [level(concurrency, output_tok_s=tok_s) for concurrency, tok_s in points.items()]


def test_nothing_measured() -> None:
    assert kneedle_knee([]).because == "0 levels with a throughput; 3 are needed"


def test_kneedle_finds_the_corner_of_a_saturating_curve(level: MakeLevel) -> None:
    # x = 0, 1/31, 3/31, 7/31, 15/31, 1; y = (tok/s - 100) / 700 = 0, .143, .429, 1, 1, 1
    # d = y - x = 0, .111, .332, .774, .516, 0: maximum at 8; falls below .774 - 1/5 = .574 at 16
    knee = kneedle_knee(curve(level, {1: 100.0, 2: 200.0, 4: 400.0, 8: 800.0, 16: 800.0, 32: 800.0}))
    assert (knee.detector, knee.concurrency) == ("kneedle", 8)
    assert knee.because == "throughput bends at 8 per copy, 800.0 tok/s"


def test_kneedle_on_a_measured_queueing_curve(level: MakeLevel) -> None:
    # x = 0, 3/31, 7/31, 15/31, 1; y = (tok/s - 77) / 87 = 0, .632, .816, .966, 1
    # d = 0, .535, .590, .482, 0: maximum at 8; falls below .590 - 1/4 = .340 at 32
    knee = kneedle_knee(curve(level, {1: 77.0, 4: 132.0, 8: 148.0, 16: 161.0, 32: 164.0}))
    assert knee.concurrency == 8


def test_kneedle_takes_the_peak_of_a_collapsing_curve(level: MakeLevel) -> None:
    assert kneedle_knee(curve(level, {1: 100.0, 2: 190.0, 4: 300.0, 8: 200.0, 16: 90.0})).concurrency == 4


@pytest.mark.parametrize(
    "points",
    [
        {1: 100.0, 2: 200.0, 4: 400.0, 8: 800.0},
        {1: 100.0, 2: 101.0, 4: 130.0, 8: 800.0},
        {1: 100.0, 2: 100.0, 4: 100.0},
    ],
    ids=["rising linearly", "rising ever faster", "flat"],
)
def test_no_knee_inside_the_range(level: MakeLevel, points: dict[int, float | None]) -> None:
    knee = kneedle_knee(curve(level, points))
    assert knee.concurrency is None
    assert knee.because == f"throughput does not bend between 1 and {max(points)} per copy"


def test_levels_without_throughput_do_not_count(level: MakeLevel) -> None:
    knee = kneedle_knee(curve(level, {1: 100.0, 2: None, 4: 110.0}))
    assert knee.because == "2 levels with a throughput; 3 are needed"


def test_a_level_that_the_client_limited_does_not_count(level: MakeLevel) -> None:
    levels = curve(level, {1: 100.0, 2: 200.0, 4: 400.0, 8: 800.0, 16: 800.0, 32: 800.0})
    void = level(4, output_tok_s=900.0, void=lagging("the client lagged"))
    assert kneedle_knee([*levels[:2], void, *levels[3:]]).concurrency == 8


@pytest.mark.parametrize("highest", [64, 128, 512])
def test_a_corner_stays_where_it_is_however_far_the_levels_go(level: MakeLevel, highest: int) -> None:
    loads = [2**power for power in range(highest.bit_length())]
    assert kneedle_knee([level(load, output_tok_s=30.0 * min(load, 16)) for load in loads]).concurrency == 16


def test_a_stretch_at_one_distance_has_no_corner(level: MakeLevel) -> None:
    # x = 0, 1/4, 1/2, 3/4, 1; y = (tok/s - 100) / 400 = 0, .5, .75, .7, 1; d = 0, .25, .25, -.05, 0
    assert kneedle_knee(curve(level, {1: 100.0, 2: 300.0, 3: 400.0, 4: 380.0, 5: 500.0})).concurrency is None


@pytest.mark.parametrize("order", [(30.0, 50.0, 40.0), (50.0, 30.0, 40.0), (30.0, 40.0, 50.0)])
def test_of_several_levels_at_one_load_the_highest_throughput_counts(
    level: MakeLevel, order: tuple[float, ...]
) -> None:
    found = throughputs([level(4, output_tok_s=tok_s) for tok_s in order])
    assert [(one.load, one.value) for one in found] == [(4.0, 50.0)]
