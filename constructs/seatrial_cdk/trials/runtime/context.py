"""Everything around one call of the function: documents, the services of AWS, the bench, and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from seatrial_cdk.trials.runtime.components import Components
    from seatrial_cdk.trials.runtime.load_phase import LoadShare
    from seatrial_cdk.trials.runtime.log_groups import LogGroups
    from seatrial_cdk.trials.runtime.order import Execution
    from seatrial_cdk.trials.runtime.outcome import Bus, Findings, Sign
    from seatrial_cdk.trials.runtime.scaling import ComponentScaling
    from seatrial_cdk.trials.runtime.store import TrialStore
    from seatrial_load.documents.progress import TrialProgress
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import TrialResult
    from seatrial_load.metrics.aggregate import LevelTally
    from seatrial_load.search import NextLevel, Step
    from seatrial_load.trial.dependencies import ShouldStop, Tools


class LambdaContext(Protocol):
    """Lambda's context of a call."""

    def get_remaining_time_in_millis(self) -> int:
        """Return how long this call may go on."""


class Respond(Protocol):
    """Gives CloudFormation an answer."""

    def __call__(self, url: str, body: bytes) -> None:
        """Put the answer to a response URL."""


class Course(Protocol):
    """A trial, level by level: `seatrial_load.trial.steps`."""

    def begin_trial(
        self, request: TrialRequest, tools: Tools = ..., *, should_stop: ShouldStop = ..., waited_s: float = ...
    ) -> TrialProgress:
        """Prove what is live, and warm up."""

    def next_step(self, request: TrialRequest, progress: TrialProgress) -> Step:
        """Return which level is measured next, or why none is."""

    def add_level(
        self, request: TrialRequest, progress: TrialProgress, step: NextLevel, tally: LevelTally
    ) -> TrialProgress:
        """Take a level that was measured into the trial."""

    def conclude_trial(
        self,
        request: TrialRequest,
        progress: TrialProgress,
        tools: Tools = ...,
        *,
        baseline: TrialResult | None = ...,
        baseline_uri: str = ...,
    ) -> TrialResult:
        """Prove again what is live, and say what the levels mean."""


class Workflow(Protocol):
    """The executions of trials."""

    def start(self, endpoint_name: str, request_id: str) -> None:
        """Start the trial of a request; one that was started before is the one."""

    def stop(self, request_id: str, because: str) -> None:
        """Stop the trial of a request, if there is one."""

    def dead(self, since_s: float) -> list[Execution]:
        """Return the executions that ended since a time without an answer of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialContext:
    """What one call of the function works with.

    Attributes:
        environment: The environment's name, with which the names of its endpoints begin.
        bucket: The name of the bucket of results.
        serving: Returns the endpoint that an alias names; `None` when there is no such alias.
        requests_since: Returns the most requests in flight on a copy of a component since a time.
        records: Where records of what serves are kept; `None` where the environment has no `audit`.
        change_set: Returns the ARN of a stack's last change set; empty when CloudFormation names none.
        course: The trial, level by level.
        sockets_per_function: Requests that one function keeps in flight.
        ends_s: When this call must have ended, in seconds since the epoch.
        now_s: The time, in seconds since the epoch.
        beside: Does something again and again while a block runs.
        guarded: Watches users while a block adds load beside their requests.
    """

    environment: str
    store: TrialStore
    bucket: str
    scaling: ComponentScaling
    components: Components
    logs: LogGroups
    serving: Callable[[str], str | None]
    raised: Callable[[Sequence[str]], tuple[str, ...]]
    requests_since: Callable[[str, float], float]
    bus: Bus
    seal: Sign
    findings: Findings
    workflow: Workflow
    stack_status: Callable[[str], str]
    respond: Respond
    course: Course
    load: LoadShare
    region: str
    sockets_per_function: int
    ends_s: float
    now_s: Callable[[], float]
    sleep: Callable[[float], None]
    repeat_meanwhile: Callable[[Callable[[], object]], AbstractContextManager[None]]
    guarded: Callable[[TrialRequest, ShouldStop], AbstractContextManager[ShouldStop]]
    records: TrialStore | None = None
    change_set: Callable[[str], str] = lambda _: ""
