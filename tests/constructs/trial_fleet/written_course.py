"""A course that measures nothing, a bus that remembers, and one step of a fleet."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from seatrial.bench.course import NextLevel, Stop
from seatrial.bench.progress import TrialProgress
from seatrial_cdk.smoke_benchmark.runtime.fleet_steps import take_step
from tests.constructs.conftest import level, passing_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import TrialResult
    from seatrial.bench.tally import LevelTally
    from seatrial_cdk.smoke_benchmark.runtime.announcement import Detail
    from seatrial_cdk.smoke_benchmark.runtime.fleet import Fleet
    from seatrial_cdk.smoke_benchmark.runtime.fleet_calls import Position, StepCall

TRIAL, ROUND = "trials/dev-chat/b/request-1.json", "runs/dev-chat/request-1/run-1"
COMPONENT = "dev-chat-model"
NEXT = NextLevel(concurrency=16, because="the gate")
BEGUN = TrialProgress(started_at="2026-11-21T01:00:00+00:00", elapsed_s=3.0, sent=2, live=passing_result().live)


@dataclass
class WrittenCourse:
    """A course whose every step is written down beforehand."""

    steps: list[NextLevel | Stop] = field(default_factory=lambda: [NEXT])
    absorbed: list[LevelTally] = field(default_factory=list)
    concluded: list[TrialProgress] = field(default_factory=list)
    begun: list[TrialRequest] = field(default_factory=list)
    beginning: Callable[[Callable[[], str]], object] = str

    def begin(self, request: TrialRequest, *, should_stop: Callable[[], str]) -> TrialProgress:
        assert request.target.inference_component == COMPONENT
        self.begun.append(request)
        self.beginning(should_stop)
        return BEGUN

    def next_step(self, request: TrialRequest, progress: TrialProgress) -> NextLevel | Stop:
        assert request.gate_concurrency == 16
        return self.steps[len(progress.levels)]

    def absorb(
        self, request: TrialRequest, progress: TrialProgress, step: NextLevel, tally: LevelTally
    ) -> TrialProgress:
        assert request.objectives
        self.absorbed.append(tally)
        return replace(progress, levels=(*progress.levels, level(step.concurrency, 400.0)))

    def conclude(
        self, request: TrialRequest, progress: TrialProgress, *, baseline: TrialResult | None, baseline_uri: str
    ) -> TrialResult:
        assert (request.plan_digest, baseline, baseline_uri) == ("b", None, "")
        self.concluded.append(progress)
        return passing_result()


@dataclass
class Bus:
    details: list[Detail] = field(default_factory=list)

    def put(self, detail: Detail) -> None:
        self.details.append(detail)


def step(
    fleet: Fleet, name: Literal["begin", "choose", "absorb", "conclude"], position: Position | None = None
) -> Position:
    call: StepCall = {"Step": name, "Order": fleet.order}
    if position:
        call["Position"] = position
    return take_step(call, fleet)
