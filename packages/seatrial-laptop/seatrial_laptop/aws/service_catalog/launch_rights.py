"""What a launch role may do: checked when a resource of a provisioned product is created or updated.

CloudFormation here runs with every right. For a stack of Service Catalog each resource is checked first: the policies
of the launch role must allow what the type's resource handler calls. Deletions, and the rights of custom resources, are
not checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.json_document import Document, children, text_member
from seatrial_laptop.aws.rights.role_rights import Right, role_allows
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from seatrial_laptop.aws.json_document import Handlers


def _arn(service: str, resource: str) -> str:
    return f"arn:aws:{service}:{REGION}:{own_account()}:{resource}"


def _tags(properties: Document) -> dict[str, str]:
    return {
        f"aws:requesttag/{text_member(tag, 'Key')}".lower(): text_member(tag, "Value")
        for tag in children(properties, "Tags")
    }


def _unnamed(action: str, kind: str) -> Callable[[Document, str], Iterator[Right]]:
    """Return the rights of a type that can only be created: a change replaces it, or sets its tags."""

    def rights(properties: Document, verb: str) -> Iterator[Right]:  # noqa: ARG001 (the table's signature)
        for each in (action, "sagemaker:AddTags"):
            yield Right(each, _arn("sagemaker", f"{kind}/new"), _tags(properties))
        role = text_member(properties, "ExecutionRoleArn")
        yield Right("iam:PassRole", role, {"iam:passedtoservice": "sagemaker.amazonaws.com"})

    return rights


def _endpoint(properties: Document, verb: str) -> Iterator[Right]:
    name = text_member(properties, "EndpointName").lower()
    yield Right(f"sagemaker:{verb}Endpoint", _arn("sagemaker", f"endpoint/{name}"), _tags(properties))


def _component(properties: Document, verb: str) -> Iterator[Right]:
    name = text_member(properties, "InferenceComponentName").lower()
    resource = _arn("sagemaker", f"inference-component/{name}")
    yield Right(f"sagemaker:{verb}InferenceComponent", resource, _tags(properties))


def _role(properties: Document, verb: str) -> Iterator[Right]:
    resource = f"arn:aws:iam::{own_account()}:role{text_member(properties, 'Path', '/')}new"
    context = {"iam:permissionsboundary": text_member(properties, "PermissionsBoundary")}
    yield Right("iam:CreateRole" if verb == "Create" else "iam:PutRolePolicy", resource, context)


def _alarm(properties: Document, verb: str) -> Iterator[Right]:  # noqa: ARG001 (the table's signature)
    yield Right("cloudwatch:PutMetricAlarm", _arn("cloudwatch", f"alarm:{text_member(properties, 'AlarmName')}"))


def _topic(properties: Document, verb: str) -> Iterator[Right]:
    action = "sns:CreateTopic" if verb == "Create" else "sns:SetTopicAttributes"
    yield Right(action, _arn("sns", text_member(properties, "TopicName")))


def _parameter(properties: Document, verb: str) -> Iterator[Right]:  # noqa: ARG001 (the table's signature)
    yield Right("ssm:PutParameter", _arn("ssm", f"parameter{text_member(properties, 'Name')}"))


def _scaling(action: str) -> Callable[[Document, str], Iterator[Right]]:
    def rights(properties: Document, verb: str) -> Iterator[Right]:  # noqa: ARG001 (the table's signature)
        context = {
            "application-autoscaling:service-namespace": "sagemaker",
            "application-autoscaling:scalable-dimension": "sagemaker:inference-component:DesiredCopyCount",
        }
        yield Right(
            f"application-autoscaling:{action}", _arn("application-autoscaling", "scalable-target/new"), context
        )

    return rights


RIGHTS: Final[Mapping[str, Callable[[Document, str], Iterator[Right]]]] = {
    "AWS::SageMaker::Model": _unnamed("sagemaker:CreateModel", "model"),
    "AWS::SageMaker::EndpointConfig": _unnamed("sagemaker:CreateEndpointConfig", "endpoint-config"),
    "AWS::SageMaker::Endpoint": _endpoint,
    "AWS::SageMaker::InferenceComponent": _component,
    "AWS::IAM::Role": _role,
    "AWS::CloudWatch::Alarm": _alarm,
    "AWS::SNS::Topic": _topic,
    "AWS::SSM::Parameter": _parameter,
    "AWS::ApplicationAutoScaling::ScalableTarget": _scaling("RegisterScalableTarget"),
    "AWS::ApplicationAutoScaling::ScalingPolicy": _scaling("PutScalingPolicy"),
}
"""The rights of each type that is checked; a stack of Service Catalog may hold no other but custom resources."""


@dataclass(frozen=True, slots=True)
class LaunchRights:
    """Checks the resources of provisioned products.

    Attributes:
        launch_roles: The launch role of each stack that has one, by the stack's name.
    """

    launch_roles: Mapping[str, str]

    def guarded(self, resource_type: str, theirs: Handlers) -> Handlers:
        """Return the handlers of a type, with the check before creation and update."""
        create, update = (cast("Callable[..., object] | None", theirs.get(verb)) for verb in ("create", "update"))

        def create_allowed(logical_id: str, properties: Document, stack: str, *more: object) -> object:
            self._check(resource_type, properties, stack, "Create")
            return create(logical_id, properties, stack, *more) if create else None

        def update_allowed(physical_id: str, old: Document, new: Document, stack: str, *more: object) -> object:
            self._check(resource_type, new, stack, "Update")
            return update(physical_id, old, new, stack, *more) if update else None

        return {
            **theirs,
            **({"create": create_allowed} if create else {}),
            **({"update": update_allowed} if update else {}),
        }

    def _check(self, resource_type: str, properties: Document, stack: str, verb: str) -> None:
        role = self.launch_roles.get(stack)
        if role is None:
            return
        for right in RIGHTS[resource_type](properties, verb):
            if not role_allows(role, right):
                raise ApiError(
                    "AccessDenied", f"{role} is not authorized to perform: {right.action} on resource: {right.resource}"
                )
