"""When requests are due in an open loop: times in seconds, the same for the same arguments.

The client sends at them, and the planner simulates them. All return ascending times from 0 on, below the length of the
level.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_ROUNDING = 1e-9


def poisson(rate_per_s: float, seconds: float, seed: str) -> tuple[float, ...]:
    """Return a Poisson process: gaps drawn from the exponential distribution of mean 1 / rate, so bursts are natural.

    Args:
        rate_per_s: Mean requests per second, above 0.
        seconds: Length of the level.
        seed: Another seed gives another draw.
    """
    return gamma(rate_per_s, seconds, seed, smoothness=1.0)


def gamma(rate_per_s: float, seconds: float, seed: str, *, smoothness: float) -> tuple[float, ...]:
    """Return times whose gaps are drawn from a gamma distribution of mean 1 / rate.

    Args:
        rate_per_s: Mean requests per second, above 0.
        seconds: Length of the level.
        seed: Another seed gives another draw.
        smoothness: The shape: 1 is a Poisson process, less comes in bursts, more comes evenly. The gaps' coefficient of
            variation is 1 / its square root (AIPerf's `--arrival-smoothness`, vLLM's `--burstiness`).
    """
    _check(rate_per_s=rate_per_s, seconds=seconds, smoothness=smoothness)
    draw = random.Random(seed)  # noqa: S311 (a schedule that can be made again, not a secret)
    scale_s = 1 / (smoothness * rate_per_s)
    times: list[float] = []
    at_s = draw.gammavariate(smoothness, scale_s)
    while at_s < seconds:
        times.append(at_s)
        at_s += draw.gammavariate(smoothness, scale_s)
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


def recorded(times_s: Sequence[float], rate_per_s: float, seconds: float) -> tuple[float, ...]:
    """Return recorded times at another mean rate: every gap is longer, or shorter, alike, so that bursts stay.

    After the last comes the first again, a mean gap later.

    Args:
        times_s: When requests came, ascending, at least one.
        rate_per_s: Mean requests per second, above 0.
        seconds: Length of the level.
    """
    _check(rate_per_s=rate_per_s, seconds=seconds)
    stretch, period_s = 1 / (replay_speed(times_s, rate_per_s) or math.inf), len(times_s) / rate_per_s
    turns = math.ceil(seconds / period_s)
    due_s = (turn * period_s + (at_s - times_s[0]) * stretch for turn in range(turns) for at_s in times_s)
    return tuple(at_s for at_s in due_s if at_s < seconds)


def replay_speed(times_s: Sequence[float], rate_per_s: float) -> float:
    """Return how many times as fast as recorded requests come at a mean rate; 0 where all were recorded at once.

    Args:
        times_s: When requests came, ascending, at least one.
        rate_per_s: Mean requests per second.
    """
    gaps, span_s = len(times_s) - 1, times_s[-1] - times_s[0]
    return rate_per_s * span_s / gaps if gaps else 0.0


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
            raise ValueError(f"{name} is {number:g}, but must be above 0")
