"""AWS::ApplicationAutoScaling::ScalableTarget and ScalingPolicy.

The physical ID of a target is its resource, dimension and namespace, joined by `|`; that of a policy is its ARN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_laptop.aws.api import ApiError, coerced, input_shape
from seatrial_laptop.aws.autoscaling.scalable_targets import SERVICE, call_autoscaling
from seatrial_laptop.aws.json_document import Document, children, text_member

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_laptop.aws.autoscaling.scalable_targets import Scaling
    from seatrial_laptop.aws.json_document import Handlers


Created = tuple[str, Document]
"""A physical ID and the attributes for Fn::GetAtt."""


def autoscaling_types(scaling: Scaling) -> dict[str, Handlers]:
    """Return MiniStack's tables of the two types."""
    target, policy = ScalableTargetType(scaling), ScalingPolicyType(scaling)
    return {
        "AWS::ApplicationAutoScaling::ScalableTarget": {
            "create": target.create,
            "update": target.update,
            "delete": target.delete,
        },
        "AWS::ApplicationAutoScaling::ScalingPolicy": {
            "create": policy.create,
            "update": policy.update,
            "delete": policy.delete,
        },
    }


@dataclass(frozen=True, slots=True)
class ScalableTargetType:
    """A scalable target; registering it again changes it."""

    scaling: Scaling

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Register the target with its scheduled actions."""
        self._put(properties)
        return self._schedule(properties, children(properties, "ScheduledActions"))

    def _put(self, properties: Document) -> None:
        tags = {text_member(tag, "Key"): text_member(tag, "Value") for tag in children(properties, "Tags")}
        plain = {name: value for name, value in properties.items() if name not in ("ScheduledActions", "Tags")}
        _call(self.scaling, "RegisterScalableTarget", {**plain, **({"Tags": tags} if tags else {})})

    def _schedule(self, properties: Document, actions: Sequence[Document]) -> Created:
        for action in actions:
            _call(self.scaling, "PutScheduledAction", {**_place(properties), **action})
        physical_id = "|".join(_place(properties).values())
        return physical_id, {"Id": physical_id}

    def update(self, physical_id: str, old: Document, new: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Register the target again, and write the scheduled actions that differ; another place replaces it."""
        before, after = children(old, "ScheduledActions"), children(new, "ScheduledActions")
        kept = {text_member(action, "ScheduledActionName") for action in after}
        for action in before:
            if (name := text_member(action, "ScheduledActionName")) not in kept:
                request = {**_place(old), "ScheduledActionName": name}
                _call_unless_gone(self.scaling, "DeleteScheduledAction", request)
        self._put(new)
        return self._schedule(new, [action for action in after if action not in before])

    def delete(self, physical_id: str, properties: Document) -> None:  # noqa: ARG002 (MiniStack's signature)
        """Deregister the target; one that is gone already is fine."""
        _call_unless_gone(self.scaling, "DeregisterScalableTarget", _place_of_target(physical_id))


@dataclass(frozen=True, slots=True)
class ScalingPolicyType:
    """A scaling policy; putting it again changes it."""

    scaling: Scaling

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Put the policy, with the alarms that target tracking needs."""
        plain = {name: value for name, value in properties.items() if name != "ScalingTargetId"}
        answer = _call(self.scaling, "PutScalingPolicy", {**plain, **_place_of_policy(properties)})
        arn = text_member(answer, "PolicyARN")
        return arn, {"Arn": arn}

    def update(self, physical_id: str, old: Document, new: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Put the policy again; another name or place replaces it."""
        return self.create("", new, stack)

    def delete(self, physical_id: str, properties: Document) -> None:  # noqa: ARG002 (MiniStack's signature)
        """Delete the policy and its alarms; one that is gone already is fine."""
        request = {**_place_of_policy(properties), "PolicyName": text_member(properties, "PolicyName")}
        _call_unless_gone(self.scaling, "DeleteScalingPolicy", request)


def _place(properties: Document) -> dict[str, str]:
    return {name: text_member(properties, name) for name in ("ResourceId", "ScalableDimension", "ServiceNamespace")}


def _place_of_target(physical_id: str) -> dict[str, str]:
    resource, dimension, namespace = physical_id.split("|")
    return {"ResourceId": resource, "ScalableDimension": dimension, "ServiceNamespace": namespace}


def _place_of_policy(properties: Document) -> dict[str, str]:
    target = text_member(properties, "ScalingTargetId")
    return _place_of_target(target) if target else _place(properties)


def _call(scaling: Scaling, operation: str, properties: Document) -> Document:
    request = coerced(input_shape(SERVICE, operation), dict(properties))
    if not isinstance(request, dict):
        raise TypeError(f"not a request: {request!r}")
    return call_autoscaling(scaling, operation, request)


def _call_unless_gone(scaling: Scaling, operation: str, request: Document) -> None:
    try:
        _call(scaling, operation, request)
    except ApiError as error:
        if error.code != "ObjectNotFoundException":
            raise
