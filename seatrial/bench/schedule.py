"""When the requests of an open loop's next level must leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.bench import arrivals
from seatrial.bench.prompts.trace import TracePrompts
from seatrial.errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.bench.load import Load
    from seatrial.bench.progress import TrialProgress
    from seatrial.bench.request import TrialRequest
    from seatrial.bench.tools import Tools


def schedule(request: TrialRequest, progress: TrialProgress, tools: Tools) -> tuple[float, ...]:
    """Return the seconds from the level's start at which its requests are due.

    Where a Poisson process draws none, one leaves at once: chance shall not end a trial.

    Raises:
        BenchError: SEA501, the level has no request, or a replay has no trace.
    """
    load, number = request.load, len(progress.levels)
    match load.arrival:
        case "poisson":
            seed = f"{progress.started_at}:{number}"
            due_s = arrivals.poisson(load.rates_per_s[number], load.level_s, seed) or (0.0,)
        case "constant":
            due_s = arrivals.constant(load.rates_per_s[number], load.level_s)
        case "ramp":
            due_s = arrivals.ramp(load.rates_per_s[0], load.rates_per_s[1], load.level_s)
        case _:
            due_s = _recorded(request, progress, tools)
    if not due_s:
        message = f"not one request is due in {load.level_s:g} s"
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

    A draw of a Poisson process has a few requests more or less: by its count, two rates might be one, and no trial
    would find its level in another.
    """
    return load.rates_per_s[number] if load.arrival in ("poisson", "constant") else None


def _recorded(request: TrialRequest, progress: TrialProgress, tools: Tools) -> tuple[float, ...]:
    prompts = tools.writer(request, started_at=progress.started_at).prompts
    if not isinstance(prompts, TracePrompts):
        message = f"a replay needs a trace, the workload's prompts are {request.workload.source}"
        raise BenchError.of("SEA501", message, where="trial request", field="workload.source")
    return arrivals.replay(prompts.trace.due_s, tools.replay_speed)
