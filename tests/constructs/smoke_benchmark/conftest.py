"""One run of a trial, with a trial that measures nothing, says what it was asked and does what a test wants of it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from seatrial.bench.progress import TrialProgress
from seatrial_cdk.smoke_benchmark.runtime.runner import Surroundings, perform
from seatrial_cdk.smoke_benchmark.runtime.turn import read_turn, take_turn, write_turn
from seatrial_cdk.smoke_benchmark.runtime.unavailable import UnavailableError
from tests.constructs.smoke_benchmark.waiting import DUE_S, KEY, STARTED_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_application_autoscaling.type_defs import SuspendedStateTypeDef

    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import TrialResult
    from seatrial_cdk.smoke_benchmark.runtime.announcement import Detail
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import CustomResourceEvent, TrialOrder
    from tests.constructs.conftest import DictScaling, DictStore

ORDERED_S = 1000.0
TRIAL, LATEST, PASSED, RELEASED = (
    "trials/dev-chat/b/request-1.json",
    "latest/dev-chat/b/config-2/model-2.json",
    "passed/dev-chat/b/config-2/model-2.json",
    "released/dev-chat/result.json",
)
PROGRESS, RUN = "runs/dev-chat/request-1/progress.json", "runs/dev-chat/request-1/run-1.json"
PAUSE, COMPONENT = "runs/dev-chat/scaling.json", "dev-chat-model"
BEFORE: SuspendedStateTypeDef = {
    "DynamicScalingInSuspended": True,
    "DynamicScalingOutSuspended": False,
    "ScheduledScalingSuspended": False,
}


@dataclass(frozen=True)
class Asked:
    """What a trial was asked."""

    request: TrialRequest
    resume: TrialProgress | None
    pause_after_s: float | None
    on_progress: Callable[[TrialProgress], None]
    should_stop: Callable[[], str]
    baseline: TrialResult | None
    baseline_uri: str
    sleep: Callable[[float], None]


@dataclass
class ScriptedTrial:
    """Does what a test wants of it, and remembers what it was asked."""

    act: Callable[[Asked], TrialResult | TrialProgress]
    asked: list[Asked] = field(default_factory=list)

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
        asked = Asked(request, resume, pause_after_s, on_progress, should_stop, baseline, baseline_uri, sleep)
        self.asked.append(asked)
        return self.act(self.asked[-1])


@dataclass
class Events:
    details: list[Detail] = field(default_factory=list)

    def put(self, detail: Detail) -> None:
        self.details.append(detail)


@dataclass
class Clock:
    """A clock that time passes on only when something waits; meanwhile what is done beside is done every second."""

    now_s: float = ORDERED_S + 5.0
    acts: list[Callable[[], object]] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            self.now_s += 1.0
            for act in self.acts:
                act()

    @contextmanager
    def beside(self, act: Callable[[], object]) -> Iterator[None]:
        self.acts.append(act)
        yield
        self.acts.remove(act)


@pytest.fixture
def started(create: CustomResourceEvent, store: DictStore) -> CustomResourceEvent:
    """Return a request whose trial was ordered and is alive at any of these times."""
    take_turn(store, "dev-chat", "request-1", document=KEY, now_s=STARTED_S)
    store.write("runs/dev-chat/request-1/run-1.json", json.dumps({"alive_at_s": DUE_S, "paused": False}))
    return {**create, "PhysicalResourceId": "smoke-benchmark-dev-chat", "StartedAt": STARTED_S}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def order(properties: dict[str, str], store: DictStore) -> TrialOrder:
    """Return the order of the first run of a trial that has the turn."""
    take_turn(store, "dev-chat", "request-1", document=TRIAL, now_s=ORDERED_S)
    return {"RequestId": "request-1", "ResourceProperties": properties, "StartedAt": ORDERED_S, "Run": 1}


@pytest.fixture
def run(store: DictStore, scaling: DictScaling, events: Events, clock: Clock) -> Callable[..., ScriptedTrial]:
    """Return a function that makes one run of a scripted trial, and returns that trial."""

    def made(
        order: TrialOrder, act: Callable[[Asked], TrialResult | TrialProgress], *, left_s: float = 660.0
    ) -> ScriptedTrial:
        trial = ScriptedTrial(act)
        surroundings = Surroundings(
            store=store,
            scaling=scaling,
            trial=trial,
            bus=events,
            region="us-east-1",
            left_s=left_s,
            now_s=clock,
            sleep=clock.wait,
            beside=clock.beside,
        )
        perform(order, surroundings)
        return trial

    return made


@pytest.fixture
def progress(passed: TrialResult) -> TrialProgress:
    return TrialProgress(
        started_at=passed.started_at, elapsed_s=300.0, sent=50, live=passed.live, levels=passed.levels[:1]
    )


def refuse(key: str, *_: object) -> str:
    raise UnavailableError(f"{key}: SlowDown")


def second_run(store: DictStore, order: TrialOrder) -> None:
    """Order the second run, as `is_complete` does."""
    turn = read_turn(store, "dev-chat")
    assert turn is not None
    write_turn(store, "dev-chat", turn.next_run(now_s=ORDERED_S + 310.0, restart=False))
    order["Run"] = 2
