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
        StartedAt: From `on_event`: when the runner was started, in seconds since the epoch.
        Data: From `on_event`: attributes of a trial that need not run again.
    """

    RequestType: Literal["Create", "Update", "Delete"]
    RequestId: str
    StackId: str
    PhysicalResourceId: NotRequired[str]
    ResourceProperties: dict[str, str]
    OldResourceProperties: NotRequired[dict[str, str]]
    StartedAt: NotRequired[float]
    Data: NotRequired[Attributes]


class Started(TypedDict):
    """Answer of `on_event`: who the resource is, and either when the runner started or the attributes at once."""

    PhysicalResourceId: str
    StartedAt: NotRequired[float]
    Data: NotRequired[Attributes]


class Completion(TypedDict):
    """Answer of `is_complete`; attributes only when complete."""

    IsComplete: bool
    Data: NotRequired[Attributes]


class TrialOrder(TypedDict):
    """What `on_event` sends to the runner."""

    RequestId: str
    ResourceProperties: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialProperties:
    """The properties, read: names of what must be live, the plan's digest, the trial and what hangs on it."""

    endpoint_name: str
    inference_component_name: str
    endpoint_config_name: str
    model_name: str
    plan_digest: str
    request: str
    mode: str
    budget_s: float
    fallback_target: float

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
        )
