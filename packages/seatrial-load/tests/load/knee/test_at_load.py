from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.documents.distribution import Interval
from seatrial_load.knee import at_load, interpolated
from seatrial_load.measure.curves import Reading
from tests.load.conftest import flat, lagging

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


def test_each_metric_is_its_own(level: MakeLevel) -> None:
    measured = level(
        4, requests=8, succeeded=6, ttft_ms=None, tpot_ms=flat(21.0), e2e_latency_ms=flat(501.0), output_tok_s=81.0
    )
    point = at_load([measured], 4)
    assert point is not None
    assert (point.ttft_p50_ms, point.ttft_p95_ms) == (None, None)
    told = (point.throughput, point.tpot_p95_ms, point.e2e_p95_ms, point.errors)
    assert [one and one.value for one in told] == [81.0, 21.0, 501.0, 0.25]
    point = at_load([level(4, ttft_ms=101.0)], 4)
    assert point is not None
    assert [one and one.value for one in (point.ttft_p50_ms, point.ttft_p95_ms)] == [101.0, 101.0]


def plainly(measured: list[tuple[float, float]], load: float) -> float:
    """What `interpolated` promises, by its words: the load's own value, the nearest one outside, else on the line."""
    for at, value in measured:
        if at == load:
            return value
    if load < measured[0][0]:
        return measured[0][1]
    for (low, first), (high, second) in pairwise(measured):
        if low < load < high:
            share = (math.log(load) - math.log(low)) / (math.log(high) - math.log(low))
            if first and second:
                return math.exp((1 - share) * math.log(first) + share * math.log(second))
            return (1 - share) * first + share * second
    return measured[-1][1]


VALUES = st.one_of(st.just(0.0), st.floats(0.001, 1e4))


@given(st.dictionaries(st.integers(1, 64), VALUES, min_size=1, max_size=5), st.integers(1, 64))
def test_it_is_what_the_plain_definition_says(measured: dict[int, float], load: int) -> None:
    levels = sorted((float(at), value) for at, value in measured.items())
    found = interpolated([Reading(load=at, value=value) for at, value in levels], load)
    assert found is not None
    assert found.value == pytest.approx(plainly(levels, load), rel=1e-6, abs=1e-9)


def test_a_metric_between_a_value_and_0_falls_on_the_straight_line() -> None:
    found = interpolated([Reading(load=2.0, value=0.2), Reading(load=8.0, value=0.0)], 4.0)
    assert found is not None
    assert found.value == pytest.approx(0.1)


BOTH = Interval(low=90.0, high=110.0)


@pytest.mark.parametrize(
    ("below", "above", "between"),
    [
        (None, BOTH, None),
        (BOTH, None, None),
        (BOTH, BOTH, BOTH),
        (Interval(low=None, high=110.0), BOTH, Interval(low=None, high=110.0)),
        (BOTH, Interval(low=None, high=110.0), Interval(low=None, high=110.0)),
        (BOTH, Interval(low=90.0, high=None), Interval(low=90.0, high=None)),
    ],
)
def test_an_end_of_an_interval_is_known_between_two_levels_that_both_know_it(
    below: Interval | None, above: Interval | None, between: Interval | None
) -> None:
    readings = [Reading(load=2.0, value=100.0, interval=below), Reading(load=8.0, value=100.0, interval=above)]
    found = interpolated(readings, 4.0)
    assert found is not None
    assert found.interval == between
