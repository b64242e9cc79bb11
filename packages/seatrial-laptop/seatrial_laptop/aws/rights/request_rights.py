"""What a request needs: actions, ARNs and condition keys, as the Service Authorization Reference lists them.

The ARNs of SageMaker's requests are those of the resources that a request names at its top level; a list names none. A
resource that does not exist has no tags, so a condition on `aws:ResourceTag` never holds for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ministack.services import iam, s3

from seatrial_laptop.aws.control_plane.records import Kind, arn_of, job_arn
from seatrial_laptop.aws.json_document import Document, child, children, text_member
from seatrial_laptop.aws.rights.role_rights import Right
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


TagsOf = Callable[[str], "list[Document]"]
"""Returns the tags of a resource of SageMaker by its ARN, as far as others see them; none where it is absent."""
COMPONENT_HEADER: Final = "x-amzn-sagemaker-inference-component"
"""The header of an invocation that names the component; it is authorized too (developer guide, InvokeEndpoint)."""
PASSED_ROLES: Final[Mapping[str, tuple[str, str]]] = {
    "sagemaker:CreateModel": ("ExecutionRoleArn", "sagemaker.amazonaws.com"),
    "sagemaker:CreateEndpointConfig": ("ExecutionRoleArn", "sagemaker.amazonaws.com"),
    "sagemaker:CreateOptimizationJob": ("RoleArn", "sagemaker.amazonaws.com"),
    "lambda:CreateFunction": ("Role", "lambda.amazonaws.com"),
    "lambda:UpdateFunctionConfiguration": ("Role", "lambda.amazonaws.com"),
    "states:CreateStateMachine": ("roleArn", "states.amazonaws.com"),
    "states:UpdateStateMachine": ("roleArn", "states.amazonaws.com"),
    "events:PutRule": ("RoleArn", "events.amazonaws.com"),
    "scheduler:CreateSchedule": ("Target.RoleArn", "scheduler.amazonaws.com"),
    "scheduler:UpdateSchedule": ("Target.RoleArn", "scheduler.amazonaws.com"),
    "cloudformation:CreateStack": ("RoleARN", "cloudformation.amazonaws.com"),
    "cloudformation:UpdateStack": ("RoleARN", "cloudformation.amazonaws.com"),
    "cloudformation:DeleteStack": ("RoleARN", "cloudformation.amazonaws.com"),
    "cloudformation:CreateChangeSet": ("RoleARN", "cloudformation.amazonaws.com"),
}
"""Where a request names a role that a service will assume, and the service: the caller must be allowed to pass it."""


def sagemaker_rights(operation: str, request: Document, tags_of: TagsOf) -> Iterator[Right]:
    """Return what a request to SageMaker's control plane needs.

    Args:
        operation: As `CreateEndpoint`.
        request: Its body.
        tags_of: Returns the tags of an ARN.
    """
    action = f"sagemaker:{operation}"
    given = request_tags(request)
    arns = [*_sagemaker_arns(request)] or ["*"]
    for arn in arns:
        yield Right(action, arn, {**given, **resource_tags(tags_of, arn)})
    if operation.startswith("Create") and given:
        for arn in arns[:1] if operation != "CreateInferenceComponent" else arns[-1:]:
            yield Right("sagemaker:AddTags", arn, {**given, "sagemaker:taggingaction": operation})


def _sagemaker_arns(request: Document) -> Iterator[str]:
    """Return the ARNs that a request names: a created resource first, but a component behind its endpoint."""
    for kind in (Kind.ENDPOINT, Kind.ENDPOINT_CONFIG, Kind.INFERENCE_COMPONENT, Kind.MODEL):
        if name := text_member(request, f"{kind}Name"):
            yield arn_of(kind, name)
    if name := text_member(request, "OptimizationJobName"):
        yield job_arn(name)
    if arn := text_member(request, "ResourceArn"):
        yield arn


def invocation_rights(operation: str, endpoint: str, headers: Mapping[str, str], tags_of: TagsOf) -> Iterator[Right]:
    """Return what an invocation of an endpoint needs: the right to it, and to the component that it names.

    Args:
        operation: As `InvokeEndpoint`.
        endpoint: The endpoint's name.
        headers: Of the request, in lower case.
        tags_of: Returns the tags of an ARN.
    """
    component = headers.get(COMPONENT_HEADER)
    named = [(Kind.ENDPOINT, endpoint), *([(Kind.INFERENCE_COMPONENT, component)] if component else [])]
    for kind, name in named:
        arn = arn_of(kind, name)
        yield Right(f"sagemaker:{operation}", arn, resource_tags(tags_of, arn))


def bearer_right() -> Right:
    """Return what every call with a bearer token needs, beside the right to what it calls."""
    return Right("sagemaker:CallWithBearerToken", "*")


def query_rights() -> Iterator[Right]:
    """Return what a query of PromQL needs (CloudWatch user guide, QueryMetrics)."""
    yield Right("cloudwatch:GetMetricData", "*")
    yield Right("cloudwatch:ListMetrics", "*")


def autoscaling_rights(operation: str, request: Document, tags_of: TagsOf) -> Iterator[Right]:
    """Return what a request to Application Auto Scaling needs.

    Registering a target of SageMaker asks for the right to scale by hand too (Application Auto Scaling user guide,
    identity-based policy examples).
    """
    action = f"application-autoscaling:{operation}"
    if operation.startswith("Describe"):
        yield Right(action, "*")
        return
    named = {
        "application-autoscaling:service-namespace": text_member(request, "ServiceNamespace"),
        "application-autoscaling:scalable-dimension": text_member(request, "ScalableDimension"),
    }
    target = text_member(request, "ResourceARN") or (
        f"arn:aws:application-autoscaling:{REGION}:{own_account()}:scalable-target/unknown"
    )
    yield Right(action, target, {**{key: value for key, value in named.items() if value}, **request_tags(request)})
    kind, _, name = text_member(request, "ResourceId").partition("/")
    if operation == "RegisterScalableTarget" and kind == "inference-component":
        arn = arn_of(Kind.INFERENCE_COMPONENT, name)
        yield Right("sagemaker:UpdateInferenceComponentRuntimeConfig", arn, resource_tags(tags_of, arn))


def service_catalog_rights(operation: str, request: Document, _tags_of: TagsOf) -> Iterator[Right]:
    """Return what a request to Service Catalog needs: the right to the product or portfolio that it names."""
    account = own_account()
    ids = (("ProductId", "product"), ("PortfolioId", "portfolio"))
    named = [
        f"arn:aws:catalog:{REGION}:{account}:{kind}/{text_member(request, key)}"
        for key, kind in ids
        if request.get(key)
    ]
    for arn in named or ["*"]:
        yield Right(f"servicecatalog:{operation}", arn, request_tags(request))


CONTROL_PLANES: Final[Mapping[str, Callable[[str, Document, TagsOf], Iterator[Right]]]] = {
    "sagemaker": sagemaker_rights,
    "application-autoscaling": autoscaling_rights,
    "servicecatalog": service_catalog_rights,
}


def passed_role(action: str, request: Document) -> Right | None:
    """Return the right to pass the role that a request names; `None` when it names none.

    Args:
        action: As `lambda:CreateFunction`.
        request: Its parameters.
    """
    place = PASSED_ROLES.get(action)
    if place is None:
        return None
    parent, _, member = place[0].rpartition(".")
    role = text_member(child(request, parent) if parent else request, member)
    return Right("iam:PassRole", role, {"iam:passedtoservice": place[1]}) if role else None


ENCRYPTED: Final = {"s3:GetObject": "kms:Decrypt", "s3:PutObject": "kms:GenerateDataKey"}
"""What S3 does with the caller's rights to read or write an object under a key (S3 user guide, SSE-KMS permissions)."""


def encryption_right(action: str, resource: str) -> Right | None:
    """Return the right to the key that encrypts the objects of a bucket; `None` for another action, or without a key.

    Args:
        action: As `s3:GetObject`.
        resource: ARN of the object.
    """
    if action not in ENCRYPTED:
        return None
    bucket = resource.removeprefix("arn:aws:s3:::").partition("/")[0]
    key = s3._bucket_default_sse_headers(bucket).get("x-amz-server-side-encryption-aws-kms-key-id", "")  # noqa: SLF001 (the contract)
    if not key or key.endswith("alias/aws/s3"):
        return None
    arn = key if key.startswith("arn:") else f"arn:aws:kms:{REGION}:{own_account()}:key/{key}"
    return Right(ENCRYPTED[action], arn, {"kms:viaservice": f"s3.{REGION}.amazonaws.com"})


def request_tags(request: Document) -> dict[str, str | list[str]]:
    """Return the condition keys of the tags that a request gives, or whose keys it removes."""
    given = request.get("Tags")
    tags = (
        [(text_member(tag, "Key"), text_member(tag, "Value")) for tag in children(request, "Tags")]
        if isinstance(given, list)
        else [(f"{key}", f"{value}") for key, value in child(request, "Tags").items()]
    )
    removed = request.get("TagKeys")
    keys = [key for key, _ in tags] + ([f"{key}" for key in removed] if isinstance(removed, list) else [])
    named: dict[str, str | list[str]] = {f"aws:requesttag/{key}".lower(): value for key, value in tags}
    return {**named, "aws:tagkeys": keys} if keys else named


def resource_tags(tags_of: TagsOf, arn: str) -> dict[str, str]:
    """Return the condition keys of the tags that a resource of SageMaker has."""
    return {f"aws:resourcetag/{text_member(tag, 'Key')}".lower(): text_member(tag, "Value") for tag in tags_of(arn)}


def role_arn_with_path(arn: str) -> str:
    """Return the ARN of an existing role with its path; requests to IAM name a role without it."""
    role = iam._roles.get_scoped(own_account(), None, arn.rpartition("/")[2])  # noqa: SLF001 (the contract)
    return str(role["Arn"]) if role else arn


def json_object(body: bytes) -> Document:
    """Return the JSON object that a body holds; none when it holds no such thing."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
