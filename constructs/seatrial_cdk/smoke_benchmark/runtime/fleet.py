"""What a step of a fleet's trial needs: the order, where documents lie, and what measures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from seatrial.bench import course
from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialProperties
from seatrial_cdk.smoke_benchmark.runtime.fleet_round import FleetRound
from seatrial_cdk.smoke_benchmark.runtime.runner import trial_request
from seatrial_cdk.smoke_benchmark.runtime.trial_run import TrialRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from seatrial.bench.course import NextLevel, Step
    from seatrial.bench.progress import TrialProgress
    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import TrialResult
    from seatrial.bench.tally import LevelTally
    from seatrial.bench.tools import Tools
    from seatrial_cdk.smoke_benchmark.runtime.announcement import Bus
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder
    from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import CopyScaling
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore


class Course(Protocol):
    """A trial, level by level (`seatrial.bench.course`)."""

    def begin(self, request: TrialRequest, *, should_stop: Callable[[], str]) -> TrialProgress:
        """Prove what is live, and warm up."""

    def next_step(self, request: TrialRequest, progress: TrialProgress) -> Step:
        """Return which level is measured next, or why none is."""

    def absorb(
        self, request: TrialRequest, progress: TrialProgress, step: NextLevel, tally: LevelTally
    ) -> TrialProgress:
        """Take a level that was measured into the trial."""

    def conclude(
        self, request: TrialRequest, progress: TrialProgress, *, baseline: TrialResult | None, baseline_uri: str
    ) -> TrialResult:
        """Prove again what is live, and say what the levels mean."""


@dataclass(frozen=True, slots=True)
class BenchCourse:
    """The course by `seatrial.bench`, measured with tools."""

    tools: Tools

    def begin(self, request: TrialRequest, *, should_stop: Callable[[], str]) -> TrialProgress:
        """Prove what is live, and warm up."""
        return course.begin(request, self.tools, should_stop=should_stop)

    def next_step(self, request: TrialRequest, progress: TrialProgress) -> Step:
        """Return which level is measured next, or why none is."""
        return course.next_step(request, progress)

    def absorb(
        self, request: TrialRequest, progress: TrialProgress, step: NextLevel, tally: LevelTally
    ) -> TrialProgress:
        """Take a level that was measured into the trial."""
        return course.absorb(request, progress, step, tally)

    def conclude(
        self, request: TrialRequest, progress: TrialProgress, *, baseline: TrialResult | None, baseline_uri: str
    ) -> TrialResult:
        """Prove again what is live, and say what the levels mean."""
        return course.conclude(request, progress, self.tools, baseline=baseline, baseline_uri=baseline_uri)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What a step needs.

    Attributes:
        order: The run of the trial.
        store: Where documents lie.
        scaling: The scaling of copies.
        bus: Where the end of a trial is announced.
        course: What measures.
        region: Of the endpoint.
        sockets_per_function: Requests that one worker keeps in flight.
        now_s: The time, in seconds since the epoch.
        beside: Does something again and again while a block runs.
    """

    order: TrialOrder
    store: TrialStore
    scaling: CopyScaling
    bus: Bus
    course: Course
    region: str
    sockets_per_function: int
    now_s: Callable[[], float]
    beside: Callable[[Callable[[], object]], AbstractContextManager[None]]

    @property
    def properties(self) -> TrialProperties:
        """The custom resource's properties."""
        return TrialProperties.of(self.order["ResourceProperties"])

    @property
    def request(self) -> TrialRequest:
        """The trial."""
        return trial_request(self.properties, self.region)

    def timed(self, progress: TrialProgress) -> TrialProgress:
        """Return the progress with the time since the order: what passes between functions is waited for too."""
        return replace(progress, elapsed_s=max(progress.elapsed_s, self.run().late_s))

    def run(self) -> TrialRun:
        """Return the run, with its look at whose turn it is still to come."""
        return TrialRun(store=self.store, properties=self.properties, order=self.order, now_s=self.now_s)

    def round(self, number: int) -> FleetRound:
        """Return a round."""
        return FleetRound(store=self.store, order=self.order, number=number)
