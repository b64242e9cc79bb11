"""The load of one level: a round's documents between steps and load, and one worker's share.

runs/{endpoint}/{request id}/{round}/progress.json     the trial before this round's level
runs/{endpoint}/{request id}/{round}/level.json        which level it loads
runs/{endpoint}/{request id}/{round}/share-{w}.json    what one worker is to load
runs/{endpoint}/{request id}/{round}/tally-{w}.json    what it measured, what was seen of a level that was cut, or why
                                                       there is nothing

A step reads one round and writes what comes after: repeated, it writes the same again. Whatever becomes of a share is a
document: the step that merges the shares must learn of any failure. A function that dies leaves none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum, unique
from typing import TYPE_CHECKING, Protocol, Self, TypedDict

from seatrial_cdk.trials.runtime.store import UnavailableError, run_key
from seatrial_load.documents.progress import TrialProgress
from seatrial_load.documents.result import Unmeasured  # noqa: TC001 (the strict reader resolves the types)
from seatrial_load.documents.stop import (
    Stop,
    StopReason,
)
from seatrial_load.documents.strict_json import read_document, write_document
from seatrial_load.metrics.aggregate import LevelTally, merge
from seatrial_load.search import NextLevel
from seatrial_load.search.view import forecast
from seatrial_load.trial import steps as course
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.run import DECODE_S_PER_TOKEN
from seatrial_load.trial.steps import ShareOrder

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.store import TrialStore
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.trial.dependencies import ShouldStop
    from seatrial_load.trial.steps import LoadedLevel


class MissingDocumentError(Exception):
    """A document that an earlier step must have written isn't there; the message says which."""


@unique
class LostWorker(StrEnum):
    """How a level's workers failed to load it."""

    LATE = "late"  # they were not ready at the common start: all that is wrong is that they had too little time
    DIED = "died"  # functions ended without a result
    FAILED = "failed"  # at least one says what went wrong


class ShareLostError(Exception):
    """Workers have not loaded their shares; the message says which and why."""

    def __init__(self, loss: LostWorker, message: str) -> None:
        super().__init__(message)
        self.loss = loss


@dataclass(frozen=True, slots=True, kw_only=True)
class CutLevel:
    """What was seen of a level that one function loaded, and that was cut.

    Attributes:
        sent: Requests that the level had numbers for: none is sent again to a cache that knows it.
        stopped: Why it was cut, and the trial ends.
        seen: What was seen of it; None when the trial was stopped.
        tally: What it had measured by then; None where no measured request had ended.
    """

    sent: int
    stopped: Stop
    seen: Unmeasured | None
    tally: LevelTally | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPhase:
    """One level of a trial, from its choice to its result.

    Attributes:
        number: The round's number, from 0.
    """

    store: TrialStore
    endpoint_name: str
    request_id: str
    number: int

    @property
    def next(self) -> Self:
        """The round after this one."""
        return replace(self, number=self.number + 1)

    def progress(self) -> TrialProgress:
        """Return where the trial stood before this round's level."""
        return TrialProgress.from_json(self.read(self._key("progress")))

    def has_progress(self) -> bool:
        """Tell whether a step wrote where the trial stood before this round's level."""
        return self.store.read(self._key("progress")) is not None

    def write_progress(self, progress: TrialProgress) -> None:
        """Write where the trial stands before this round's level."""
        self.store.write(self._key("progress"), progress.to_json())

    def level(self) -> NextLevel:
        """Return which level this round loads."""
        return read_document(NextLevel, self.read(self._key("level")), where="level")

    def write_level(self, level: NextLevel) -> None:
        """Write which level this round loads."""
        self.store.write(self._key("level"), write_document(level))

    def share(self, worker: int) -> ShareOrder:
        """Return what a worker is to load."""
        return read_document(ShareOrder, self.read(self._key(f"share-{worker}")), where="share")

    def write_share(self, share: ShareOrder) -> None:
        """Write what a worker is to load."""
        self.store.write(self._key(f"share-{share.worker}"), write_document(share))

    def tally_key(self, worker: int) -> str:
        """Return the key of what a worker measured."""
        return self._key(f"tally-{worker}")

    def read(self, key: str) -> str:
        """Return a document that an earlier step must have written."""
        text = self.store.read(key)
        if text is None:
            raise MissingDocumentError(f"{self.store.uri(key)} is missing")
        return text

    def _key(self, name: str) -> str:
        return run_key(self.endpoint_name, self.request_id, f"{self.number}/{name}")


def merge_tallies(this: LoadPhase, workers: int) -> LevelTally | CutLevel:
    """Return the level that a round's workers loaded together, or what one worker saw of a level that was cut.

    Raises:
        ShareLostError: Not every worker loaded its share: `DIED` where one ended without a result, `LATE` where all
            that failed came too late for the common start.
        BenchError: SEA501 when a tally can't be read.
    """
    texts = {worker: this.store.read(this.tally_key(worker)) for worker in range(workers)}
    if silent := [f"{worker}" for worker, text in texts.items() if text is None]:
        raise ShareLostError(LostWorker.DIED, f"worker {', '.join(silent)} of {workers} ended without a result")
    reports = {worker: json.loads(text or "") for worker, text in texts.items()}
    if lost := {worker: each for worker, each in reports.items() if "error" in each}:
        why = "; ".join(f"worker {worker}: {each['error']}" for worker, each in lost.items())
        loss = LostWorker.LATE if all(each["late"] for each in lost.values()) else LostWorker.FAILED
        raise ShareLostError(loss, f"{len(lost)} of {workers} workers failed: {why}")
    if "stopped" in reports[0]:
        return read_document(CutLevel, texts[0] or "", where="level that was cut")
    return merge([LevelTally.from_json(text or "") for text in texts.values()])


def error_document(error: Exception, *, late: bool) -> str:
    """Return the document of a share that could not be loaded; `late` when its worker missed the common start."""
    return json.dumps({"error": str(error) or repr(error), "late": late})


class WorkerShare(TypedDict):
    """Which share one worker loads."""

    Round: int
    Worker: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionShare:
    """What one function is to load.

    Attributes:
        left_s: How long the function may load.
        should_stop: Returns why the trial is to stop; called now and then.
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
        return course.send_worker_share(load.request, load.progress, load.share, should_stop=load.should_stop)
    return _load_alone(load, Tools())


def _load_alone(load: FunctionShare, tools: Tools) -> LevelTally | CutLevel:
    request, progress = load.request, load.progress
    tok_s = forecast(request, progress.levels).tok_s
    # What arrives is decoded in the rest of the function's time: a level that used all of it would leave no tally.
    loading_share = 1 / (1 + DECODE_S_PER_TOKEN * (0.0 if tok_s is None else tok_s(load.level.concurrency)))
    until_s = min(load.share.deadline_epoch_s - load.now_s, load.left_s * loading_share)
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
        over = f"{len(loaded.pool.over)} of {loaded.sent} requests had ended"
        where = f"concurrency {load.level.concurrency} per copy"
        because = f"the remaining {load.left_s:.0f} s of the function are too short for {where} ({over})"
        stop = Stop(reason=StopReason.RUN_TOO_SHORT, because=because)
    seen = None
    if loaded.pool.stopped is None:
        seen = course.unmeasured_level(load.request, load.progress, load.level, loaded, stop.because)
    tally = course.tallied(load.request, load.level, loaded) if loaded.measured else None
    tally = None if tally is None else replace(tally, cut=stop)
    return CutLevel(sent=loaded.sent, stopped=stop, seen=seen, tally=tally)


def write_current_level(this: LoadPhase, level: NextLevel, *, requests: int, now_s: float) -> None:
    """Write which level is loaded at the moment, for whoever watches; it may be missing."""
    text = json.dumps(
        {"concurrency": level.concurrency, "because": level.because, "requests": requests, "began_at_s": now_s}
    )
    try:
        this.store.write(run_key(this.endpoint_name, this.request_id, "level"), text)
    except UnavailableError:
        return
