"""What CloudFormation asks of the two custom resources of an endpoint, and what it is answered at once.

`Candidate` comes before endpoint and component are updated (`candidate`), `Trial` after. A request that needs a trial
starts the workflow, whose last step answers it (`answer`); every other one is answered by the call that takes it.
Whatever goes wrong here is an answer too, so that CloudFormation never waits for nothing.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, NotRequired, Self, TypeAlias, TypedDict

from seatrial_base.errors import BenchError
from seatrial_cdk.trial_service.runtime.attributes import (
    copies_attributes,
    measured_attributes,
    unmeasured_attributes,
)
from seatrial_cdk.trial_service.runtime.components import candidate_name, candidates_of, remove
from seatrial_cdk.trial_service.runtime.drain import drain
from seatrial_cdk.trial_service.runtime.log import log
from seatrial_cdk.trial_service.runtime.log_groups import groups_of
from seatrial_cdk.trial_service.runtime.ownership import STOPPED, read_owner, take_ownership
from seatrial_cdk.trial_service.runtime.scaling import read_held, restore
from seatrial_cdk.trial_service.runtime.store import (
    UnavailableError,
    copies_key,
    latest_key,
    no_room_key,
    passed_key,
    released_key,
    run_key,
    trial_key,
)
from seatrial_load.model.request import TrialRequest
from seatrial_load.model.result import TrialResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_cdk.trial_service.runtime.store import TrialStore
    from seatrial_cdk.trial_service.runtime.surroundings import Surroundings

Attributes = dict[str, str]

DEPLOYED = ("PlanDigest", "EndpointConfigName", "ModelName", "Specification")
"""The properties that tell one deployed configuration from another."""

Phase: TypeAlias = Literal["candidate", "deployed"]
"""Before endpoint and component are updated, or after."""

Manner: TypeAlias = Literal["load", "candidate", "scheduled", "carry", "in_place", "verify"]
"""What an order does.

    load: The component itself is loaded, before anybody uses it.
    candidate: A component of one copy beside it is loaded.
    scheduled: The same, of what is live, on a schedule; no deployment waits for it.
    carry: Nothing is loaded: the update needs the live copy count alone.
    in_place: The component is loaded beside its users.
    verify: What is live is proven, and a handful of requests is sent.
"""

STOP_WAIT_S = 60.0  # a trial looks at the owner every 10 s, and stops at once
STOP_LOOK_S = 2.0
ANSWER_S = 30.0  # of the function's time, for the answer


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldCopies:
    """The copies that CloudFormation was told last: telling the same again touches no component.

    Attributes:
        copies: The number.
        is_new: They are those of a component that is only just created, and that nobody uses.
        previous: The number of the time before.
        is_certain: CloudFormation has this number in mind; after a rollback it may be the one before.
        request_id: The request that it was told; of an older release empty.
        previous_is_certain: CloudFormation had `previous` in mind when that request began.
    """

    copies: int
    is_new: bool
    previous: int
    is_certain: bool = True
    request_id: str = ""
    previous_is_certain: bool = True


def read_copies(store: TrialStore, endpoint_name: str) -> ToldCopies | None:
    """Return the copies that CloudFormation was told last; `None` when it was told none."""
    text = store.read(copies_key(endpoint_name))
    return None if text is None else ToldCopies(**json.loads(text))


def tell_copies(store: TrialStore, endpoint_name: str, told: ToldCopies) -> None:
    """Keep the copies that CloudFormation is told."""
    store.write(copies_key(endpoint_name), json.dumps(asdict(told)))


def has_no_room(store: TrialStore, properties: TrialProperties) -> bool:
    """Tell whether there was no room for a candidate of this configuration."""
    text = store.read(no_room_key(properties.endpoint_name))
    return text is not None and json.loads(text) == configuration_of(properties)


def configuration_of(properties: TrialProperties) -> dict[str, str]:
    """Return what tells one configuration from another in a document."""
    return {"plan_digest": properties.plan_digest, "model_name": properties.model_name}


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

    What an older release, to which a deployment is rolled back, did not name has a default.
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
    phase: Phase = "deployed"
    update: Literal["candidate", "in_place", "verify_only"] = "candidate"
    specification: str = "{}"
    copy_count: int = 1
    most_copies: int = 1_000_000
    start_s: float = 0.0
    alarms: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    alias: str = ""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """Read the properties; a missing one is a KeyError, which fails the resource with the property's name."""
        phase, update = properties.get("Phase"), properties.get("Update")
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
            phase="candidate" if phase == "candidate" else "deployed",
            update="in_place" if update == "in_place" else "verify_only" if update == "verify_only" else "candidate",
            specification=properties.get("Specification", "{}"),
            copy_count=int(properties.get("CopyCount", "1")),
            most_copies=int(properties.get("MostCopies", "1000000")),
            start_s=float(properties.get("StartSeconds", "0")),
            alarms=_names(properties, "Alarms"),
            replaces=_names(properties, "Replaces"),
            alias=properties.get("Alias", ""),
        )

    @property
    def is_existing(self) -> bool:
        """Whether something else made the endpoint: what is live can't be proven, and users are there already."""
        return not self.endpoint_config_name

    @property
    def environment(self) -> str:
        """The environment's name."""
        return f"{json.loads(self.request).get('environment', '')}"


def _names(properties: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(name for name in properties.get(key, "").split(",") if name)


@dataclass(frozen=True, slots=True)
class Order:
    """What a request ordered.

    Attributes:
        event: The request that it is made for.
        started_at_s: Since when, in seconds since the epoch.
        manner: What it does.
        live_config: The endpoint's configuration while a candidate runs; empty for any other manner.
    """

    event: CustomResourceEvent
    started_at_s: float
    manner: Manner = "load"
    live_config: str = ""

    @property
    def request_id(self) -> str:
        """The request."""
        return self.event["RequestId"]

    @property
    def properties(self) -> TrialProperties:
        """The custom resource's properties."""
        return TrialProperties.of(self.event["ResourceProperties"])

    @property
    def is_scheduled(self) -> bool:
        """Whether no deployment asked for it."""
        return self.manner == "scheduled"

    @property
    def has_candidate(self) -> bool:
        """Whether a candidate component is loaded."""
        return self.manner in ("candidate", "scheduled")

    @property
    def candidate(self) -> str:
        """The name of the candidate component that is loaded."""
        return candidate_name(self.properties.endpoint_name, self.request_id)

    def trial_request(self, region: str) -> TrialRequest:
        """Return the trial's request, complete with what only the deployed stack knows.

        Raises:
            BenchError: SEA501 when the `Request` property is malformed.
        """
        told, is_candidate = self.properties, self.has_candidate
        whole = {
            **json.loads(told.request),
            "target": {
                "endpoint_name": told.endpoint_name,
                "inference_component": self.candidate if is_candidate else told.inference_component_name,
                "region": region,
            },
            "expected": None
            if told.is_existing
            else {
                "endpoint_config_name": self.live_config if is_candidate else told.endpoint_config_name,
                "model_name": told.model_name,
            },
        }
        if is_candidate:
            whole["copy_count"] = 1
        elif self.manner in ("in_place", "verify"):
            whole |= {"manner": self.manner, "alarms": told.alarms}
        return TrialRequest.from_json(json.dumps(whole))


def read_order(store: TrialStore, endpoint_name: str, request_id: str) -> Order | None:
    """Return a trial that was ordered; `None` where the endpoint's documents were removed."""
    text = store.read(run_key(endpoint_name, request_id, "request"))
    return None if text is None else Order(**json.loads(text))


def physical_id(event: CustomResourceEvent) -> str:
    """Return the resource's identity: that of the endpoint, so that another endpoint is another resource."""
    if event["RequestType"] == "Delete":
        return event.get("PhysicalResourceId", event["RequestId"])
    told = event["ResourceProperties"]
    kind = "candidate-trial" if told.get("Phase") == "candidate" else "smoke-benchmark"
    return f"{kind}-{told.get('EndpointName', 'unknown')}"


def deployed_answer(event: CustomResourceEvent, properties: TrialProperties, around: Surroundings) -> Answer | None:
    """Return the answer to a creation or update of `Trial`; `None` when the workflow gives it.

    A trial is due on Create and on an Update that deploys something else. The same plan may be deployed anew, by a
    release that renders it otherwise: plan, endpoint config, model and specification must all be the same to be what
    was tried. What an update deploys was tried as a candidate before: it is verified only, or, where there was no room
    for a candidate, loaded beside its users.

    CloudFormation's own rollback is no reason for a trial: it goes back to what was deployed before, whose result is
    known or was never asked for, and a trial that failed there would leave the stack stuck. Nor may an unreadable
    result leave it stuck there. Every request becomes the owner: a trial that still runs for the one before stops.

    Raises:
        UnavailableError: Going forward, the stored result can't be read, and with it the target of scaling; or the
            owner can't be written.
        DirectionUnknownError: The stack's status can't be read, and no stored pass answers in both directions.
    """
    data = _known(event, properties, around) if event["RequestType"] == "Update" else None
    if data is None:
        return start(event, properties, around, manner=_manner(event, properties, around.store))
    with suppress(UnavailableError):
        take_ownership(around.store, properties.endpoint_name, event["RequestId"], document="", now_s=around.now_s())
    return Answer(data=data)


def _manner(event: CustomResourceEvent, properties: TrialProperties, store: TrialStore) -> Manner:
    """Return how a deployed configuration is tried: loaded while nobody uses it, else beside users or not at all."""
    if properties.is_existing:
        return "in_place" if properties.update == "in_place" else "verify"
    told = read_copies(store, properties.endpoint_name)
    if (event["RequestType"] == "Create" or is_renamed(event)) and (told is None or told.is_new):
        return "load"
    if store.read(passed_key(properties)) is not None:
        return "verify"
    return "in_place" if properties.update == "in_place" or has_no_room(store, properties) else "verify"


def is_renamed(event: CustomResourceEvent) -> bool:
    """Tell whether an update moves to another endpoint, which nobody uses yet."""
    before = event.get("OldResourceProperties", {}).get("EndpointName")
    return before is not None and before != event["ResourceProperties"]["EndpointName"]


def touches_component(event: CustomResourceEvent) -> bool:
    """Tell whether CloudFormation updates the component for another reason than its specification: policy or tags."""
    old, new = event.get("OldResourceProperties", {}), event["ResourceProperties"]
    return old.get("Component") != new.get("Component")


def start(
    event: CustomResourceEvent, properties: TrialProperties, around: Surroundings, *, manner: Manner
) -> Answer | None:
    """Start the workflow of a request.

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
    live_config = around.components.live_config(properties.endpoint_name) if manner == "candidate" else ""
    order = Order(event, owner.seen_at_s, manner, live_config)
    store.write(run_key(properties.endpoint_name, request_id, "request"), json.dumps(asdict(order)))
    try:
        around.workflow.start(properties.endpoint_name, request_id)
    except UnavailableError as unavailable:
        return not_made(properties, f"{unavailable}")
    return None


def not_made(properties: TrialProperties, message: str, *, uri: str = "unknown", copies: int | None = None) -> Answer:
    """Return the answer where there is no result: in mode `rollback` the deployment fails, else it stays unverified."""
    if properties.mode == "rollback":
        return Answer(
            failed_because=f"The sea trial of {properties.endpoint_name} failed to run: {message} (result: {uri})"
        )
    if properties.phase == "candidate":
        return Answer(data=copies_attributes(properties.copy_count if copies is None else copies, "error", uri))
    return Answer(data=unmeasured_attributes(properties.fallback_target, verdict="error", uri=uri))


def _known(event: CustomResourceEvent, properties: TrialProperties, around: Surroundings) -> Attributes | None:
    """Return the attributes of an update that needs no trial; `None` when it needs one."""
    store = around.store
    try:
        going_back = "ROLLBACK" in around.stack_status(event["StackId"])
    except UnavailableError as unavailable:
        return _known_either_way(event, properties, store, unavailable)
    if going_back or is_unchanged(event):
        end_hold(around, properties.endpoint_name)
    if is_unchanged(event):
        read = _readable if going_back else _stored
        return read(store, latest_key(properties), properties)
    return _gone_back(store, properties) if going_back else None


def end_hold(around: Surroundings, endpoint_name: str) -> None:
    """Restore copies and scaling after an update that failed; what can't be restored now is left to the sweep."""
    try:
        held = read_held(around.store, endpoint_name)
        if held is not None and not restore(around.scaling, around.store, around.components, held):
            log(f"the sweep restores the scaling of {held.component}: its copies are in transit")
    except UnavailableError as unavailable:
        log(f"the sweep restores the scaling of {endpoint_name}: {unavailable}")


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
    if is_unchanged(event):
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


def is_unchanged(event: CustomResourceEvent) -> bool:
    """Tell whether an update deploys nothing else."""
    old, new = event.get("OldResourceProperties", {}), event["ResourceProperties"]
    return all(old.get(name) == new.get(name) for name in DEPLOYED)


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


def deleted(event: CustomResourceEvent, around: Surroundings) -> Answer:
    """Stop the endpoint's trial, remove its candidates, restore scaling; a deletion that fails leaves the stack stuck.

    Where it is a creation that is rolled back, later deployments must not be answered from what was never released;
    the trial's own document stays. The properties are those of the resource that goes: where the endpoint was renamed,
    what is stopped and removed is the old name's, once its last requests have ended.
    """
    endpoint_name = event["ResourceProperties"].get("EndpointName")
    if endpoint_name:
        try:
            _end(event, endpoint_name, around)
        except Exception as error:  # noqa: BLE001 (whatever it is, the stack must go)
            log(f"left behind: {error!r}")
    return Answer()


def _end(event: CustomResourceEvent, endpoint_name: str, around: Surroundings) -> None:
    if not end_trials(event, endpoint_name, around):
        return
    with suppress(UnavailableError):
        remove_candidates(around, endpoint_name)
    end_hold(around, endpoint_name)
    with suppress(UnavailableError):
        status = around.stack_status(event["StackId"])
        if "ROLLBACK" in status:
            around.store.clear(endpoint_name)
        elif event["ResourceProperties"].get("Phase") == "candidate":
            _end_logs(event["ResourceProperties"], around)
        elif _was_replaced(event["ResourceProperties"], around):
            drain(event["ResourceProperties"].get("InferenceComponentName", ""), around)


def _end_logs(properties: Mapping[str, str], around: Surroundings) -> None:
    """Delete the logs of containers that are gone, where the environment keeps nothing: `Candidate` goes after them."""
    if properties.get("Removal") == "destroy":
        around.logs.delete(groups_of(properties["EndpointName"], properties["InferenceComponentName"]))


def _was_replaced(properties: Mapping[str, str], around: Surroundings) -> bool:
    """Tell whether the alias of an endpoint names another one by now, which users are moving to."""
    alias = properties.get("Alias", "")
    if not alias:
        return False
    serving = around.serving(alias)
    return serving is not None and serving != properties.get("EndpointName")


def end_trials(event: CustomResourceEvent, endpoint_name: str, around: Surroundings) -> bool:
    """Make a request the owner that needs no trial, and wait until the one before has stopped.

    Returns:
        Whether it is the owner: not after a later request.
    """
    store, began_s = around.store, around.now_s()
    before = read_owner(store, endpoint_name)
    owner = take_ownership(store, endpoint_name, event["RequestId"], document="", now_s=began_s)
    if owner.request_id != event["RequestId"]:
        return False
    if before is not None and before.document:
        while store.read(before.document) is None and around.now_s() - began_s < STOP_WAIT_S:
            around.sleep(STOP_LOOK_S)
        if store.read(before.document) is None:
            around.workflow.stop(before.request_id, STOPPED)
    return True


def remove_candidates(around: Surroundings, endpoint_name: str) -> None:
    """Remove every candidate of an endpoint, and wait until they are gone: with one of them no endpoint can go.

    SageMaker refuses to delete a component that is being created: it is waited for as long as this function may run.

    Raises:
        UnavailableError: It can't be told whether one is left.
    """
    while left := candidates_of(around.components, endpoint_name):
        for name in left:
            remove(around.components, name)
        if around.now_s() > around.ends_s - ANSWER_S:
            raise UnavailableError(f"{', '.join(left)}: in transit, so not deleted")
        around.sleep(STOP_LOOK_S)
