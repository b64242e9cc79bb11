"""A deletion: it stops the load of a trial that still runs, waits a moment for it to end, and never fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import restore
from seatrial_cdk.smoke_benchmark.runtime.trial_run import lease_at
from seatrial_cdk.smoke_benchmark.runtime.trial_store import run_key
from seatrial_cdk.smoke_benchmark.runtime.turn import read_turn, take_turn
from seatrial_cdk.smoke_benchmark.runtime.unavailable import UnavailableError

if TYPE_CHECKING:
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import Completion, CustomResourceEvent, Started
    from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import CopyScaling
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore

STOP_WAIT_S = 60.0  # a trial looks at the turn every 10 s, and stops at once


class Stack(Protocol):
    """The stack that is changed."""

    def stack_status(self, stack_id: str) -> str:
        """Return what the stack is doing (`UPDATE_IN_PROGRESS`).

        Raises:
            UnavailableError: It can't be told.
        """


def begin_deletion(event: CustomResourceEvent, store: TrialStore, stack: Stack, *, now_s: float) -> Started:
    """Stop the endpoint's trial, and empty the bucket when it is the creation that is rolled back.

    The bucket can't be deleted otherwise. While a trial still runs, that is left to `is_complete`: its runner would
    write behind the cleaning. The properties are those of the resource that goes: where the endpoint was renamed, what
    is stopped and removed is the old name's.
    """
    answer: Started = {"PhysicalResourceId": event.get("PhysicalResourceId", event["RequestId"])}
    endpoint_name = event["ResourceProperties"].get("EndpointName")
    if not endpoint_name:
        return answer
    try:
        before = read_turn(store, endpoint_name)
        take_turn(store, endpoint_name, event["RequestId"], document="", now_s=now_s)
        clear = "ROLLBACK" in stack.stack_status(event["StackId"])
        if before is not None and before.document and store.read(before.document) is None:
            run = run_key(endpoint_name, before.request_id, before.run)
            return {**answer, "Stopping": before.document, "StoppingRun": run, "StoppedAt": now_s, "Clear": clear}
        if clear:
            store.clear(endpoint_name)
    except UnavailableError:
        return answer
    return answer


def end_deletion(event: CustomResourceEvent, store: TrialStore, scaling: CopyScaling, *, now_s: float) -> Completion:
    """Complete as soon as the stopped trial has ended, or after a minute; scaling is then as it was before it.

    Of a trial that was stopped between two runs there will be no document.
    """
    if "Stopping" not in event or "StoppingRun" not in event or "StoppedAt" not in event:
        return {"IsComplete": True}
    properties = event["ResourceProperties"]
    overdue = now_s - event["StoppedAt"] > STOP_WAIT_S
    try:
        if not overdue and store.read(event["Stopping"]) is None and not _paused(store, event["StoppingRun"]):
            return {"IsComplete": False}
        restore(scaling, store, properties["EndpointName"], properties.get("InferenceComponentName", ""))
        if event.get("Clear"):
            store.clear(properties["EndpointName"])
    except Exception:  # noqa: BLE001 (a deletion that fails leaves the stack stuck; scaling's target goes with it)
        return {"IsComplete": overdue}
    return {"IsComplete": True}


def _paused(store: TrialStore, run: str) -> bool:
    lease = lease_at(store, run)
    return lease is not None and lease.paused
