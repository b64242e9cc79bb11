"""Cleanup of what was not ended: executions without a response, candidates, suspended scaling, lost requests.

An EventBridge rule reports an execution that died; the sweep finds those that were not reported because every
function died. A request is lost when every function that took it died before it could be answered.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from seatrial_base.bounds import LONGEST_ORDER_S, LOST_AFTER_S
from seatrial_base.units import S_PER_HOUR
from seatrial_cdk.trials.runtime.answer import is_sent
from seatrial_cdk.trials.runtime.components import candidate_of, remove_candidate
from seatrial_cdk.trials.runtime.log_groups import log
from seatrial_cdk.trials.runtime.order import Execution, endpoint_of, read_order
from seatrial_cdk.trials.runtime.ownership import read_owner
from seatrial_cdk.trials.runtime.scaling import held_scalings, note_copies, restore_scaling
from seatrial_cdk.trials.runtime.steps import SOONEST_LOOK_S, Trial, abandon, answer, ownership_of, settle
from seatrial_cdk.trials.runtime.store import UnavailableError, noted_key, run_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_cdk.trials.runtime.components import CandidateComponent
    from seatrial_cdk.trials.runtime.context import TrialContext
    from seatrial_cdk.trials.runtime.order import CustomResourceEvent, OrderRef
    from seatrial_cdk.trials.runtime.scaling import HeldScaling
    from seatrial_cdk.trials.runtime.store import TrialStore


ANSWER_S: Final = 30.0
"""Of the function's time, for the answer."""
NOTED: Final = "noted"


def end_dead_execution(execution: Execution, context: TrialContext) -> None:
    """End a trial whose execution failed, was stopped or ran out of time.

    Raises:
        UnavailableError: CloudFormation did not take the answer; EventBridge and Lambda then call again.
    """
    ref: OrderRef = json.loads(execution["input"])
    order = read_order(context.store, ref["EndpointName"], ref["RequestId"])
    if order is None:
        return
    trial = Trial(order, context, ownership_of(ref, context))
    why = execution.get("cause") or "no reason given"
    abandon(trial, f"its workflow ended with {execution['status']}: {why}")
    until_s = context.ends_s - ANSWER_S
    while settle(trial)["Next"] == "pause" and context.now_s() < until_s:
        context.sleep(SOONEST_LOOK_S)
    answer(trial)


def is_answered(execution: Execution, context: TrialContext) -> bool:
    """Tell whether an execution was answered for, or needs it no more."""
    ref: OrderRef = json.loads(execution["input"])
    endpoint_name, request_id = ref["EndpointName"], ref["RequestId"]
    if read_order(context.store, endpoint_name, request_id) is None:
        return True
    return is_sent(context.store, endpoint_name, request_id)


def sweep(context: TrialContext) -> None:
    """Answer for dead executions, and end what nothing uses any more; what can't be ended now, the next sweep ends."""
    for execution in context.workflow.dead(context.now_s() - LONGEST_ORDER_S):
        _sweep_execution(execution, context)
    for name in context.components.like_candidates():
        if name.startswith(f"{context.environment}-"):
            _sweep_candidate(name, context)
    for held in held_scalings(context.store):
        _sweep_held(held, context)


def _sweep_execution(execution: Execution, context: TrialContext) -> None:
    try:
        if not is_answered(execution, context):
            log(f"sweep: nobody answered for {execution['input']}")
            end_dead_execution(execution, context)
    except UnavailableError as unavailable:
        log(f"sweep: {execution['input']} is not answered: {unavailable}")


def _sweep_candidate(name: str, context: TrialContext) -> None:
    try:
        candidate = candidate_of(context.components, name, context.environment)
        if candidate is not None and not _is_used(candidate, context):
            log(f"sweep: candidate {name} is removed")
            remove_candidate(context.components, name, context.environment)
    except UnavailableError as unavailable:
        log(f"sweep: candidate {name} stays: {unavailable}")


def _is_used(candidate: CandidateComponent, context: TrialContext) -> bool:
    """Tell whether the order that made a candidate owns its endpoint, and is not over."""
    owner = read_owner(context.store, candidate.endpoint_name)
    if owner is None or not candidate.is_for(owner.request_id):
        return False
    is_over = bool(owner.document) and context.store.read(owner.document) is not None
    return not is_over and not owner.is_over(context.now_s())


def _sweep_held(held: HeldScaling, context: TrialContext) -> None:
    """Restore the scaling of a component whose stack is not updated any more; note its copies while it is."""
    try:
        status = context.stack_status(held.stack_id)
        if status.endswith("IN_PROGRESS") and "CLEANUP" not in status:
            note_copies(context.store, context.components, held)
        else:
            log(f"sweep: the scaling of {held.component} is restored")
            restore_scaling(context.scaling, context.store, context.components, held)
    except UnavailableError as unavailable:
        log(f"sweep: the scaling of {held.component} stays suspended: {unavailable}")


def note_request(store: TrialStore, event: CustomResourceEvent, now_s: float) -> float:
    """Write a request down as it came, unless an earlier delivery did; return when that was, in s since the epoch.

    Its name is written down by the hour first, for `lost_requests`.
    """
    endpoint_name, request_id = endpoint_of(event), event["RequestId"]
    store.create(noted_key(int(now_s / S_PER_HOUR), endpoint_name, request_id), "{}")
    key = run_key(endpoint_name, request_id, NOTED)
    if store.create(key, json.dumps({"at_s": now_s, "event": event})):
        return now_s
    return float(json.loads(store.read(key) or "{}").get("at_s", now_s))


def lost_requests(store: TrialStore, now_s: float) -> Iterator[CustomResourceEvent]:
    """Yield the requests that were noted a while ago and have no answer yet, while CloudFormation waits for one.

    One whose workflow runs is among them: to take it again starts nothing new. The documents of a year are not listed:
    only the names of the hours in which such a request came.
    """
    hours = range(int((now_s - LONGEST_ORDER_S) / S_PER_HOUR), int(now_s / S_PER_HOUR) + 1)
    keys = (key for hour in hours for key in store.keys(noted_key(hour)))
    requests = {tuple(key.removesuffix(".json").split("/")[-2:]) for key in keys}
    for endpoint_name, request_id in sorted(requests):
        if is_sent(store, endpoint_name, request_id):
            continue
        noted = json.loads(store.read(run_key(endpoint_name, request_id, NOTED)) or "{}")
        if noted and LOST_AFTER_S <= now_s - noted["at_s"] < LONGEST_ORDER_S:
            yield noted["event"]
