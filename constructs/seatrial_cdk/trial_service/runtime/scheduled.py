"""Starts a trial that no deployment asked for: what is live is tried as a candidate beside itself.

The candidate is of the live component's specification; the trial's request is that of the last result of what is live,
so that both can be compared. Nothing that serves is changed. Where a deployment is at work nothing is started, and one
that comes later takes the endpoint over.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, TypedDict

from seatrial_base.bounds import LONGEST_TRIAL_S
from seatrial_cdk.trial_service.runtime.custom_resource import Order
from seatrial_cdk.trial_service.runtime.log import log
from seatrial_cdk.trial_service.runtime.outcome import readable_result
from seatrial_cdk.trial_service.runtime.ownership import Owner, take_if_idle
from seatrial_cdk.trial_service.runtime.store import (
    LATEST,
    PASSED,
    SCHEDULED,
    UnavailableError,
    run_key,
    trial_key,
)
from seatrial_cdk.trial_service.runtime.sweep import LONGEST_ORDER_S

if TYPE_CHECKING:
    from seatrial_cdk.trial_service.runtime.components import ComponentState
    from seatrial_cdk.trial_service.runtime.custom_resource import CustomResourceEvent
    from seatrial_cdk.trial_service.runtime.store import TrialStore
    from seatrial_cdk.trial_service.runtime.surroundings import Surroundings
    from seatrial_load.model.result import TrialResult

AT_REST: Final = (
    "CREATE_COMPLETE",
    "IMPORT_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
)
"""Statuses of a stack in which nothing of it is at work."""
SPECIFIED: Final = ("ModelName", "ComputeResourceRequirements", "StartupParameters")
"""What of a live component's specification makes another one like it."""
ONLY_OF_ITS_TRIAL: Final = ("target", "expected", "manner", "alarms")


class ScheduledCall(TypedDict):
    """Which endpoint is to be tried.

    Attributes:
        EndpointName: The endpoint.
        InferenceComponentName: Its component.
        StackId: Name or ARN of its stack.
        Id: Unique for each call; a repeated one starts nothing new.
    """

    EndpointName: str
    InferenceComponentName: str
    StackId: str
    Id: str


class ScheduledAnswer(TypedDict):
    """Whether a trial was started.

    Attributes:
        Started: It was, by this call or by an earlier one of the same ID.
        RequestId: Of the trial.
        Because: Why it was not; empty when it was.
    """

    Started: bool
    RequestId: str
    Because: str


class NotNowError(Exception):
    """The endpoint can't be tried at the moment; the message says why."""


def start_scheduled(call: ScheduledCall, around: Surroundings) -> ScheduledAnswer:
    """Start the trial of an endpoint as it is live, unless a deployment is at work.

    Raises:
        UnavailableError: AWS did not answer; Lambda then calls again.
    """
    request_id = f"{SCHEDULED}-{call['Id']}"
    try:
        live = _live(call, around)
        order = _order(call, request_id, live, around)
        _begin(order, around)
    except NotNowError as not_now:
        log(f"no scheduled trial of {call['EndpointName']}: {not_now}")
        return {"Started": False, "RequestId": request_id, "Because": f"{not_now}"}
    log(f"scheduled trial of {call['EndpointName']}: {request_id}")
    return {"Started": True, "RequestId": request_id, "Because": ""}


def _live(call: ScheduledCall, around: Surroundings) -> ComponentState:
    """Return the component as it is live and at rest."""
    name, component = call["EndpointName"], call["InferenceComponentName"]
    if not name.startswith(f"{around.environment}-"):
        raise NotNowError(f"it is no endpoint of {around.environment}")
    status = around.stack_status(call["StackId"])
    if status not in AT_REST:
        raise NotNowError(f"its stack is {status}")
    live = around.components.describe(component)
    if live is None or live.endpoint_name != name:
        raise NotNowError(f"there is no component {component} on it")
    if live.status != "InService":
        raise NotNowError(f"{component} is {live.status}")
    return live


def _order(call: ScheduledCall, request_id: str, live: ComponentState, around: Surroundings) -> Order:
    """Return the order of a trial that is like the last one of what is live."""
    name, model = call["EndpointName"], f"{live.specification.get('ModelName', '')}"
    config = around.components.live_config(name)
    before = last_result(around.store, name, config, model)
    if before is None:
        raise NotNowError(f"no trial of what is live ({config}, {model}) is kept: deploy it with its trial")
    fields = json.loads(before.request.to_json())
    budget_s, specification = (
        before.request.load.budget_s,
        {key: value for key, value in live.specification.items() if key in SPECIFIED},
    )
    event: CustomResourceEvent = {
        "RequestType": "Update",
        "RequestId": request_id,
        "StackId": call["StackId"],
        "LogicalResourceId": "",
        "ResponseURL": "",
        "ResourceProperties": {
            "Phase": "candidate",
            "EndpointName": name,
            "InferenceComponentName": call["InferenceComponentName"],
            "EndpointConfigName": config,
            "ModelName": model,
            "Specification": json.dumps(specification),
            "PlanDigest": before.request.plan_digest,
            "Request": json.dumps({key: value for key, value in fields.items() if key not in ONLY_OF_ITS_TRIAL}),
            "Mode": "rollback",
            "BudgetSeconds": f"{budget_s:g}",
            "StartSeconds": f"{max(0.0, min(_start_s(live), LONGEST_TRIAL_S - budget_s)):g}",
            "FallbackTarget": f"{before.request.fallback_target_concurrency:g}",
        },
    }
    return Order(event, around.now_s(), "scheduled", config)


def _start_s(live: ComponentState) -> float:
    """Return how long a copy of the component may download and start, in seconds."""
    startup = live.specification.get("StartupParameters")
    values = startup.values() if isinstance(startup, dict) else ()
    return float(sum(value for value in values if isinstance(value, int | float)))


def last_result(store: TrialStore, endpoint_name: str, config: str, model: str) -> TrialResult | None:
    """Return the last pass of a live configuration, else its last result of a load; `None` without any."""
    for folder in (PASSED, LATEST):
        keys = (key for key in store.keys(f"{folder}/{endpoint_name}/") if key.endswith(f"/{config}/{model}.json"))
        found = (readable_result(store, key) for key in keys)
        loaded = [each for each in found if each is not None and each.request.manner != "verify"]
        if loaded:
            return max(loaded, key=lambda result: result.started_at)
    return None


def _begin(order: Order, around: Surroundings) -> None:
    """Take the endpoint where nobody is at work on it, and start the workflow."""
    properties, store = order.properties, around.store

    def is_busy(owner: Owner) -> bool:
        is_over = not owner.document or store.read(owner.document) is not None
        return not is_over and around.now_s() - owner.seen_at_s < LONGEST_ORDER_S

    wanted = Owner(
        request_id=order.request_id,
        seen_at_s=order.started_at_s,
        document=trial_key(properties, order.request_id),
        budget_s=properties.budget_s,
    )
    store.write(run_key(properties.endpoint_name, order.request_id, "request"), json.dumps(asdict(order)))
    other = take_if_idle(store, properties.endpoint_name, wanted, is_busy)
    if other is not None and other.request_id != order.request_id:
        raise NotNowError(f"the trial {other.request_id} is at work")
    try:
        around.workflow.start(properties.endpoint_name, order.request_id)
    except UnavailableError as unavailable:
        document = json.dumps({"error": f"it could not be started: {unavailable}"})
        store.write(trial_key(properties, order.request_id), document)  # the endpoint is free again
        raise
