"""IAM policies of templates, wherever they stand: identity policies, trust policies and policies of resources."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seatrial_lint.cloudformation.template import TemplateValue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from seatrial_lint.cloudformation.template import TemplateResource, TemplateResources

PolicyKind = Literal["identity", "trust", "resource"]
ROLE = "AWS::IAM::Role"
USER = "AWS::IAM::User"
GROUP = "AWS::IAM::Group"
INLINE_POLICY = "AWS::IAM::Policy"
MANAGED_POLICY = "AWS::IAM::ManagedPolicy"
BUCKET_POLICY = "AWS::S3::BucketPolicy"
PLACES: Mapping[str, tuple[tuple[PolicyKind, tuple[str, ...]], ...]] = {
    ROLE: (("trust", ("AssumeRolePolicyDocument",)), ("identity", ("Policies", "", "PolicyDocument"))),
    USER: (("identity", ("Policies", "", "PolicyDocument")),),
    GROUP: (("identity", ("Policies", "", "PolicyDocument")),),
    INLINE_POLICY: (("identity", ("PolicyDocument",)),),
    MANAGED_POLICY: (("identity", ("PolicyDocument",)),),
    "AWS::IAM::RolePolicy": (("identity", ("PolicyDocument",)),),
    "AWS::IAM::UserPolicy": (("identity", ("PolicyDocument",)),),
    "AWS::IAM::GroupPolicy": (("identity", ("PolicyDocument",)),),
    "AWS::SSO::PermissionSet": (("identity", ("InlinePolicy",)),),
    "AWS::CodeArtifact::Domain": (("resource", ("PermissionsPolicyDocument",)),),
    "AWS::CodeArtifact::Repository": (("resource", ("PermissionsPolicyDocument",)),),
    "AWS::DynamoDB::Table": (("resource", ("ResourcePolicy", "PolicyDocument")),),
    "AWS::EC2::VPCEndpoint": (("resource", ("PolicyDocument",)),),
    "AWS::ECR::Repository": (("resource", ("RepositoryPolicyText",)),),
    "AWS::KMS::Key": (("resource", ("KeyPolicy",)),),
    "AWS::KMS::ReplicaKey": (("resource", ("KeyPolicy",)),),
    "AWS::Logs::ResourcePolicy": (("resource", ("PolicyDocument",)),),
    "AWS::S3::AccessPoint": (("resource", ("Policy",)),),
    BUCKET_POLICY: (("resource", ("PolicyDocument",)),),
    "AWS::SNS::TopicInlinePolicy": (("resource", ("PolicyDocument",)),),
    "AWS::SNS::TopicPolicy": (("resource", ("PolicyDocument",)),),
    "AWS::SQS::QueueInlinePolicy": (("resource", ("PolicyDocument",)),),
    "AWS::SQS::QueuePolicy": (("resource", ("PolicyDocument",)),),
    "AWS::SageMaker::ModelPackageGroup": (("resource", ("ModelPackageGroupPolicy",)),),
    "AWS::SecretsManager::ResourcePolicy": (("resource", ("ResourcePolicy",)),),
}
"""Where policies are in each resource type; the empty name is every item of a list."""
ATTACHED_TO: Mapping[str, tuple[str, ...]] = {
    INLINE_POLICY: ("Roles", "Users", "Groups"),
    MANAGED_POLICY: ("Roles", "Users", "Groups"),
    "AWS::IAM::RolePolicy": ("RoleName",),
    "AWS::IAM::UserPolicy": ("UserName",),
    "AWS::IAM::GroupPolicy": ("GroupName",),
}
"""The properties that name what a policy is attached to."""
ARN_FORMS: Mapping[str, str] = {
    "AWS::CloudWatch::Alarm": "arn:*:cloudwatch:*:*:alarm:{}",
    "AWS::CloudWatch::CompositeAlarm": "arn:*:cloudwatch:*:*:alarm:{}",
    "AWS::ECR::Repository": "arn:*:ecr:*:*:repository/{}",
    "AWS::Events::EventBus": "arn:*:events:*:*:event-bus/{}",
    "AWS::IAM::Role": "arn:*:iam::*:role/{}",
    "AWS::KMS::Key": "arn:*:kms:*:*:key/{}",
    "AWS::Lambda::Function": "arn:*:lambda:*:*:function:{}",
    "AWS::Logs::LogGroup": "arn:*:logs:*:*:log-group:{}:*",
    "AWS::S3::Bucket": "arn:*:s3:::{}",
    "AWS::SNS::Topic": "arn:*:sns:*:*:{}",
    "AWS::SQS::Queue": "arn:*:sqs:*:*:{}",
    "AWS::SageMaker::Endpoint": "arn:*:sagemaker:*:*:endpoint/{}",
    "AWS::SageMaker::EndpointConfig": "arn:*:sagemaker:*:*:endpoint-config/{}",
    "AWS::SageMaker::InferenceComponent": "arn:*:sagemaker:*:*:inference-component/{}",
    "AWS::SageMaker::Model": "arn:*:sagemaker:*:*:model/{}",
    "AWS::SecretsManager::Secret": "arn:*:secretsmanager:*:*:secret:{}",
    "AWS::StepFunctions::StateMachine": "arn:*:states:*:*:stateMachine:{}",
}
"""The one ARN that `Ref` or `Fn::GetAtt` gives of a resource, as far as its type goes (CloudFormation, return values).

A table of DynamoDB has another one, of its stream, so it is left out.
"""
LONGEST_ARN = 2_048
"""Characters; a longer pattern is not compared with anything (IAM API reference, arnType)."""
# Of IAM: `${aws:username}`; `${*}` is the character.
_VARIABLE = re.compile(r"\$\{([*?$])\}|\$\{[^${}]*\}")


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """A policy.

    `kind`: whose it is: `identity` of a role, user or group; `trust` of a role; of a `resource`.
    """

    kind: PolicyKind
    resource: TemplateResource
    value: TemplateValue

    @property
    def is_known(self) -> bool:
        """The templates tell every statement."""
        given = several(self.value.at("Statement"))
        return self.value.is_known and all(each.is_known and isinstance(each.raw, dict) for each in given)

    @property
    def statements(self) -> tuple[PolicyStatement, ...]:
        """Its statements, but those that only the deployment knows."""
        known = (each for each in several(self.value.at("Statement")) if isinstance(each.raw, dict) and each.is_known)
        return tuple(PolicyStatement(self, each) for each in known)


@dataclass(frozen=True, slots=True)
class PolicyCondition:
    """A condition on one key.

    `operator`: as it is written, as `StringEquals`.
    """

    operator: str
    key: str
    value: TemplateValue

    @property
    def _name(self) -> str:
        return self.operator.rpartition(":")[2].lower()

    @property
    def holds_without_key(self) -> bool:
        """Whether it holds for a request that does not carry the key."""
        is_of_all = self.operator.lower().startswith("forallvalues:")
        return is_of_all or self._name.endswith("ifexists") or "not" in self._name or self._name == "null"

    @property
    def asks_for_absence(self) -> bool:
        """Whether it says itself that the key may be absent."""
        return self._name.endswith("ifexists") or self._name == "null"


@dataclass(frozen=True, slots=True)
class PolicyStatement:
    """A statement."""

    policy: PolicyDocument
    value: TemplateValue

    @property
    def template(self) -> str:
        """The name of its template."""
        return self.policy.resource.template

    @property
    def is_allow(self) -> bool:
        """Whether it allows."""
        return self.value.at("Effect").text == "Allow"

    @property
    def actions(self) -> tuple[TemplateValue, ...]:
        """What is under `Action`."""
        return several(self.value.at("Action"))

    @property
    def excepted_actions(self) -> tuple[TemplateValue, ...]:
        """What is under `NotAction`."""
        return several(self.value.at("NotAction"))

    @property
    def resources(self) -> tuple[TemplateValue, ...]:
        """What is under `Resource`; nothing where the policy's own resource is meant."""
        return several(self.value.at("Resource"))

    @property
    def conditions(self) -> Iterator[PolicyCondition]:
        """Its conditions, as far as the template tells."""
        for operator, keys in self.value.at("Condition").fields.items():
            for key, value in keys.fields.items():
                yield PolicyCondition(operator, key, value)


def policy_documents(resources: TemplateResources) -> Iterator[PolicyDocument]:
    """Yield every policy of templates."""
    for resource_type, places in PLACES.items():
        for resource in resources.of(resource_type):
            for kind, path in places:
                for value in _values(resource.at(path[0]), path[1:]):
                    yield PolicyDocument(kind, resource, _document(value))


def several(value: TemplateValue) -> tuple[TemplateValue, ...]:
    """Return the items of a list, or the only value where IAM takes one for a list."""
    return value.items or (() if value.is_absent or value.raw == [] else (value,))


def arn_pattern(resources: TemplateResources, template: str, value: TemplateValue) -> str | None:
    """Return the pattern of the ARNs that a value means; `None` when it is unknown.

    References within an ARN, and variables of IAM, are any text; the ARN of a resource of the template has its ID for
    a name, so that a pattern tells types alone.
    """
    written = resources.written(template, value)
    if written is None or len(written) > LONGEST_ARN:
        return None
    if leading := resources.leading(written):
        resource, rest = leading
        form = ARN_FORMS.get(resource.resource_type)
        written = form.format(resource.logical_id) + rest if form else ""
    if not (written == "*" or written.startswith("arn:")):
        return None
    return _VARIABLE.sub(lambda found: "?" if found[1] else "*", resources.readable(written))


def _values(value: TemplateValue, path: tuple[str, ...]) -> Iterator[TemplateValue]:
    if not path:
        if not value.is_absent:
            yield value
        return
    for below in value.items if not path[0] else (value.at(path[0]),):
        yield from _values(below, path[1:])


def _document(value: TemplateValue) -> TemplateValue:
    """Return a document that is written as a text of JSON as what it says."""
    if not isinstance(value.raw, str):
        return value
    try:
        document: JsonValue = json.loads(value.raw)
    except (ValueError, RecursionError):
        return value
    return TemplateValue(value.path, document)
