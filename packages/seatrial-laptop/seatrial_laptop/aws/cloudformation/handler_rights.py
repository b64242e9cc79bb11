"""Rights that a resource handler needs of the role that deploys: each action of its schema, with ARN and context.

The actions and when they are needed are facts of the catalog (`resource_types`), as are the condition keys that
each carries and whether it has a resource level (`service_authorization`). A handler of an update reads too:
CloudFormation invokes the read handler in an update (CloudFormation CLI user guide, resource types). The ARN of what
CloudFormation names has the name that it will get; an ID that a service chooses is `new`. A role calls a custom
resource's function, whatever its type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.resource_types import (
    NAMED_KEYS,
    PASSED_ROLES,
    find_resource_schema,
    needed_actions,
    values_at,
)
from seatrial_base.catalog.service_authorization import action_facts
from seatrial_laptop.aws.json_document import Document, child, text_member
from seatrial_laptop.aws.ministack import find_role, physical_name
from seatrial_laptop.aws.rights import Right
from seatrial_laptop.environment import own_account
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from seatrial_base.catalog.resource_types import Handler

CUSTOM: Final = ("Custom::", "AWS::CloudFormation::CustomResource")
LONGEST_NAME: Final = 63
UNKNOWN: Final = "new"
"""The ID of what a service names when it makes it."""
ARNS: Final[Mapping[str, tuple[str, str]]] = {
    "AWS::ApplicationAutoScaling::ScalableTarget": ("application-autoscaling:{here}:scalable-target/new", ""),
    "AWS::ApplicationAutoScaling::ScalingPolicy": ("application-autoscaling:{here}:scalable-target/new", ""),
    "AWS::Budgets::Budget": ("budgets::{account}:budget/{name}", "Budget.BudgetName"),
    "AWS::CloudWatch::Alarm": ("cloudwatch:{here}:alarm:{name}", "AlarmName"),
    "AWS::CloudWatch::CompositeAlarm": ("cloudwatch:{here}:alarm:{name}", "AlarmName"),
    "AWS::CloudWatch::Dashboard": ("cloudwatch::{account}:dashboard/{name}", "DashboardName"),
    "AWS::CodePipeline::Pipeline": ("codepipeline:{here}:{name}", "Name"),
    "AWS::Events::Rule": ("events:{here}:rule/{name}", "Name"),
    "AWS::IAM::ManagedPolicy": ("iam::{account}:policy{path}{name}", "ManagedPolicyName"),
    "AWS::IAM::OIDCProvider": ("iam::{account}:oidc-provider/{name}", "Url"),
    "AWS::IAM::Role": ("iam::{account}:role{path}{name}", "RoleName"),
    "AWS::KMS::Alias": ("kms:{here}:{name}", "AliasName"),
    "AWS::KMS::Key": ("kms:{here}:key/{id}", ""),
    "AWS::Lambda::Function": ("lambda:{here}:function:{name}", "FunctionName"),
    "AWS::Lambda::Permission": ("lambda:{here}:function:{name}", "FunctionName"),
    "AWS::Logs::LogGroup": ("logs:{here}:log-group:{name}", "LogGroupName"),
    "AWS::S3::Bucket": ("s3:::{name}", "BucketName"),
    "AWS::S3::BucketPolicy": ("s3:::{name}", "Bucket"),
    "AWS::SNS::Subscription": ("sns:{here}:{name}", "TopicArn"),
    "AWS::SNS::Topic": ("sns:{here}:{name}", "TopicName"),
    "AWS::SNS::TopicPolicy": ("sns:{here}:{name}", "Topics.*"),
    "AWS::SSM::Parameter": ("ssm:{here}:parameter{slash}{name}", "Name"),
    "AWS::SageMaker::Endpoint": ("sagemaker:{here}:endpoint/{name}", "EndpointName"),
    "AWS::SageMaker::EndpointConfig": ("sagemaker:{here}:endpoint-config/{name}", "EndpointConfigName"),
    "AWS::SageMaker::InferenceComponent": ("sagemaker:{here}:inference-component/{name}", "InferenceComponentName"),
    "AWS::SageMaker::Model": ("sagemaker:{here}:model/{name}", "ModelName"),
    "AWS::Scheduler::Schedule": ("scheduler:{here}:schedule/{group}/{name}", "Name"),
    "AWS::Scheduler::ScheduleGroup": ("scheduler:{here}:schedule-group/{name}", "Name"),
    "AWS::ServiceCatalog::CloudFormationProduct": ("catalog:{here}:product/{id}", ""),
    "AWS::ServiceCatalog::Portfolio": ("catalog:{here}:portfolio/{id}", ""),
    "AWS::StepFunctions::StateMachine": ("states:{here}:stateMachine:{name}", "StateMachineName"),
}
"""The ARN of a resource without `arn:aws:`, and the property of its name; a type that is not here has none."""
PREFIXES: Final[Mapping[str, str]] = {"catalog": "servicecatalog"}
"""The prefix of a service's actions where it is not that of its ARNs."""
SERVICE_ROLE: Final = "sagemaker.application-autoscaling.amazonaws.com"
SERVICE_ROLES: Final = f"role/aws-service-role/{SERVICE_ROLE}"
UNTAGGING: Final = re.compile(r":(Untag|Remove|Delete)\w*(Tags|Resource|Role|Provider)$")
TAGGING: Final = re.compile(r":(Tag|AddTags)|:CreateTags$|:PutBucketTagging$")
READING: Final = re.compile(r":(Describe|Get|List|View)")


@dataclass(frozen=True, slots=True)
class ResourceOperation:
    """One call of a resource handler.

    Attributes:
        physical_id: The resource in its service; empty before its creation.
        old: The properties before; none in a creation.
        new: The properties after; none in a deletion.
        sees_tags: Whether the tags of the resource are visible; those of a new one of SageMaker may be late.
    """

    resource_type: str
    handler: Handler
    stack: str
    logical_id: str
    physical_id: str
    old: Document
    new: Document
    sees_tags: bool = True

    @property
    def given(self) -> Document:
        """The properties that name the resource."""
        return self.new or self.old


def needed_rights(operation: ResourceOperation) -> Iterator[Right]:
    """Return the rights that a handler needs of the role that deploys, each once."""
    if operation.resource_type.startswith(CUSTOM):
        yield Right("lambda:InvokeFunction", text_member(operation.given, "ServiceToken"))
        return
    handlers: tuple[Handler, ...] = ("update", "read") if operation.handler == "update" else (operation.handler,)
    actions = [
        action
        for handler in handlers
        for action in needed_actions(operation.resource_type, handler, operation.old, operation.new)
    ]
    for action in dict.fromkeys(actions):
        for resource in _resources(operation, action):
            # A tag that is not requested, or not there, is absent.
            context = {**_service_context(operation, action, resource), **_tag_context(operation, action, resource)}
            facts = action_facts(action)
            yield Right(
                action,
                resource,
                {key: value for key, value in context.items() if facts is None or facts.carries(key, resource)},
            )


def _resources(operation: ResourceOperation, action: str) -> list[str]:
    """Return the ARNs that an action of a handler is on."""
    if action == "iam:CreateServiceLinkedRole":
        return [
            f"arn:aws:iam::{own_account()}:{SERVICE_ROLES}/AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
        ]
    if special := SPECIAL.get(action):
        return special(operation)
    if action.startswith("kms:") and (keys := NAMED_KEYS.having(operation.resource_type)):
        return [
            (
                key
                if key.startswith("arn:")
                else f"arn:aws:kms:{REGION}:{own_account()}:{key if key.startswith('alias/') else f'key/{key}'}"
            )
            for row in keys
            for key in _texts(operation, row.path)
        ]
    own = _own_arn(operation)
    facts = action_facts(action)
    template, _ = ARNS.get(operation.resource_type, ("", ""))
    prefix = template.partition(":")[0]
    is_foreign = action.partition(":")[0] != PREFIXES.get(prefix, prefix) or action == "iam:PassRole"
    if is_foreign or (facts and facts.is_described and not facts.targets_of(own)):
        return ["*"]
    if another := WITH_ANOTHER.get((action, operation.resource_type)):
        kind, member = another
        named = text_member(operation.given, member).lower()
        return [own, f"arn:aws:sagemaker:{REGION}:{own_account()}:{kind}/{named}"]
    return [own]


def _own_arn(operation: ResourceOperation) -> str:
    """Return the ARN of the resource itself, `*` for a type that has none."""
    if operation.resource_type not in ARNS:
        return "*"
    template, prop = ARNS[operation.resource_type]
    if operation.physical_id.startswith(f"arn:aws:{template.partition(':')[0]}:"):
        return operation.physical_id
    name = _name(operation, prop)
    if name.startswith("arn:aws:"):
        return name
    place = f"{REGION}:{own_account()}"
    return "arn:aws:" + template.format(
        here=place,
        account=own_account(),
        name=name.lower() if template.startswith("sagemaker") else name,
        id=operation.physical_id or UNKNOWN,
        path=text_member(operation.given, "Path", "/"),
        group=text_member(operation.given, "GroupName", "default"),
        slash="" if name.startswith("/") else "/",
    )


def _name(operation: ResourceOperation, prop: str) -> str:
    named = _texts(operation, prop) if prop else []
    if named:
        return named[0].removeprefix("https://")
    if operation.physical_id:
        return operation.physical_id.rpartition("/")[2]
    return physical_name(operation.stack, operation.logical_id, LONGEST_NAME)


def _texts(operation: ResourceOperation, path: str) -> list[str]:
    return [value for value in values_at(operation.given, path) if isinstance(value, str)]


def _roles(operation: ResourceOperation) -> list[str]:
    rows = PASSED_ROLES.having(operation.resource_type)
    return [*dict.fromkeys(role for row in rows for role in _texts(operation, row.path))]


def _role_itself(operation: ResourceOperation) -> list[str]:
    """Return the roles that an action looks up: the resource, or those that it names."""
    if operation.resource_type == "AWS::ServiceCatalog::PortfolioPrincipalAssociation":
        return _texts(operation, "PrincipalARN")
    return _roles(operation) or [_own_arn(operation)]


def _named_roles(operation: ResourceOperation) -> list[str]:
    """Return the roles that a policy is written into, or the role that has one."""
    roles = _texts(operation, "Roles.*")
    return [
        str((find_role(name) or {}).get("Arn") or f"arn:aws:iam::{own_account()}:role/{name}") for name in roles
    ] or [_own_arn(operation)]


def _objects(operation: ResourceOperation) -> list[str]:
    """Return the objects of S3 that a property names: code, a definition, a template."""
    places = (("Code.S3Bucket", "Code.S3Key"), ("DefinitionS3Location.Bucket", "DefinitionS3Location.Key"))
    objects = [
        f"arn:aws:s3:::{bucket}/{key}"
        for bucket_path, key_path in places
        for bucket, key in zip(_texts(operation, bucket_path), _texts(operation, key_path), strict=True)
    ]
    urls = _texts(operation, "ProvisioningArtifactParameters.*.Info.LoadTemplateFromURL")
    return [*objects, *(f"arn:aws:s3:::{_object_of_url(url)}" for url in urls)]


def _object_of_url(url: str) -> str:
    host, _, path = url.removeprefix("https://").partition("/")
    return path if host.startswith(("s3.", "s3-")) or ".s3" not in host else f"{host.partition('.s3')[0]}/{path}"


def _tracking_alarms(operation: ResourceOperation) -> list[str]:
    """Return the alarms that an action is on: the resource, or those that target tracking makes for a target."""
    if operation.resource_type.startswith("AWS::CloudWatch::"):
        return [_own_arn(operation)]
    tracked = text_member(operation.given, "ResourceId")
    return [f"arn:aws:cloudwatch:{REGION}:{own_account()}:alarm:TargetTracking-{tracked}-AlarmHigh-{UNKNOWN}"]


SPECIAL: Final[Mapping[str, Callable[[ResourceOperation], list[str]]]] = {
    "cloudwatch:DeleteAlarms": _tracking_alarms,
    "cloudwatch:DescribeAlarms": _tracking_alarms,
    "cloudwatch:PutMetricAlarm": _tracking_alarms,
    "iam:AttachRolePolicy": _named_roles,
    "iam:DeleteRolePolicy": _named_roles,
    "iam:DetachRolePolicy": _named_roles,
    "iam:GetRole": _role_itself,
    "iam:GetRolePolicy": _named_roles,
    "iam:PassRole": _roles,
    "iam:PutRolePolicy": _named_roles,
    "s3:GetObject": _objects,
    "s3:GetObjectVersion": _objects,
}
"""Where an action is not on the resource itself."""


WITH_ANOTHER: Final[Mapping[tuple[str, str], tuple[str, str]]] = {
    ("sagemaker:CreateEndpoint", "AWS::SageMaker::Endpoint"): ("endpoint-config", "EndpointConfigName"),
    ("sagemaker:UpdateEndpoint", "AWS::SageMaker::Endpoint"): ("endpoint-config", "EndpointConfigName"),
    ("sagemaker:CreateInferenceComponent", "AWS::SageMaker::InferenceComponent"): ("endpoint", "EndpointName"),
}
"""Where an action is on another resource too, its kind in ARNs and the property of its name (Service Authorization
Reference, SageMaker)."""


def _tag_context(operation: ResourceOperation, action: str, resource: str) -> dict[str, str | list[str]]:
    """Return the tags that a call writes or removes, and those that its resource has.

    Another resource counts as one without tags: it may be younger than its tags are visible.
    """
    context: dict[str, str | list[str]] = {}
    old, new = (_tags(operation.resource_type, each) for each in (operation.old, operation.new))
    is_reading = bool(READING.search(action))
    if UNTAGGING.search(action):
        context["aws:tagkeys"] = [key for key in old if key not in new]
    elif (operation.handler == "create" and not is_reading) or TAGGING.search(action):
        context |= {f"aws:requesttag/{key}".lower(): value for key, value in new.items()}
        context |= {"aws:tagkeys": [*new]} if new else {}
    if operation.sees_tags and resource == _own_arn(operation) and (operation.handler != "create" or is_reading):
        kept = old if operation.handler != "create" else new
        context |= {f"aws:resourcetag/{key}".lower(): value for key, value in kept.items()}
    return context


def _service_context(operation: ResourceOperation, action: str, resource: str) -> dict[str, str | list[str]]:
    """Return the condition keys of one service."""
    properties = operation.given
    if action == "iam:PassRole":
        rows = PASSED_ROLES.having(operation.resource_type)
        return {"iam:passedtoservice": next(row.service for row in rows if resource in _texts(operation, row.path))}
    if action == "iam:CreateServiceLinkedRole":
        return {"iam:awsservicename": SERVICE_ROLE}
    if action.startswith("iam:"):
        role = find_role(resource.rpartition("/")[2]) or {}
        boundary = text_member(properties, "PermissionsBoundary") or str(role.get("PermissionsBoundary") or "")
        return {"iam:permissionsboundary": boundary} if boundary else {}
    if action == "kms:CreateGrant":
        service = operation.resource_type.split("::")[1].lower()
        return {"kms:grantisforawsresource": "true", "kms:viaservice": f"{service}.{REGION}.amazonaws.com"}
    if action.startswith("application-autoscaling:"):
        _, dimension, namespace = [*text_member(properties, "ScalingTargetId").split("|"), "", ""][:3]
        return {
            "application-autoscaling:service-namespace": namespace or text_member(properties, "ServiceNamespace"),
            "application-autoscaling:scalable-dimension": dimension or text_member(properties, "ScalableDimension"),
        }
    return {}


def _tags(resource_type: str, properties: Document) -> dict[str, str]:
    """Return the tags of a resource, of a list of pairs or a mapping; those that CloudFormation adds are left out."""
    schema = find_resource_schema(resource_type)
    written = properties.get(schema.tag_property) if schema and schema.tag_property else None
    if isinstance(written, list):
        pairs = {text_member(tag, "Key"): text_member(tag, "Value") for tag in written}
    else:
        named = child(properties, schema.tag_property) if schema and written is not None else {}
        pairs = {name: f"{value}" for name, value in named.items()}
    return {key: value for key, value in pairs.items() if not key.startswith("aws:")}
