from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.bench.knee import kneedle_knee, slo_knee

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.result import LevelResult

    MakeLevel = Callable[..., LevelResult]


def curve(level: MakeLevel, points: dict[int, float | None]) -> list[LevelResult]:
    return [level(concurrency, output_tok_s=tok_s) for concurrency, tok_s in points.items()]


def test_slo_knee_is_the_last_level_before_the_first_miss(level: MakeLevel) -> None:
    missed = level(4, meets_slo=False, misses=("ttft_ms p95 812.0 ms exceeds 500.0 ms at concurrency 4 per copy",))
    knee = slo_knee([level(1), level(2), missed, level(8)])
    assert (knee.detector, knee.concurrency) == ("slo", 2)
    assert knee.because == "ttft_ms p95 812.0 ms exceeds 500.0 ms at concurrency 4 per copy"


def test_slo_held_everywhere(level: MakeLevel) -> None:
    knee = slo_knee([level(1), level(2)])
    assert (knee.concurrency, knee.because) == (2, "every level meets the SLO up to 2 per copy, the highest measured")


def test_slo_missed_from_the_start(level: MakeLevel) -> None:
    knee = slo_knee([level(1, meets_slo=False, misses=("too slow",)), level(2)])
    assert (knee.concurrency, knee.because) == (None, "the lowest level misses the SLO: too slow")


def test_nothing_measured() -> None:
    assert slo_knee([]).because == "no level was measured"
    assert kneedle_knee([]).concurrency is None


def test_kneedle_finds_the_corner_of_a_saturating_curve(level: MakeLevel) -> None:
    # x = 0, 1/31, 3/31, 7/31, 15/31, 1; y = (tok/s - 100) / 700 = 0, .143, .429, 1, 1, 1
    # d = y - x = 0, .111, .332, .774, .516, 0: maximum at 8; falls below .774 - 1/5 = .574 at 16
    knee = kneedle_knee(curve(level, {1: 100.0, 2: 200.0, 4: 400.0, 8: 800.0, 16: 800.0, 32: 800.0}))
    assert (knee.detector, knee.concurrency) == ("kneedle", 8)
    assert knee.because == "throughput bends at 8 per copy with 800.0 tok/s"


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
    assert knee.because == "2 levels with a throughput are too few, 3 are needed"
