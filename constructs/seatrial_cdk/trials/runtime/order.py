"""Events of CloudFormation and the orders made of them, with responses and copies."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal, NotRequired, TypeAlias, TypedDict

from seatrial_base.tags import candidate_name
from seatrial_cdk.trials.runtime.properties import read_properties, read_what_is_there
from seatrial_cdk.trials.runtime.store import (
    LATEST,
    PASSED,
    SCHEDULED,
    TRIALS,
    copies_key,
    is_scheduled,
    no_room_key,
    read_state,
    run_key,
)
from seatrial_load.documents.request_checks import read_trial_request

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.properties import TrialProperties
    from seatrial_cdk.trials.runtime.store import TrialStore
    from seatrial_load.documents.request import TrialRequest


Attributes = dict[str, str]

Manner: TypeAlias = Literal["load", "candidate", "scheduled", "carry", "in_place", "verify"]
"""What an order does.

    load: The component itself is loaded, before anybody uses it.
    candidate: A component of one copy beside it is loaded.
    scheduled: The same, of what is live, on a schedule; no deployment waits for it.
    carry: Nothing is loaded: the update needs the live copy count alone.
    in_place: The component is loaded beside its users.
    verify: What is live is proven, and a handful of requests is sent.
"""
UNKNOWN_ENDPOINT: Final = "unknown"
"""Where documents of a request lie that names no endpoint: it is answered, too, or its stack hangs for an hour."""


class CustomResourceEvent(TypedDict):
    """One request of CloudFormation.

    Attributes:
        RequestType: What happens to the custom resource.
        RequestId: Unique for each request; names the trial's document and the workflow's execution.
        StackId: ARN of the stack.
        ResourceType: The resource's CloudFormation type.
        LogicalResourceId: The resource's name in the template.
        ResponseURL: Where CloudFormation waits for the answer: a presigned URL, for one use.
        PhysicalResourceId: The resource's identity; absent on Create.
        ResourceProperties: The properties as strings (`properties`).
        OldResourceProperties: On Update, the properties before it.
    """

    RequestType: Literal["Create", "Update", "Delete"]
    RequestId: str
    StackId: str
    ResourceType: NotRequired[str]
    LogicalResourceId: str
    ResponseURL: str
    PhysicalResourceId: NotRequired[str]
    ResourceProperties: dict[str, str]
    OldResourceProperties: NotRequired[dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedCopies:
    """The copies of the last response to CloudFormation: the same number again touches no component.

    Attributes:
        copies: The number.
        is_new: They are those of a component that is only just created, and not used yet.
        previous: The number of the time before.
        is_certain: CloudFormation has this number in mind; after a rollback it may be the one before.
        request_id: The request of that response; of an older release empty.
        previous_is_certain: CloudFormation had `previous` in mind when that request began.
    """

    copies: int
    is_new: bool
    previous: int
    is_certain: bool = True
    request_id: str = ""
    previous_is_certain: bool = True


def read_copies(store: TrialStore, endpoint_name: str) -> CarriedCopies | None:
    """Return the copies of the last response to CloudFormation; `None` when there was none."""
    text = read_state(store, copies_key(endpoint_name))
    return None if text is None else CarriedCopies(**json.loads(text))


def write_copies(store: TrialStore, endpoint_name: str, carried: CarriedCopies) -> None:
    """Keep the copies of a response to CloudFormation."""
    store.write(copies_key(endpoint_name), json.dumps(asdict(carried)))


def has_no_room(store: TrialStore, properties: TrialProperties) -> bool:
    """Tell whether there was no room for a candidate of this configuration."""
    text = read_state(store, no_room_key(properties.endpoint_name))
    return text is not None and json.loads(text) == configuration_of(properties)


def configuration_of(properties: TrialProperties) -> dict[str, str]:
    """Return what distinguishes a configuration in a document."""
    return {"plan_digest": properties.plan_digest, "model_name": properties.model_name}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What CloudFormation is answered.

    Attributes:
        data: The attributes of the resource.
    """

    failed_because: str | None = None
    data: Attributes | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What a request ordered.

    Attributes:
        started_at_s: Since when, in seconds since the epoch.
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
        return read_properties(self.event["ResourceProperties"])

    @property
    def is_scheduled(self) -> bool:
        """Whether a schedule requested it, and no deployment."""
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
        properties, is_candidate = self.properties, self.has_candidate
        whole = {
            **json.loads(properties.request),
            "target": {
                "endpoint_name": properties.endpoint_name,
                "inference_component": self.candidate if is_candidate else properties.inference_component_name,
                "region": region,
            },
            "expected": None
            if properties.is_existing
            else {
                "endpoint_config_name": self.live_config if is_candidate else properties.endpoint_config_name,
                "model_name": properties.model_name,
            },
        }
        if is_candidate:
            whole["copy_count"] = 1
        elif self.manner in ("in_place", "verify"):
            whole |= {"manner": self.manner, "alarms": properties.alarms}
        return read_trial_request(json.dumps(whole))


def read_order(store: TrialStore, endpoint_name: str, request_id: str) -> Order | None:
    """Return a trial that was ordered; `None` where the endpoint's documents were removed."""
    text = store.read(run_key(endpoint_name, request_id, "request"))
    return None if text is None else Order(**json.loads(text))


def endpoint_of(event: CustomResourceEvent) -> str:
    """Return the name of a request's endpoint; `unknown` where it gives none that could be one."""
    name = event.get("ResourceProperties", {}).get("EndpointName")
    return name if isinstance(name, str) and re.fullmatch("[a-zA-Z0-9-]{1,63}", name) else UNKNOWN_ENDPOINT


def physical_id(event: CustomResourceEvent) -> str:
    """Return the resource's identity: that of the endpoint, so that another endpoint is another resource."""
    if event["RequestType"] == "Delete":
        return event.get("PhysicalResourceId", event["RequestId"])
    is_candidate = read_what_is_there(event["ResourceProperties"]).phase == "candidate"
    return f"{'candidate-trial' if is_candidate else 'smoke-benchmark'}-{endpoint_of(event)}"


def trial_key(properties: TrialProperties, request_id: str) -> str:
    """Return the key of one trial's document."""
    if is_scheduled(request_id):
        return f"{TRIALS}/{properties.endpoint_name}/{SCHEDULED}/{request_id}.json"
    return f"{TRIALS}/{properties.endpoint_name}/{properties.plan_digest}/{request_id}.json"


def latest_key(properties: TrialProperties) -> str:
    """Return the key of the last result of a configuration."""
    return f"{LATEST}/{_configuration(properties)}.json"


def passed_key(properties: TrialProperties) -> str:
    """Return the key of the last result of a configuration that was a pass."""
    return f"{PASSED}/{_configuration(properties)}.json"


def _configuration(properties: TrialProperties) -> str:
    names = (properties.endpoint_name, properties.plan_digest, properties.endpoint_config_name, properties.model_name)
    return "/".join(names)


class Execution(TypedDict):
    """An execution of the workflow that ended without an answer, as its event has it."""

    status: str
    input: str
    cause: str | None


class OrderRef(TypedDict):
    """Which trial: the whole of it lies in the bucket, so that no history of an execution holds it."""

    EndpointName: str
    RequestId: str
