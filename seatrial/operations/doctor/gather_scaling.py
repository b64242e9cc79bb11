"""The scalable targets of an endpoint, those of components that are gone included."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.account.reader import count, mapping, rows, text_at
from seatrial.deployment.document import COMPONENT_SUFFIX
from seatrial.operations.doctor.facts import TargetFacts
from seatrial_base.candidates import is_candidate_name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seatrial.account.reader import AwsReader
    from seatrial.documents.live_endpoint import LiveComponent, LiveEndpoint
    from seatrial.operations.doctor.facts import StackFacts

NAMESPACE = "sagemaker"
SERVICE = "application-autoscaling"
_TARGET_TYPE = "AWS::ApplicationAutoScaling::ScalableTarget"


def scalable_targets(
    name: str, endpoint: LiveEndpoint, components: Iterable[LiveComponent], stack: StackFacts, reader: AwsReader
) -> tuple[TargetFacts, ...]:
    """Return the targets of an endpoint's variants and components, by resource.

    Another endpoint's name may begin with this one's. So a target of a component that is gone counts as this
    endpoint's only when its name is `NAME-model`, a candidate's, or one of the stack's resources.
    """
    of_stack = {each.physical_id.partition("|")[0] for each in stack.resources if each.resource_type == _TARGET_TYPE}
    known = {f"inference-component/{each.name}" for each in components} | of_stack
    known |= {f"endpoint/{name}/variant/{each.name}" for each in endpoint.variants}
    known.add(f"inference-component/{name}{COMPONENT_SUFFIX}")
    listed = reader.rows(
        "scalable targets", SERVICE, "describe_scalable_targets", "ScalableTargets", ServiceNamespace=NAMESPACE
    )
    ours = [row for row in listed if _is_ours(text_at(row, "ResourceId"), known, name)]
    return tuple(_target(row, reader) for row in sorted(ours, key=lambda each: text_at(each, "ResourceId")))


def _is_ours(resource_id: str, known: set[str], name: str) -> bool:
    kind, _, component = resource_id.partition("/")
    return resource_id in known or (kind == "inference-component" and is_candidate_name_of(component, name))


def _target(row: Mapping[str, object], reader: AwsReader) -> TargetFacts:
    resource_id, dimension = text_at(row, "ResourceId"), text_at(row, "ScalableDimension")
    asked = {"ServiceNamespace": NAMESPACE, "ResourceId": resource_id, "ScalableDimension": dimension}
    what = f"scaling of {resource_id}"
    policies = reader.rows(what, SERVICE, "describe_scaling_policies", "ScalingPolicies", **asked)
    activities = reader.read(what, SERVICE, "describe_scaling_activities", **asked, MaxResults=1).document
    last = next(rows(activities, "ScalingActivities"), {})
    return TargetFacts(
        resource_id=resource_id,
        dimension=dimension,
        least=count(row, "MinCapacity"),
        most=count(row, "MaxCapacity"),
        suspended=tuple(sorted(key for key, value in mapping(row, "SuspendedState").items() if value is True)),
        wakes=any(text_at(each, "PolicyType") == "StepScaling" for each in policies),
        failure=text_at(last, "StatusMessage") if text_at(last, "StatusCode") == "Failed" else "",
    )
