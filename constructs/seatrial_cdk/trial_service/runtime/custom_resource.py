"""What CloudFormation asks of the trial's custom resource, and what it is answered at once.

A request that needs a trial starts the workflow, whose last step answers it (`answer`); every other one is answered by
the call that takes it. Whatever goes wrong here is an answer too, so that CloudFormation never waits for nothing.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NotRequired, Self, TypedDict

from seatrial.bench.model.request import TrialRequest
from seatrial.bench.model.result import TrialResult
from seatrial.errors import BenchError
from seatrial_cdk.trial_service.runtime.attributes import measured_attributes, unmeasured_attributes
from seatrial_cdk.trial_service.runtime.log import log
from seatrial_cdk.trial_service.runtime.ownership import STOPPED, read_owner, take_ownership
from seatrial_cdk.trial_service.runtime.scaling import restore
from seatrial_cdk.trial_service.runtime.store import (
    UnavailableError,
    latest_key,
    passed_key,
    released_key,
    run_key,
    trial_key,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_cdk.trial_service.runtime.store import TrialStore
    from seatrial_cdk.trial_service.runtime.surroundings import Surroundings

Attributes = dict[str, str]

DEPLOYED = ("PlanDigest", "EndpointConfigName", "ModelName")
"""The properties that tell one deployed configuration from another."""

STOP_WAIT_S = 60.0  # a trial looks at the owner every 10 s, and stops at once
STOP_LOOK_S = 2.0


class CustomResourceEvent(TypedDict):
    """One request of CloudFormation.

    Attributes:
        RequestType: What happens to the custom resource.
        RequestId: Unique for each request; names the trial's document and the workflow's execution.
        StackId: ARN of the stack.
        LogicalResourceId: The resource's name in the template.
        ResponseURL: Where CloudFormation waits for the answer: a presigned URL, for one use.
        PhysicalResourceId: The resource's identity; absent on Create.
        ResourceProperties: The properties as strings (documented at `SmokeBenchmark`).
        OldResourceProperties: On Update, the properties before it.
    """

    RequestType: Literal["Create", "Update", "Delete"]
    RequestId: str
    StackId: str
    LogicalResourceId: str
    ResponseURL: str
    PhysicalResourceId: NotRequired[str]
    ResourceProperties: dict[str, str]
    OldResourceProperties: NotRequired[dict[str, str]]


class DirectionUnknownError(Exception):
    """It can't be told whether the stack goes forward, where a trial is due, or back, where one must not be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What CloudFormation is answered.

    Attributes:
        failed_because: Why the request failed; None when it did not.
        data: The attributes of the resource.
    """

    failed_because: str | None = None
    data: Attributes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialProperties:
    """The properties, read: names of what must be live, the plan's digest, the trial and what hangs on it.

    `image` is None where an older release, to which a deployment is rolled back, did not name it.
    """

    endpoint_name: str
    inference_component_name: str
    endpoint_config_name: str
    model_name: str
    plan_digest: str
    request: str
    mode: str
    budget_s: float
    fallback_target: float
    image: str | None = None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """Read the properties; a missing one is a KeyError, which fails the resource with the property's name."""
        return cls(
            endpoint_name=properties["EndpointName"],
            inference_component_name=properties["InferenceComponentName"],
            endpoint_config_name=properties["EndpointConfigName"],
            model_name=properties["ModelName"],
            plan_digest=properties["PlanDigest"],
            request=properties["Request"],
            mode=properties["Mode"],
            budget_s=float(properties["BudgetSeconds"]),
            fallback_target=float(properties["FallbackTarget"]),
            image=properties.get("Image"),
        )


@dataclass(frozen=True, slots=True)
class Order:
    """A trial that is due: the request that it is made for, and since when."""

    event: CustomResourceEvent
    started_at_s: float

    @property
    def request_id(self) -> str:
        """The request."""
        return self.event["RequestId"]

    @property
    def properties(self) -> TrialProperties:
        """The custom resource's properties."""
        return TrialProperties.of(self.event["ResourceProperties"])

    def trial_request(self, region: str) -> TrialRequest:
        """Return the trial's request, complete with what only the deployed stack knows.

        Raises:
            BenchError: SEA501 when the `Request` property is malformed.
        """
        told = self.properties
        whole = {
            **json.loads(told.request),
            "target": {
                "endpoint_name": told.endpoint_name,
                "inference_component": told.inference_component_name,
                "region": region,
            },
            "expected": {
                "endpoint_config_name": told.endpoint_config_name,
                "model_name": told.model_name,
                "image": told.image,
            },
        }
        return TrialRequest.from_json(json.dumps(whole))


def read_order(store: TrialStore, endpoint_name: str, request_id: str) -> Order | None:
    """Return a trial that was ordered; `None` where the endpoint's documents were removed."""
    text = store.read(run_key(endpoint_name, request_id, "request"))
    return None if text is None else Order(**json.loads(text))


def physical_id(event: CustomResourceEvent) -> str:
    """Return the resource's identity: that of the endpoint, so that another endpoint is another resource."""
    if event["RequestType"] == "Delete":
        return event.get("PhysicalResourceId", event["RequestId"])
    return f"smoke-benchmark-{event['ResourceProperties'].get('EndpointName', 'unknown')}"


def answered_at_once(event: CustomResourceEvent, around: Surroundings) -> Answer | None:
    """Return the answer to a request; `None` when the workflow gives it.

    A trial is due on Create and on an Update that deploys something else; a deletion never fails. The same plan may be
    deployed anew, by a release that renders it otherwise: plan, endpoint config and model must all be the same to be
    what was tried.

    CloudFormation's own rollback is no reason for a trial: it goes back to what was deployed before, whose result is
    known or was never asked for, and a trial that failed there would leave the stack stuck. Nor may an unreadable
    result leave it stuck there. Every request becomes the owner: a trial that still runs for the one before stops.

    Raises:
        UnavailableError: Going forward, the stored result can't be read, and with it the target of scaling; or the
            owner can't be written.
        DirectionUnknownError: The stack's status can't be read, and no stored pass answers in both directions.
        KeyError: A property is missing.
    """
    if event["RequestType"] == "Delete":
        return _deleted(event, around)
    properties = TrialProperties.of(event["ResourceProperties"])
    data = _known(event, properties, around) if event["RequestType"] == "Update" else None
    if data is None:
        return _start(event, properties, around)
    with suppress(UnavailableError):
        take_ownership(around.store, properties.endpoint_name, event["RequestId"], document="", now_s=around.now_s())
    return Answer(data=data)


def _start(event: CustomResourceEvent, properties: TrialProperties, around: Surroundings) -> Answer | None:
    """Start the trial's workflow.

    A repeated delivery of the request starts nothing new: an execution is named after its request. One that comes
    after a later request is not carried out.
    """
    store, request_id = around.store, event["RequestId"]
    document, now_s = trial_key(properties, request_id), around.now_s()
    owner = take_ownership(
        store, properties.endpoint_name, request_id, document=document, now_s=now_s, budget_s=properties.budget_s
    )
    if owner.request_id != request_id:
        return not_made(properties, STOPPED)
    key = run_key(properties.endpoint_name, request_id, "request")
    store.write(key, json.dumps({"event": event, "started_at_s": owner.seen_at_s}))
    try:
        around.workflow.start(properties.endpoint_name, request_id)
    except UnavailableError as unavailable:
        return not_made(properties, f"{unavailable}")
    return None


def not_made(properties: TrialProperties, message: str, *, uri: str = "unknown") -> Answer:
    """Return the answer where there is no result: in mode `rollback` the deployment fails, else it stays unverified."""
    if properties.mode == "rollback":
        return Answer(
            failed_because=f"The sea trial of {properties.endpoint_name} failed to run: {message} (result: {uri})"
        )
    return Answer(data=unmeasured_attributes(properties.fallback_target, verdict="error", uri=uri))


def _known(event: CustomResourceEvent, properties: TrialProperties, around: Surroundings) -> Attributes | None:
    """Return the attributes of an update that needs no trial; `None` when it needs one."""
    store = around.store
    try:
        going_back = "ROLLBACK" in around.stack_status(event["StackId"])
    except UnavailableError as unavailable:
        return _known_either_way(event, properties, store, unavailable)
    if _unchanged(event):
        read = _readable if going_back else _stored
        return read(store, latest_key(properties), properties)
    return _gone_back(store, properties) if going_back else None


def _gone_back(store: TrialStore, properties: TrialProperties) -> Attributes:
    """Answer a rollback from the passing result of what it goes back to, which is what is released again."""
    key = passed_key(properties)
    with suppress(UnavailableError):
        if text := store.read(key):
            store.write(released_key(properties.endpoint_name), text)
    return _readable(store, key, properties)


def _known_either_way(
    event: CustomResourceEvent, properties: TrialProperties, store: TrialStore, unavailable: UnavailableError
) -> Attributes | None:
    """Answer an update whose direction can't be told.

    What stays the same, and what has passed as it is, is answered from the store: right in both directions. Else in
    mode `report` a trial is started, which can't fail. In mode `rollback` the update fails: going forward, an unproven
    configuration must not stay; going back to one that has never passed, the stack waits for
    `continue-update-rollback`, which asks again.
    """
    if _unchanged(event):
        return _readable(store, latest_key(properties), properties)
    with suppress(UnavailableError):
        if store.read(passed_key(properties)) is not None:
            return _readable(store, passed_key(properties), properties)
    if properties.mode == "rollback":
        raise DirectionUnknownError(
            f"{properties.endpoint_name}: the stack's state is unknown and no trial of this plan passed before "
            f"({unavailable})"
        ) from unavailable
    return None


def _unchanged(event: CustomResourceEvent) -> bool:
    old, new = event.get("OldResourceProperties", {}), event["ResourceProperties"]
    return all(old.get(name) == new[name] for name in DEPLOYED)


def _readable(store: TrialStore, key: str, properties: TrialProperties) -> Attributes:
    """Return a stored result's attributes; what can't be read verifies nothing."""
    try:
        return _stored(store, key, properties)
    except UnavailableError:
        return unmeasured_attributes(properties.fallback_target, uri=store.uri(key))


def _stored(store: TrialStore, key: str, properties: TrialProperties) -> Attributes:
    """Return a stored result's attributes; one that is missing, or of another version's schema, verifies nothing."""
    text = store.read(key)
    if text is None:
        return unmeasured_attributes(properties.fallback_target)
    try:
        return measured_attributes(TrialResult.from_json(text), store.uri(key))
    except BenchError:
        return unmeasured_attributes(properties.fallback_target, uri=store.uri(key))


def _deleted(event: CustomResourceEvent, around: Surroundings) -> Answer:
    """Stop the endpoint's trial, wait for its end, restore scaling; a deletion that fails leaves the stack stuck.

    Where it is a creation that is rolled back, later deployments must not be answered from what was never released;
    the trial's own document stays. The properties are those of the resource that goes: where the endpoint was renamed,
    what is stopped and removed is the old name's.
    """
    endpoint_name = event["ResourceProperties"].get("EndpointName")
    if endpoint_name:
        try:
            _end_trials(event, endpoint_name, around)
        except Exception as error:  # noqa: BLE001 (whatever it is, the stack must go)
            log(f"left behind: {error!r}")
    return Answer()


def _end_trials(event: CustomResourceEvent, endpoint_name: str, around: Surroundings) -> None:
    store, began_s = around.store, around.now_s()
    before = read_owner(store, endpoint_name)
    owner = take_ownership(store, endpoint_name, event["RequestId"], document="", now_s=began_s)
    if owner.request_id != event["RequestId"]:
        return
    if before is not None and before.document:
        while store.read(before.document) is None and around.now_s() - began_s < STOP_WAIT_S:
            around.sleep(STOP_LOOK_S)
        if store.read(before.document) is None:
            around.workflow.stop(before.request_id, STOPPED)
    _restored(event, endpoint_name, around)
    with suppress(UnavailableError):
        if "ROLLBACK" in around.stack_status(event["StackId"]):
            store.clear(endpoint_name)


def _restored(event: CustomResourceEvent, endpoint_name: str, around: Surroundings) -> None:
    """Restore what scaling was before the stopped trial; its target goes with the stack anyway."""
    try:
        component = event["ResourceProperties"].get("InferenceComponentName", "")
        restore(around.scaling, around.store, endpoint_name, component)
    except UnavailableError as unavailable:
        log(f"scaling is not restored: {unavailable}")
