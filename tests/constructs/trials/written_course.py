"""A course that measures nothing, and a load that does what a test wants of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from seatrial_load.documents.progress import TrialProgress
from seatrial_load.documents.stop import StopReason
from seatrial_load.search import NextLevel, Stop
from seatrial_load.trial.dependencies import ShouldStop, Tools, go_on
from tests.constructs.conftest import level, passing_result
from tests.constructs.trials.level_records import records, tally

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_cdk.trials.runtime.load_phase import CutLevel, FunctionShare
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import TrialResult
    from seatrial_load.metrics.aggregate import LevelTally

NEXT = NextLevel(concurrency=16, because="the gate")
BEGUN = TrialProgress(started_at="2026-11-21T01:00:00+00:00", elapsed_s=3.0, sent=2, live=passing_result().live)
ALL_MEASURED = Stop(reason=StopReason.ALL_MEASURED, because="every level was measured")


@dataclass(frozen=True)
class Begun:
    """What the beginning of a trial was asked."""

    request: TrialRequest
    tools: Tools
    should_stop: ShouldStop
    waited_s: float


def nothing(_: object) -> None:
    """Do nothing."""


@dataclass
class WrittenCourse:
    """A course whose every step is written down beforehand."""

    steps: list[NextLevel | Stop] = field(default_factory=lambda: [NEXT, ALL_MEASURED])
    absorbed: list[LevelTally] = field(default_factory=list)
    concluded: list[TrialProgress] = field(default_factory=list)
    baselines: list[tuple[TrialResult | None, str]] = field(default_factory=list)
    begun: list[Begun] = field(default_factory=list)
    beginning: Callable[[Begun], object] = nothing
    ending: Callable[[], object] = dict
    result: TrialResult = field(default_factory=passing_result)

    def begin_trial(
        self,
        request: TrialRequest,
        tools: Tools = Tools(),  # noqa: B008 (frozen; the interface's)
        *,
        should_stop: ShouldStop = go_on,
        waited_s: float = 0.0,
    ) -> TrialProgress:
        self.begun.append(Begun(request, tools, should_stop, waited_s))
        self.beginning(self.begun[-1])
        return BEGUN

    def next_step(self, request: TrialRequest, progress: TrialProgress) -> NextLevel | Stop:
        assert request.gate_concurrency == 16
        return progress.stopped or self.steps[len(progress.levels)]

    def add_level(
        self, request: TrialRequest, progress: TrialProgress, step: NextLevel, tally: LevelTally
    ) -> TrialProgress:
        assert request.objectives
        self.absorbed.append(tally)
        return replace(progress, levels=(*progress.levels, level(step.concurrency, 400.0)))

    def conclude_trial(
        self,
        request: TrialRequest,
        progress: TrialProgress,
        tools: Tools = Tools(),  # noqa: B008 (frozen; the interface's)
        *,
        baseline: TrialResult | None = None,
        baseline_uri: str = "",
    ) -> TrialResult:
        assert request.plan_digest == "b"
        assert tools.may_scale
        self.concluded.append(progress)
        self.baselines.append((baseline, baseline_uri))
        self.ending()
        return self.result


@dataclass
class WrittenLoad:
    """A load that measures what is written, after it did what a test wants of it."""

    acting: Callable[[FunctionShare], CutLevel | None] = field(default=lambda _: None)
    loads: list[FunctionShare] = field(default_factory=list)

    def __call__(self, load: FunctionShare) -> LevelTally | CutLevel:
        self.loads.append(load)
        return self.acting(load) or tally(records(48)[load.share.worker :: load.share.workers])
