from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.knee import best_bend, two_segment_knee
from seatrial_load.measure.curves import Reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.result import LevelResult

    MakeLevel = Callable[..., LevelResult]


def two_lines(load: float, *, at: float, height: float, first: float, second: float) -> float:
    return height + (first if load < at else second) * (load - at)


def test_lines_that_meet_between_two_levels(level: MakeLevel) -> None:
    # 100 tok/s for each of the first 12 requests in flight, 5 for each further one
    loads = (1, 2, 4, 8, 16, 32, 64)
    levels = [level(load, output_tok_s=two_lines(load, at=12, height=1_200, first=100, second=5)) for load in loads]
    knee = two_segment_knee(levels)
    assert (knee.detector, knee.concurrency) == ("two_segment", 12)
    assert knee.because == (
        "two lines fit the throughput and meet at 12.0 per copy: from 100.0 to 5.0 tok/s per further concurrent request"
    )


def test_lines_that_meet_on_a_level(level: MakeLevel) -> None:
    levels = [level(load, output_tok_s=30.0 * min(load, 16)) for load in (1, 4, 16, 32, 64)]
    assert two_segment_knee(levels).concurrency == 16


def test_one_line_is_no_knee(level: MakeLevel) -> None:
    # the line is 100 C; each level is off by 2 tok/s
    levels = [level(load, output_tok_s=100.0 * load + off) for load, off in ((1, 2), (2, -2), (3, -2), (4, 2))]
    knee = two_segment_knee(levels)
    assert knee.concurrency is None
    assert knee.because == ("one line fits the throughput between 1 and 4 per copy, mean error 2.0 tok/s")


def test_a_throughput_that_rises_ever_faster_is_no_knee(level: MakeLevel) -> None:
    knee = two_segment_knee([level(load, output_tok_s=10.0 * load**2) for load in (1, 2, 4, 8, 16)])
    assert (knee.concurrency, knee.because) == (None, "throughput growth does not slow between 1 and 16 per copy")


def test_three_levels_are_too_few(level: MakeLevel) -> None:
    levels = [level(load, output_tok_s=100.0) for load in (1, 2, 4)]
    assert two_segment_knee([*levels, level(8, output_tok_s=None)]).because == (
        "3 levels with a throughput; 4 are needed"
    )


@given(
    at=st.floats(9, 60),
    height=st.floats(100, 5_000),
    first=st.floats(5, 500),
    flatter=st.floats(-0.5, 0.4),
)
def test_two_exact_lines_are_found_wherever_they_meet(at: float, height: float, first: float, flatter: float) -> None:
    points = [
        Reading(load=load, value=two_lines(load, at=at, height=height, first=first, second=first * flatter))
        for load in (1, 3, 6, 9, 20, 40, 60, 90, 128)
    ]
    found = best_bend(points)
    assert found.concurrency == pytest.approx(at, rel=1e-4)
    assert found.first_slope == pytest.approx(first, rel=1e-4)


@given(st.lists(st.floats(1, 1_000), min_size=4, max_size=9))
def test_no_breakpoint_of_a_fine_grid_is_better(throughputs: list[float]) -> None:
    points = [Reading(load=2**power, value=tok_s) for power, tok_s in enumerate(throughputs)]
    best = best_bend(points).squares
    low, high = points[1].load, points[-2].load
    grid = [low + (high - low) * step / 50 for step in range(51)]
    assert best <= min(squares_with_a_bend_at(at, points) for at in grid) * (1 + 1e-6) + 1e-6


def squares_with_a_bend_at(at: float, points: list[Reading]) -> float:
    """Solve least squares of y = h + a min(u, 0) + b max(u, 0) by its normal equations; u = C - at."""
    rows = [(1.0, min(p.load - at, 0.0), max(p.load - at, 0.0)) for p in points]
    ys = [p.value for p in points]
    matrix = [
        [math.fsum(row[i] * row[j] for row in rows) for j in range(3)]
        + [math.fsum(row[i] * y for row, y in zip(rows, ys, strict=True))]
        for i in range(3)
    ]
    for pivot in range(3):
        for other in range(3):
            if other != pivot:
                factor = matrix[other][pivot] / matrix[pivot][pivot]
                matrix[other] = [a - factor * b for a, b in zip(matrix[other], matrix[pivot], strict=True)]
    h, a, b = (matrix[i][3] / matrix[i][i] for i in range(3))
    return math.fsum((y - h - a * row[1] - b * row[2]) ** 2 for row, y in zip(rows, ys, strict=True))


def test_rates_with_the_same_number_in_flight_are_one_level(level: MakeLevel) -> None:
    """An open loop's levels are rates; those of a fast server all have one request in flight."""
    knee = two_segment_knee([level(1, output_tok_s=10.0 * rate, offered_requests_per_s=rate) for rate in (1, 2, 4, 8)])
    assert knee.because == "1 levels with a throughput; 4 are needed"
