"""What follows a run of a trial: nothing while it is alive, the next run after a pause or a death, or the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_cdk.smoke_benchmark.runtime.trial_run import SILENT_S, UNSTARTED_S, read_lease
from seatrial_cdk.smoke_benchmark.runtime.turn import read_turn, write_turn

if TYPE_CHECKING:
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import CustomResourceEvent, TrialOrder, TrialProperties
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore
    from seatrial_cdk.smoke_benchmark.runtime.turn import Turn

MAX_RESTARTS = 2
MAX_RUNS = 12
"""More than the longest budget has runs of 15 minutes: a trial that never gets further ends nevertheless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """The order of the next run with its reason; or no order, and why there will be none: empty while a run goes on."""

    order: TrialOrder | None = None
    because: str = ""


GOES_ON = NextStep()


def keep_going(event: CustomResourceEvent, properties: TrialProperties, store: TrialStore, *, now_s: float) -> NextStep:
    """Return what follows, and note a next run in the turn, which makes the function of the one before stop."""
    turn = read_turn(store, properties.endpoint_name)
    if turn is None or turn.request_id != event["RequestId"]:
        return NextStep(because="CloudFormation made another request before it ended")
    lease = read_lease(store, properties.endpoint_name, turn.request_id, turn.run)
    paused = lease is not None and lease.paused
    silent_s = now_s - (turn.run_at_s if lease is None else lease.alive_at_s)
    if not paused and silent_s <= (UNSTARTED_S if lease is None else SILENT_S):
        return GOES_ON
    if not paused and turn.restarts == MAX_RESTARTS:
        return NextStep(because=f"its function died {MAX_RESTARTS + 1} times, last in run {turn.run}")
    if turn.run == MAX_RUNS:
        return NextStep(because=f"{MAX_RUNS} runs did not end it: its levels are longer than one function may run")
    because = "the one before has paused" if paused else f"the one before gave no sign of life for {silent_s:.0f} s"
    following = turn.next_run(now_s=now_s, restart=not paused)
    write_turn(store, properties.endpoint_name, following)
    return NextStep(order=_order(event, following), because=because)


def _order(event: CustomResourceEvent, turn: Turn) -> TrialOrder:
    return {
        "RequestId": turn.request_id,
        "ResourceProperties": event["ResourceProperties"],
        "StartedAt": turn.seen_at_s,
        "Run": turn.run,
    }
