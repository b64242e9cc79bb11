"""Taking a level that workers loaded together into the trial, or finding that it counts for nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.bench.share import BARRIER_S
from seatrial.bench.unmeasured import merged_unmeasured
from seatrial_cdk.smoke_benchmark.runtime.fleet_calls import position
from seatrial_cdk.smoke_benchmark.runtime.fleet_tallies import LateStartError, ShareLostError, merged_tally

if TYPE_CHECKING:
    from seatrial.bench.progress import TrialProgress
    from seatrial_cdk.smoke_benchmark.runtime.fleet import Fleet
    from seatrial_cdk.smoke_benchmark.runtime.fleet_calls import Position

LONGEST_BARRIER_S = 4 * BARRIER_S


def absorb(fleet: Fleet, number: int, *, workers: int, barrier_s: float) -> Position:
    """Merge what the workers measured, and take the level into the trial.

    A level that some workers were too late for is loaded again, and they get twice the time to start. One that the
    budget cut is not reported: the trial ends with the levels before it.

    Raises:
        ShareLostError: A worker has not loaded its share; the others' load was then less than the level's.
    """
    run = fleet.run()
    run.check()
    if run.stopped_because:
        return position("leave" if run.taken_over else "conclude", number, run.stopped_because)
    this = fleet.round(number)
    shares = [this.share(worker) for worker in range(workers)]
    progress = fleet.timed(this.progress())
    sent = progress.sent + sum(share.requests for share in shares)
    try:
        tally = merged_tally(this, workers)
    except LateStartError as late:
        if barrier_s >= LONGEST_BARRIER_S:
            raise
        this.next.write_progress(replace(progress, sent=sent))
        return {**position("choose", number + 1, str(late)), "BarrierSeconds": 2 * barrier_s}
    except ShareLostError as lost:
        if fleet.now_s() < shares[0].deadline_epoch_s:
            raise
        seen = [told for told in lost.seen if told.sent]
        because = f"the time of {len(shares)} workers was over"
        cut = replace(
            progress,
            sent=sent,
            unmeasured=(*progress.unmeasured, *([merged_unmeasured(seen, because=because)] if seen else [])),
            stopped_because=f"the time for concurrency {shares[0].concurrency} per copy was over: {lost}",
        )
        this.next.write_progress(cut)
        return position("choose", number + 1, cut.stopped_because)
    taken = _dated(fleet.course.absorb(fleet.request, progress, this.level(), tally), shares[0].start_at_epoch_s, fleet)
    this.next.write_progress(taken)
    run.save(taken)
    return position("choose", number + 1, f"{tally.counts.requests} requests of {workers} workers are merged")


def _dated(progress: TrialProgress, from_s: float, fleet: Fleet) -> TrialProgress:
    """Return the progress with the time over which levels were measured, for what CloudWatch is asked."""
    began_s = from_s if progress.measured_from_s is None else progress.measured_from_s
    return replace(progress, measured_from_s=began_s, measured_to_s=fleet.now_s())
