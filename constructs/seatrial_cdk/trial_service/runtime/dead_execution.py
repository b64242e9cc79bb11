"""An execution that ended without an answer: remove, restore, say why, and answer in its stead.

An EventBridge rule tells of it; the sweep finds those of which nobody could be told because every function died.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypedDict

from seatrial_cdk.trial_service.runtime.custom_resource import read_order
from seatrial_cdk.trial_service.runtime.steps import SOONEST_LOOK_S, Trial, abandon, answer, ownership_of, settle
from seatrial_cdk.trial_service.runtime.store import run_key

if TYPE_CHECKING:
    from seatrial_cdk.trial_service.runtime.load_share import OrderRef
    from seatrial_cdk.trial_service.runtime.surroundings import Surroundings

ANSWER_S: Final = 30.0
"""Of the function's time, for the answer."""


class Execution(TypedDict):
    """An execution of the workflow that ended without an answer, as its event tells it."""

    status: str
    input: str
    cause: str | None


def bury(execution: Execution, around: Surroundings) -> None:
    """End a trial whose execution failed, was stopped or ran out of time.

    Raises:
        UnavailableError: CloudFormation did not take the answer; EventBridge and Lambda then call again.
    """
    ref: OrderRef = json.loads(execution["input"])
    order = read_order(around.store, ref["EndpointName"], ref["RequestId"])
    if order is None:
        return
    trial = Trial(order, around, ownership_of(ref, around))
    why = execution.get("cause") or "no reason given"
    abandon(trial, f"its workflow ended with {execution['status']}: {why}")
    until_s = around.ends_s - ANSWER_S
    while settle(trial)["Next"] == "pause" and around.now_s() < until_s:
        around.sleep(SOONEST_LOOK_S)
    answer(trial)


def is_answered(execution: Execution, around: Surroundings) -> bool:
    """Tell whether somebody answered for an execution, or nobody needs it any more."""
    ref: OrderRef = json.loads(execution["input"])
    endpoint_name, request_id = ref["EndpointName"], ref["RequestId"]
    if read_order(around.store, endpoint_name, request_id) is None:
        return True
    return around.store.read(run_key(endpoint_name, request_id, "answered")) is not None
