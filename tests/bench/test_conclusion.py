from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.bench.conclusion import blended_cost_at, cost_at, scaling_target
from seatrial.bench.result import Knee
from seatrial.units import exported

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import LevelResult

    MakeLevel = Callable[..., LevelResult]
    MakeRequest = Callable[..., TrialRequest]

SLO = Knee(detector="slo", concurrency=4, because="held")
NO_SLO = Knee(detector="slo", concurrency=None, because="the lowest level misses the SLO: slow")
KNEEDLE = Knee(detector="kneedle", concurrency=2, because="bends")
BETWEEN = Knee(detector="two_segment", concurrency=3, because="two lines")
NOT_BETWEEN = Knee(detector="two_segment", concurrency=None, because="one line")
NO_KNEEDLE = Knee(detector="kneedle", concurrency=None, because="straight")


def test_with_objectives_the_slo_knee_that_a_miss_has_proven(trial_request: MakeRequest, level: MakeLevel) -> None:
    levels = [level(2), level(4), level(8, meets_slo=False)]
    target = scaling_target(trial_request(), levels, [SLO, KNEEDLE])
    assert target.concurrency_per_copy == pytest.approx(3.0)  # 4 x 0.75
    assert target.detector == "slo"
    assert target.because == "slo knee 4 per copy x target utilization 0.75"


def test_where_every_level_meets_the_slo_the_two_segment_knee_and_the_level_below_it(
    trial_request: MakeRequest, level: MakeLevel
) -> None:
    levels = [level(2), level(4)]
    target = scaling_target(trial_request(), levels, [SLO, KNEEDLE, BETWEEN])
    assert target.because == (
        "every measured level meets the SLO; two_segment knee 3 per copy x target utilization 0.75"
    )
    assert (target.concurrency_per_copy, target.detector, target.level) == (2.25, "two_segment", levels[0])


def test_where_two_lines_do_not_meet_the_kneedle_knee(trial_request: MakeRequest, level: MakeLevel) -> None:
    target = scaling_target(trial_request(), [level(2), level(4)], [SLO, KNEEDLE, NOT_BETWEEN])
    assert target.concurrency_per_copy == pytest.approx(1.5)  # 2 x 0.75
    assert target.detector == "kneedle"
    assert target.because == ("every measured level meets the SLO; kneedle knee 2 per copy x target utilization 0.75")


def test_where_every_level_meets_the_slo_and_nothing_bends_the_highest(
    trial_request: MakeRequest, level: MakeLevel
) -> None:
    target = scaling_target(trial_request(), [level(2), level(4)], [SLO, NO_KNEEDLE, NOT_BETWEEN])
    assert target.because == "slo knee 4 per copy x target utilization 0.75"


def test_a_level_that_the_client_limited_does_not_count(trial_request: MakeRequest, level: MakeLevel) -> None:
    levels = [level(1), level(2), level(4, void_because="the client was too slow")]
    target = scaling_target(trial_request(objectives=()), levels, [NO_KNEEDLE])
    assert (
        target.because
        == "throughput does not bend; highest level without an error 2 per copy x target utilization 0.75"
    )


def test_a_miss_at_a_void_level_proves_nothing(trial_request: MakeRequest, level: MakeLevel) -> None:
    levels = [level(2), level(4), level(8, meets_slo=False, void_because="the client was too slow")]
    assert scaling_target(trial_request(), levels, [SLO, KNEEDLE]).detector == "kneedle"


def test_with_objectives_and_no_slo_knee_the_fallback_as_it_is(trial_request: MakeRequest, level: MakeLevel) -> None:
    target = scaling_target(trial_request(), [level(2), level(4)], [NO_SLO, KNEEDLE])
    assert (target.concurrency_per_copy, target.level) == (2.0, None)
    assert target.because == "fallback 2 per copy: no slo knee, the lowest level misses the SLO: slow"


def test_without_objectives_the_two_segment_knee(trial_request: MakeRequest, level: MakeLevel) -> None:
    target = scaling_target(trial_request(objectives=()), [level(2), level(4)], [SLO, KNEEDLE, BETWEEN])
    assert target.concurrency_per_copy == pytest.approx(2.25)  # 3 x 0.75
    assert target.because == "two_segment knee 3 per copy x target utilization 0.75"


def test_without_objectives_and_two_lines_the_kneedle_knee(trial_request: MakeRequest, level: MakeLevel) -> None:
    target = scaling_target(trial_request(objectives=()), [level(2), level(4)], [SLO, KNEEDLE])
    assert target.because == "kneedle knee 2 per copy x target utilization 0.75"


def test_without_any_knee_the_highest_level_without_an_error(trial_request: MakeRequest, level: MakeLevel) -> None:
    levels = [level(1), level(2), level(4, succeeded=7)]
    target = scaling_target(trial_request(objectives=()), levels, [SLO, NO_KNEEDLE])
    assert target.concurrency_per_copy == pytest.approx(1.5)  # 2 x 0.75
    assert target.because == (
        "throughput does not bend; highest level without an error 2 per copy x target utilization 0.75"
    )


def test_the_target_is_rounded_where_it_is_decided(trial_request: MakeRequest, level: MakeLevel) -> None:
    knee = Knee(detector="slo", concurrency=3, because="held")
    target = scaling_target(trial_request(target_utilization=0.8), [level(3), level(4, meets_slo=False)], [knee])
    assert target.concurrency_per_copy == 2.4


@pytest.mark.parametrize("utilization", [0.8, 0.7, 0.75, 0.123456789])
def test_every_target_is_the_number_that_its_attribute_holds(
    trial_request: MakeRequest, level: MakeLevel, utilization: float
) -> None:
    request, levels = trial_request(target_utilization=utilization), [level(1), level(2000, meets_slo=False)]
    for concurrency in range(1, 1001):
        knee = Knee(detector="slo", concurrency=concurrency, because="held")
        target = scaling_target(request, levels, [knee]).concurrency_per_copy
        assert float(exported(target)) == target


def test_the_fallback_is_rounded_too(trial_request: MakeRequest, level: MakeLevel) -> None:
    request = trial_request(fallback_target_concurrency=3 * 0.8)
    assert scaling_target(request, [], [NO_SLO]).concurrency_per_copy == 2.4


def test_errors_everywhere_give_the_fallback(trial_request: MakeRequest, level: MakeLevel) -> None:
    target = scaling_target(trial_request(objectives=()), [level(1, succeeded=7)], [NO_SLO, NO_KNEEDLE])
    assert target.because == "fallback 2 per copy: no level without an error"


def test_cost_is_price_by_tokens_of_one_copy(trial_request: MakeRequest, level: MakeLevel) -> None:
    # 80 tok/s over 2 copies: 40 tok/s per copy, 144,000 tokens an hour for $3.60: $25 per million
    assert cost_at(trial_request(copy_count=2), level(4)) == pytest.approx(25.0)


def test_no_cost_without_price_level_or_throughput(trial_request: MakeRequest, level: MakeLevel) -> None:
    assert cost_at(trial_request(usd_per_hour_per_copy=None), level(4)) is None
    assert cost_at(trial_request(), None) is None
    assert cost_at(trial_request(), level(4, output_tok_s=None)) is None


def test_the_blended_cost_is_a_quarter_of_it(trial_request: MakeRequest, level: MakeLevel) -> None:
    # three tokens read for one written: $25 per million written ones are $6.25 per million of either
    assert blended_cost_at(trial_request(copy_count=2), level(4)) == pytest.approx(6.25)
    assert blended_cost_at(trial_request(usd_per_hour_per_copy=None), level(4)) is None
