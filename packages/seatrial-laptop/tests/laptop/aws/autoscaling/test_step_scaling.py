from __future__ import annotations

import math

import pytest

from seatrial_base.autoscaling import (
    Bounds,
    LastActions,
    PolicyReading,
    WantedStep,
    wanted_change,
)
from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.autoscaling.scaling_policies import Breach, check_steps, stepped_capacity

BOUNDS = Bounds(least=0, most=10)


def configuration(kind: str, *steps: tuple[float | None, float | None, int], **more: object) -> dict[str, object]:
    listed = []
    for low, high, adjustment in steps:
        step: dict[str, object] = {"ScalingAdjustment": adjustment}
        if low is not None:
            step["MetricIntervalLowerBound"] = low
        if high is not None:
            step["MetricIntervalUpperBound"] = high
        listed.append(step)
    return {"AdjustmentType": kind, "StepAdjustments": listed, **more}


@pytest.mark.parametrize(
    ("given", "current", "delta", "capacity"),
    [
        (configuration("ChangeInCapacity", (0, None, 1)), 0, 0.0, 1),
        (configuration("ChangeInCapacity", (0, 10, 1), (10, None, 3)), 2, 9.9, 3),
        (configuration("ChangeInCapacity", (0, 10, 1), (10, None, 3)), 2, 10.0, 5),
        (configuration("ExactCapacity", (0, None, 4)), 7, 1.0, 4),
        (configuration("PercentChangeInCapacity", (0, None, 25)), 10, 1.0, 12),
        (configuration("PercentChangeInCapacity", (0, None, 10)), 3, 1.0, 4),
        (configuration("PercentChangeInCapacity", (0, None, 10), MinAdjustmentMagnitude=2), 3, 1.0, 5),
        (configuration("PercentChangeInCapacity", (0, None, -50)), 5, 1.0, 3),
        (configuration("ChangeInCapacity", (5, None, 1)), 2, 1.0, 2),
    ],
)
def test_a_step_changes_the_capacity(given: dict[str, object], current: int, delta: float, capacity: int) -> None:
    assert stepped_capacity(given, current, Breach("alarm", delta, is_above=True)) == capacity


@pytest.mark.parametrize(("delta", "capacity"), [(0.0, 3), (-4.0, 3), (-5.0, 1)])
def test_below_a_threshold_the_upper_bound_belongs_to_the_step(delta: float, capacity: int) -> None:
    steps = configuration("ChangeInCapacity", (-5.0, 0.0, -1), (None, -5.0, -3))
    assert stepped_capacity(steps, 4, Breach("alarm", delta, is_above=False)) == capacity


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "must have AdjustmentType and StepAdjustments"),
        (configuration("ChangeInCapacity"), "must have AdjustmentType and StepAdjustments"),
        (configuration("ChangeInCapacity", (0, 5, 1), (4, None, 2)), "must not overlap"),
        (configuration("ChangeInCapacity", (0, 5, 1), (6, None, 2)), "must not have a gap"),
        (configuration("ChangeInCapacity", (5, 5, 1)), "must be less than"),
        (configuration("ExactCapacity", (0, None, 1), MinAdjustmentMagnitude=1), "PercentChangeInCapacity"),
    ],
)
def test_steps_that_say_nothing_or_two_things_are_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ApiError, match=said):
        check_steps(wrong)


def desired(
    *steps: int, current: int = 2, readings: tuple[PolicyReading, ...] = (), last_out_s: float = -math.inf
) -> int | None:
    wanted = [WantedStep(each, f"step to {each}", 60.0) for each in steps]
    change = wanted_change(current, BOUNDS, readings, LastActions(out_s=last_out_s), 100.0, steps=wanted)
    return change.desired if change else None


def test_the_larger_capacity_wins_and_out_wins_over_in() -> None:
    high = PolicyReading(policy="p", target=1.0, high=2.0)
    low = PolicyReading(policy="p", target=1.0, low=0.0)
    assert desired(3, 5) == 5
    assert desired(3, readings=(high,)) == 4
    assert desired(1, readings=(high,)) == 4
    assert desired(1, readings=(low,)) == 1
    assert desired(1, 3) == 3
    assert desired(99) == 10


def test_a_cooldown_holds_a_step_back() -> None:
    assert desired(3, last_out_s=41.0) is None
    assert desired(1, last_out_s=41.0) is None
    assert desired(3, last_out_s=40.0) == 3
