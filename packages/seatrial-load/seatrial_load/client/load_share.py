"""One worker's share of a level that many functions load together: begin together, load, sum up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial_base.errors import BenchError
from seatrial_base.field_facts import made_of
from seatrial_load.client.event_loop import Wave
from seatrial_load.client.worker_pool import CrewOrder, load_with_workers
from seatrial_load.documents.arrivals import arrivals_of
from seatrial_load.metrics.aggregate import tally_of
from seatrial_load.metrics.level import level_size
from seatrial_load.trial.budget import left_s
from seatrial_load.trial.steps import ALL_SENT, EVERYDAY, wave_conversations

if TYPE_CHECKING:
    from seatrial_load.documents.progress import TrialProgress
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.metrics.aggregate import LevelTally
    from seatrial_load.trial.dependencies import ShouldStop, Tools


# A worker whose connections opened this long after the common start didn't load together with the others.
LATE_START_S = 0.25
BARRIER_S = 15.0  # a function starts in some seconds, connects and shakes hands in some more


class LateStartError(BenchError):
    """A worker wasn't ready at the common start: all that is wrong is that it had too little time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOrder:
    """What one worker loads of a level.

    Attributes:
        concurrency: Requests in flight per copy, of the whole level.
        worker: The worker's number, from 0.
        workers: How many there are: every `workers`-th request is this one's.
        streams: Requests that this worker keeps in flight.
        requests: Requests of its share, ramp included.
        ramp: Its first requests, which aren't measured.
        due_s: When each of its requests must leave, from the start; None in a closed loop.
        start_at_epoch_s: When all workers begin, in seconds since the epoch.
    """

    concurrency: int
    worker: int
    workers: int
    streams: int
    requests: int
    ramp: int
    first_index: int
    due_s: tuple[float, ...] | None
    start_at_epoch_s: float
    deadline_epoch_s: float


def plan_shares(
    request: TrialRequest,
    progress: TrialProgress,
    concurrency: int,
    workers: int,
    now_epoch_s: float,
    *,
    barrier_s: float = BARRIER_S,
    tools: Tools = EVERYDAY,
) -> tuple[ShareOrder, ...]:
    """Part a level among workers, at most one for each stream.

    A share doesn't decide when enough is measured: every worker sends all of its requests, the level's fewest.

    Args:
        concurrency: Requests in flight per copy.
        barrier_s: How long the workers have until they begin.
    """
    due_s = tools.schedule(request, progress)
    size = level_size(request, concurrency).scheduled(due_s)
    start_s = now_epoch_s + barrier_s
    whole = Wave.of(
        request.load,
        streams=size.streams,
        requests=size.ramp + size.least,
        deadline_s=start_s + max(0.0, left_s(request, progress)),
        first_index=progress.sent,
        due_s=due_s,
    )
    workers = min(workers, whole.streams, whole.requests)
    return tuple(
        made_of(
            ShareOrder,
            whole.share(worker, workers),
            concurrency=concurrency,
            worker=worker,
            workers=workers,
            ramp=len(range(worker, size.ramp, workers)),
            start_at_epoch_s=start_s,
            deadline_epoch_s=whole.deadline_s,
        )
        for worker in range(workers)
    )


def send_worker_share(
    request: TrialRequest,
    progress: TrialProgress,
    order: ShareOrder,
    *,
    should_stop: ShouldStop,
    tools: Tools = EVERYDAY,
) -> LevelTally:
    """Wait for the common start, load the share and sum it up.

    Raises:
        LateStartError: SEA507, it came too late for the common start, or its connections did.
        BenchError: SEA507, the share was stopped or cut short.
    """
    _check_start(order, tools.wall_clock().timestamp() - order.start_at_epoch_s, 0.0)
    epoch_to_clock_s = tools.clock() - tools.wall_clock().timestamp()
    wave = Wave.of(
        request.load,
        streams=order.streams,
        requests=order.requests,
        deadline_s=order.deadline_epoch_s + epoch_to_clock_s,
        first_index=order.first_index,
        stride=order.workers,
        start_s=order.start_at_epoch_s + epoch_to_clock_s,
        due_s=order.due_s,
        measured_from=order.first_index + order.ramp * order.workers,
        stop=should_stop,
    )
    writer = tools.writer_of(request, progress)
    size = level_size(request, order.concurrency)
    if (talks := wave_conversations(request, size, writer, progress.sent)) is not None:
        own = talks.numbers[order.worker :: order.workers]
        wave = replace(wave, conversations=replace(talks, numbers=own))
    dial = tools.dial_to(writer)
    crew_order = CrewOrder(wave=wave, stream=request.workload.stream, secret=writer.secret, terms=writer.terms)
    crew = load_with_workers(crew_order, writer, lambda: dial, workers=1, clock=tools.clock)
    _check_start(order, crew.started_s - (wave.start_s or crew.started_s), LATE_START_S)
    if crew.stopped is not None:
        raise BenchError.of("SEA507", crew.stopped.because)
    if crew.cut:
        over = f"({len(crew.over)} of {order.requests} requests were over)"
        raise BenchError.of("SEA507", f"the budget ended before worker {order.worker} was done {over}")
    arrivals = arrivals_of(request.load)
    return tally_of(
        crew.records,
        concurrency=order.concurrency,
        objectives=request.objectives,
        ramp=order.ramp,
        arrival=request.load.arrival,
        protocol=request.load.protocol,
        offered_requests_per_s=None if order.due_s is None else arrivals.offered_per_s(request.load, order.due_s),
        client=crew.evidence,
        enough_because=crew.enough_because or ALL_SENT,
    )


def _check_start(order: ShareOrder, late_s: float, at_most_s: float) -> None:
    if late_s > at_most_s:
        message = f"worker {order.worker} of {order.workers} started {late_s:.1f} s late"
        raise LateStartError.of("SEA507", message, hint="allow the workers more time to start")
