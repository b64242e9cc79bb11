"""When the requests of an open loop's next level must leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.bench import arrivals
from seatrial.bench.prompts.trace import TracePrompts
from seatrial.errors import BenchError

if TYPE_CHECKING:
    from seatrial.bench.progress import TrialProgress
    from seatrial.bench.request import TrialRequest
    from seatrial.bench.tools import Tools


def schedule(request: TrialRequest, progress: TrialProgress, tools: Tools) -> tuple[float, ...]:
    """Return the seconds from the level's start at which its requests are due.

    Raises:
        BenchError: SEA501, the level has no request, or a replay has no trace.
    """
    load, number = request.load, len(progress.levels)
    match load.arrival:
        case "poisson":
            due_s = arrivals.poisson(load.rates_per_s[number], load.level_s, f"{progress.started_at}:{number}")
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


def _recorded(request: TrialRequest, progress: TrialProgress, tools: Tools) -> tuple[float, ...]:
    prompts = tools.writer(request, started_at=progress.started_at).prompts
    if not isinstance(prompts, TracePrompts):
        message = f"a replay needs a trace, the workload's prompts are {request.workload.source}"
        raise BenchError.of("SEA501", message, where="trial request", field="workload.source")
    return arrivals.replay(prompts.trace.due_s, tools.replay_speed)
