"""What a scalable target names: the copies of an inference component, or the instances of a variant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_laptop.aws.autoscaling.target_tracking import COPIES
from seatrial_laptop.aws.control_plane.inference_components import copy_count
from seatrial_laptop.aws.control_plane.live_variants import live_variants
from seatrial_laptop.aws.control_plane.records import Kind

if TYPE_CHECKING:
    from seatrial_laptop.aws.autoscaling.scalable_targets import Key
    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.control_plane.records import Record
    from seatrial_laptop.aws.json_document import Document


@dataclass(frozen=True, slots=True)
class ScaledResource:
    """The resource of a scalable target, as it is now.

    Attributes:
        record: The component, or the endpoint.
        variant: The variant; empty for a component.
        current: Its desired copies or instances.
    """

    record: Record
    variant: str
    current: int

    def request(self, desired: int) -> Document:
        """Return the request that sets another number of copies or instances."""
        if not self.variant:
            return {"InferenceComponentName": self.record.name, "DesiredRuntimeConfig": {"CopyCount": desired}}
        wanted = {"VariantName": self.variant, "DesiredInstanceCount": desired}
        return {"EndpointName": self.record.name, "DesiredWeightsAndCapacities": [wanted]}

    def failure(self, desired: int) -> str | None:
        """Return why it has not the number that was asked for, or None when it has."""
        if self.record.failure_reason:
            return self.record.failure_reason
        if self.current == desired:
            return None
        return f"The {self.record.kind.in_words} has {self.current} {'instances' if self.variant else 'copies'}."


def scaled_resource(cloud: Cloud, key: Key) -> ScaledResource | None:
    """Return the resource of a scalable target, or None when it is gone."""
    _, resource_id, dimension = key
    parts = resource_id.split("/")
    if dimension == COPIES:
        record = cloud.store.find(Kind.INFERENCE_COMPONENT, parts[1])
        return ScaledResource(record, "", copy_count(record.request)) if record else None
    endpoint = cloud.store.find(Kind.ENDPOINT, parts[1])
    found = [each for each in live_variants(cloud.store, endpoint) if each.name == parts[3]] if endpoint else []
    return ScaledResource(endpoint, parts[3], found[0].instances) if endpoint and found else None
