from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_load.documents.distribution import Interval
from seatrial_load.documents.request import Objective
from seatrial_load.metrics.aggregate import distribution_of, sample_of
from seatrial_load.slo.evaluate import checks_of, requests_at_gate, requests_needed

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.distribution import Distribution
    from seatrial_load.documents.result import LevelResult

    MakeLevel = Callable[..., LevelResult]

ERRORS = Objective(metric="error_rate", statistic="value", bound=0.01, sense="at_most")
NO_ERRORS = replace(ERRORS, bound=0.0)
THROUGHPUT = Objective(metric="output_tok_s", statistic="value", bound=100.0, sense="at_least")
MEAN = Objective(metric="tpot_ms", statistic="mean", bound=20.0, sense="at_most")


def ttft(bound: float, statistic: str = "p95") -> Objective:
    return Objective(metric="ttft_ms", statistic=statistic, bound=bound, sense="at_most")  # type: ignore[arg-type]  # a column


def spread(count: int) -> Distribution | None:
    """Latencies of 1, 2, … ms."""
    return distribution_of(sample_of([float(number) for number in range(1, count + 1)]))


OVER = "ttft_ms p95 96.0 ms is not proven to exceed 94.0 ms at concurrency 4 per copy: "
UNDER = "ttft_ms p95 96.0 ms is not proven to be within 97.0 ms at concurrency 4 per copy: "
BETWEEN = "93.0 ms to 100.0 ms with 90 % confidence; about {} requests are needed to decide"


@pytest.mark.parametrize(
    ("bound", "met", "sentence"),
    [
        (101.0, True, "ttft_ms p95 96.0 ms is within 101.0 ms {place}, at most 100.0 ms with 90 % confidence"),
        (97.0, None, UNDER + BETWEEN.format(1696)),  # 101 x (4 / 1)², and the histogram's rounding
        (94.0, None, OVER + BETWEEN.format(222)),  # 101 x (3 / 2)²
        (92.0, False, "ttft_ms p95 96.0 ms exceeds 92.0 ms {place}, at least 93.0 ms with 90 % confidence"),
    ],
)
def test_a_percentile_is_proven_by_its_interval(level: MakeLevel, bound: float, met: object, sentence: str) -> None:
    # of 101 latencies 1 … 101 ms: the 96th is p95, which lies between the 93rd and the 100th with 90 % confidence each
    (check,) = checks_of(replace(level(4), ttft_ms=spread(101)), [ttft(bound)], 0.9)
    assert (check.met, check.sentence) == (met, sentence.format(place="at concurrency 4 per copy"))
    assert (check.bound_low, check.bound_high) == pytest.approx((93.0, 100.0), rel=1e-3)


def times(milliseconds: float) -> Distribution | None:
    return distribution_of(sample_of([milliseconds] * 20))


def test_a_latency_below_a_tenth_of_a_millisecond_is_not_written_as_zero(level: MakeLevel) -> None:
    (check,) = checks_of(replace(level(4), ttft_ms=times(0.04)), [ttft(0.01)])
    assert check.sentence == "ttft_ms p95 0.04 ms exceeds 0.01 ms at concurrency 4 per copy"


def test_a_miss_that_rounding_would_hide_is_written_with_the_digits_that_tell(level: MakeLevel) -> None:
    (check,) = checks_of(replace(level(4), output_tok_s=99.996), [THROUGHPUT])
    assert check.sentence == "output_tok_s 99.996 tok/s is below 100 tok/s at concurrency 4 per copy"


def test_too_few_requests_say_how_many_would_do(level: MakeLevel) -> None:
    (check,) = checks_of(replace(level(4), ttft_ms=spread(12)), [ttft(500.0)], 0.9)
    assert (check.met, check.bound_high) == (None, None)
    assert check.sentence == (
        "ttft_ms p95 11.5 ms is not proven to be within 500.0 ms at concurrency 4 per copy: "
        "a bound from above on p95 needs 45 requests; 12 were measured"
    )


def test_a_miss_of_few_requests_can_be_proven(level: MakeLevel) -> None:
    (check,) = checks_of(replace(level(4), ttft_ms=spread(12)), [ttft(8.0)], 0.9)
    assert (check.met, check.bound_high) == (False, None)
    assert check.sentence == (
        "ttft_ms p95 11.5 ms exceeds 8.0 ms at concurrency 4 per copy, at least 10.0 ms with 90 % confidence"
    )


def test_a_value_at_its_bound_stays_open(level: MakeLevel) -> None:
    (check,) = checks_of(replace(level(4), ttft_ms=spread(101)), [ttft(51.0, "p50")], 0.9)
    assert check.sentence == (
        "ttft_ms p50 51.0 ms is not proven to be within 51.0 ms at concurrency 4 per copy: "
        "44.0 ms to 58.0 ms with 90 % confidence, too close to the bound to decide"
    )


def test_a_distribution_without_a_histogram_proves_nothing(level: MakeLevel) -> None:
    checks = checks_of(level(4), [ttft(500.0), MEAN, THROUGHPUT], 0.9)
    assert [check.met for check in checks] == [None, None, None]
    assert checks[0].sentence == (
        "ttft_ms p95 100.0 ms is not proven to be within 500.0 ms at concurrency 4 per copy: it has no interval"
    )


@pytest.mark.parametrize(
    ("failed", "requests", "met", "doubt"),
    [
        (0, 163, True, None),  # 1.2816² / (163 + 1.2816²) = 0.998 %
        (1, 200, None, "0.15 % to 1.66 % with 90 % confidence; about 1071 requests are needed"),
        (20, 200, False, None),
    ],
)
def test_an_error_rate_is_proven_by_wilsons_interval(
    level: MakeLevel, failed: int, requests: int, met: object, doubt: str | None
) -> None:
    (check,) = checks_of(level(4, requests=requests, succeeded=requests - failed), [ERRORS], 0.9)
    assert check.met is met
    assert doubt is None or doubt in check.sentence


def test_an_error_rate_without_a_failure_is_taken_as_measured_and_says_how_high_it_may_be(level: MakeLevel) -> None:
    (check,) = checks_of(level(4, requests=45, succeeded=45), [ERRORS], 0.9)
    assert (check.met, check.sentence) == (
        True,
        "error_rate 0.00 % is within 1.00 % at concurrency 4 per copy (at most 3.52 % with 90 % confidence)",
    )


def test_that_nothing_fails_at_all_is_taken_as_measured(level: MakeLevel) -> None:
    good, bad = checks_of(level(4), [NO_ERRORS], 0.9) + checks_of(level(4, succeeded=7), [NO_ERRORS], 0.9)
    assert (good.met, good.sentence) == (True, "error_rate 0.00 % is within 0.00 % at concurrency 4 per copy")
    assert (bad.met, bad.sentence) == (False, "error_rate 12.50 % exceeds 0.00 % at concurrency 4 per copy")


UNPROVEN = (
    "output_tok_s 105.0 tok/s is not proven to be within 100.0 tok/s {place}: "
    "91.9 tok/s to 118.1 tok/s {sure}; a window 6.8 times as long is needed to decide"
)


@pytest.mark.parametrize(
    ("tok_s", "met", "sentence"),
    [
        (115.0, True, "output_tok_s 115.0 tok/s is within 100.0 tok/s {place}, at least 101.9 tok/s {sure}"),
        (105.0, None, UNPROVEN),
        (80.0, False, "output_tok_s 80.0 tok/s is below 100.0 tok/s {place}, at most 93.1 tok/s {sure}"),
    ],
)
def test_throughput_is_proven_by_its_interval(level: MakeLevel, tok_s: float, met: object, sentence: str) -> None:
    interval = Interval(low=tok_s - 20, high=tok_s + 20)  # two-sided 95 %; one-sided 90 %: 1.282 / 1.960 of it, ± 13.1
    (check,) = checks_of(level(4, output_tok_s=tok_s, output_tok_s_interval=interval), [THROUGHPUT], 0.9)
    written = sentence.format(place="at concurrency 4 per copy", sure="with 90 % confidence")
    assert (check.met, check.sentence) == (met, written)


def test_a_mean_is_proven_by_students_t(level: MakeLevel) -> None:
    # 1 … 20 ms: mean 10.5, s 5.916; 1.328 x 5.916 / sqrt(20) = 1.757
    (check,) = checks_of(replace(level(4), tpot_ms=spread(20)), [replace(MEAN, bound=12.3)], 0.9)
    assert check.met
    assert (check.bound_low, check.bound_high) == pytest.approx((8.743, 12.257), abs=1e-3)


def test_at_confidence_0_the_value_is_taken_as_it_is(level: MakeLevel) -> None:
    (check,) = checks_of(replace(level(4), ttft_ms=spread(12)), [ttft(12.0)])
    assert (check.met, check.bound_low, check.bound_high) == (True, None, None)


@pytest.mark.parametrize(
    ("objectives", "confidence", "needed"),
    [
        ([ttft(1.0)], 0.0, 1),
        ([], 0.9, 1),
        ([ttft(1.0)], 0.9, 45),
        ([ttft(1.0), ttft(1.0, "p50")], 0.95, 59),
        ([ttft(1.0, "p99")], 0.9, 230),
        ([MEAN, THROUGHPUT], 0.9, 2),
        ([ttft(1.0), ERRORS], 0.9, 45),
        ([replace(ERRORS, bound=0.05)], 0.9, 1),
        ([NO_ERRORS], 0.9, 1),
    ],
)
def test_so_many_requests_can_prove_all_objectives(objectives: list[Objective], confidence: float, needed: int) -> None:
    assert requests_needed(objectives, confidence) == needed


@pytest.mark.parametrize(
    ("objectives", "confidence", "requests"),
    [([ERRORS], 0.9, 22), ([], 0.9, 22), ([ERRORS], 0.95, 29), ([ttft(1.0), ERRORS], 0.9, 45), ([ttft(1.0)], 0.0, 1)],
)
def test_the_gate_takes_as_many_requests_as_show_that_one_in_ten_fails(
    objectives: list[Objective], confidence: float, requests: int
) -> None:
    assert requests_at_gate(objectives, confidence) == requests
    if confidence and not any(objective.metric == "ttft_ms" for objective in objectives):
        assert 0.9**requests <= 1 - confidence < 0.9 ** (requests - 1)


@given(st.floats(0.55, 0.99), st.floats(0.01, 0.5))
def test_so_many_requests_without_a_failure_are_enough_and_one_less_is_not(
    level: MakeLevel, confidence: float, bound: float
) -> None:
    objective = replace(ERRORS, bound=bound)
    needed = requests_needed([objective], confidence)
    for count, met in [(needed, True)] + [(needed - 1, None)] * (needed > 1):
        assert checks_of(level(4, requests=count, succeeded=count), [objective], confidence)[0].met is met


@given(st.floats(0.55, 0.99), st.sampled_from(["p50", "p90", "p95", "p99"]))
def test_so_many_latencies_are_enough_and_one_less_is_not(level: MakeLevel, confidence: float, statistic: str) -> None:
    objective = ttft(1e9, statistic)
    needed = requests_needed([objective], confidence)
    for count, met in [(needed, True)] + [(needed - 1, None)] * (needed > 1):
        measured = replace(level(4), ttft_ms=spread(count))
        assert checks_of(measured, [objective], confidence)[0].met is met
