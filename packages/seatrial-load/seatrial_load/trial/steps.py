"""The steps of a trial from level to level: choose the next one, load it, add it.

    begin_trial ─▶ next_step ─▶ load_level ─▶ add_level ─▶ next_step ─▶ … ─▶ conclude_trial

`run.run_trial` walks it in one process; the trial service walks it step by step, each level by one function or many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from seatrial_base.errors import BenchError
from seatrial_base.field_facts import made_of
from seatrial_base.units import MS_PER_S
from seatrial_load.client.event_loop import RecordedTurns, Wave, WaveConversations
from seatrial_load.decode.exchange import limits_of
from seatrial_load.decode.response import answer_text
from seatrial_load.documents.arrivals import REST_SHARE, arrivals_of, spread_starts
from seatrial_load.documents.progress import LevelAdvanced
from seatrial_load.documents.request import JUMPSTART_LEVELS, closed_loop, replays_sessions, single_requests
from seatrial_load.documents.result import LevelResult, SearchStep, load_words
from seatrial_load.documents.stop import Stop, StopReason, Void, VoidReason
from seatrial_load.health.client_health import void_of
from seatrial_load.measure.interval import precision_of
from seatrial_load.measure.lengths import conversations_of
from seatrial_load.metrics.aggregate import tally_of
from seatrial_load.metrics.counts import unmeasured_of
from seatrial_load.metrics.level import level_of, level_size, turn_numbers
from seatrial_load.metrics.request_metrics import split
from seatrial_load.prompts.trace import TracePrompts
from seatrial_load.search import ALL_MEASURED, NextLevel, Step, next_level
from seatrial_load.trial.budget import adds_load, budget_over, left_s, live_request, next_sparing
from seatrial_load.trial.dependencies import ShouldStop, Tools, go_on
from seatrial_load.trial.finalize import conclude_trial
from seatrial_load.trial.preflight import open_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial_load.client.request_writer import RequestWriter
    from seatrial_load.client.worker_pool import PoolResult
    from seatrial_load.documents.progress import TrialProgress
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import Unmeasured
    from seatrial_load.metrics.aggregate import LevelTally
    from seatrial_load.metrics.level import LevelSize
    from seatrial_load.prompts.synthetic import Prompts

JUMPSTART_REQUESTS_PER_CONCURRENCY = 3
JUMPSTART_TIMEOUT_S = 60.0
__all__ = [
    "NextLevel",
    "Step",
    "add_level",
    "begin_trial",
    "conclude_trial",
    "left_s",
    "live_request",
    "load_level",
    "next_step",
    "tallied",
]
EVERYDAY = Tools()
ALL_SENT = "every request of the level was sent"
# A worker whose connections opened this long after the common start didn't load together with the others.
LATE_START_S = 0.25
LEVEL_ROUNDS = 4  # of a request each, of a level at least: what is left of the budget isn't spent on its beginning
BARRIER_S = 15.0  # a function starts in some seconds, connects and shakes hands in some more


def jumpstart_2024(request: TrialRequest) -> TrialRequest:
    """Return the trial as AWS's article of January 2024 on JumpStart models measured.

    Concurrency doubles from 1 to 512 until a request hits the 60 s limit of an invocation; three requests for each in
    flight, all counted, none before; the whole answer at once; tokens over the whole time of a level; latency in ms per
    output token, 90th percentile. Read from the article and its public harness. Its clients were threads that started
    one after the other (some 30 ms apart); these start at once.
    """
    load = replace(
        closed_loop(request.load),
        concurrency_levels=JUMPSTART_LEVELS,
        ramp_per_concurrency=0,
        requests_per_concurrency=JUMPSTART_REQUESTS_PER_CONCURRENCY,
        max_requests_per_concurrency=None,
        warmup_requests=0,
        request_timeout_s=JUMPSTART_TIMEOUT_S,
        max_retries=0,
        start="together",
        search="sweep",
        protocol="jumpstart-2024",
    )
    return replace(request, load=load, workload=replace(single_requests(request.workload), stream=False))


def jumpstart_stop(level: LevelResult) -> Stop | None:
    """Return that a request hit the time limit, which ends that article's protocol; None when none did."""
    late = level.errors.get("timeout", 0)
    if not late:
        return None
    because = f"{late} of {level.requests} requests exceeded {JUMPSTART_TIMEOUT_S:g} s at {level.concurrency}"
    return Stop(reason=StopReason.REQUEST_TIMEOUT, because=because)


def begin_trial(
    request: TrialRequest, tools: Tools = EVERYDAY, *, should_stop: ShouldStop = go_on, waited_s: float = 0.0
) -> TrialProgress:
    """Do everything that comes before the first level.

    Args:
        waited_s: Time of the wait, so far, for a component that was asleep when the trial began before.

    Raises:
        BenchError: As `preflight.open_trial` does.
    """
    return open_trial(request, tools, should_stop, waited_s=waited_s)


def next_step(request: TrialRequest, progress: TrialProgress) -> Step:
    """Choose the next level, or return why there is none.

    Args:
        request: The trial, with the live number of copies (`live_request`).
    """
    if progress.stopped is not None:
        return progress.stopped
    if not adds_load(request, progress.users):
        return next_sparing(request, progress)
    if (time_left_s := left_s(request, progress)) <= 0:
        return budget_over(request)
    if request.manner == "in_place":
        return next_sparing(request, progress)
    load, measured = request.load, progress.levels
    if load.protocol == "jumpstart-2024" and measured and (late := jumpstart_stop(measured[-1])) is not None:
        return late
    next_load = _next_rate if arrivals_of(load).is_open else next_level
    return next_load(request, measured, left_s=time_left_s)


def _next_rate(request: TrialRequest, measured: Sequence[LevelResult], *, left_s: float) -> Step:
    load, arrivals, number = request.load, arrivals_of(request.load), len(measured)
    if measured and not measured[-1].succeeded:
        return Stop(reason=StopReason.NO_SUCCESS, because="no request succeeded at the last rate")
    if number >= arrivals.levels(load):
        return ALL_MEASURED
    gate = load.gate_rate_per_s
    if (
        gate is not None
        and (arrivals.rate_per_s(load, number) or 0.0) > gate
        and measured
        and (stop := _knee_known(request, measured, left_s)) is not None
    ):
        return stop
    connections = max(1, load.max_connections // request.copy_count)
    return NextLevel(concurrency=connections, because=arrivals.next_level(load, number))


def _knee_known(request: TrialRequest, measured: Sequence[LevelResult], time_left_s: float) -> Stop | None:
    """Return why a rate beyond the gate is of no use, or can't be tried any more; None where it can."""
    last, load = measured[-1], request.load
    if not last.valid:
        because = f"the client was the limit at {last.place}: {last.invalid_because}"
        return Stop(reason=StopReason.CLIENT_LIMIT, because=because)
    if request.objectives and not last.meets_slo:
        return Stop(reason=StopReason.GOAL_KNOWN, because=f"SLO missed at {last.place}")
    before = measured[-2] if len(measured) > 1 and measured[-2].valid else None
    if before is not None and (last.output_tok_s or 0.0) <= (before.output_tok_s or 0.0):
        because = f"throughput did not grow from {before.place} to {last.place}"
        return Stop(reason=StopReason.GOAL_KNOWN, because=because)
    answer_s = last.e2e_latency_ms.p99 / MS_PER_S if last.e2e_latency_ms else load.request_timeout_s
    needed_s = load.level_s + answer_s
    if time_left_s >= needed_s:
        return None
    because = f"a higher rate needs {needed_s:.0f} s, but {time_left_s:.0f} s of the budget are left"
    return Stop(reason=StopReason.BUDGET, because=because)


def first_starts(request: TrialRequest, progress: TrialProgress, concurrency: int) -> tuple[float, ...]:
    """Return when each stream of a closed loop's level may begin, in seconds; empty where all begin at once.

    The time that they are spread over is that of a request at the levels up to this load, or of the warm-up: no longer
    than one of this level takes. Over a longer time the measured requests would begin before all streams have, and the
    level would have fewer in flight than it says. The same in every trial of one pace.
    """
    load = request.load
    if load.start == "together" or arrivals_of(load).is_open:
        return ()
    warm_up = [one.answer_s for one in progress.unmeasured if one.occasion == "warm_up" and one.answer_s is not None]
    before = [level for level in progress.levels if level.valid and level.concurrency <= concurrency]
    known_s = [level.e2e_latency_ms.mean / MS_PER_S for level in before if level.e2e_latency_ms is not None]
    span_s = max(known_s, default=max(warm_up, default=0.0))
    span_s = min(span_s, load.request_timeout_s, max(0.0, left_s(request, progress)) / LEVEL_ROUNDS)
    return spread_starts(concurrency * request.copy_count, span_s, f"level {concurrency}")


def rest_share(request: TrialRequest) -> float:
    """Return the longest pause between a response and the next request, as a share of the time that it took."""
    is_spread = request.load.start == "spread" and not arrivals_of(request.load).is_open
    return REST_SHARE if is_spread and not replays_sessions(request.workload) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLevel:
    """The outcome of loading a level.

    Attributes:
        size: The planned requests.
        sent: Requests that the level had numbers for.
        offered_per_s: Requests per second of an open loop's schedule; None in a closed loop.
        cut: Why the level ended before it had measured what it wanted: the trial was stopped, its time was over, or
            load processes failed; None of a whole one.
    """

    pool: PoolResult
    size: LevelSize
    sent: int
    offered_per_s: float | None
    cut: Stop | None

    @property
    def measured(self) -> int:
        """Requests that had ended, without those of the ramp."""
        return len(self.pool.over) - ended_ramp(self.pool, self.size.ramp)


def load_level(
    request: TrialRequest,
    progress: TrialProgress,
    step: NextLevel,
    *,
    deadline_s: float,
    should_stop: ShouldStop,
    tools: Tools = EVERYDAY,
) -> LoadedLevel:
    """Load one level from this machine.

    Args:
        deadline_s: The level is given up at this time of the clock.

    Raises:
        BenchError: SEA508, more streams than the machine may open.
    """
    due_s = tools.schedule(request, progress)
    size = level_size(request, step.concurrency).scheduled(due_s)
    since_s = tools.clock() - progress.elapsed_s
    wave = Wave.of(
        request.load,
        streams=size.streams,
        requests=size.requests,
        deadline_s=deadline_s,
        first_index=progress.sent,
        due_s=due_s,
        starts_s=first_starts(request, progress, step.concurrency),
        rest_share=rest_share(request),
        measured_from=progress.sent + size.ramp,
        least_requests=size.least,
        enough=_enough(request, size),
        stop=should_stop,
        tell=lambda ended: tools.watch(LevelAdvanced(ended=ended, elapsed_s=tools.clock() - since_s)),
        limits=limits_of(request.workload, size.requests),
    )
    pool = _load(request, progress, wave, size, tools, workers=request.load.workers)
    tools.keep(pool.over, concurrency=step.concurrency, ramp=size.ramp)
    place = (
        f"at {load_words(step.concurrency, arrivals_of(request.load).rate_per_s(request.load, len(progress.levels)))}"
    )
    cut = pool.stopped
    if cut is None and pool.lost_because is not None:
        because = f"the load generator failed {place}: {pool.lost_because}"
        cut = Stop(reason=StopReason.LOAD_FAILED, because=because)
    elif cut is None and pool.cut:
        over = budget_over(request)
        ended = f"({len(pool.over)} of {size.requests} requests had ended)"
        cut = replace(over, because=f"{over.because} {place} {ended}")
    return LoadedLevel(
        pool=pool,
        size=size,
        sent=level_numbers(request, size, progress.sent),
        offered_per_s=None if due_s is None else arrivals_of(request.load).offered_per_s(request.load, due_s),
        cut=cut,
    )


def _load(
    request: TrialRequest,
    progress: TrialProgress,
    wave: Wave,
    size: LevelSize,
    tools: Tools,
    *,
    workers: int | None,
    part: slice = slice(None),
) -> PoolResult:
    """Load a level, or the part of its conversations that is this worker's."""
    writer = tools.writer_of(request, progress)
    if (talks := wave_conversations(request, size, writer, progress.sent)) is not None:
        recorded = recorded_turns(writer.prompts, progress.sent)
        most = max(request.load.max_connections, wave.streams)
        talks = replace(talks, numbers=talks.numbers[part])
        wave = replace(wave, conversations=talks, recorded=recorded, most_streams=most)
    return tools.send(request, writer, wave, workers)


def wave_conversations(
    request: TrialRequest, size: LevelSize, writer: RequestWriter, first: int
) -> WaveConversations | None:
    """Return the conversations of a level, whose numbers begin at one; None of single requests."""
    conversations = conversations_of(request.workload)
    if conversations is None:
        return None
    return WaveConversations(
        numbers=turn_numbers(conversations, size, first),
        delay_s=lambda number: conversations.delay_before(number - first),
        write=writer.turn,
        read=partial(answer_text, stream=request.workload.stream),
    )


def recorded_turns(prompts: Prompts, first: int) -> RecordedTurns | None:
    """Return how the turns of a level follow each other, whose numbers begin at one; None where nothing recorded it."""
    trace = prompts.trace if isinstance(prompts, TracePrompts) else None
    if trace is None:
        return None
    later: dict[int, list[int]] = {}
    for row, waits in enumerate(trace.waits):
        for back in waits:
            later.setdefault(row - back, []).append(back)

    def place(number: int) -> int:
        return (number - first) % len(trace)

    return RecordedTurns(
        waits=lambda number: [number - back for back in trace.waits[place(number)]] if trace.waits else [],
        after=lambda number: [number + ahead for ahead in later.get(place(number), ())],
        gap_s=lambda number: trace.gaps_s[place(number)],
    )


def level_numbers(request: TrialRequest, size: LevelSize, first: int) -> int:
    """Return how many numbers the requests of a level have; no open loop has conversations."""
    conversations = conversations_of(request.workload)
    if conversations is None:
        return size.requests
    return turn_numbers(conversations, size, first)[-1].stop - first


def tallied(request: TrialRequest, step: NextLevel, loaded: LoadedLevel) -> LevelTally:
    """Sum up a loaded level; of one that was cut the requests that had ended, of which `measured` tells the number."""
    size, offered_per_s, cut = loaded.size, loaded.offered_per_s, loaded.cut
    return _tally(request, loaded.pool, cut, concurrency=step.concurrency, ramp=size.ramp, offered_per_s=offered_per_s)


def _tally(
    request: TrialRequest,
    pool: PoolResult,
    cut: Stop | None,
    *,
    concurrency: int,
    ramp: int,
    offered_per_s: float | None,
) -> LevelTally:
    last_s = max(record.sent_s for record in pool.over)
    at_once = pool.evidence.streams if request.load.arrival == "closed" else len(pool.records)
    tally = tally_of(
        pool.over,
        concurrency=concurrency,
        objectives=request.objectives,
        ramp=min(ended_ramp(pool, ramp), len(pool.over) - 1),  # sessions that a failed turn ended send fewer
        arrival=request.load.arrival,
        protocol=request.load.protocol,
        offered_requests_per_s=offered_per_s,
        client=pool.evidence,
        enough_because=pool.enough_because or ("" if cut else ALL_SENT),
        sessions=at_once if replays_sessions(request.workload) else 0,
    )
    # Those sent after the last that had ended might as well not have been sent.
    overtaken = sum(record.error == "unanswered" and record.sent_s < last_s for record in pool.records)
    return replace(tally, cut=cut, overtaken=overtaken)


def ended_ramp(pool: PoolResult, ramp: int) -> int:
    """Return how many of a level's first requests, which aren't measured, had ended."""
    first, _ = split(pool.records, ramp)
    return sum(record.error != "unanswered" for record in first)


def unmeasured_level(
    request: TrialRequest, progress: TrialProgress, step: NextLevel, loaded: LoadedLevel, because: str
) -> Unmeasured:
    """Sum up the outcome of a level that was cut, for a reason."""
    ordered = arrivals_of(request.load).rate_per_s(request.load, len(progress.levels))
    return unmeasured_of(
        loaded.pool.records,
        "level",
        concurrency=step.concurrency,
        offered_requests_per_s=loaded.offered_per_s if ordered is None else ordered,
        because=because,
    )


def add_level(request: TrialRequest, progress: TrialProgress, step: NextLevel, tally: LevelTally) -> TrialProgress:
    """Add a level to the trial; one that the client limited is kept, and void. One that was cut stays apart."""
    ordered = arrivals_of(request.load).rate_per_s(request.load, len(progress.levels))
    tally = tally if ordered is None else replace(tally, offered_requests_per_s=ordered)
    level = level_of(tally, request.level_bounds, copy_count=request.copy_count)
    level = replace(level, spread_s=max(first_starts(request, progress, step.concurrency), default=0.0))
    if level.client is not None:
        void = void_of(
            level.client,
            requested_streams=None
            if level.is_open or replays_sessions(request.workload)
            else step.concurrency * request.copy_count,
            rest_share=rest_share(request) / 2,
            itl_p50_ms=level.itl_ms.p50 if level.itl_ms else None,
            calibration=progress.client,
            tpot_p50_ms=level.tpot_ms.p50 if level.tpot_ms else None,
            e2e_p50_ms=level.e2e_latency_ms.p50 if level.e2e_latency_ms else None,
            beside_engine=bool(progress.engine_note),
        )
        level = replace(level, void=void)
    if tally.cut is not None and tally.cut.reason == StopReason.LOAD_FAILED:
        level = replace(level, void=Void(reasons=(VoidReason.TOO_FEW_IN_FLIGHT,), because=tally.cut.because))
    if level.cut:
        return replace(progress, cut=(*progress.cut, level))
    size = level_size(request, step.concurrency)
    sent = level.requests if level.is_open else level_numbers(request, size, progress.sent)
    return replace(
        progress,
        sent=progress.sent + sent,
        levels=(*progress.levels, level),
        search=(*progress.search, made_of(SearchStep, level, step)),
    )


def _enough(request: TrialRequest, size: LevelSize) -> Callable[[Sequence[float]], str | None] | None:
    """Return the end of a level's sending: the median latency is known well enough; None where all are to be sent."""
    if size.least == size.most:
        return None

    def enough(seconds: Sequence[float]) -> str | None:
        precision = precision_of(seconds)
        if precision is None or precision > request.load.precision:
            return None
        return f"the median end-to-end latency is known to ±{precision * 100:.1f} % after {len(seconds)} answers"

    return enough


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
        starts_s: When one more of its streams may begin, from the start; empty: all at once.
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
    starts_s: tuple[float, ...] = ()
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
        starts_s=first_starts(request, progress, concurrency),
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
        BenchError: SEA507, the share was stopped or cut short before it had measured anything.
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
        starts_s=order.starts_s,
        rest_share=rest_share(request),
        measured_from=order.first_index + order.ramp * order.workers,
        stop=should_stop,
    )
    part = slice(order.worker, None, order.workers)
    pool = _load(request, progress, wave, level_size(request, order.concurrency), tools, workers=1, part=part)
    _check_start(order, pool.started_s - (wave.start_s or pool.started_s), LATE_START_S)
    cut = pool.stopped
    if cut is None and pool.cut:
        over = f"({len(pool.over)} of {order.requests} requests were over)"
        because = f"the budget ended before worker {order.worker} was done {over}"
        cut = Stop(reason=StopReason.BUDGET, because=because)
    if cut is not None and len(pool.over) <= ended_ramp(pool, order.ramp):
        raise BenchError.of("SEA507", cut.because)
    offered_per_s = None if order.due_s is None else arrivals_of(request.load).offered_per_s(request.load, order.due_s)
    return _tally(request, pool, cut, concurrency=order.concurrency, ramp=order.ramp, offered_per_s=offered_per_s)


def _check_start(order: ShareOrder, late_s: float, at_most_s: float) -> None:
    if late_s > at_most_s:
        message = f"worker {order.worker} of {order.workers} started {late_s:.1f} s late"
        raise LateStartError.of("SEA507", message, hint="allow the workers more time to start")
