from __future__ import annotations

import threading

import pytest

from seatrial_laptop.aws.clock import FASTEST, VirtualClock


class RealTime:
    """A real clock that a test moves."""

    def __init__(self) -> None:
        self.s = 1_000.0

    def __call__(self) -> float:
        return self.s


def test_virtual_seconds_pass_at_the_speed_and_a_change_of_it_makes_no_jump() -> None:
    real = RealTime()
    clock = VirtualClock(real)
    real.s += 5
    assert clock.now_s() == 5.0
    clock.set_speed(60)
    assert clock.now_s() == 5.0
    real.s += 2
    assert clock.now_s() == 125.0
    clock.set_speed(0.5)
    assert clock.now_s() == 125.0
    real.s += 2
    assert (clock.now_s(), clock.speed) == (126.0, 0.5)


@pytest.mark.parametrize("speed", [0, -1, FASTEST + 1, float("nan"), float("inf")])
def test_a_speed_that_is_none_is_refused_and_changes_nothing(speed: float) -> None:
    clock = VirtualClock(RealTime())
    with pytest.raises(ValueError, match="is not above 0 and at most 600"):
        clock.set_speed(speed)
    assert clock.speed == 1.0


def test_who_waits_is_woken_by_a_change_of_the_speed() -> None:
    clock = VirtualClock()
    clock.set_speed(0.001)
    waiting = threading.Thread(target=clock.wait, args=(30.0,), daemon=True)
    waiting.start()
    clock.set_speed(FASTEST)
    waiting.join(20)
    assert not waiting.is_alive()
    assert clock.now_s() >= 30.0


def test_nobody_waits_for_the_past() -> None:
    clock = VirtualClock(RealTime())
    clock.wait(0)
    clock.wait(-5)
    assert clock.now_s() == 0.0
