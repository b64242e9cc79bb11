"""The steps of a trial by a fleet, all but the load: one call of this function is one step.

The state machine (`trial_fleet.fleet_course`) says which; what a step leaves for the next lies in the results bucket.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from seatrial.bench.course import Stop
from seatrial.bench.share import BARRIER_S, plan_shares
from seatrial.bench.tools import Tools
from seatrial.secrets import redacted
from seatrial_cdk.smoke_benchmark.runtime.announcement import aws_bus
from seatrial_cdk.smoke_benchmark.runtime.baseline import baseline_of
from seatrial_cdk.smoke_benchmark.runtime.beside import beside
from seatrial_cdk.smoke_benchmark.runtime.fleet import BenchCourse, Fleet
from seatrial_cdk.smoke_benchmark.runtime.fleet_absorb import absorb
from seatrial_cdk.smoke_benchmark.runtime.fleet_calls import position
from seatrial_cdk.smoke_benchmark.runtime.fleet_size import workers_at
from seatrial_cdk.smoke_benchmark.runtime.outcome import keep_error, keep_result
from seatrial_cdk.smoke_benchmark.runtime.runner import LAST_S, MS_PER_S, OutOfTimeError, shortened
from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import aws_copy_scaling, rest, resume
from seatrial_cdk.smoke_benchmark.runtime.trial_run import LOOK_S
from seatrial_cdk.smoke_benchmark.runtime.trial_store import results_bucket
from seatrial_cdk.smoke_benchmark.runtime.unavailable import UnavailableError

if TYPE_CHECKING:
    from seatrial.bench.progress import TrialProgress
    from seatrial_cdk.smoke_benchmark.runtime.fleet_calls import Failure, Position, Share, StepCall
    from seatrial_cdk.smoke_benchmark.runtime.runner import LambdaContext
    from seatrial_cdk.smoke_benchmark.runtime.trial_run import TrialRun

LONGEST_LOAD_S = 840.0  # a function may run for 15 minutes; the last one is for the answer


def handler(call: StepCall, context: LambdaContext) -> Position:
    """Do one step in this function's region."""
    ends_s = time.time() + context.get_remaining_time_in_millis() / MS_PER_S - LAST_S
    fleet = Fleet(
        order=call["Order"],
        store=results_bucket(),
        scaling=aws_copy_scaling(),
        bus=aws_bus(),
        course=BenchCourse(Tools(may_scale=True, sleep=partial(sleep_until, ends_s=ends_s))),
        region=os.environ["AWS_REGION"],
        sockets_per_function=int(os.environ["SOCKETS_PER_FUNCTION"]),
        now_s=time.time,
        beside=partial(beside, LOOK_S),
    )
    reached = take_step(call, fleet)
    _log(f"{call['Step']}: next is {reached['Next']}: {reached['Because']}")
    return reached


def take_step(call: StepCall, fleet: Fleet) -> Position:
    """Do one step; whatever it raises leads the state machine to `abandon`."""
    if call["Step"] == "begin":
        return begin(fleet)
    if call["Step"] == "abandon":
        return abandon(fleet, call["Failure"])
    at = call["Position"]
    if call["Step"] == "absorb":
        return absorb(fleet, at["Round"], workers=len(at["Shares"]), barrier_s=at["BarrierSeconds"])
    if call["Step"] == "choose":
        return choose(fleet, at["Round"], barrier_s=at.get("BarrierSeconds", BARRIER_S))
    return conclude(fleet, at["Round"])


def begin(fleet: Fleet) -> Position:
    """Begin the run, unless another has it; let scaling rest, prove what is live and warm up.

    It goes on from the checkpoint of the run before, where there is one. It is not repeated: a second call finds the
    lease of the first and leaves; where the first died, the lease runs out and the next run is ordered. A component may
    take longer to wake than a function may run: the next run then begins anew.
    """
    run = fleet.run()
    if why_not := run.claim():
        return position("leave", 0, why_not)
    rest(fleet.scaling, fleet.store, fleet.properties, fleet.order["RequestId"])
    try:
        progress = _begun(fleet, run)
    except OutOfTimeError:
        run.pause(None)
        return position("leave", 0, "this function's time ended before the first level; the next run goes on")
    run.save(progress)
    fleet.round(0).write_progress(progress)
    return position("choose", 0, progress.live.because)


def _begun(fleet: Fleet, run: TrialRun) -> TrialProgress:
    if before := run.checkpoint():
        return replace(before, runs=before.runs + 1)
    with fleet.beside(run.why_stop):
        return fleet.course.begin(shortened(fleet.request, run.late_s), should_stop=lambda: run.stopped_because)


def choose(fleet: Fleet, number: int, *, barrier_s: float) -> Position:
    """Choose the next level and write each worker's share of it; or find that there is none."""
    run = fleet.run()
    if run.why_stop():
        return position("leave" if run.taken_over else "conclude", number, run.stopped_because)
    this, request = fleet.round(number), fleet.request
    progress = fleet.timed(this.progress())
    step = fleet.course.next_step(request, progress)
    if isinstance(step, Stop):
        this.next.write_progress(replace(progress, stopped_because=step.because))
        return position("conclude", number + 1, step.because)
    workers = workers_at(request, step.concurrency, sockets_per_function=fleet.sockets_per_function)
    now_s = fleet.now_s()
    shares = plan_shares(request, progress, step.concurrency, workers, now_s, barrier_s=barrier_s)
    this.write_level(step)
    for share in shares:
        this.write_share(replace(share, deadline_epoch_s=min(share.deadline_epoch_s, now_s + LONGEST_LOAD_S)))
    loads: list[Share] = [{"Round": number, "Worker": share.worker} for share in shares]
    return {**position("load", number, step.because), "Shares": loads, "BarrierSeconds": barrier_s}


def conclude(fleet: Fleet, number: int) -> Position:
    """End the trial: prove again what is live, let scaling go on, and write the document."""
    run, request_id = fleet.run(), fleet.order["RequestId"]
    run.check()
    if run.stopped_because:
        return _stopped(fleet, run, number)
    before = baseline_of(fleet.store, fleet.properties.endpoint_name)
    progress = fleet.round(number).progress()
    with fleet.beside(run.why_stop):  # CloudWatch may be waited for
        result = fleet.course.conclude(fleet.request, progress, baseline=before.result, baseline_uri=before.uri)
    _let_scale(fleet)
    run.check()
    if run.stopped_because:
        return _stopped(fleet, run, number)
    _log(*keep_result(fleet.store, fleet.properties, request_id, result, bus=fleet.bus, now_s=fleet.now_s()))
    return position("leave", number, result.verdict.because)


def abandon(fleet: Fleet, failure: Failure) -> Position:
    """End a trial that could not be made: its document says why, so that nobody waits for it."""
    run, request_id = fleet.run(), fleet.order["RequestId"]
    run.check()
    if run.stopped_because:
        return _stopped(fleet, run, 0)
    message = words_of(failure)
    _let_scale(fleet)
    if line := keep_error(fleet.store, fleet.properties, request_id, message, bus=fleet.bus):
        _log(line)
    return position("leave", 0, message)


def _stopped(fleet: Fleet, run: TrialRun, number: int) -> Position:
    """End a trial that nobody asks for any more; what another run has, or what was removed, is left alone."""
    if not run.taken_over:
        _let_scale(fleet)
    if not run.taken_over and not run.forgotten:
        keep_error(fleet.store, fleet.properties, fleet.order["RequestId"], run.stopped_because, bus=None)
    return position("leave", number, run.stopped_because)


def _let_scale(fleet: Fleet) -> None:
    """Let scaling go on as it was; where that can't be done, `is_complete` does it."""
    try:
        resume(fleet.scaling, fleet.store, fleet.properties, fleet.order["RequestId"])
    except UnavailableError as unavailable:
        _log(f"scaling is left to is_complete: {unavailable}")


def sleep_until(seconds: float, *, ends_s: float) -> None:
    """Wait for a part of a step that may take longer than the function.

    Raises:
        OutOfTimeError: The function's time would end.
    """
    if time.time() + seconds > ends_s:
        raise OutOfTimeError
    time.sleep(seconds)


def words_of(failure: Failure) -> str:
    """Return what a function said when it failed; of any other failure, AWS Step Functions' own words."""
    cause = failure.get("Cause", "")
    try:
        told = json.loads(cause)["errorMessage"]
    except (ValueError, KeyError, TypeError):
        return f"{failure['Error']}: {cause}" if cause else failure["Error"]
    return f"{told}"


def _log(*lines: str) -> None:
    """Write into the function's log group, credentials masked."""
    sys.stdout.write(redacted("".join(f"{line}\n" for line in lines)))
