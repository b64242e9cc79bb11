"""When an open loop sends: schedules in seconds from the level's start, the same for the same arguments.

All return ascending times from 0 on, below the length of the level.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_ROUNDING = 1e-9


def poisson(rate_per_s: float, seconds: float, seed: str) -> tuple[float, ...]:
    """Return a Poisson process: gaps drawn from the exponential distribution of mean 1 / rate, so bursts are natural.

    Args:
        rate_per_s: Mean requests per second, above 0.
        seconds: Length of the level.
        seed: Another seed gives another draw.
    """
    _check(rate_per_s=rate_per_s, seconds=seconds)
    draw = random.Random(seed)  # noqa: S311 (a schedule that can be made again, not a secret)
    times: list[float] = []
    at_s = draw.expovariate(rate_per_s)
    while at_s < seconds:
        times.append(at_s)
        at_s += draw.expovariate(rate_per_s)
    return tuple(times)


def constant(rate_per_s: float, seconds: float) -> tuple[float, ...]:
    """Return evenly spaced times: request i is due at i / rate."""
    _check(rate_per_s=rate_per_s, seconds=seconds)
    return tuple(index / rate_per_s for index in range(_count(rate_per_s * seconds)))


def ramp(from_rate_per_s: float, to_rate_per_s: float, seconds: float) -> tuple[float, ...]:
    """Return times whose rate changes linearly from the first to the second over the level.

    By time t, from x t + (to - from) x t² / (2 x seconds) requests are due. Request i is due when that is i: the
    positive root of the quadratic, in the form that doesn't subtract equal numbers.

    Args:
        from_rate_per_s: Requests per second at the start; may be 0.
        to_rate_per_s: Requests per second at the end; may be 0, but not both.
        seconds: Length of the level.
    """
    _check(highest_rate_per_s=max(from_rate_per_s, to_rate_per_s), seconds=seconds)
    if min(from_rate_per_s, to_rate_per_s) < 0:
        raise ValueError("a rate is below 0")
    acceleration = (to_rate_per_s - from_rate_per_s) / seconds
    count = _count((from_rate_per_s + to_rate_per_s) / 2 * seconds)
    return tuple(_time_of(index, from_rate_per_s, acceleration) for index in range(count))


def replay(timestamps_s: Iterable[float], speed: float = 1.0) -> tuple[float, ...]:
    """Return recorded times from their first on, in order, `speed` times as fast."""
    _check(speed=speed)
    ordered = sorted(timestamps_s)
    return tuple((at_s - ordered[0]) / speed for at_s in ordered)


def _time_of(index: int, from_rate_per_s: float, acceleration: float) -> float:
    if index == 0:
        return 0.0
    root = math.sqrt(max(0.0, from_rate_per_s**2 + 2 * acceleration * index))
    return 2 * index / (from_rate_per_s + root)


def _count(due: float) -> int:
    return math.ceil(due - _ROUNDING)


def _check(**numbers: float) -> None:
    for name, number in numbers.items():
        if not (number > 0 and math.isfinite(number)):
            raise ValueError(f"{name} is {number:g}, not a number above 0")
