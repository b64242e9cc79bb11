from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.documents.distribution import Interval
from seatrial_load.measure.interval import (
    SERIES_UP_TO,
    fewest_bounded_from_above,
    is_share_above,
    mean_interval,
    normal,
    one_sided,
    one_sided_rate,
    percentile_interval,
    precision_of,
    rate_interval,
    ratio_interval,
    share_interval,
    student_t,
)


def ranks(count: int, percent: float, tail: float) -> tuple[float | None, float | None]:
    """Return the bounds as numbers of the measurement, from 1."""
    bounds = percentile_interval([float(number) for number in range(1, count + 1)], percent, tail=tail)
    return bounds.low, bounds.high


@pytest.mark.parametrize(
    ("count", "percent", "expected"),
    [
        (5, 50, (None, None)),  # all five lie above the median in 1 of 32 cases, more than 2.5 %
        (6, 50, (1, 6)),  # 1 of 64
        (10, 50, (2, 9)),  # the tables of the sign test
        (20, 50, (6, 15)),
        (100, 50, (40, 61)),
        (12, 95, (10, None)),  # 9 or fewer of 12 lie below p95 in 2.0 % of cases
        (71, 95, (63, None)),
        (72, 95, (64, 72)),  # 0.95^72 = 2.5 %, a little less
    ],
)
def test_two_sided_bounds_of_percentiles(
    count: int, percent: float, expected: tuple[float | None, float | None]
) -> None:
    assert ranks(count, percent, 0.025) == expected


@pytest.mark.parametrize(
    ("percent", "tail", "fewest"),
    [
        (95, 0.05, 59),  # 0.95^59 = 4.8 %
        (95, 0.1, 45),  # 0.95^45 = 9.9 %
        (99, 0.05, 299),
        (90, 0.1, 22),
        (50, 0.5, 1),
        (50, 0.25, 2),  # 0.5^2 = 25 %, exactly
    ],
)
def test_so_many_measurements_bound_a_percentile_from_above(percent: float, tail: float, fewest: int) -> None:
    assert fewest_bounded_from_above(percent, tail=tail) == fewest
    assert ranks(fewest, percent, tail)[1] == fewest
    assert fewest == 1 or ranks(fewest - 1, percent, tail)[1] is None


def shares_at_most(count: int, share: Fraction) -> list[Fraction]:
    """P(B <= k) for k = 0 … count, exactly."""
    return list(accumulate(math.comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(count + 1)))


@given(st.integers(1, 90), st.sampled_from([50, 90, 95, 99]), st.sampled_from([20, 10, 40]))
def test_the_bounds_are_the_innermost_that_hold(count: int, percent: int, one_in: int) -> None:
    below, tail = shares_at_most(count, Fraction(percent, 100)), Fraction(1, one_in)
    most = max((k for k in range(1, count + 1) if below[k - 1] <= tail), default=None)
    fewest = min((k for k in range(1, count + 1) if 1 - below[k - 1] <= tail), default=None)
    assert ranks(count, percent, 1 / one_in) == (most, fewest)


def test_bounds_of_very_many_measurements_are_approximate_and_close() -> None:
    class Numbers:
        def __init__(self, count: int) -> None:
            self.count = count

        def __len__(self) -> int:
            return self.count

        def __getitem__(self, rank: int, /) -> float:
            return rank / self.count

    exact = percentile_interval(Numbers(100_000), 95, tail=0.025)
    approximate = percentile_interval(Numbers(100_001), 95, tail=0.025)
    assert (exact.low, exact.high) == pytest.approx((0.94864, 0.95135), abs=2e-5)  # .95 ± 1.96 x sqrt(.95 x .05 / n)
    assert (approximate.low, approximate.high) == pytest.approx((exact.low, exact.high), abs=2e-5)


@pytest.mark.parametrize(
    ("share", "degrees", "published"),
    [
        (0.975, 1, "12.706"),
        (0.975, 2, "4.303"),
        (0.975, 3, "3.182"),
        (0.975, 4, "2.776"),
        (0.975, 9, "2.262"),
        (0.975, 10, "2.228"),
        (0.975, 30, "2.042"),
        (0.975, 120, "1.980"),
        (0.95, 4, "2.132"),
        (0.95, 9, "1.833"),
        (0.95, 120, "1.658"),
        (0.9, 9, "1.383"),
        (0.995, 10, "3.169"),
        (0.995, 120, "2.617"),
        (0.9995, 5, "6.869"),
        (0.975, 1000, "1.962"),
        (0.995, 1000, "2.581"),
    ],
)
def test_students_t_as_published(share: float, degrees: int, published: str) -> None:
    assert f"{student_t(share, degrees):.3f}" == published


@given(st.floats(min_value=0.51, max_value=0.9999))
def test_students_t_in_closed_form(share: float) -> None:
    assert student_t(share, 1) == pytest.approx(math.tan(math.pi * (share - 0.5)), rel=1e-9)
    assert student_t(share, 2) == pytest.approx((2 * share - 1) / math.sqrt(2 * share * (1 - share)), rel=1e-9)


@pytest.mark.parametrize("share", [0.8, 0.9, 0.975, 0.995, 0.9995])
def test_series_and_expansion_meet(share: float) -> None:
    step = student_t(share, SERIES_UP_TO) - student_t(share, SERIES_UP_TO + 1)
    before = student_t(share, SERIES_UP_TO - 1) - student_t(share, SERIES_UP_TO)
    assert step == pytest.approx(before, rel=0.02, abs=1e-7)


@pytest.mark.parametrize(
    ("share", "quantile"),
    [(0.5, 0.0), (0.9, 1.2815515655446004), (0.95, 1.6448536269514722), (0.025, -1.959963984540054)],
)
def test_normal_quantiles(share: float, quantile: float) -> None:
    assert normal(share) == pytest.approx(quantile, abs=1e-12)


def test_a_mean_is_bounded_by_students_t() -> None:
    # 2.262 x 10 / sqrt(10) = 7.153
    bounds = mean_interval(mean=100.0, deviation=10.0, count=10, tail=0.025)
    assert (bounds.low, bounds.high) == pytest.approx((92.847, 107.153), abs=1e-3)
    assert mean_interval(mean=100.0, deviation=0.0, count=1, tail=0.025) == Interval(low=None, high=None)


def test_a_bound_at_another_confidence() -> None:
    both = mean_interval(mean=100.0, deviation=10.0, count=10, tail=0.025)
    bounds = one_sided(100.0, both, count=10, tail=0.1)
    assert (bounds.low, bounds.high) == pytest.approx((95.627, 104.373), abs=1e-3)  # 1.383 x 10 / sqrt(10) = 4.373
    assert one_sided(100.0, Interval(low=None, high=None), count=1, tail=0.1) == Interval(low=None, high=None)


@pytest.mark.parametrize(
    ("tail", "half"),
    [
        (0.1, 13.08),  # 20 x 1.282 / 1.960, as of very many measurements
        (0.01, 24.95),  # 20 x 2.821 / 2.262, as of ten
        (0.025, 20.0),
    ],
)
def test_a_bound_of_a_rate_at_another_confidence(tail: float, half: float) -> None:
    bounds = one_sided_rate(100.0, Interval(low=80.0, high=120.0), tail=tail)
    assert (bounds.low, bounds.high) == pytest.approx((100.0 - half, 100.0 + half), abs=0.01)


def test_the_rate_of_a_closed_loop_is_bounded_by_how_much_requests_differ() -> None:
    # t of 15 degrees of freedom: 2.131; 2.131 x 100 x 0.2 / sqrt(16) = 10.66
    bounds = ratio_interval(100.0, relative_deviation=0.2, count=16.0, tail=0.025)
    assert (bounds.low, bounds.high) == pytest.approx((89.34, 110.66), abs=0.01)
    assert ratio_interval(100.0, relative_deviation=0.2, count=1.9, tail=0.025) == Interval(low=None, high=None)
    assert ratio_interval(100.0, relative_deviation=0.9, count=2.0, tail=0.025).low == 0.0


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [  # R. G. Newcombe, Statistics in Medicine 17 (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilsons_interval_as_published(hits: int, count: int, low: float, high: float) -> None:
    bounds = share_interval(hits, count, tail=0.025)
    assert (bounds.low, bounds.high) == pytest.approx((low, high), abs=5e-5)


def test_a_share_of_all_and_of_nothing() -> None:
    assert share_interval(20, 20, tail=0.025).high == 1.0
    assert share_interval(0, 0, tail=0.025) == Interval(low=None, high=None)


@given(st.integers(0, 300), st.integers(1, 300), st.sampled_from([0.025, 0.1]))
def test_a_share_lies_in_its_interval_within_0_and_1(hits: int, more: int, tail: float) -> None:
    count = hits + more
    bounds = share_interval(hits, count, tail=tail)
    assert bounds.low is not None
    assert bounds.high is not None
    assert 0 <= bounds.low <= hits / count < bounds.high <= 1


def test_a_rate_is_bounded_by_its_slices() -> None:
    # mean 100, s = sqrt((400 + 100 + 0 + 100 + 400) / 4) = 15.811; 2.776 x 15.811 / sqrt(5) = 19.63
    bounds = rate_interval([80.0, 90.0, 100.0, 110.0, 120.0], tail=0.025)
    assert (bounds.low, bounds.high) == pytest.approx((80.37, 119.63), abs=0.01)


def test_few_slices_bound_nothing_and_no_rate_is_negative() -> None:
    assert rate_interval([80.0] * 4, tail=0.025) == Interval(low=None, high=None)
    assert rate_interval([0.0, 0.0, 0.0, 0.0, 100.0], tail=0.025).low == 0.0


def test_precision_is_half_the_interval_of_the_median_over_it() -> None:
    # of 1..10 the median 5.5 lies between 2 and 9: 3.5 / 5.5
    assert precision_of([float(number) for number in range(10, 0, -1)]) == pytest.approx(3.5 / 5.5)
    assert precision_of([1.0] * 5) is None
    assert precision_of([0.0] * 10) is None


def test_intervals_hold_as_often_as_they_say() -> None:
    drawn = random.Random(5)  # noqa: S311 (a simulation, not a secret)
    trials, inside = 1_000, {"p50": 0, "p95": 0, "mean": 0}
    for _ in range(trials):
        values = sorted(drawn.expovariate(1.0) for _ in range(100))
        mean = math.fsum(values) / 100
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / 99)
        bounds = {
            "p50": (math.log(2), percentile_interval(values, 50, tail=0.025)),
            "p95": (math.log(20), percentile_interval(values, 95, tail=0.025)),
            "mean": (1.0, mean_interval(mean=mean, deviation=deviation, count=100, tail=0.025)),
        }
        for name, (truth, bound) in bounds.items():
            inside[name] += (bound.low or 0.0) <= truth <= (bound.high or 0.0)
    assert inside["p50"] / trials >= 0.95
    assert inside["p95"] / trials >= 0.95
    assert inside["mean"] / trials == pytest.approx(
        0.945, abs=0.015
    )  # a skewed distribution costs Student's t a little


@pytest.mark.parametrize("share", [0.01, 0.1])
@pytest.mark.parametrize("count", [1, 5, 6, 50, 400])
def test_a_share_is_proven_to_be_above_a_bound_by_the_exact_binomial(count: int, share: float) -> None:
    chances = [math.comb(count, hits) * share**hits * (1 - share) ** (count - hits) for hits in range(count + 1)]
    proven = [hits > 0 and math.fsum(chances[hits:]) <= 0.05 for hits in range(count + 1)]
    assert [is_share_above(hits, count, share, tail=0.05) for hits in range(count + 1)] == proven


def test_no_answers_prove_nothing_of_a_share() -> None:
    assert not is_share_above(0, 0, 0.01, tail=0.05)
