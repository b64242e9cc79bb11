"""The records, the copies and the work in the background that the control planes share."""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.clock import VirtualClock
from seatrial_laptop.aws.control_plane.fleets import Fleets
from seatrial_laptop.aws.control_plane.records import Kind, OptimizationJobs, Status, Store
from seatrial_laptop.aws.faults import Faults
from seatrial_laptop.aws.runtime.async_queue import AsyncQueues
from seatrial_laptop.aws.runtime.container_history import ContainerHistory
from seatrial_laptop.aws.runtime.data_capture import CaptureFiles
from seatrial_laptop.aws.runtime.running_copies import CopyPlace, RunningCopies, TrafficSplit
from seatrial_laptop.aws.runtime.telemetry import MetricHistory, Telemetry
from seatrial_laptop.state import LOG_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from seatrial_laptop.aws.alarms import StateValue
    from seatrial_laptop.aws.control_plane.records import Record

LONGEST_REASON: Final = 1024
"""The most characters of a FailureReason."""


@dataclass(frozen=True, slots=True)
class Cloud:
    """The state of the embedded SageMaker."""

    store: Store
    running: RunningCopies
    clock: VirtualClock
    faults: Faults
    fleets: Fleets
    alarm_state: Callable[[str], StateValue | None]
    reads_alarm: Callable[[str, str], bool]
    jobs: OptimizationJobs
    telemetry: Telemetry = field(default_factory=Telemetry)
    history: MetricHistory = field(default_factory=MetricHistory)
    containers: ContainerHistory = field(default_factory=ContainerHistory)
    traffic: TrafficSplit = field(default_factory=TrafficSplit)
    queues: AsyncQueues = field(default_factory=AsyncQueues)
    capture: CaptureFiles = field(default_factory=CaptureFiles)


def open_cloud(
    state_dir: Path,
    engines: Mapping[str, str],
    *,
    alarm_state: Callable[[str], StateValue | None] = lambda _name: None,
    reads_alarm: Callable[[str, str], bool] = lambda _role_arn, _alarm: True,
    clock: VirtualClock | None = None,
) -> Cloud:
    """Return an empty cloud that keeps its files under `state_dir` and starts engines with these variables."""
    clock = clock or VirtualClock()
    store = Store(clock.now_s, clock.aws_date_s)

    def died(place: CopyPlace, reason: str) -> None:
        kind = Kind.ENDPOINT if place.variant else Kind.INFERENCE_COMPONENT
        record = store.find(kind, place.owner)
        # A copy that ends while its record is being deleted was stopped, it did not fail.
        if record and record.status is not Status.DELETING:
            store.change(record, status=Status.FAILED, failure_reason=clipped(reason))

    faults = Faults(clock)
    return Cloud(
        store=store,
        running=RunningCopies(state_dir, engines, died),
        clock=clock,
        faults=faults,
        fleets=Fleets(clock, faults.settings),
        alarm_state=alarm_state,
        reads_alarm=reads_alarm,
        jobs=OptimizationJobs(state_dir / LOG_FOLDER),
    )


def in_background(cloud: Cloud, record: Record, work: Callable[[], None], *, name: str) -> threading.Thread:
    """Do the slow part of a record's change while the caller already has its response."""

    def change() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 (the border of a thread)
            # A record that changes for ever would be waited for as long: a defect fails it.
            traceback.print_exc()
            reason = f"InternalFailure: {type(error).__name__}: {error}"
            cloud.store.change(record, status=Status.FAILED, failure_reason=clipped(reason))

    thread = threading.Thread(target=change, name=name, daemon=True)
    thread.start()
    return thread


def clipped(reason: str) -> str:
    """Shorten a failure reason to the API's limit."""
    if len(reason) <= LONGEST_REASON:
        return reason
    # The first sentence is what happened and the last lines are why: the middle is left out.
    head, _, _ = reason.partition("\n")
    head = head[: LONGEST_REASON // 2]
    gap = "\n...\n"
    return head + gap + reason[-(LONGEST_REASON - len(head) - len(gap)) :]
