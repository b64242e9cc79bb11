"""The sea trial from start to end: begin, measure level by level, conclude; or pause, to go on in another run."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_base.field_facts import made_of
from seatrial_load.aws.cloudwatch import LATE_S
from seatrial_load.documents.arrivals import arrivals_of
from seatrial_load.documents.progress import LevelEnded, LevelStarted
from seatrial_load.documents.result import load_words
from seatrial_load.documents.stop import Stop, StopReason
from seatrial_load.metrics.level import level_size
from seatrial_load.search.view import forecast
from seatrial_load.trial.budget import budget_over, left_s, live_request
from seatrial_load.trial.dependencies import go_on
from seatrial_load.trial.finalize import conclude_trial
from seatrial_load.trial.guard import guard_of
from seatrial_load.trial.steps import EVERYDAY, add_level, begin_trial, load_level, next_step, tallied, unmeasured_level

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.progress import TrialProgress
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import TrialResult
    from seatrial_load.search import NextLevel
    from seatrial_load.trial.dependencies import ShouldStop, Tools
    from seatrial_load.trial.steps import LoadedLevel


def _not_kept(_progress: TrialProgress) -> None:
    """Ignore the progress."""


def run_trial(
    request: TrialRequest,
    *,
    tools: Tools = EVERYDAY,
    resume: TrialProgress | None = None,
    pause_after_s: float | None = None,
    on_progress: Callable[[TrialProgress], None] = _not_kept,
    should_stop: ShouldStop = go_on,
    baseline: TrialResult | None = None,
    baseline_uri: str = "",
) -> TrialResult | TrialProgress:
    """Run a trial, or the part of it that ends in time. Requests that fail are data; an impossible trial raises.

    Args:
        resume: Where an earlier run of this trial paused; None begins it.
        pause_after_s: Time limit of this run: it pauses before a level that would take longer; None never pauses.

    Returns:
        The result; or the progress, when the trial paused.

    Raises:
        BenchError: SEA501 impossible request, SEA502 the live endpoint isn't this deployment's (before or after the
            measurement), SEA503 no credentials, SEA504 the endpoint's URL can't be used, SEA508 more streams than this
            machine may open, SEA509 or SEA510 a bad line of the prompts' file.
    """
    guard = guard_of(request, tools)
    with nullcontext(should_stop) if guard is None else guard.beside(should_stop) as stop:
        run = _Run(request, tools, pause_after_s, on_progress, stop)
        progress = run.measured(resume)
    if progress.stopped is None:
        return progress
    patience_s = LATE_S if run.time_left_s is None else max(0.0, min(LATE_S, run.time_left_s))
    patience_s = 0.0 if should_stop() is not None else patience_s
    return conclude_trial(request, progress, tools, baseline=baseline, baseline_uri=baseline_uri, patience_s=patience_s)


# CPU time that decoding a token takes after its level: 52 µs on a server's core; a function's is slower.
DECODE_S_PER_TOKEN = 1e-4


class _Run:
    """One run of the trial, with a clock of its own next to the trial's."""

    def __init__(
        self,
        request: TrialRequest,
        tools: Tools,
        pause_after_s: float | None,
        on_progress: Callable[[TrialProgress], None],
        should_stop: ShouldStop,
    ) -> None:
        self._request = request
        self._tools = tools
        self._pause_after_s = pause_after_s
        self._on_progress = on_progress
        self._should_stop = should_stop
        self._began_s = tools.clock()
        self._before_s = 0.0
        self._has_worked = False

    @property
    def time_left_s(self) -> float | None:
        """How long this run may still take; None when it may take its time."""
        return None if self._pause_after_s is None else self._pause_after_s - self._elapsed_s()

    def measured(self, resume: TrialProgress | None) -> TrialProgress:
        """Measure until the trial is over, which sets `stopped`, or until this run is."""
        if resume is None:
            progress = begin_trial(self._request, self._tools, should_stop=self._should_stop)
            self._has_worked = True
        else:
            progress = replace(resume, runs=resume.runs + 1)
            self._before_s = resume.elapsed_s
        self._request = live_request(self._request, progress)
        while progress.stopped is None:
            progress = self._timed(progress)
            self._on_progress(progress)
            if (stop := self._should_stop()) is not None:
                return replace(progress, stopped=stop)
            step = next_step(self._request, progress)
            if isinstance(step, Stop):
                return replace(progress, stopped=step)
            if self._must_pause(progress, step):
                return self._timed(progress)
            before = len(progress.levels)
            progress = self._level(progress, step)
            if len(progress.levels) == before:
                return self._timed(progress)
            self._has_worked = True
        return self._timed(progress)

    def _level(self, progress: TrialProgress, step: NextLevel) -> TrialProgress:
        """Measure a level; without it, the progress has the reason, or none when the next run shall repeat it."""
        request, tools, load = self._request, self._tools, self._request.load
        size = level_size(request, step.concurrency).scheduled(tools.schedule(request, progress))
        rate_per_s = arrivals_of(load).rate_per_s(load, len(progress.levels))
        tools.watch(made_of(LevelStarted, step, size, rate_per_s=rate_per_s, elapsed_s=self._trial_s()))
        from_s, deadline_s = self._epoch_s(progress), self._deadline_s(progress, step)
        loaded = load_level(request, progress, step, deadline_s=deadline_s, should_stop=self._should_stop, tools=tools)
        if loaded.cut is not None:
            return self._cut_short(progress, step, loaded, from_s)
        absorbed = add_level(request, progress, step, tallied(request, step, loaded))
        absorbed = absorbed.with_level_time(from_s, self._epoch_s(progress))
        tools.watch(LevelEnded(level=absorbed.levels[-1], elapsed_s=self._trial_s()))
        return absorbed

    def _cut_short(self, progress: TrialProgress, step: NextLevel, loaded: LoadedLevel, from_s: float) -> TrialProgress:
        # Its prompts were sent, and must not be sent again to a cache that has them. A cut level keeps its numbers,
        # apart from those that decide.
        gone, pool = replace(progress, sent=progress.sent + loaded.sent), loaded.pool
        because = budget_over(self._request).because
        if pool.stopped is not None:
            because = pool.stopped.because
        elif pool.lost_because is not None:
            because = f"the load generator failed: {pool.lost_because}"
        elif self._only_run_is_over(progress):
            because = f"this run's {self._pause_after_s:g} s ended"
        seen = unmeasured_level(self._request, progress, step, loaded, because)
        # Where it was stopped before an answer came, nothing shows that none would have come.
        if pool.stopped is None or seen.succeeded:
            gone = replace(gone, unmeasured=(*gone.unmeasured, seen))
        if loaded.measured:
            (*_, level) = add_level(self._request, progress, step, tallied(self._request, step, loaded)).cut
            because = f"{because} ({len(pool.over)} of {loaded.size.requests} requests had ended)"
            level = replace(level, cut=because, from_s=from_s, to_s=self._epoch_s(progress))
            gone = replace(gone, cut=(*gone.cut, level))
            self._tools.watch(LevelEnded(level=level, elapsed_s=self._trial_s()))
        failed = pool.lost_because is not None or pool.stopped is not None
        if failed or not self._only_run_is_over(progress):
            return replace(gone, stopped=loaded.cut)
        if self._has_worked and self._should_stop() is None:
            return gone
        load = self._request.load
        place = load_words(step.concurrency, arrivals_of(load).rate_per_s(load, len(progress.levels)))
        because = f"one run of {self._pause_after_s:g} s is too short for {place}"
        over = f"{len(pool.over)} of {loaded.size.requests} requests had ended"
        return replace(gone, stopped=Stop(reason=StopReason.RUN_TOO_SHORT, because=f"{because} ({over})"))

    def _must_pause(self, progress: TrialProgress, step: NextLevel) -> bool:
        # A run that has done nothing yet tries a level that would outlast it all the same.
        left_s = self.time_left_s
        if left_s is None or not self._has_worked:
            return False
        expected_s = forecast(self._request, progress.levels).duration_s(step.concurrency)
        return left_s * self._loading_share(progress, step) <= (expected_s or 0.0)

    def _loading_share(self, progress: TrialProgress, step: NextLevel) -> float:
        # The rest of this run's time goes to decoding what arrives.
        tok_s = forecast(self._request, progress.levels).tok_s
        return 1 / (1 + DECODE_S_PER_TOKEN * (0.0 if tok_s is None else tok_s(step.concurrency)))

    def _only_run_is_over(self, progress: TrialProgress) -> bool:
        # Not the trial's time: a whole run of its own may measure the level.
        return self.time_left_s is not None and left_s(self._request, self._timed(progress)) > 0

    def _epoch_s(self, progress: TrialProgress) -> float:
        """Return the time of day by the service's clock, for reading CloudWatch later."""
        return self._tools.wall_clock().timestamp() + (progress.clock_offset_s or 0.0)

    def _deadline_s(self, progress: TrialProgress, step: NextLevel) -> float:
        now_s, run_s = self._tools.clock(), self.time_left_s
        trial_s = left_s(self._request, self._timed(progress))
        if run_s is None:
            return now_s + trial_s
        return now_s + min(trial_s, run_s * self._loading_share(progress, step))

    def _timed(self, progress: TrialProgress) -> TrialProgress:
        return replace(progress, elapsed_s=self._trial_s())

    def _trial_s(self) -> float:
        return self._before_s + self._elapsed_s()

    def _elapsed_s(self) -> float:
        return self._tools.clock() - self._began_s
