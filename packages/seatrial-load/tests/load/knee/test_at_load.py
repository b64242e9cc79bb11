from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_load.documents.distribution import Interval
from seatrial_load.knee.scaling_target import at_load
from tests.load.conftest import lagging

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.result import LevelResult

    MakeLevel = Callable[..., LevelResult]


def test_at_a_measured_level_it_is_that_levels(level: MakeLevel) -> None:
    point = at_load([level(2, output_tok_s=10.0), level(4, output_tok_s=30.0)], 4)
    assert point is not None
    assert point.output_tok_s == 30.0


def test_between_two_levels_it_lies_on_the_line_of_the_logarithms_and_so_does_the_interval(level: MakeLevel) -> None:
    levels = [
        level(2, output_tok_s=100.0, output_tok_s_interval=Interval(low=90.0, high=110.0)),
        level(8, output_tok_s=400.0, output_tok_s_interval=Interval(low=360.0, high=440.0)),
    ]
    point = at_load(levels, 4)
    assert point is not None
    assert point.throughput is not None
    assert point.throughput.value == pytest.approx(200.0)
    interval = point.throughput.interval
    assert interval is not None
    assert interval.low == pytest.approx(180.0)
    assert interval.high == pytest.approx(220.0)


def test_a_share_that_begins_at_0_is_interpolated_too(level: MakeLevel) -> None:
    point = at_load([level(2, requests=100, succeeded=100), level(8, requests=100, succeeded=90)], 4)
    assert point is not None
    assert point.errors is not None
    assert point.errors.value == pytest.approx(0.05)


@pytest.mark.parametrize(("load", "tok_s"), [(1, 10.0), (64, 30.0)])
def test_outside_of_what_was_measured_it_is_the_nearest_levels(level: MakeLevel, load: int, tok_s: float) -> None:
    point = at_load([level(2, output_tok_s=10.0), level(4, output_tok_s=30.0)], load)
    assert point is not None
    assert point.output_tok_s == tok_s


def test_a_level_that_did_not_measure_a_metric_is_passed_over(level: MakeLevel) -> None:
    point = at_load([level(2, ttft_ms=100.0), level(4, ttft_ms=None), level(8, ttft_ms=400.0)], 4)
    assert point is not None
    assert point.ttft_p95_ms is not None
    assert point.ttft_p95_ms.value == pytest.approx(200.0)


def test_void_levels_and_those_without_a_success_tell_nothing(level: MakeLevel) -> None:
    assert (
        at_load(
            [level(2, void=lagging("the client lagged")), level(4, succeeded=0)],
            4,
        )
        is None
    )
