"""AWS::SageMaker::Model, EndpointConfig, Endpoint and InferenceComponent.

Facts from the resource schemas: the physical ID (`Ref`) is the ARN. An update comes here only where no property needs a
new resource (`guarded_resources`); an inference component has none that does.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.api import ApiError, coerced, input_shape, invalid
from seatrial_laptop.aws.control_plane.records import Kind, Record, Status
from seatrial_laptop.aws.control_plane.sagemaker import SERVICE, call_sagemaker
from seatrial_laptop.aws.json_document import Document, children, text_member

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.json_document import Handlers


POLL_S: Final = 0.05
LONGEST_NAME: Final = 63
SUFFIX_LENGTH: Final = 13
IDENTITY: Final = ("InferenceComponentName", "EndpointName")
"""The properties of a component that no update can change and no change replaces."""
UPDATE_ONLY: Final = {
    Kind.ENDPOINT: ("RetainAllVariantProperties", "ExcludeRetainedVariantProperties", "RetainDeploymentConfig"),
    Kind.INFERENCE_COMPONENT: ("DeploymentConfig",),
}
"""Properties that the update's request has and the creation's has not."""

Created = tuple[str, Document]
"""A physical ID and the attributes for Fn::GetAtt."""


def sagemaker_types(cloud: Cloud, physical_name: Callable[..., str]) -> dict[str, Handlers]:
    """Return MiniStack's tables of the four types."""
    kinds = [SageMakerType(kind, cloud, physical_name) for kind in Kind]
    return {
        f"AWS::SageMaker::{each.kind}": {
            "create": each.create,
            "update": each.update,
            "update_with_logical_id": True,
            "delete": each.delete,
        }
        for each in kinds
    }


@dataclass(frozen=True, slots=True)
class SageMakerType:
    """One resource type, done by calls of our own control plane; its methods are called on worker threads."""

    kind: Kind
    cloud: Cloud
    physical_name: Callable[..., str]

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:
        """Create the resource and wait until it serves; what fails is removed again, because nobody else knows it.

        Raises:
            ApiError: The request isn't valid.
            ResourceFailed: The resource's status is Failed.
        """
        name = text_member(properties, f"{self.kind}Name") or self._free_name(stack, logical_id)
        self._call("Create", {**self._request(properties), f"{self.kind}Name": name})
        record = self._settle(name)
        if record is not None and record.failure_reason:
            self._delete(name)
            raise ResourceFailed(f"{self.kind} {name} failed: {record.failure_reason}")
        return self._created(name)

    def update(self, physical_id: str, old: Document, new: Document, stack: str, logical_id: str) -> Created:
        """Update in place; what is gone is created again.

        Raises:
            ApiError: The request isn't valid.
            ResourceFailed: The update was rolled back.
        """
        record = self._record(physical_id)
        if record is None:
            return self.create(logical_id, new, stack)
        _check_identity(self.kind, old, new)
        self.cloud.store.untag(record.arn, [text_member(tag, "Key") for tag in children(old, "Tags")])
        self.cloud.store.tag(record.arn, children(new, "Tags"))
        if self.kind in UPDATE_ONLY:
            self._update_in_place(record, new)
        return self._created(record.name)

    def delete(self, physical_id: str, properties: Document) -> None:  # noqa: ARG002 (MiniStack's signature)
        """Delete the resource and wait until it's gone; one that is gone already is fine."""
        record = self._record(physical_id)
        if record is not None:
            self._settle(record.name)
            self._delete(record.name)

    def _update_in_place(self, record: Record, new: Document) -> None:
        members = input_shape(SERVICE, f"Update{self.kind}").members
        request = {key: value for key, value in self._request(new, for_update=True).items() if key in members}
        self._call("Update", {**request, f"{self.kind}Name": record.name})
        settled = self._settle(record.name)
        if settled is None or settled.failure_reason:
            raise ResourceFailed(f"{self.kind} {record.name} failed: {settled.failure_reason if settled else 'gone'}")

    def _request(self, properties: Document, *, for_update: bool = False) -> dict[str, object]:
        shape = input_shape(SERVICE, f"{'Update' if for_update else 'Create'}{self.kind}")
        allowed = input_shape(SERVICE, f"Create{self.kind}").members.keys() | {*UPDATE_ONLY.get(self.kind, ())}
        for name in properties:
            if name not in allowed:
                raise invalid(f"Encountered unsupported property {name}")
        kept = {name: value for name, value in properties.items() if name in shape.members}
        request = coerced(shape, kept)
        if not isinstance(request, dict):
            raise TypeError(f"not a request: {request!r}")
        return request

    def _call(self, verb: str, request: Document) -> None:
        call_sagemaker(self.cloud, f"{verb}{self.kind}", request)

    def _record(self, physical_id: str) -> Record | None:
        return next((record for record in self.cloud.store.all(self.kind) if record.arn == physical_id), None)

    def _settle(self, name: str) -> Record | None:
        while (record := self.cloud.store.find(self.kind, name)) and record.status and record.status.in_transit:
            time.sleep(POLL_S)
        return record

    def _delete(self, name: str) -> None:
        try:
            self._call("Delete", {f"{self.kind}Name": name})
        except ApiError:
            if self.cloud.store.find(self.kind, name) is not None:
                raise
        self._settle(name)

    def _free_name(self, stack: str, logical_id: str) -> str:
        name = self.physical_name(stack, logical_id, max_len=LONGEST_NAME).strip("-")
        if self.cloud.store.find(self.kind, name) is None:
            return name
        return name[:-SUFFIX_LENGTH] + uuid.uuid4().hex[:SUFFIX_LENGTH].upper()

    def _created(self, name: str) -> Created:
        record = self.cloud.store.need(self.kind, name)
        attributes: dict[str, object] = {f"{self.kind}Name": name, f"{self.kind}Arn": record.arn, "Id": record.arn}
        if self.kind is Kind.INFERENCE_COMPONENT:
            attributes["InferenceComponentStatus"] = record.status or Status.FAILED
        return record.arn, attributes


def _check_identity(kind: Kind, old: Document, new: Document) -> None:
    """Refuse another name or endpoint of a component: CloudFormation updates it in place, and the API can't.

    Raises:
        ApiError: ValidationException, with what changed.
    """
    changed = [name for name in IDENTITY if old.get(name) != new.get(name)]
    if kind is Kind.INFERENCE_COMPONENT and changed:
        raise invalid(f"An inference component's {' and '.join(changed)} can't be updated: give it another logical ID.")


class ResourceFailed(Exception):  # noqa: N818 (named after the status)
    """The resource didn't come into service; the message goes into the stack's event."""
