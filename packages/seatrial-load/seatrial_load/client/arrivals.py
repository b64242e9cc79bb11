"""When an open loop sends: schedules in seconds from the level's start, the same for the same arguments.

All return ascending times from 0 on, below the length of the level.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from seatrial_base.errors import BenchError
from seatrial_load.documents.request import LISTED_RATES
from seatrial_load.documents.result import load_words
from seatrial_load.prompts.dataset import replay_speed
from seatrial_load.prompts.trace import TracePrompts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seatrial_load.documents.progress import TrialProgress
    from seatrial_load.documents.request import Load, TrialRequest
    from seatrial_load.trial.dependencies import Tools


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


def schedule(request: TrialRequest, progress: TrialProgress, tools: Tools) -> tuple[float, ...]:
    """Return the seconds from the level's start at which its requests are due: the same in every trial.

    Where chance draws none, one leaves at once: it shall not end a trial.

    Raises:
        BenchError: SEA501, the level has no request, or a replay has no trace.
    """
    load, number = request.load, len(progress.levels)
    match load.arrival:
        case "poisson":
            due_s = poisson(load.rates_per_s[number], load.level_s, f"level {number}") or (0.0,)
        case "gamma":
            smoothness, seed = load.arrival_smoothness, f"level {number}"
            due_s = gamma(load.rates_per_s[number], load.level_s, seed, smoothness=smoothness) or (0.0,)
        case "constant":
            due_s = constant(load.rates_per_s[number], load.level_s)
        case "recorded":
            due_s = recorded(request.workload.times_s, load.rates_per_s[number], load.level_s)
        case "ramp":
            due_s = ramp(load.rates_per_s[0], load.rates_per_s[1], load.level_s)
        case _:
            due_s = _replayed(request, progress, tools)
    if not due_s:
        message = f"no request is due within {load.level_s:g} s"
        raise BenchError.of("SEA501", message, where="trial request", field="load.level_s")
    return due_s


def offered_per_s(load: Load, due_s: Sequence[float]) -> float:
    """Return the requests per second that a level's requests, or a share of them, were offered at.

    Of a recording, which has no length of its own: gaps / time from the first request to the last; the answers' time
    has no part in it. Requests that were all due at once count as due within a second.
    """
    if load.arrival != "replay":
        return len(due_s) / load.level_s
    seconds = due_s[-1] - due_s[0]
    return (len(due_s) - 1) / seconds if seconds > 0 else float(len(due_s))


def ordered_per_s(load: Load, number: int) -> float | None:
    """Return the rate that the level of this number was to offer, by which levels are told apart; None if it has none.

    A draw has a few requests more or less: by its count, two rates might be one, and no trial
    would find its level in another.
    """
    return load.rates_per_s[number] if load.arrival in LISTED_RATES else None


def ordered_words(load: Load, number: int, concurrency: int) -> str:
    """Return what the level of this number was to offer, in words: its rate, else its concurrency per copy."""
    return load_words(concurrency, ordered_per_s(load, number))


def _replayed(request: TrialRequest, progress: TrialProgress, tools: Tools) -> tuple[float, ...]:
    prompts = tools.writer(request, started_at=progress.started_at).prompts
    if not isinstance(prompts, TracePrompts):
        message = f"a replay needs a trace; the workload's prompts are {request.workload.source}"
        raise BenchError.of("SEA501", message, where="trial request", field="workload.source")
    return replay(prompts.trace.due_s, tools.replay_speed)
