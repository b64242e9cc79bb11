"""The steps of a trial, all but the load: one call of the function is one step.

The state machine (`trials.trial_service`) says which; what a step leaves for the next lies in the results bucket.
Each step may be repeated: it reads what the one before wrote, and writes the same again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NotRequired, TypeAlias, TypedDict

from seatrial_base.bounds import LONGEST_TRIAL_S, TRIAL_MARGIN_S
from seatrial_base.errors import BenchError
from seatrial_base.tags import candidate_name
from seatrial_cdk.trials.runtime.answer import allows_deployment, final_answer, note_sent, respond_once
from seatrial_cdk.trials.runtime.candidate import (
    LATEST_LOOK_S,
    REFUSED_S,
    CandidateStartingError,
    NoRoomError,
    await_candidate,
    keep_copies,
    keep_first_start,
    keep_no_room,
    read_start,
    started_at_s,
)
from seatrial_cdk.trials.runtime.components import remove_candidate
from seatrial_cdk.trials.runtime.load_phase import (
    CutLevel,
    LoadPhase,
    LostWorker,
    ShareLostError,
    WorkerShare,
    merge_tallies,
    write_current_level,
)
from seatrial_cdk.trials.runtime.log_groups import log, log_group_name, log_groups_of
from seatrial_cdk.trials.runtime.order import OrderRef, read_order, trial_key
from seatrial_cdk.trials.runtime.outcome import baseline_of, keep_error, keep_result, keep_untried
from seatrial_cdk.trials.runtime.ownership import STOPPED, Ownership
from seatrial_cdk.trials.runtime.scaling import resume_scaling, suspend_scale_in
from seatrial_cdk.trials.runtime.scheduled import keep_scheduled, report_not_made, scheduled_baseline
from seatrial_cdk.trials.runtime.store import UnavailableError, is_scheduled, run_key
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.measure.functions import workers_at
from seatrial_load.trial.budget import live_request
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.steps import BARRIER_S, plan_shares

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seatrial_cdk.trials.runtime.context import TrialContext
    from seatrial_cdk.trials.runtime.order import Order
    from seatrial_cdk.trials.runtime.properties import TrialProperties
    from seatrial_load.documents.progress import TrialProgress
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.trial.steps import ShareOrder

START_S = 60.0  # an order that is carried out within this has the whole budget
OVERDUE_MARGIN_S = 240.0  # proof, what passes between steps, and a function that died
LONGEST_BARRIER_S = 4 * BARRIER_S
LONGEST_LOAD_S = 840.0  # a function may run for 15 minutes; the last one is for the tally
FORMER_WAIT_S = 60.0  # for the trial of the request before to end
FORMER_LOOK_S = 5
MOST_RELOADS = 2

SOONEST_LOOK_S = 2  # between two looks at what SageMaker is doing
ALARMS_END_S: Final = 420.0
"""How long a raised alarm is waited for: it looks back five minutes, and is looked at each minute."""
LONGEST_RESTORE_S = TRIAL_MARGIN_S / 2  # after the budget: what is left is for the answer

Following: TypeAlias = Literal["wait", "choose", "load", "conclude", "settle", "pause", "answer"]


class AsleepError(Exception):
    """No copy serves yet: the workflow waits, and begins again."""


class OverdueError(Exception):
    """The trial has taken longer than its budget and margin."""


class StateFailure(TypedDict):
    """What AWS Step Functions says of a state that failed; a function's `Cause` is its error as JSON."""

    Error: str
    Cause: NotRequired[str]


class Loaded(TypedDict):
    """How one share of the load ended."""

    Failure: NotRequired[StateFailure]


class Position(TypedDict):
    """Where the trial is, and what comes next: the result of a step, and the input of the next.

    Attributes:
        Because: Why this is next, for whoever reads the execution's history.
        Seconds: How long to wait.
        Woken: After a wait: the component was asleep.
        Shares: Before a load, one for each worker.
        Loaded: After a load, one for each worker.
        BarrierSeconds: How long the workers have until they begin together; absent it is the usual time.
        Reloads: How often the level was loaded again because functions died.
        Failure: Before `abandon`: what failed.
    """

    Next: Following
    Round: int
    Because: str
    Seconds: NotRequired[int]
    Woken: NotRequired[bool]
    Shares: NotRequired[list[WorkerShare]]
    Loaded: NotRequired[list[Loaded]]
    BarrierSeconds: NotRequired[float]
    Reloads: NotRequired[int]
    Failure: NotRequired[StateFailure]


class StepCall(TypedDict):
    """One call of a step: which, the trial, and where it is."""

    Step: Literal["begin", "choose", "absorb", "conclude", "abandon", "settle", "answer"]
    Order: OrderRef
    Position: Position


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial as a step works on it."""

    order: Order
    context: TrialContext
    ownership: Ownership

    @property
    def properties(self) -> TrialProperties:
        """The custom resource's properties."""
        return self.order.properties

    @property
    def request(self) -> TrialRequest:
        """The trial's request."""
        return self.order.trial_request(self.context.region)

    @property
    def late_s(self) -> float:
        """Seconds since the trial was ordered, or since its candidate is in service."""
        return max(0.0, self.context.now_s() - started_at_s(self.order, self.context))

    @property
    def look_s(self) -> int:
        """Seconds until the next look at what SageMaker is doing: a quarter of the time so far, 2 to 15 s."""
        return round(min(LATEST_LOOK_S, max(SOONEST_LOOK_S, self.late_s / 4)))

    @property
    def longest_settle_s(self) -> float:
        """Seconds since the order until CloudFormation is answered, whatever is left to do."""
        if self.properties.phase == "candidate":
            return LONGEST_TRIAL_S
        return min(LONGEST_TRIAL_S, self.properties.budget_s + LONGEST_RESTORE_S)

    @property
    def is_made(self) -> bool:
        """Whether the trial's document is there."""
        return self.context.store.read(trial_key(self.properties, self.order.request_id)) is not None

    def request_of(self, progress: TrialProgress) -> TrialRequest:
        """Return the request of a trial that has begun: its load follows the live copies."""
        return live_request(self.request, progress)

    def timed(self, progress: TrialProgress) -> TrialProgress:
        """Return the progress with the time since the order: what passes between functions is waited for too."""
        return replace(progress, elapsed_s=max(progress.elapsed_s, self.late_s))

    def round(self, number: int) -> LoadPhase:
        """Return a round."""
        return LoadPhase(
            store=self.context.store,
            endpoint_name=self.properties.endpoint_name,
            request_id=self.order.request_id,
            number=number,
        )

    def keep_progress(self, this: LoadPhase, progress: TrialProgress) -> None:
        """Write where the trial stands, for the next step and for whoever watches."""
        this.write_progress(progress)
        key = run_key(self.properties.endpoint_name, self.order.request_id, "progress")
        self.context.store.write(key, progress.to_json())


def take_step(call: StepCall, context: TrialContext) -> Position:
    """Do one step; what it raises is tried again where AWS was unavailable, and leads to `abandon` else."""
    ref, at = call["Order"], call["Position"]
    order = read_order(context.store, ref["EndpointName"], ref["RequestId"])
    if order is None:
        return position("answer", 0, "the endpoint's documents were removed")
    trial = Trial(order, context, ownership_of(ref, context))
    step = call["Step"]
    if step == "abandon":
        reached = abandon(trial, failure_message(at["Failure"]))
    elif step in _ON_THE_WAY:
        reached = _ON_THE_WAY[step](trial, at)
    else:
        reached = settle(trial) if step == "settle" else answer(trial)
    log(f"{step}: next is {reached['Next']}: {reached['Because']}")
    return reached


def ownership_of(ref: OrderRef, context: TrialContext) -> Ownership:
    """Return whether a trial's request still owns its endpoint."""
    return Ownership(
        store=context.store, endpoint_name=ref["EndpointName"], request_id=ref["RequestId"], now_s=context.now_s
    )


def position(following: Following, number: int, because: str) -> Position:
    """Return where the trial is when nothing is to be loaded."""
    return {"Next": following, "Round": number, "Because": because}


def begin(trial: Trial, at: Position) -> Position:
    """Suspend scale-in, prove what is live and warm up; a candidate is created first, a component at zero is woken.

    Both take time: the workflow waits, and begins again.
    """
    if (stop := trial.ownership.check()) is not None:
        return _stopped(trial, stop)
    if trial.is_made:
        return position("settle", 0, "already done")
    if _former_runs(trial) or _former_candidate_is_left(trial):
        waiting = position("wait", 0, "the previous trial is still ending")
        return {**waiting, "Seconds": FORMER_LOOK_S}
    _hold_scale_in(trial)
    if trial.order.manner == "carry":
        keep_untried(trial.context.store, trial.properties, trial.order.request_id)
        return position("settle", 0, "nothing is to be tried before the update")
    return _prepared(trial, at)


def _prepared(trial: Trial, at: Position) -> Position:
    try:
        if trial.order.has_candidate:
            await_candidate(trial.order, trial.context)
        elif trial.order.manner == "load":
            keep_first_start(trial.order, trial.context)
        progress = _begun(trial, waited_s=trial.late_s if at.get("Woken") else 0.0)
    except CandidateStartingError as starting:
        return {**position("wait", 0, f"{starting}"), "Seconds": trial.look_s}
    except NoRoomError as no_room:
        if trial.order.is_scheduled:
            return abandon(trial, f"no room for a candidate: {no_room}")
        keep_no_room(trial.order, trial.context, f"{no_room}")
        keep_untried(trial.context.store, trial.properties, trial.order.request_id)
        return position("settle", 0, f"{no_room}")
    except AsleepError as asleep:
        return {**position("wait", 0, "no copy answers yet"), "Seconds": round(float(f"{asleep}")), "Woken": True}
    if (stop := trial.ownership.check()) is not None:
        return _stopped(trial, stop)
    trial.keep_progress(trial.round(0), progress)
    return position("choose", 0, progress.live.because)


def _hold_scale_in(trial: Trial) -> None:
    """Suspend scale-in of a component that has users, and that an update may leave with too few copies."""
    if trial.order.manner == "load" or trial.order.is_scheduled:
        return
    context, component = trial.context, trial.properties.inference_component_name
    live = context.components.describe(component)
    suspend_scale_in(
        context.scaling,
        context.store,
        trial.ownership,
        component=component,
        stack_id=trial.order.event["StackId"],
        copies=0 if live is None else live.copies,
    )


def _begun(trial: Trial, *, waited_s: float) -> TrialProgress:
    if trial.round(0).has_progress():
        return trial.round(0).progress()

    def wait(seconds: float) -> None:
        raise AsleepError(f"{seconds}")

    with trial.context.repeat_meanwhile(trial.ownership.should_stop):
        return trial.context.course.begin_trial(
            shortened(trial.request, trial.late_s),
            Tools(may_scale=True, sleep=wait),
            should_stop=lambda: trial.ownership.stopped,
            waited_s=waited_s,
        )


def _former_runs(trial: Trial) -> bool:
    """Tell whether the trial that this one's request stopped still loads: two loads would spoil each other."""
    owner = trial.ownership.owner
    if owner is None or not owner.former or trial.context.store.read(owner.former) is not None:
        return False
    if trial.late_s < FORMER_WAIT_S:
        return True
    trial.context.workflow.stop(owner.former_request, STOPPED)
    return False


def _former_candidate_is_left(trial: Trial) -> bool:
    """Tell whether the candidate of a scheduled trial is still there, whose room an update may need; it is removed."""
    owner, context = trial.ownership.owner, trial.context
    if owner is None or trial.properties.phase != "candidate" or not is_scheduled(owner.former_request):
        return False
    if trial.order.is_scheduled or trial.late_s >= REFUSED_S:
        return False
    try:
        name = candidate_name(trial.properties.endpoint_name, owner.former_request)
        return not remove_candidate(context.components, name, context.environment)
    except UnavailableError:
        return True


def choose(trial: Trial, at: Position) -> Position:
    """Choose the next level and write each worker's share of it; or find that there is none.

    Raises:
        OverdueError: The trial has taken longer than its budget and margin.
    """
    if (stop := trial.ownership.check()) is not None:
        return _stopped(trial, stop)
    if trial.late_s > trial.properties.budget_s + OVERDUE_MARGIN_S:
        raise OverdueError(f"not finished after {trial.late_s:.0f} s; the budget was {trial.properties.budget_s:.0f} s")
    number = at["Round"]
    this = trial.round(number)
    progress = trial.timed(this.progress())
    request = trial.request_of(progress)
    step = trial.context.course.next_step(request, progress)
    if isinstance(step, Stop):
        trial.keep_progress(this.next, replace(progress, stopped=step))
        return position("conclude", number + 1, step.because)
    workers = workers_at(request, step.concurrency, sockets_per_function=trial.context.sockets_per_function)
    now_s, barrier_s = trial.context.now_s(), at.get("BarrierSeconds", BARRIER_S) if workers > 1 else 0.0
    shares = plan_shares(request, progress, step.concurrency, workers, now_s, barrier_s=barrier_s)
    this.write_level(step)
    for share in shares:
        # A part of a level ends before its function does; a whole level sees to that itself.
        ends_s = share.deadline_epoch_s if workers == 1 else min(share.deadline_epoch_s, now_s + LONGEST_LOAD_S)
        this.write_share(replace(share, deadline_epoch_s=ends_s))
    write_current_level(this, step, requests=sum(share.requests for share in shares), now_s=now_s)
    loads: list[WorkerShare] = [{"Round": number, "Worker": share.worker} for share in shares]
    next_position: Position = {**position("load", number, step.because), "Shares": loads, "BarrierSeconds": barrier_s}
    if "Reloads" in at:
        next_position["Reloads"] = at["Reloads"]
    return next_position


def absorb(trial: Trial, at: Position) -> Position:
    """Merge what the workers measured, and take the level into the trial.

    A level that some workers were too late for is loaded again, and they get twice the time to start; one whose
    functions died is loaded again twice. One that was cut ends the trial, with what it had measured.

    Raises:
        ShareLostError: A worker has not loaded its share; the others' load was then less than the level's.
    """
    if (stop := trial.ownership.check()) is not None:
        return _stopped(trial, stop)
    number, workers = at["Round"], len(at["Shares"])
    this = trial.round(number)
    # A step whose function died after it wrote is done again: its level must not be taken in twice.
    if this.next.has_progress():
        return position("choose", number + 1, "the level was absorbed before")
    shares = [this.share(worker) for worker in range(workers)]
    progress = trial.timed(this.progress())
    sent = progress.sent + sum(share.requests for share in shares)
    try:
        merged = merge_tallies(this, workers)
    except ShareLostError as lost:
        return _lost(trial, at, replace(progress, sent=sent), shares, lost)
    if not isinstance(merged, CutLevel) and merged.cut is not None:
        merged = CutLevel(sent=sent - progress.sent, stopped=merged.cut, seen=None, tally=merged)
    if isinstance(merged, CutLevel):
        if merged.tally is not None:
            progress = trial.context.course.add_level(trial.request_of(progress), progress, this.level(), merged.tally)
            progress = progress.with_level_time(shares[0].start_at_epoch_s, trial.context.now_s(), is_cut=True)
        unmeasured = progress.unmeasured if merged.seen is None else (*progress.unmeasured, merged.seen)
        sent, over = progress.sent + merged.sent, merged.stopped
        trial.keep_progress(this.next, replace(progress, sent=sent, unmeasured=unmeasured, stopped=over))
        return position("choose", number + 1, over.because)
    taken = trial.context.course.add_level(trial.request_of(progress), progress, this.level(), merged)
    taken = taken.with_level_time(shares[0].start_at_epoch_s, trial.context.now_s())
    trial.keep_progress(this.next, taken)
    return position("choose", number + 1, f"{merged.counts.requests} requests of {workers} workers are merged")


def _lost(
    trial: Trial, at: Position, progress: TrialProgress, shares: Sequence[ShareOrder], lost: ShareLostError
) -> Position:
    """Load a level again whose workers came too late or died; or end the measurement where the time is over."""
    following, level = trial.round(at["Round"]).next, f"concurrency {shares[0].concurrency} per copy"
    barrier_s, reloads = at.get("BarrierSeconds", BARRIER_S), at.get("Reloads", 0)
    again = position("choose", following.number, f"{lost}")
    if lost.loss == LostWorker.LATE and barrier_s < LONGEST_BARRIER_S:
        again["BarrierSeconds"] = 2 * barrier_s
    elif lost.loss == LostWorker.DIED and reloads < MOST_RELOADS:
        again["Reloads"] = reloads + 1
    elif lost.loss == LostWorker.DIED:
        # With AWS Step Functions' words on the functions that died.
        messages = {failure_message(each["Failure"]) for each in at.get("Loaded", []) if "Failure" in each}
        words = "".join(f"; {message}" for message in sorted(messages))
        raise ShareLostError(LostWorker.DIED, f"{level} failed {reloads + 1} times: {lost}{words}") from lost
    elif trial.context.now_s() < shares[0].deadline_epoch_s:
        raise lost
    else:
        over = Stop(reason=StopReason.BUDGET, because=f"{level} timed out: {lost}")
        progress = replace(progress, stopped=over)
        again["Because"] = over.because
    trial.keep_progress(following, progress)
    return again


def conclude(trial: Trial, at: Position) -> Position:
    """End the trial: prove again what is live, and write the document."""
    if (stop := trial.ownership.check()) is not None:
        return _stopped(trial, stop)
    if trial.is_made:
        return position("settle", at["Round"], "already done")
    store, properties = trial.context.store, trial.properties
    before = (scheduled_baseline if trial.order.is_scheduled else baseline_of)(store, properties.endpoint_name)
    progress = trial.round(at["Round"]).progress()
    result = trial.context.course.conclude_trial(
        trial.request_of(progress),
        progress,
        Tools(may_scale=True),
        baseline=before.result,
        baseline_uri=before.uri,
    )
    if (start := read_start(trial.order, trial.context)) is not None:
        # An engine that announces itself runs on the embedded AWS.
        result = replace(result, start=replace(start, simulated=bool(result.engine_note)))
    if (stop := trial.ownership.check()) is not None:
        return _stopped(trial, stop)
    seal, bus, now_s = trial.context.seal, trial.context.bus, trial.context.now_s()
    if trial.order.is_scheduled:
        findings = trial.context.findings
        log(*keep_scheduled(store, trial.order, result, seal=seal, bus=bus, findings=findings, now_s=now_s))
    else:
        log(*keep_result(store, trial.order, result, seal=seal, bus=bus, now_s=now_s))
    return position("settle", at["Round"], result.verdict.because)


def abandon(trial: Trial, message: str) -> Position:
    """End a trial that could not be made: its document says why, so that no caller waits for it."""
    if (stop := trial.ownership.check()) is not None:
        return _stopped(trial, stop)
    if not trial.is_made:
        store, request_id = trial.context.store, trial.order.request_id
        log(*filter(None, [keep_error(store, trial.properties, request_id, message, bus=trial.context.bus)]))
        if trial.order.is_scheduled:
            log(*report_not_made(store, trial.properties, request_id, message, findings=trial.context.findings))
    return position("settle", 0, message)


def _stopped(trial: Trial, stop: Stop) -> Position:
    """End a trial that is no longer requested; where the endpoint's documents were removed, nothing is written."""
    if not trial.ownership.forgotten and not trial.is_made:
        keep_error(trial.context.store, trial.properties, trial.order.request_id, stop.because, bus=None)
    return position("settle", 0, stop.because)


def settle(trial: Trial) -> Position:
    """Remove the candidate, wait out a scaling action, restore scaling; then CloudFormation may be answered.

    What SageMaker refuses while a component is in transit is requested again. Before CloudFormation gives up it is
    answered all the same: what is left, the sweep removes and restores.
    """
    try:
        left = _left_to_do(trial)
    except UnavailableError as unavailable:
        left = f"{unavailable}"
    if not left:
        _end_logs(trial)
        return position("answer", 0, "nothing is left to do")
    if trial.context.now_s() - trial.order.started_at_s > trial.longest_settle_s:
        log(f"left to the sweep: {left}")
        return position("answer", 0, f"left to the sweep: {left}")
    return {**position("pause", 0, left), "Seconds": trial.look_s}


def _end_logs(trial: Trial) -> None:
    """Let logs of containers end after a month; a candidate that passed takes its own along. No trial fails for it."""
    context, properties, order = trial.context, trial.properties, trial.order
    try:
        if order.has_candidate:
            end = context.logs.delete if allows_deployment(order, context.store) else context.logs.limit
            end([log_group_name(order.candidate)])
        if properties.phase == "deployed" and not properties.is_existing:
            context.logs.limit(log_groups_of(properties.endpoint_name, properties.inference_component_name))
    except UnavailableError as unavailable:
        log(f"logs of containers stay as they are: {unavailable}")


def _left_to_do(trial: Trial) -> str:
    """Do what can be done before the answer, and return what can't be done yet; empty when nothing is left."""
    context, properties, order = trial.context, trial.properties, trial.order
    updates = properties.phase == "candidate" and not order.is_scheduled
    goes_on = updates and trial.ownership.check() is None and allows_deployment(order, context.store)
    # Before the candidate is waited for: its deletion may take until CloudFormation's time is over, and the answer then
    # carries the last copies that were read.
    waits = _carried(trial) if goes_on else ""
    if order.has_candidate and not _candidate_is_out_of_the_way(trial):
        return f"{order.candidate} is being deleted"
    if goes_on:
        return waits or ("" if properties.rolls_back else _raised(trial))
    done = resume_scaling(context.scaling, context.store, context.components, trial.ownership)
    if not done:
        return f"{properties.inference_component_name} gets its copies back"
    return _raised(trial) if order.manner == "load" and not properties.is_existing else ""


def _raised(trial: Trial) -> str:
    """Return which alarm is still raised, for seven minutes at most; empty when none is.

    What follows must not meet it: a first trial's load raises alarms, which would notify and roll the next update
    back; and alarms that are switched off for a deployment end only when CloudWatch has looked at them.
    """
    context, properties = trial.context, trial.properties
    if not (raised := context.raised(properties.alarms)):
        return ""
    key = run_key(properties.endpoint_name, trial.order.request_id, "raised")
    # Created, and not written: the wait counts from the first look, whichever call of the function looks.
    context.store.create(key, json.dumps({"at_s": context.now_s()}))
    text = context.store.read(key)
    waited_s = 0.0 if text is None else context.now_s() - float(json.loads(text)["at_s"])
    return "" if waited_s > ALARMS_END_S else f"{raised[0]} is still raised"


def _candidate_is_out_of_the_way(trial: Trial) -> bool:
    """Delete the candidate, and tell whether it is gone; one that is being created is left to the sweep.

    Nobody can delete it, for hours where no instance has room for it, and it takes nothing that an update needs.
    """
    context, name = trial.context, trial.order.candidate
    state = context.components.describe(name)
    if state is not None and state.is_being_created:
        log(f"left to the sweep: {name} is being created, and SageMaker deletes it later only")
        return True
    return state is None or remove_candidate(context.components, name, context.environment)


def _carried(trial: Trial) -> str:
    """Keep the live copies, which the response carries; return why the update of the component waits, empty when not.

    They are kept before anything is waited for: when CloudFormation's time ends, the response has the last that were
    read.
    """
    try:
        live = trial.context.components.describe(trial.properties.inference_component_name)
        keep_copies(trial.order.event, trial.context, live)
    except UnavailableError as unavailable:
        return f"{unavailable}"
    return f"{live.name} is {live.status}: the update waits" if live is not None and live.in_transit else ""


def answer(trial: Trial) -> Position:
    """Answer CloudFormation."""
    context = trial.context
    if trial.order.is_scheduled:
        if not trial.ownership.forgotten:  # there is no response to wait for: that it is over is noted alone
            note_sent(context.store, trial.properties.endpoint_name, trial.order.request_id)
        return position("answer", 0, "the scheduled trial has ended")
    given = final_answer(trial.order, context.store)
    if trial.ownership.check() is not None and trial.ownership.forgotten:
        return position("answer", 0, "the endpoint's documents were removed")
    try:
        respond_once(
            trial.order.event,
            trial.properties.endpoint_name,
            given,
            context.store,
            context.respond,
            bucket=context.bucket,
        )
    except UnavailableError as unavailable:
        if trial.ownership.stopped is None:
            raise
        return position("answer", 0, f"CloudFormation no longer waits: {unavailable}")
    return position(
        "answer", 0, "CloudFormation was answered" if given.failed_because is None else given.failed_because
    )


def shortened(request: TrialRequest, late_s: float) -> TrialRequest:
    """Return the request with what is left of its budget: a trial that begins late has less.

    Raises:
        BenchError: SEA507 when nothing is left.
    """
    if late_s <= START_S:
        return request
    left_s = request.load.budget_s - late_s
    if left_s <= 0:
        raise BenchError.of("SEA507", f"the budget of {request.load.budget_s:g} s ended before the trial started")
    return replace(request, load=replace(request.load, budget_s=left_s))


def failure_message(failure: StateFailure) -> str:
    """Return the error message of a function that failed; of any other failure, AWS Step Functions' own words."""
    cause = failure.get("Cause", "")
    try:
        message = json.loads(cause)["errorMessage"]
    except (ValueError, KeyError, TypeError):
        return f"{failure['Error']}: {cause}" if cause else failure["Error"]
    return f"{message}"


_ON_THE_WAY: Final[Mapping[str, Callable[[Trial, Position], Position]]] = MappingProxyType(
    {"begin": begin, "choose": choose, "absorb": absorb, "conclude": conclude}
)
