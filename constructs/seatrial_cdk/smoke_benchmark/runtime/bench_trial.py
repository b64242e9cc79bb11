"""What measures: the bench, as a run of the trial calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from seatrial.bench.tools import Tools
from seatrial.bench.trial import run_trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.progress import TrialProgress
    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import TrialResult


class Trial(Protocol):
    """Runs a trial, or the part of it that ends in time."""

    def __call__(
        self,
        request: TrialRequest,
        *,
        resume: TrialProgress | None,
        pause_after_s: float | None,
        on_progress: Callable[[TrialProgress], None],
        should_stop: Callable[[], str],
        baseline: TrialResult | None,
        baseline_uri: str,
        sleep: Callable[[float], None],
    ) -> TrialResult | TrialProgress:
        """Return the result, or how far the trial has come when its next level would not end in time."""


def bench_trial(
    request: TrialRequest,
    *,
    resume: TrialProgress | None,
    pause_after_s: float | None,
    on_progress: Callable[[TrialProgress], None],
    should_stop: Callable[[], str],
    baseline: TrialResult | None,
    baseline_uri: str,
    sleep: Callable[[float], None],
) -> TrialResult | TrialProgress:
    """Run a trial by `seatrial.bench`.

    A component at zero is set to one copy by hand: what would scale it rests meanwhile.
    """
    return run_trial(
        request,
        tools=Tools(sleep=sleep, may_scale=True),
        resume=resume,
        pause_after_s=pause_after_s,
        on_progress=on_progress,
        should_stop=should_stop,
        baseline=baseline,
        baseline_uri=baseline_uri,
    )
