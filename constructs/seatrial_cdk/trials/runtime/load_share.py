"""One share of a level: a whole level loaded by one function, or the part of one of several functions.

Whatever becomes of it is a document: the step that merges the shares must learn of any failure. A function that dies
leaves none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypedDict

from seatrial_cdk.trials.runtime.load_phase import CutLevel, LoadPhase
from seatrial_cdk.trials.runtime.store import UnavailableError, run_key
from seatrial_load.client import load_share as share
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.search.forecast import forecast
from seatrial_load.trial import steps as course
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.run import DECODE_S_PER_TOKEN

if TYPE_CHECKING:
    from seatrial_load.client.load_share import ShareOrder
    from seatrial_load.documents.progress import TrialProgress
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.metrics.aggregate import LevelTally
    from seatrial_load.search import NextLevel
    from seatrial_load.trial.dependencies import ShouldStop
    from seatrial_load.trial.steps import LoadedLevel


class WorkerShare(TypedDict):
    """Which share one worker loads."""

    Round: int
    Worker: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionShare:
    """What one function is to load.

    Attributes:
        request: The trial.
        progress: Where it stands.
        level: The level.
        share: This function's share of it.
        now_s: The time, in seconds since the epoch.
        left_s: How long the function may load.
        should_stop: Says why the trial is to stop; asked now and then.
    """

    request: TrialRequest
    progress: TrialProgress
    level: NextLevel
    share: ShareOrder
    now_s: float
    left_s: float
    should_stop: ShouldStop


class LoadShare(Protocol):
    """Loads a share."""

    def __call__(self, load: FunctionShare) -> LevelTally | CutLevel:
        """Wait for the common start where there are others, load, and sum up."""


def load_share(load: FunctionShare) -> LevelTally | CutLevel:
    """Load a share by `seatrial_load`: a whole level ends when enough is known, a part sends all its requests."""
    if load.share.workers > 1:
        return share.send_worker_share(load.request, load.progress, load.share, should_stop=load.should_stop)
    return _load_alone(load, Tools())


def _load_alone(load: FunctionShare, tools: Tools) -> LevelTally | CutLevel:
    request, progress = load.request, load.progress
    until_s = min(load.share.deadline_epoch_s - load.now_s, load.left_s * _loading_share(load))
    loaded = course.load_level(
        request,
        progress,
        load.level,
        deadline_s=tools.clock() + until_s,
        should_stop=load.should_stop,
        tools=tools,
    )
    if loaded.cut is None:
        return course.tallied(request, load.level, loaded)
    return cut_level(load, loaded, loaded.cut)


def cut_level(load: FunctionShare, loaded: LoadedLevel, stop: Stop) -> CutLevel:
    """Sum up what was seen of a level that was cut: the trial was stopped, its time or the function's was over."""
    trial_left_s = load.share.deadline_epoch_s - load.now_s
    if stop.reason == StopReason.BUDGET and trial_left_s > load.left_s:
        over = f"{len(loaded.crew.over)} of {loaded.sent} requests had ended"
        where = f"concurrency {load.level.concurrency} per copy"
        because = f"the remaining {load.left_s:.0f} s of the function are too short for {where} ({over})"
        stop = Stop(reason=StopReason.RUN_TOO_SHORT, because=because)
    seen = None
    if loaded.crew.stopped is None:
        seen = course.unmeasured_level(load.request, load.progress, load.level, loaded, stop.because)
    return CutLevel(sent=loaded.sent, stopped=stop, seen=seen)


def _loading_share(load: FunctionShare) -> float:
    """Return the share of the function's time that may go to loading; what arrives is decoded in the rest."""
    tok_s = forecast(load.request, load.progress.levels).tok_s
    return 1 / (1 + DECODE_S_PER_TOKEN * (0.0 if tok_s is None else tok_s(load.level.concurrency)))


def write_current_level(this: LoadPhase, level: NextLevel, *, requests: int, now_s: float) -> None:
    """Write which level is loaded at the moment, for whoever watches; one that can't be written is missed by nobody."""
    text = json.dumps(
        {"concurrency": level.concurrency, "because": level.because, "requests": requests, "began_at_s": now_s}
    )
    try:
        this.store.write(run_key(this.endpoint_name, this.request_id, "level"), text)
    except UnavailableError:
        return
