from __future__ import annotations

import math
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.specs.endpoint import WorkloadSpec
from seatrial_load.documents.arrivals import ARRIVALS, Arrivals, constant, gamma, poisson, ramp, recorded, replay
from seatrial_load.documents.request import Arrival

RATES = st.floats(min_value=0.01, max_value=200)
SECONDS = st.floats(min_value=0.1, max_value=30)


def test_a_constant_rate() -> None:
    assert constant(4, 1.0) == (0.0, 0.25, 0.5, 0.75)


def test_a_constant_rate_sends_at_once_however_low_it_is() -> None:
    assert constant(0.1, 5.0) == (0.0,)


def test_poisson_is_the_same_for_the_same_seed_only() -> None:
    assert poisson(10, 3.0, "level 1") == poisson(10, 3.0, "level 1")
    assert poisson(10, 3.0, "level 1") != poisson(10, 3.0, "level 2")


def test_poisson_has_the_rates_mean_and_an_exponentials_spread() -> None:
    """Over 20,000 s at 5/s: 100,000 expected, standard deviation 316; the gaps' deviation is their mean."""
    times = poisson(5, 20_000, "seed")
    assert abs(len(times) - 100_000) < 4 * math.sqrt(100_000)
    gaps = [after - before for before, after in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert mean == pytest.approx(0.2, rel=0.02)
    assert deviation == pytest.approx(0.2, rel=0.02)


@pytest.mark.parametrize("smoothness", [0.25, 1.0, 16.0])
def test_gamma_has_the_rates_mean_and_a_spread_of_its_smoothness(smoothness: float) -> None:
    """Over 4,000 s at 5/s; the gaps' coefficient of variation is 1 / the square root of the shape."""
    times = gamma(5, 4_000, "seed", smoothness=smoothness)
    gaps = [after - before for before, after in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert mean == pytest.approx(0.2, rel=0.05)
    assert deviation / mean == pytest.approx(smoothness**-0.5, rel=0.05)


def test_gamma_of_shape_one_is_poisson() -> None:
    assert gamma(10, 3.0, "seed", smoothness=1.0) == poisson(10, 3.0, "seed")


def test_a_ramp_from_zero_grows_with_the_square_of_time() -> None:
    """From 0 to 2/s over 10 s: t² / 10 are due by t, so request i comes at √(10 i)."""
    assert ramp(0, 2, 10) == pytest.approx([math.sqrt(10 * index) for index in range(10)])


def test_a_ramp_down_to_zero_is_a_ramp_up_seen_from_its_end() -> None:
    """From 2/s to 0 over 10 s: 2t - t²/10 are due by t; the last of ten waits for √10 before the end."""
    times = ramp(2, 0, 10)
    assert len(times) == 10
    assert times[9] == pytest.approx(10 - math.sqrt(10))


def test_a_level_ramp_is_a_constant_rate() -> None:
    assert ramp(4, 4, 1.0) == pytest.approx(constant(4, 1.0))


@given(first=RATES, last=RATES, seconds=SECONDS)
def test_by_each_time_of_a_ramp_as_many_requests_are_due_as_were_sent(
    first: float, last: float, seconds: float
) -> None:
    times = ramp(first, last, seconds)
    due = [first * at_s + (last - first) * at_s**2 / (2 * seconds) for at_s in times]
    assert due == pytest.approx(list(range(len(times))), abs=1e-6)
    assert len(times) == pytest.approx((first + last) / 2 * seconds, abs=1)


@given(rate=RATES, seconds=SECONDS)
def test_times_ascend_and_lie_in_the_level(rate: float, seconds: float) -> None:
    for times in (constant(rate, seconds), gamma(rate, seconds, "seed", smoothness=0.5), ramp(rate, 2 * rate, seconds)):
        assert list(times) == sorted(times)
        assert all(0 <= at_s < seconds + 1e-6 for at_s in times)


def test_recorded_times_come_at_the_rate_with_gaps_alike() -> None:
    """Four requests in 3 s, one a second on average, at two a second: half of each gap, again every 2 s."""
    assert recorded((0.0, 0.0, 1.0, 3.0), 2.0, 4.0) == (0.0, 0.0, 0.5, 1.5, 2.0, 2.0, 2.5, 3.5)


def test_what_was_recorded_at_once_comes_in_bursts_of_the_rate() -> None:
    assert recorded((7.0, 7.0), 1.0, 4.0) == (0.0, 0.0, 2.0, 2.0)
    assert recorded((7.0,), 2.0, 1.5) == (0.0, 0.5, 1.0)


TIMES = st.lists(st.floats(min_value=0, max_value=1e4), min_size=1, max_size=50).map(sorted)


@given(times=TIMES, rate=RATES, seconds=SECONDS)
def test_recorded_times_ascend_and_have_the_rate(times: list[float], rate: float, seconds: float) -> None:
    due_s = recorded(times, rate, seconds)
    assert list(due_s) == sorted(due_s)
    assert abs(len(due_s) - rate * seconds) <= len(times)


def test_a_replay_begins_with_its_first_time_in_order_and_speeds_up() -> None:
    assert replay([105.0, 100.0, 103.0], speed=2.0) == (0.0, 1.5, 2.5)


def test_a_replay_of_nothing_sends_nothing() -> None:
    assert replay([]) == ()


@given(times=st.lists(st.floats(min_value=0, max_value=1e6), max_size=50), speed=st.floats(min_value=0.1, max_value=10))
def test_a_replay_keeps_every_request_and_scales_its_length(times: list[float], speed: float) -> None:
    replayed = replay(times, speed)
    assert len(replayed) == len(times)
    if times:
        assert replayed[-1] == pytest.approx((max(times) - min(times)) / speed)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: constant(0, 1), "rate_per_s is 0, but must be above 0"),
        (lambda: poisson(math.inf, 1, ""), "rate_per_s is inf, but must be above 0"),
        (lambda: constant(1, -1), "seconds is -1, but must be above 0"),
        (lambda: ramp(0, 0, 1), "highest_rate_per_s is 0, but must be above 0"),
        (lambda: ramp(-1, 1, 1), "a rate is below 0"),
        (lambda: replay([1.0], 0), "speed is 0, but must be above 0"),
    ],
)
def test_impossible_schedules(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=r"must be above 0|below 0") as caught:
        make()
    assert str(caught.value) == message


def test_each_name_of_a_request_and_of_a_spec_is_a_kind() -> None:
    of_spec = set(get_args(WorkloadSpec.model_fields["arrivals"].annotation))

    assert set(ARRIVALS) == set(get_args(Arrival))
    assert {name for name, kind in ARRIVALS.items() if kind.levels is Arrivals.levels} == of_spec
