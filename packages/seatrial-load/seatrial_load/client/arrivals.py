"""When an open loop sends: the schedule of each level, and the rate that it offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.errors import BenchError
from seatrial_load.documents.request import LISTED_RATES
from seatrial_load.documents.result import load_words
from seatrial_load.measure.due_times import constant, gamma, poisson, ramp, recorded, replay
from seatrial_load.prompts.trace import TracePrompts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.progress import TrialProgress
    from seatrial_load.documents.request import Load, TrialRequest
    from seatrial_load.trial.dependencies import Tools


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
