"""The function of trials in a world of its own: documents in memory, a clock that nothing but a wait moves, no AWS."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import pytest

from seatrial_cdk.trials.runtime.context import TrialContext
from seatrial_cdk.trials.runtime.handler import receive
from seatrial_cdk.trials.runtime.store import UnavailableError
from seatrial_load.documents.progress import TrialProgress
from tests.constructs.conftest import EvidenceKey
from tests.constructs.trials.machine import Machine
from tests.constructs.trials.written_course import WrittenCourse, WrittenLoad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mypy_boto3_application_autoscaling.type_defs import SuspendedStateTypeDef

    from seatrial_cdk.trials.runtime.order import CustomResourceEvent, Execution
    from seatrial_cdk.trials.runtime.outcome import Detail
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import TrialResult
    from seatrial_load.documents.stop import Stop
    from seatrial_load.trial.dependencies import ShouldStop
    from tests.constructs.conftest import DictComponents, DictScaling, DictStore

ORDERED_S = 1000.0
TRIAL, LATEST, PASSED, RELEASED = (
    "trials/dev-chat/b/request-1.json",
    "latest/dev-chat/b/config-2/model-2.json",
    "passed/dev-chat/b/config-2/model-2.json",
    "released/dev-chat/result.json",
)
RUN = "runs/dev-chat/request-1"
PROGRESS, OWNER, HELD = f"{RUN}/progress.json", "state/dev-chat/owner.json", "held/dev-chat/scaling.json"
URI = f"s3://results/{TRIAL}"
COMPONENT = "dev-chat-model"
BEFORE: SuspendedStateTypeDef = {
    "DynamicScalingInSuspended": True,
    "DynamicScalingOutSuspended": False,
    "ScheduledScalingSuspended": False,
}
UNREADABLE = "unreadable"
ROLLBACKS = ["UPDATE_ROLLBACK_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"]
STOPPED = "CloudFormation cancelled or deleted this trial's request"

Response: TypeAlias = "dict[str, str | dict[str, str]]"


@dataclass
class Events:
    details: list[Detail] = field(default_factory=list)

    def put(self, detail: Detail) -> None:
        self.details.append(detail)


@dataclass
class Told:
    """What people were told."""

    findings: list[tuple[str, str]] = field(default_factory=list)
    further_topics: list[str] = field(default_factory=list)

    def publish(self, subject: str, message: str, further: Sequence[str] = ()) -> None:
        self.findings.append((subject, message))
        self.further_topics.extend(further)


@dataclass
class Workflow:
    """Executions as they are asked for; the same name starts once."""

    started: list[tuple[str, str]] = field(default_factory=list)
    died: list[Execution] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    def start(self, endpoint_name: str, request_id: str) -> None:
        if (endpoint_name, request_id) not in self.started:
            self.started.append((endpoint_name, request_id))

    def dead(self, since_s: float) -> list[Execution]:
        return self.died if since_s < ORDERED_S else []

    def stop(self, request_id: str, because: str) -> None:
        assert because == STOPPED
        self.stopped.append(request_id)


@dataclass
class Clock:
    """A clock that time passes on only when something waits; meanwhile what is done beside is done every second."""

    now_s: float = ORDERED_S
    acts: list[Callable[[], object]] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            self.now_s += 1.0
            for act in list(self.acts):
                act()

    @contextmanager
    def repeat_meanwhile(self, act: Callable[[], object]) -> Iterator[None]:
        self.acts.append(act)
        try:
            yield
        finally:
            self.acts.remove(act)


@dataclass
class DictLogs:
    """What became of log groups."""

    limited: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)

    def limit(self, names: Iterable[str]) -> None:
        self.limited.update(names)

    def delete(self, names: Iterable[str]) -> None:
        self.deleted.update(names)


@dataclass
class World:
    """What is around the function, and what came of it."""

    store: DictStore
    scaling: DictScaling
    components: DictComponents
    clock: Clock = field(default_factory=Clock)
    events: Events = field(default_factory=Events)
    told: Told = field(default_factory=Told)
    key: EvidenceKey = field(default_factory=EvidenceKey)
    workflow: Workflow = field(default_factory=Workflow)
    course: WrittenCourse = field(default_factory=WrittenCourse)
    load: WrittenLoad = field(default_factory=WrittenLoad)
    status: str = "UPDATE_IN_PROGRESS"
    responses: list[Response] = field(default_factory=list)
    requests: list[tuple[float, float]] | None = field(default_factory=list)
    logs: DictLogs = field(default_factory=DictLogs)
    aliases: dict[str, str] = field(default_factory=dict)
    alarms_end_s: float = 0.0
    watched: list[TrialRequest] = field(default_factory=list)
    users_stop: Stop | None = None
    sockets_per_function: int = 900

    def respond(self, url: str, body: bytes) -> None:
        assert url == "https://cloudformation.example/answer?signature=x"
        self.responses.append(json.loads(body))

    def stack_status(self, stack_id: str) -> str:
        assert stack_id.startswith("arn:aws:cloudformation:")
        if self.status == UNREADABLE:
            raise UnavailableError("reading the stack's status: throttled")
        return self.status

    @contextmanager
    def guarded(self, request: TrialRequest, should_stop: ShouldStop) -> Iterator[ShouldStop]:
        self.watched.append(request)
        yield lambda: should_stop() or self.users_stop

    def raised(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return every alarm as raised until they end."""
        return tuple(names) if self.clock.now_s < self.alarms_end_s else ()

    def requests_since(self, component: str, since_s: float) -> float:
        if self.requests is None:
            raise UnavailableError(f"reading the load of {component}: throttled")
        return max((load for at_s, load in self.requests if at_s >= since_s), default=0.0)

    @property
    def context(self) -> TrialContext:
        return TrialContext(
            environment="dev",
            store=self.store,
            bucket="results",
            scaling=self.scaling,
            components=self.components,
            logs=self.logs,
            serving=self.aliases.get,
            raised=self.raised,
            requests_since=self.requests_since,
            bus=self.events,
            seal=self.key.seal,
            findings=self.told,
            workflow=self.workflow,
            stack_status=self.stack_status,
            respond=self.respond,
            course=self.course,
            load=self.load,
            region="us-east-1",
            sockets_per_function=self.sockets_per_function,
            ends_s=self.clock.now_s + 900.0,
            now_s=self.clock,
            sleep=self.clock.wait,
            repeat_meanwhile=self.clock.repeat_meanwhile,
            guarded=self.guarded,
        )

    def ask(self, event: CustomResourceEvent) -> Response | None:
        """Return the answer to a request; None when the workflow gives it."""
        before = len(self.responses)
        receive(event, self.context)
        return self.responses[-1] if len(self.responses) > before else None

    def machine(self, before: Callable[[str], None] = lambda _: None) -> Machine:
        return Machine(self.context, self.clock.wait, before)

    def document(self, key: str) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.store.texts[key])
        return found


@pytest.fixture
def world(store: DictStore, scaling: DictScaling, components: DictComponents) -> World:
    return World(store, scaling, components)


@pytest.fixture
def ordered(world: World, create: CustomResourceEvent) -> World:
    """Return a world in which a trial was ordered by the creation of a stack."""
    assert world.ask(create) is None
    return world


@pytest.fixture
def progress(passed: TrialResult) -> TrialProgress:
    return TrialProgress(
        started_at=passed.started_at, elapsed_s=300.0, sent=50, live=passed.live, levels=passed.levels[:1]
    )


def refuse(key: str, *_: object) -> str:
    raise UnavailableError(f"{key}: SlowDown")
