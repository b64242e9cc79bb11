from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_base.units import exported
from seatrial_load.documents.distribution import Interval
from seatrial_load.documents.result import Knee
from seatrial_load.knee import blended_cost_at, cost_at, knees_of, scaling_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import LevelResult

    MakeLevel = Callable[..., LevelResult]
    MakeRequest = Callable[..., TrialRequest]

SLO = Knee(detector="slo", concurrency=4, because="held")
NO_SLO = Knee(detector="slo", concurrency=None, because="no level meets the SLO")
SATURATION = Knee(detector="saturation", concurrency=12, because="full")
GATE = Knee(detector="gate", concurrency=2, because="planned")


def test_an_slo_that_is_missed_first_leads(trial_request: MakeRequest, level: MakeLevel) -> None:
    target = scaling_target(trial_request(), [level(2), level(4)], [SLO, SATURATION, GATE])
    assert target.concurrency_per_copy == pytest.approx(3.0)  # 4 x 0.75
    assert target.knee is SLO
    assert target.because == "knee (slo) 4 per copy x target utilization 0.75; saturation would give 9"


def test_saturation_leads_where_the_slo_allows_more(trial_request: MakeRequest, level: MakeLevel) -> None:
    loose = replace(SLO, concurrency=128)
    target = scaling_target(trial_request(), [level(2), level(128)], [loose, SATURATION, GATE])
    assert (target.concurrency_per_copy, target.detector) == (9.0, "saturation")
    assert target.because == "knee (saturation) 12 per copy x target utilization 0.75; slo would give 96"


def test_the_gate_leads_as_it_is_where_saturation_would_give_less(trial_request: MakeRequest, level: MakeLevel) -> None:
    """Copies are planned for it: less would run more of them than were asked for."""
    loose, gate = replace(SLO, concurrency=128), replace(GATE, concurrency=10)
    target = scaling_target(trial_request(), [level(2), level(128)], [loose, SATURATION, gate])
    assert (target.concurrency_per_copy, target.detector) == (10.0, "gate")
    assert target.because == (
        "the gate, 10 per copy, which copies are planned for; saturation would give 9; slo would give 96"
    )


def test_a_gate_that_leaves_the_slo_no_room_does_not_lead(trial_request: MakeRequest, level: MakeLevel) -> None:
    near, gate = replace(SLO, concurrency=12), replace(GATE, concurrency=10)
    target = scaling_target(trial_request(), [level(2), level(128)], [near, SATURATION, gate])
    assert (target.concurrency_per_copy, target.detector) == (9.0, "slo")


def test_an_slo_that_no_load_misses_is_no_lower_than_the_gate(trial_request: MakeRequest, level: MakeLevel) -> None:
    """Its share of the highest load was the target, as though it were missed above: 12 for a gate of 16."""
    held = Knee(
        detector="slo", concurrency=16.0, because="every level meets it", interval=Interval(low=16.0, high=None)
    )
    low = Knee(detector="saturation", concurrency=6.0, because="by hand")
    gate = Knee(detector="gate", concurrency=16.0, because="by hand")
    target = scaling_target(trial_request(), [level(2), level(16)], [held, low, gate])
    assert (target.concurrency_per_copy, target.detector) == (16.0, "gate")
    assert target.because.endswith("saturation would give 4.5; the SLO is met at 16")


def test_the_slo_alone_for_who_asks_for_it(trial_request: MakeRequest, level: MakeLevel) -> None:
    request, loose = trial_request(target_knee="slo"), replace(SLO, concurrency=128)
    target = scaling_target(request, [level(2), level(128)], [loose, SATURATION, GATE])
    assert (target.concurrency_per_copy, target.detector) == (96.0, "slo")
    assert target.because == "knee (slo) 128 per copy x target utilization 0.75; trial.target is slo"


def test_the_interval_of_the_knee_is_told_with_the_target(trial_request: MakeRequest, level: MakeLevel) -> None:
    knee = replace(SLO, concurrency=12.437, interval=Interval(low=11.02, high=14.0))
    target = scaling_target(trial_request(), [level(2), level(16)], [knee])
    assert target.because == (
        "knee (slo) 12.4 per copy (11 to 14 with 95 % confidence) x target utilization 0.75; "
        "no saturation knee: not evaluated"
    )


def test_a_knee_without_a_lower_end_is_told_without_its_interval(trial_request: MakeRequest, level: MakeLevel) -> None:
    knee = replace(SLO, interval=Interval(low=None, high=14.0))
    target = scaling_target(trial_request(), [level(2), level(16)], [knee])
    assert target.because.startswith("knee (slo) 4 per copy x target utilization 0.75; ")


@pytest.mark.parametrize(
    ("concurrency", "words"),
    [
        (10, "the gate, 10 per copy, which copies are planned for; "),
        (11, "the gate, 11 per copy, which copies are planned for; "),
        (9, "9 per copy: planned; "),
    ],
)
def test_a_gate_that_a_copy_does_not_keep_is_told_with_its_reason(
    trial_request: MakeRequest, level: MakeLevel, concurrency: int, words: str
) -> None:
    loose, gate = replace(SLO, concurrency=128), replace(GATE, concurrency=concurrency)
    low = replace(SATURATION, concurrency=4)
    target = scaling_target(trial_request(gate_concurrency=10), [level(2), level(128)], [loose, low, gate])
    assert target.detector == "gate"
    assert target.because.startswith(words)


def test_noise_of_full_levels_hardly_moves_the_target(trial_request: MakeRequest, level: MakeLevel) -> None:
    """Three trials of one endpoint gave targets of 4, 3.2 and 1.6 where one level's slope set the knee."""
    noisy = [(100, 180, 210, 212, 209, 214), (100, 170, 212, 205, 214, 210), (100, 190, 205, 203, 216, 211)]
    request = trial_request(target_utilization=1.0, gate_concurrency=1)
    found = []
    for speeds in noisy:
        levels = [level(2**power, output_tok_s=speed) for power, speed in enumerate(speeds)]
        found.append(scaling_target(request, levels, knees_of(request, levels)).concurrency_per_copy)
    assert found == pytest.approx([6.2] * 3, rel=0.05)


def test_with_objectives_and_no_slo_knee_the_fallback_as_it_is(trial_request: MakeRequest, level: MakeLevel) -> None:
    target = scaling_target(trial_request(), [level(2), level(4)], [NO_SLO, SATURATION, GATE])
    assert (target.concurrency_per_copy, target.knee, target.at) == (2.0, None, None)
    assert target.because == "fallback 2 per copy: no slo knee: no level meets the SLO"


def test_without_objectives_the_saturation_knee(trial_request: MakeRequest, level: MakeLevel) -> None:
    target = scaling_target(trial_request(objectives=()), [level(2), level(4)], [SLO, SATURATION, GATE])
    assert target.concurrency_per_copy == pytest.approx(9.0)
    assert target.because == "knee (saturation) 12 per copy x target utilization 0.75; no SLO is set"


def test_errors_everywhere_give_the_fallback(trial_request: MakeRequest, level: MakeLevel) -> None:
    levels, request = [level(1, succeeded=7)], trial_request(objectives=())
    target = scaling_target(request, levels, knees_of(request, levels))
    assert target.because == "fallback 2 per copy: no saturation knee: no level without an error has a throughput"


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


def test_cost_is_price_by_tokens_of_one_copy(trial_request: MakeRequest, level: MakeLevel) -> None:
    # 80 tok/s over 2 copies: 40 tok/s per copy, 144,000 tokens an hour for $3.60: $25 per million
    assert cost_at(trial_request(copy_count=2), level(4)) == pytest.approx(25.0, rel=1e-9)


def test_no_cost_without_price_level_or_throughput(trial_request: MakeRequest, level: MakeLevel) -> None:
    assert cost_at(trial_request(usd_per_hour_per_copy=None), level(4)) is None
    assert cost_at(trial_request(), None) is None
    assert cost_at(trial_request(), level(4, output_tok_s=None)) is None


def test_the_blended_cost_is_a_quarter_of_it(trial_request: MakeRequest, level: MakeLevel) -> None:
    # three tokens read for one written: $25 per million written ones are $6.25 per million of either
    assert blended_cost_at(trial_request(copy_count=2), level(4)) == pytest.approx(6.25)
    assert blended_cost_at(trial_request(usd_per_hour_per_copy=None), level(4)) is None
