"""Inference components as the trial service reads and changes them: the live one, and candidates beside it.

A candidate component holds one copy of a new configuration on the live endpoint. Requests name the component that
they are for, so no user reaches a candidate. What is deleted is a candidate by its tags (`seatrial_base.tags`).
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, cast

from seatrial_base.catalog.symptoms import is_lack_of_capacity
from seatrial_base.tags import CANDIDATE, ENVIRONMENT_TAG, RUN_TAG, candidate_name, is_candidate_name, maker_of
from seatrial_cdk.trials.runtime.service_model import unknown_members
from seatrial_cdk.trials.runtime.store import UnavailableError, calling
from seatrial_load.aws.deployment_check import DENIED_PATIENCE_S, DENIED_POLL_S
from seatrial_load.aws.errors import is_denied

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_sagemaker.type_defs import (
        DescribeEndpointOutputTypeDef,
        DescribeInferenceComponentOutputTypeDef,
        InferenceComponentSpecificationTypeDef,
    )

EXISTS: Final = "already existing"
"""Of SageMaker's refusal to create what is there: "Cannot create already existing …" (as it words it of endpoints)."""
IN_TRANSIT: Final = ("Creating", "Updating", "Deleting")
Document = dict[str, object]
Response = TypeVar("Response")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentState:
    """An inference component as SageMaker describes it.

    Attributes:
        status: `Creating`, `InService`, `Updating`, `Failed` or `Deleting`.
        specification: Model, compute requirements and timeouts.
        created: When it was created.
        changed: When it was changed last.
    """

    name: str
    endpoint_name: str
    variant_name: str
    status: str
    current_copies: int
    desired_copies: int
    specification: Document = field(default_factory=dict)
    failure_reason: str = ""
    arn: str = ""
    created: datetime | None = None
    changed: datetime | None = None

    @property
    def in_transit(self) -> bool:
        """Whether SageMaker refuses a change at the moment."""
        return self.status in IN_TRANSIT

    @property
    def is_being_created(self) -> bool:
        """Whether it is waiting for room, or starting: SageMaker deletes no such component."""
        return self.status == "Creating"

    @property
    def accelerators(self) -> int:
        """Accelerators of one copy; 0 where it needs none, or shares those of another component."""
        return accelerators_of(self.specification)

    @property
    def copies(self) -> int:
        """Copies that an update must keep: those in service, and those that are being added."""
        return max(self.current_copies, self.desired_copies)

    @property
    def lacks_capacity(self) -> bool:
        """Whether its last change failed because no instance had room."""
        return is_lack_of_capacity(self.failure_reason)

    def runs(self, specification: Document) -> bool:
        """Tell whether it runs a specification; what SageMaker adds to it by itself does not count."""
        return _within(specification, self.specification)


def accelerators_of(specification: Document) -> int:
    """Return how many accelerators a copy needs."""
    needed = specification.get("ComputeResourceRequirements")
    count = needed.get("NumberOfAcceleratorDevicesRequired", 0) if isinstance(needed, dict) else 0
    return int(count) if isinstance(count, int | float) else 0


def _within(wanted: object, live: object) -> bool:
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(name in live and _within(value, live[name]) for name, value in wanted.items())
    return wanted == live


@dataclass(frozen=True, slots=True)
class VariantCapacity:
    """The instances of a variant: those in service, and the most that it may have."""

    instances: int
    most: int


class Components(Protocol):
    """The inference components of an account and region."""

    def describe(self, name: str) -> ComponentState | None:
        """Return a component; `None` when there is none of this name."""

    def live_config(self, endpoint_name: str) -> str:
        """Return the name of an endpoint's live configuration."""

    def capacity(self, endpoint_name: str, variant_name: str) -> VariantCapacity:
        """Return the instances of a variant."""

    def on_endpoint(self, endpoint_name: str) -> list[str]:
        """Return the names of every component of an endpoint."""

    def unknown_members(self, specification: Document) -> list[str]:
        """Return what of a specification this SDK can't send, by its places."""

    def create(self, name: str, live: ComponentState, specification: Document, tags: Mapping[str, str]) -> None:
        """Create a component of one copy on the endpoint and variant of another; one that is there is the one."""

    def delete(self, name: str) -> None:
        """Delete a component; SageMaker refuses it while the component is in transit."""

    def like_candidates(self) -> list[str]:
        """Return the names of every component that may be a candidate by its name."""

    def tags(self, component: ComponentState) -> dict[str, str]:
        """Return the tags of a component; none while they can't be seen yet."""

    def is_in_stack(self, component: ComponentState) -> bool:
        """Tell whether a stack of CloudFormation manages a component."""

    def set_copies(self, name: str, count: int) -> None:
        """Set the number of copies; SageMaker refuses it while the component is in transit."""


@dataclass(frozen=True, slots=True)
class AwsComponents:
    """The inference components of SageMaker, and which of them CloudFormation manages."""

    client: SageMakerClient
    stacks: CloudFormationClient
    sleep: Callable[[float], None] = time.sleep

    def describe(self, name: str) -> ComponentState | None:
        """Return a component; `None` when there is none of this name.

        Whether an absent component is answered with AccessDenied is not documented; what is denied is absent where the
        list, which needs no right on the component, does not name it.
        """
        from botocore.exceptions import ClientError  # noqa: PLC0415 (synth and most tests need no botocore)

        def ask() -> DescribeInferenceComponentOutputTypeDef | None:
            try:
                return self.client.describe_inference_component(InferenceComponentName=name)
            except ClientError as refused:
                is_missing = "could not find" in f"{refused}".lower()
                if is_missing or (is_denied(refused) and name not in self._names(NameContains=name)):
                    return None
                raise

        with calling(f"describing component {name}"):
            described = self._patiently(ask)
        return None if described is None else _state(name, described)

    def _names(self, **filters: str) -> list[str]:
        pages = self.client.get_paginator("list_inference_components").paginate(**filters)  # type: ignore[arg-type]
        return [each["InferenceComponentName"] for page in pages for each in page["InferenceComponents"]]

    def _patiently(self, ask: Callable[[], Response]) -> Response:
        """Ask, and again for a minute where it is denied: a right that was just given isn't known everywhere."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 (synth and most tests need no botocore)

        left_s = DENIED_PATIENCE_S
        while True:
            try:
                return ask()
            except ClientError as refused:
                if not is_denied(refused) or left_s < DENIED_POLL_S:
                    raise
            left_s -= DENIED_POLL_S
            self.sleep(DENIED_POLL_S)

    def live_config(self, endpoint_name: str) -> str:
        """Return the name of an endpoint's live configuration."""
        return self._endpoint(endpoint_name).get("EndpointConfigName", "")

    def _endpoint(self, name: str) -> DescribeEndpointOutputTypeDef:
        with calling(f"describing endpoint {name}"):
            return self._patiently(lambda: self.client.describe_endpoint(EndpointName=name))

    def capacity(self, endpoint_name: str, variant_name: str) -> VariantCapacity:
        """Return the instances of a variant; without managed instance scaling it has no more than are requested."""
        variants = self._endpoint(endpoint_name).get("ProductionVariants", [])
        variant = next((each for each in variants if each["VariantName"] == variant_name), None)
        if variant is None:
            raise UnavailableError(f"endpoint {endpoint_name} has no variant {variant_name}")
        instances = variant.get("CurrentInstanceCount", 0)
        most = max(instances, variant.get("DesiredInstanceCount", 0))
        scaling = variant.get("ManagedInstanceScaling", {})
        if scaling.get("Status") == "ENABLED":
            most = max(most, scaling.get("MaxInstanceCount", most))
        return VariantCapacity(instances, most)

    def on_endpoint(self, endpoint_name: str) -> list[str]:
        """Return the names of every component of an endpoint."""
        with calling(f"listing the components of {endpoint_name}"):
            return self._patiently(lambda: self._names(EndpointNameEquals=endpoint_name))

    def unknown_members(self, specification: Document) -> list[str]:
        """Return what of a specification this SDK can't send, by its places."""
        operation = self.client.meta.service_model.operation_model("CreateInferenceComponent")
        return [*unknown_members(operation.input_shape, {"Specification": specification}, "CreateInferenceComponent")]

    def create(self, name: str, live: ComponentState, specification: Document, tags: Mapping[str, str]) -> None:
        """Create a component of one copy on the endpoint and variant of another; one that is there is the one."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 (synth and most tests need no botocore)

        if self.describe(name) is not None:
            return
        with calling(f"creating component {name}"):
            try:
                self.client.create_inference_component(
                    InferenceComponentName=name,
                    EndpointName=live.endpoint_name,
                    VariantName=live.variant_name,
                    Specification=cast("InferenceComponentSpecificationTypeDef", specification),
                    RuntimeConfig={"CopyCount": 1},
                    Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
                )
            except ClientError as refused:
                if EXISTS not in f"{refused}":
                    raise

    def delete(self, name: str) -> None:
        """Delete a component; SageMaker refuses it while the component is in transit.

        The right to delete one depends on its tags, which arrive some seconds after it was created.
        """
        with calling(f"deleting component {name}"):
            self._patiently(lambda: self.client.delete_inference_component(InferenceComponentName=name))

    def like_candidates(self) -> list[str]:
        """Return the names of every component that may be a candidate by its name."""
        with calling("listing candidate components"):
            return [
                name for name in self._patiently(lambda: self._names(NameContains=CANDIDATE)) if is_candidate_name(name)
            ]

    def tags(self, component: ComponentState) -> dict[str, str]:
        """Return the tags of a component; none while they can't be seen yet."""
        with calling(f"reading the tags of {component.name}"):
            pages = self._patiently(
                lambda: [*self.client.get_paginator("list_tags").paginate(ResourceArn=component.arn)]
            )
        return {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}

    def is_in_stack(self, component: ComponentState) -> bool:
        """Tell whether a stack of CloudFormation manages a component: its physical ID is the ARN.

        CloudFormation puts no tags of its own on a component (its resource schema: `cloudFormationSystemTags` is
        false), so the stacks are queried.
        """
        from botocore.exceptions import ClientError  # noqa: PLC0415 (synth and most tests need no botocore)

        with calling(f"looking for the stack of {component.name}"):
            try:
                return bool(self.stacks.describe_stack_resources(PhysicalResourceId=component.arn)["StackResources"])
            except ClientError as refused:
                if "does not exist" in f"{refused}":
                    return False
                raise

    def set_copies(self, name: str, count: int) -> None:
        """Set the number of copies; SageMaker refuses it while the component is in transit."""
        with calling(f"setting component {name} to {count} copies"):
            self.client.update_inference_component_runtime_config(
                InferenceComponentName=name, DesiredRuntimeConfig={"CopyCount": count}
            )


def _state(name: str, described: DescribeInferenceComponentOutputTypeDef) -> ComponentState:
    copies = described.get("RuntimeConfig", {})
    return ComponentState(
        name=name,
        arn=described.get("InferenceComponentArn", ""),
        endpoint_name=described["EndpointName"],
        variant_name=described.get("VariantName", ""),
        status=described.get("InferenceComponentStatus", "Failed"),
        current_copies=copies.get("CurrentCopyCount", 0),
        desired_copies=copies.get("DesiredCopyCount", 0),
        specification=cast("Document", described.get("Specification", {})),
        failure_reason=described.get("FailureReason", ""),
        created=described.get("CreationTime"),
        changed=described.get("LastModifiedTime"),
    )


@dataclass(frozen=True, slots=True)
class CandidateComponent:
    """A component that the trial service made, by its tags.

    Attributes:
        request_id: The request that it was made for; empty where an older release made it.
    """

    name: str
    endpoint_name: str
    request_id: str = ""

    def is_for(self, request_id: str) -> bool:
        """Tell whether it was made for a request."""
        return self.request_id == request_id or (
            not self.request_id and self.name.endswith(candidate_name("", request_id))
        )


class TagsUnseenError(UnavailableError):
    """A component may be a candidate, and its tags can't be seen yet."""


def candidate_of(components: Components, name: str, environment: str) -> CandidateComponent | None:
    """Return a component as a candidate of an environment; `None` for every other one, and for one that is gone.

    Raises:
        TagsUnseenError: Its tags can't be seen yet.
        UnavailableError: It is not known.
    """
    if not is_candidate_name(name) or (component := components.describe(name)) is None:
        return None
    tags = components.tags(component)
    maker = maker_of(name, component.endpoint_name, tags)
    if maker == "unknown":
        raise TagsUnseenError(f"the tags of {name} can't be seen yet, and it is deleted by these alone")
    if maker == "other" or tags[ENVIRONMENT_TAG] != environment:
        return None
    if maker == "older release" and components.is_in_stack(component):
        return None
    return CandidateComponent(name, component.endpoint_name, tags.get(RUN_TAG, ""))


def remove_candidate(components: Components, name: str, environment: str) -> bool:
    """Delete a candidate unless it is in transit; return whether it is gone.

    Who made it is read right before: no other component is deleted, whatever its name.

    Raises:
        TagsUnseenError: Its tags can't be seen yet.
        UnavailableError: It is not known, it is no candidate, or SageMaker refused.
    """
    component = components.describe(name)
    if component is None:
        return True
    if component.in_transit:
        return False
    if candidate_of(components, name, environment) is None:
        raise UnavailableError(f"{name} is not deleted: the trial service of {environment} did not make it")
    components.delete(name)
    return False


def read_specification(text: str) -> Document:
    """Read the `Specification` property."""
    read: Document = json.loads(text)
    return read
