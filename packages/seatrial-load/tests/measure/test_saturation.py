from __future__ import annotations

import random
from dataclasses import replace

import pytest

from seatrial_load.documents.distribution import Interval
from seatrial_load.measure.curves import FILLED, Reading, Saturation, saturation

DOUBLING = [float(2**power) for power in range(10)]


def readings(*pairs: tuple[float, float]) -> list[Reading]:
    return [Reading(load=load, value=value) for load, value in pairs]


def curve(alone: float, each: float, full: float = 1e9) -> list[Reading]:
    """The throughput of an endpoint of latency R = alone + each x N, which batches `full` requests at most."""
    return [Reading(load=load, value=min(load, full) / (alone + each * min(load, full)) * 1_000) for load in DOUBLING]


def found(throughputs: list[Reading]) -> Saturation:
    saturated = saturation(throughputs)
    assert saturated is not None
    return saturated


def test_the_filling_load_is_the_highest_throughput_at_the_unloaded_latency() -> None:
    saturated = found(curve(1.0, 0.01, full=64))
    assert saturated.highest.value == pytest.approx(39_024, rel=0.01)
    assert saturated.filling == pytest.approx(39.4, rel=0.01)
    assert saturated.load == pytest.approx(FILLED * saturated.filling)


@pytest.mark.parametrize(("alone", "each", "full"), [(1.0, 0.05, 1e9), (1.0, 0.02, 128), (1.0, 0.0, 32)])
def test_it_gives_three_quarters_of_the_highest_throughput_at_four_times_the_unloaded_latency(
    alone: float, each: float, full: float
) -> None:
    saturated = found(curve(alone, each, full))
    running = min(saturated.load, full)
    throughput = running / (alone + each * running) * 1_000
    assert throughput >= 0.74 * max(one.value for one in curve(alone, each, full))
    assert saturated.load / throughput * 1_000 <= 4.05 * (alone + each)


def test_ten_noisy_sweeps_agree() -> None:
    loads = []
    for seed in range(10):
        chance = random.Random(seed)  # noqa: S311 (noise, no secret)
        noisy = [replace(one, value=one.value * chance.lognormvariate(0, 0.02)) for one in curve(1.0, 0.02, 128)]
        loads.append(found(noisy).load)
    assert max(loads) / min(loads) < 1.12


def test_levels_that_lie_together_count_as_one() -> None:
    endpoint = curve(1.0, 0.02, 128)
    crowded = sorted(
        [*endpoint, *(replace(endpoint[6], load=64 + part / 8) for part in range(1, 8))], key=lambda one: one.load
    )
    assert found(crowded).load == pytest.approx(found(endpoint).load, rel=0.02)


def test_a_throughput_in_proportion_to_the_load_saturates_nowhere_below_the_highest() -> None:
    saturated = found(readings((2, 100.0), (4, 200.0), (8, 400.0)))
    assert saturated.load == 8.0
    assert saturated.at_most > 1e6


def test_what_more_load_may_still_give_is_bounded_by_the_latency_of_the_batch() -> None:
    """Of R = 1 + 0.02 N no load gives more than 1 / 0.02: N* is at most 1.02 / 0.02."""
    saturated = found(curve(1.0, 0.02)[:7])  # up to 64
    assert saturated.load < 100 < saturated.at_most == pytest.approx(153.0)


def test_what_intervals_leave_in_doubt_may_be_more() -> None:
    """Three levels of an endpoint that fills at 20 said 16 by chance, and the search ended at the gate."""
    sure = [one for one in curve(1.0, 0.1) if one.load in {1, 4, 16}]
    unsure = [replace(one, interval=Interval(low=one.value * 0.9, high=one.value * 1.1)) for one in sure]
    assert found(unsure).load == found(sure).load
    assert found(unsure).at_most > 1.1 * found(sure).at_most


def test_where_it_stopped_growing_it_is_that_of_the_fit_and_not_of_the_highest_level() -> None:
    """380 tok/s at 16, as at 8, made 16 the knee; another trial that measured 32 said 20."""
    saturated = found(readings(*((load, min(load, 6.0)) for load in (1, 2, 4, 8, 16))))
    assert saturated.load == 16.0
    assert saturated.at_most == pytest.approx(18.0, abs=0.3)


def test_one_slow_level_is_no_end_of_growth() -> None:
    """At 16 the level was 10 % slow, so that twice the load seemed to give nothing, and the gate of 16 led."""
    slow = [replace(one, value=one.value * 0.9) if one.load == 16 else one for one in curve(1.0, 0.05)[:5]]
    assert not found(slow).settled


def test_a_throughput_that_falls_bounds_the_load() -> None:
    saturated = found(readings((1, 600.0), (2, 1_089.0), (4, 900.0), (8, 600.0)))
    assert saturated.falls_between == (2.0, 4.0)
    assert saturated.falls_from is not None
    assert 2.0 < saturated.falls_from < 4.0
    assert saturated.load == saturated.falls_from == saturated.at_most
    assert saturated.planned(2.0, 0.9) == 2.0
    assert saturated.planned(4.0, 0.9) == 0.9 * saturated.falls_from


def test_noise_is_no_fall() -> None:
    wide = [
        replace(one, interval=Interval(low=one.value * 0.8, high=one.value * 1.2))
        for one in readings((8, 100.0), (16, 85.0))
    ]
    assert found(wide).falls_from is None


@pytest.mark.parametrize(
    ("throughputs", "settled"),
    [
        (((8, 100.0), (16, 190.0)), False),
        (((8, 100.0), (16, 109.0)), True),  # twice the load, 9 % more
        (((8, 100.0), (16, 85.0)), True),  # it has fallen
        (((8, 100.0), (12, 101.0)), False),  # not twice the load
        (((8, 100.0),), False),
    ],
)
def test_more_load_brings_nothing_more(throughputs: tuple[tuple[float, float], ...], *, settled: bool) -> None:
    assert found(readings(*throughputs)).settled is settled


def test_two_doublings_within_the_intervals_bring_nothing_more() -> None:
    wide = [
        replace(one, interval=Interval(low=one.value * 0.8, high=one.value * 1.2))
        for one in readings((4, 100.0), (8, 118.0), (16, 140.0))
    ]
    assert found(wide).settled
    assert not found(wide[:2]).settled
    assert not found(readings((4, 100.0), (8, 118.0), (16, 140.0))).settled


def test_one_level_is_its_own_load() -> None:
    assert found(readings((16, 800.0))).load == 16.0


def test_nothing_measured_saturates_nowhere() -> None:
    assert saturation([]) is None
    assert saturation(readings((1, 0.0))) is None


def test_the_interval_holds_the_load() -> None:
    known = [
        replace(one, interval=Interval(low=one.value * 0.95, high=one.value * 1.05)) for one in curve(1.0, 0.02, 64)
    ]
    saturated = found(known)
    assert saturated.interval is not None
    assert saturated.interval.low is not None
    assert saturated.interval.high is not None
    assert saturated.interval.low < saturated.load < saturated.interval.high
