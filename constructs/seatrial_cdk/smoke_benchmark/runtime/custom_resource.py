"""What CloudFormation and the provider framework say to a handler, and what handlers say back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NotRequired, Self, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping

Attributes = dict[str, str]


class CustomResourceEvent(TypedDict):
    """One request; the framework shows `is_complete` what `on_event` returned beside it.

    Attributes:
        RequestType: What happens to the custom resource.
        RequestId: Unique for each request; names the trial's document.
        StackId: ARN of the stack.
        PhysicalResourceId: The resource's identity; absent on Create.
        ResourceProperties: The properties as strings (documented at `SmokeBenchmark`).
        OldResourceProperties: On Update, the properties before it.
        StartedAt: From `on_event`: when the trial was ordered, in seconds since the epoch.
        Data: From `on_event`: attributes of a trial that need not run again.
        Stopping: From `on_event` of a deletion: the key of the document of the trial that it stopped.
        StoppingRun: The key of that trial's present run.
        StoppedAt: When it stopped that trial, in seconds since the epoch.
        Clear: The endpoint's documents go too once that trial has ended.
    """

    RequestType: Literal["Create", "Update", "Delete"]
    RequestId: str
    StackId: str
    PhysicalResourceId: NotRequired[str]
    ResourceProperties: dict[str, str]
    OldResourceProperties: NotRequired[dict[str, str]]
    StartedAt: NotRequired[float]
    Data: NotRequired[Attributes]
    Stopping: NotRequired[str]
    StoppingRun: NotRequired[str]
    StoppedAt: NotRequired[float]
    Clear: NotRequired[bool]


class Started(TypedDict):
    """Answer of `on_event`: who the resource is, and what `is_complete` must know (documented at the request)."""

    PhysicalResourceId: str
    StartedAt: NotRequired[float]
    Data: NotRequired[Attributes]
    Stopping: NotRequired[str]
    StoppingRun: NotRequired[str]
    StoppedAt: NotRequired[float]
    Clear: NotRequired[bool]


class Completion(TypedDict):
    """Answer of `is_complete`; attributes only when complete."""

    IsComplete: bool
    Data: NotRequired[Attributes]


class TrialOrder(TypedDict):
    """What starts one run of a trial: `on_event` orders the first, `is_complete` each further one.

    Attributes:
        RequestId: Of the request that the trial is made for.
        ResourceProperties: Of that request.
        StartedAt: When the trial was ordered, in seconds since the epoch; the budget counts from here.
        Run: The run's number, from 1.
    """

    RequestId: str
    ResourceProperties: dict[str, str]
    StartedAt: float
    Run: int


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
