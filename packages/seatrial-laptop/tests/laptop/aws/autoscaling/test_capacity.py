from __future__ import annotations

import pytest

from seatrial_base.autoscaling import (
    Bounds,
    CapacityChange,
    LastActions,
    PolicyReading,
    wanted_change,
)

ONE_TO_FIVE = Bounds(least=1, most=5)


def reading(**changes: float | bool | None) -> PolicyReading:
    return PolicyReading(**{"policy": "knee", "target": 4.0, **changes})  # type: ignore[arg-type] # by the tests' own words


def desired(
    current: int,
    *readings: PolicyReading,
    bounds: Bounds = ONE_TO_FIVE,
    out_s: float = -1e9,
    in_s: float = -1e9,
    now_s: float = 1000.0,
) -> int | None:
    change = wanted_change(current, bounds, readings, LastActions(out_s=out_s, in_s=in_s), now_s)
    return change.desired if change else None


@pytest.mark.parametrize(
    ("current", "metric", "wanted"),
    [(1, 5.0, 2), (2, 4.1, 3), (2, 6.0, 3), (2, 8.0, 4), (2, 8.1, 5), (2, 100.0, 5), (5, 9.0, None), (3, 0.0, 4)],
)
def test_it_scales_out_to_the_target_by_one_at_least_and_to_the_most(
    current: int, metric: float, wanted: int | None
) -> None:
    assert desired(current, reading(high=metric)) == wanted


@pytest.mark.parametrize(
    ("current", "metric", "wanted"), [(4, 0.0, 1), (4, 1.0, 1), (4, 2.5, 3), (4, 3.5, None), (1, 0.0, None)]
)
def test_it_scales_in_by_what_keeps_the_metric_at_the_target(current: int, metric: float, wanted: int | None) -> None:
    assert desired(current, reading(low=metric)) == wanted


def test_cooldowns_hold_their_own_side() -> None:
    busy, idle = reading(high=9.0, out_cooldown_s=60.0), reading(low=0.0, in_cooldown_s=300.0)
    assert [desired(2, busy, out_s=1000.0 - ago) for ago in (59, 60)] == [None, 5]
    assert desired(2, busy, in_s=999.0) == 5
    assert [desired(2, idle, in_s=1000.0 - ago) for ago in (299, 300)] == [None, 1]


def test_a_suspended_side_does_nothing_and_the_other_goes_on() -> None:
    no_out, no_in = Bounds(least=2, most=5, out_suspended=True), Bounds(least=1, most=3, in_suspended=True)
    assert desired(2, reading(high=9.0), bounds=no_out) is None
    assert desired(1, bounds=no_out) is None
    assert desired(3, reading(low=0.0), bounds=no_out) == 2
    assert desired(3, reading(low=0.0), bounds=no_in) is None
    assert desired(5, bounds=no_in) is None
    assert desired(2, reading(high=9.0), bounds=no_in) == 3


def test_the_capacities_hold_without_a_policy() -> None:
    bounds = Bounds(least=2, most=5)
    told = [wanted_change(count, bounds, (), LastActions(), 0.0) for count in (0, 1, 2, 5, 6)]
    low, high = CapacityChange(2, "minimum capacity was set to 2"), CapacityChange(5, "maximum capacity was set to 5")
    assert told == [low, low, None, None, high]


def test_several_policies_scale_out_by_the_largest_and_in_only_together() -> None:
    assert desired(2, reading(high=5.0), reading(high=7.9), reading()) == 4
    assert desired(3, reading(low=0.0), reading()) is None
    assert desired(3, reading(low=0.0), reading(low=2.0)) == 2
    assert desired(3, reading(low=0.0), reading(high=5.0)) == 4
    assert desired(5, reading(low=0.0), reading(high=5.0)) is None
    assert desired(3, reading(low=0.0, scales_in=False)) is None
