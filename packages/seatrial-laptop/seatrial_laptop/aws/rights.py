"""Rights of a principal: its policies and permissions boundary, evaluated by MiniStack with every condition.

One evaluation for everyone who acts with a role: functions and workflows that sign with its session, CloudFormation
that deploys with it, SageMaker that pulls, downloads, writes logs and reads alarms with it. A role that the embedded
IAM does not have is one of a real account: what it may do is not known, so SageMaker's use of it is not judged.

What a request needs (actions, ARNs, condition keys) is as the Service Authorization Reference lists it. The ARNs of
SageMaker's requests are those of the resources that a request names at its top level; a list names none. A resource
that does not exist has no tags, so a condition on `aws:ResourceTag` never holds for it.

MiniStack evaluates the policies of users and of roles' sessions (`AUTH=true`), the trust policies of roles, and the
policies of buckets, keys, functions and topics. Added here, through names that are not its interface
(`packages/seatrial-laptop/tests/laptop` holds the contract on them): condition keys and ARNs that it leaves out; and
that Step Functions, EventBridge and EventBridge Scheduler invoke a function only where their role, or the function's
policy, allows it.
"""

from __future__ import annotations

import contextvars
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from ministack.core import iam_evaluator
from ministack.services import eventbridge, lambda_svc, s3, stepfunctions

from seatrial_base.catalog.service_authorization import action_facts
from seatrial_laptop.aws.control_plane.records import Kind, arn_of, job_arn
from seatrial_laptop.aws.json_document import Document, child, children, text_member
from seatrial_laptop.aws.ministack import find_role, has_boundary, role_principal, wrapper
from seatrial_laptop.environment import own_account
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ministack.core.iam_evaluator import EvalContext, PrincipalInfo

DENY: Final = "Deny"
ALLOW: Final = "Allow"


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

SAGEMAKER: Final = "sagemaker.amazonaws.com"
PULLS: Final = ("ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer", "ecr:BatchGetImage")
LOGS: Final = ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents")
PRIVATE_IMAGE: Final = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/(?P<name>[^:@]+)"
)


@dataclass(frozen=True, slots=True)
class Right:
    """A right that a call needs.

    Attributes:
        action: The action, as `sagemaker:CreateEndpoint`.
        resource: The ARN, or `*` where the action has no resource level.
        context: Condition keys of the request in lower case, with their values; a key that is not there is absent.
    """

    action: str
    resource: str
    context: Mapping[str, str | list[str]] = field(default_factory=dict)


def role_allows(role_arn: str, right: Right) -> bool:
    """Tell whether the policies and the boundary of a role allow a right; a role that isn't there may nothing."""
    return role_denial(role_arn, right) is None


def role_denial(role_arn: str, right: Right, session_name: str = "SageMaker") -> str | None:
    """Return why a role may not do something, in IAM's words; `None` when it may."""
    return denial(role_principal(role_arn.rpartition("/")[2], session_name), right)


def denial(principal: PrincipalInfo, right: Right) -> str | None:
    """Return why a principal may not do something, in IAM's words; `None` when it may.

    The order is IAM's (user guide, "Policy evaluation logic"): an explicit deny anywhere, then the identity's own
    policies, then its permissions boundary and the policies of its session. Wording: IAM user guide, "Troubleshoot
    access denied error messages".

    Args:
        right: What the call needs.
    """
    if principal.policies is None:
        return None
    # A policy sees the condition keys that the action carries on this resource alone, as on AWS.
    facts = action_facts(right.action)
    carried = {key: of for key, of in right.context.items() if facts is None or facts.carries(key, right.resource)}
    context = iam_evaluator.EvalContext(
        principal_arn=principal.arn,
        principal_type=principal.type,
        principal_account=principal.account,
        action=right.action,
        resource_arn=right.resource,
        region=REGION,
        secure_transport=True,
        service_context={"aws:tagkeys": None, **carried},
        principal_keys=principal.keys,
    )
    result = iam_evaluator.evaluate(context, principal.policies, *principal.limits)
    service = right.action.partition(":")[0]
    if policy := iam_evaluator._resource_policy(service, right.resource):  # noqa: SLF001 (the contract)
        # A key's own policy must allow it too.
        key = service == "kms"
        result = iam_evaluator.combine_resource_policy(
            result, context, *policy, required=key, limits=tuple(principal.limits)
        )
    if result.decision == ALLOW:
        return None
    head = f"User: {principal.arn} is not authorized to perform: {right.action} on resource: {right.resource}"
    if result.resource_policy_arn:
        return f"{head} with an explicit deny in a resource-based policy"
    if result.decision == DENY:
        return f"{head} with an explicit deny in {_denying_policy(context, principal)}"
    return f"{head} because no {_silent_policy(context, principal)} allows the {right.action} action"


def _denying_policy(context: EvalContext, principal: PrincipalInfo) -> str:
    if iam_evaluator.evaluate(context, principal.policies or []).decision == DENY:
        return "an identity-based policy"
    return "a permissions boundary" if has_boundary(principal) else "a session policy"


def _silent_policy(context: EvalContext, principal: PrincipalInfo) -> str:
    if iam_evaluator.evaluate(context, principal.policies or []).decision != ALLOW:
        return "identity-based policy"
    first = iam_evaluator.evaluate(context, principal.limits[0]).decision
    return "permissions boundary" if first != ALLOW and has_boundary(principal) else "session policy"


def sagemaker_rights(operation: str, request: Document, tags_of: TagsOf) -> Iterator[Right]:
    """Return what a request to SageMaker's control plane needs."""
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
    """Return what an invocation of an endpoint needs: the right to it, and to the component that it names."""
    component = headers.get(COMPONENT_HEADER)
    named = [(Kind.ENDPOINT, endpoint), *([(Kind.INFERENCE_COMPONENT, component)] if component else [])]
    for kind, name in named:
        arn = arn_of(kind, name)
        yield Right(f"sagemaker:{operation}", arn, resource_tags(tags_of, arn))


def bearer_right() -> Right:
    """Return the right that every call with a bearer token needs in addition."""
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
    prefix, ids = f"arn:aws:catalog:{REGION}:{own_account()}", (("ProductId", "product"), ("PortfolioId", "portfolio"))
    named = [f"{prefix}:{kind}/{text_member(request, key)}" for key, kind in ids if request.get(key)]
    for arn in named or ["*"]:
        yield Right(f"servicecatalog:{operation}", arn, request_tags(request))


CONTROL_PLANES: Final[Mapping[str, Callable[[str, Document, TagsOf], Iterator[Right]]]] = {
    "sagemaker": sagemaker_rights,
    "application-autoscaling": autoscaling_rights,
    "servicecatalog": service_catalog_rights,
}


def passed_role(action: str, request: Document) -> Right | None:
    """Return the right to pass the role that a request names; `None` when it names none."""
    place = PASSED_ROLES.get(action)
    if place is None:
        return None
    parent, _, member = place[0].rpartition(".")
    role = text_member(child(request, parent) if parent else request, member)
    return Right("iam:PassRole", role, {"iam:passedtoservice": place[1]}) if role else None


ENCRYPTED: Final = {"s3:GetObject": "kms:Decrypt", "s3:PutObject": "kms:GenerateDataKey"}
"""What S3 does with the caller's rights to read or write an object under a key (S3 user guide, SSE-KMS permissions)."""


def encryption_right(action: str, resource: str) -> Right | None:
    """Return the right to the key that encrypts a bucket's objects; `None` for another action, or without a key."""
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
    role = find_role(arn.rpartition("/")[2])
    return str(role["Arn"]) if role else arn


def json_object(body: bytes) -> Document:
    """Return the JSON object that a body holds; none when it holds no such thing."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def role_exists(arn: str) -> bool:
    """Return whether a role is in the embedded IAM."""
    role = find_role(arn.rpartition("/")[2])
    return role is not None and role["Arn"] == arn


def assumption_denial(role_arn: str) -> str | None:
    """Return why SageMaker may not assume a role; `None` when it may."""
    role = find_role(role_arn.rpartition("/")[2]) or {}
    context = iam_evaluator.EvalContext(
        principal_arn=SAGEMAKER,
        principal_type="Service",
        principal_account=own_account(),
        action="sts:AssumeRole",
        resource_arn=role_arn,
        region=REGION,
        service_context={"aws:sourceaccount": own_account()},
    )
    policy = json_object(str(role.get("AssumeRolePolicyDocument") or "{}").encode())
    if iam_evaluator.evaluate_resource_policy({**policy}, context, SAGEMAKER).decision == ALLOW:
        return None
    return (
        f"Could not assume role {role_arn}. Please ensure that the role exists and allows principal '{SAGEMAKER}' to "
        "assume the role."
    )


def pull_denial(role_arn: str, image: str) -> str | None:
    """Return why SageMaker may not pull an image with a role; `None` when it may.

    Wording: https://github.com/aws/deep-learning-containers/issues/759.

    Args:
        image: URI of the image; one that is in no private repository needs no right.
    """
    match = PRIVATE_IMAGE.match(image)
    if match is None or not role_exists(role_arn):
        return None
    repository = f"arn:aws:ecr:{match['region']}:{match['account']}:repository/{match['name']}"
    rights = [Right("ecr:GetAuthorizationToken", "*"), *(Right(action, repository) for action in PULLS)]
    lacking = next((right for right in rights if role_denial(role_arn, right)), None)
    if lacking is None:
        return None
    return f"The role '{role_arn}' does not have {lacking.action[4:]} permission for the image: '{image}'."


def download_denial(role_arn: str, url: str) -> str | None:
    """Return why a role may not download an `s3://bucket/key` now; `None` when it may.

    Args:
        role_arn: The execution role; one that was deleted may nothing.
    """
    if not role_exists(role_arn):
        return f"AccessDenied: {role_arn} does not exist, so {url} can not be downloaded."
    return _denial(role_arn, "s3:GetObject", url)


def upload_denial(role_arn: str, url: str) -> str | None:
    """Return why a role may not write an `s3://bucket/key`; `None` when it may, or is not known."""
    return _denial(role_arn, "s3:PutObject", url) if role_exists(role_arn) else None


def publication_denial(role_arn: str, topic_arn: str) -> str | None:
    """Return why a role may not publish to a topic; `None` when it may, or is not known."""
    return role_denial(role_arn, Right("sns:Publish", topic_arn)) if role_exists(role_arn) else None


def may_log(role_arn: str, group: str, stream: str) -> bool:
    """Return whether a role may write the logs of a container; SageMaker drops the lines of one that may not.

    Args:
        role_arn: The execution role; one that is not known may.
    """
    arn = f"arn:aws:logs:{REGION}:{own_account()}:log-group:{group}"
    rights = [Right(action, f"{arn}:log-stream:{stream}" if "Group" not in action else arn) for action in LOGS]
    return not role_exists(role_arn) or all(role_denial(role_arn, right) is None for right in rights)


def _denial(role_arn: str, action: str, url: str) -> str | None:
    resource = f"arn:aws:s3:::{url.removeprefix('s3://')}"
    key = encryption_right(action, resource)
    refused = role_denial(role_arn, Right(action, resource)) or (role_denial(role_arn, key) if key else None)
    return f"AccessDenied: {refused}" if refused else None


def may_describe_alarm(role_arn: str, alarm: str) -> bool:
    """Return whether a role may describe an alarm of an automatic rollback; one that is not known may."""
    resource = f"arn:aws:cloudwatch:{REGION}:{own_account()}:alarm:{alarm}"
    return not role_exists(role_arn) or role_allows(role_arn, Right("cloudwatch:DescribeAlarms", resource))


INVOKE_FUNCTION: Final = "lambda:InvokeFunction"
ROLE_KEYS: Final = frozenset(
    f"iam:{name}"
    for name in (
        "AttachRolePolicy",
        "CreateRole",
        "DeleteRolePolicy",
        "DetachRolePolicy",
        "PutRolePermissionsBoundary",
        "PutRolePolicy",
    )
)
"""Actions that carry `iam:PermissionsBoundary` (Service Authorization Reference, IAM)."""
TARGET_ACTIONS: Final = {"lambda": INVOKE_FUNCTION, "states": "states:StartExecution", "sns": "sns:Publish"}

_ENTRY: Final = re.compile(r"(?P<name>[^.]+)\.member\.(?P<number>[0-9]{1,6})")
"""An entry of a list of texts in the query protocol."""

NOTHING: Final[Document] = MappingProxyType({})
_parameters: Final[contextvars.ContextVar[Document]] = contextvars.ContextVar("_parameters", default=NOTHING)
"""The parameters of the request that this task answers."""
_workflow_role: Final[contextvars.ContextVar[str]] = contextvars.ContextVar("_workflow_role", default="")
"""The role of the workflow whose task runs in this context."""


def request_parameters(query: Mapping[str, Sequence[str]], body: bytes, content_type: str) -> Document:
    """Return the parameters of a request: of a JSON body, or of a query and a form.

    There each name has its first value, and a list one value for each `NAME.member.1` and so on, as clients wrote those
    of CloudWatch before it took JSON (botocore 1.34).
    """
    if body[:1] == b"{":
        return json_object(body)
    form = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True) if "form" in content_type else {}
    given = {name: values[0] for name, values in {**query, **form}.items() if values}
    entries: dict[str, dict[int, str]] = {}
    for name, value in given.items():
        if match := _ENTRY.fullmatch(name):
            entries.setdefault(match["name"], {})[int(match["number"])] = value
    return {**given, **{name: [of[number] for number in sorted(of)] for name, of in entries.items()}}


def pin_parameters(parameters: Document) -> None:
    """Remember the parameters of this task's request, until the next request."""
    _parameters.set(parameters)


def evaluate_sessions() -> None:
    """Let MiniStack evaluate what it leaves out."""

    @wrapper("enforce", iam_evaluator)
    def enforce(
        theirs: Callable[..., object],
        access_key_id: str,
        iam_action: str,
        # The service and the Region.
        *place: str,
        resource_arn: str = "*",
        service_context: Mapping[str, object] | None = None,
    ) -> object:
        parameters = _parameters.get()
        context = {**condition_keys(iam_action, parameters), **(service_context or {})}
        answers = (
            theirs(access_key_id, iam_action, *place, resource_arn=arn, service_context=context)
            for arn in resources_of(iam_action, resource_arn, parameters)
        )
        refused = next((answer for answer in answers if answer is not None), None)
        key = None if refused else encryption_right(iam_action, resource_arn)
        if key is None:
            return refused
        where = ("kms", place[-1])
        return theirs(access_key_id, key.action, *where, resource_arn=key.resource, service_context=dict(key.context))

    @wrapper("_execute_task", stepfunctions)
    def execute_task(
        theirs: Callable[..., object], state: object, raw_input: object, execution: Document, ctx: object
    ) -> object:
        machine = stepfunctions._state_machines.get(text_member(execution, "stateMachineArn")) or {}  # noqa: SLF001 (the contract)
        token = _workflow_role.set(str(machine.get("roleArn", "")))
        try:
            return theirs(state, raw_input, execution, ctx)
        finally:
            _workflow_role.reset(token)

    @wrapper("_call_lambda", stepfunctions)
    def call_lambda(theirs: Callable[..., object], function: str, event: object) -> object:
        is_arn = function.startswith("arn:")
        arn = function if is_arn else f"arn:aws:lambda:{REGION}:{own_account()}:function:{function}"
        if refused := role_denial(_workflow_role.get(), Right(INVOKE_FUNCTION, arn), "StepFunctions"):
            raise stepfunctions._ExecutionError("Lambda.AWSLambdaException", refused)  # noqa: SLF001 (the contract)
        return theirs(function, event)

    # As EventBridge does, an invocation that no policy allows is dropped: the log of this process alone has it.
    @wrapper("_invoke_target", eventbridge)
    def invoke_target(
        theirs: Callable[..., object], target: Document, event: Document, rule: Document, view: object = None
    ) -> object:
        if refused := target_denial(target, rule):
            sys.stderr.write(f"{_text(rule, 'Arn')}: the target was not invoked: {refused}\n")
            return None
        return theirs(target, event, rule, view)


def condition_keys(action: str, parameters: Document) -> dict[str, str | list[str]]:
    """Return the condition keys of an action that its service reads from the request.

    Source: Service Authorization Reference, the tables of condition keys of each service.
    """
    keys: dict[str, str | list[str]] = {}
    if action == "cloudwatch:PutMetricData":
        keys["cloudwatch:namespace"] = _text(parameters, "Namespace")
    if action == "events:PutEvents":
        entries = children(parameters, "Entries")
        keys["events:source"] = [_text(entry, "Source") for entry in entries]
        keys["events:detail-type"] = [_text(entry, "DetailType") for entry in entries]
    if action in ROLE_KEYS:
        role = find_role(_text(parameters, "RoleName")) or {}
        keys["iam:permissionsboundary"] = _text(parameters, "PermissionsBoundary") or str(
            role.get("PermissionsBoundary") or ""
        )
    if action == "iam:AttachRolePolicy":
        keys["iam:policyarn"] = _text(parameters, "PolicyArn")
    # A key of several values needs a set operator, so one with a single value is that value.
    plain = {key: value[0] if isinstance(value, list) and len(value) == 1 else value for key, value in keys.items()}
    return {key: value for key, value in plain.items() if value}


def resources_of(action: str, arn: str, parameters: Document) -> Iterator[str]:
    """Return the ARNs that an action is authorized on, where MiniStack knows one of several, or none."""
    prefix = f"{REGION}:{own_account()}"
    listed = {key: value for key, value in parameters.items() if isinstance(value, list)}
    if action == "cloudwatch:DescribeAlarms":
        # Composite alarms are described with the scope * alone (CloudWatch user guide, permissions reference).
        alarms = () if "CompositeAlarm" in listed.get("AlarmTypes", ()) else listed.get("AlarmNames", ())
        yield from (f"arn:aws:cloudwatch:{prefix}:alarm:{name}" for name in alarms or ["*"])
    elif action == "ssm:GetParameters" and "Names" in listed:
        yield from (f"arn:aws:ssm:{prefix}:parameter/{f'{name}'.lstrip('/')}" for name in listed["Names"])
    elif action == "ssm:GetParametersByPath":
        yield f"arn:aws:ssm:{prefix}:parameter/{_text(parameters, 'Path').strip('/')}"
    elif action == "iam:CreateRole":
        yield f"arn:aws:iam::{own_account()}:role{_text(parameters, 'Path') or '/'}{_text(parameters, 'RoleName')}"
    elif ":role/" in arn and action.startswith("iam:"):
        yield role_arn_with_path(arn)
    else:
        yield arn


def _text(parameters: Document, key: str) -> str:
    value = parameters.get(key)
    return value if isinstance(value, str) else ""


def target_denial(target: Document, rule: Document) -> str | None:
    """Return why a rule or a schedule may not invoke its target; `None` when it may.

    A target with a role is invoked with it; a rule without one needs a statement of the function's own policy for
    `events.amazonaws.com` (EventBridge user guide, "Using resource-based policies").
    """
    arn = _text(target, "Arn")
    service = arn.split(":")[2] if arn.count(":") > 2 else ""  # noqa: PLR2004 (an ARN's third part)
    action = TARGET_ACTIONS.get(service)
    if role := _text(target, "RoleArn"):
        return role_denial(role, Right(action, arn), "EventBridge") if action else None
    if service != "lambda":
        return None
    policy, account = lambda_svc.function_policy_for_arn(arn) or ({}, own_account())
    context = iam_evaluator.EvalContext(
        principal_arn="events.amazonaws.com",
        principal_type="Service",
        principal_account=account,
        action=INVOKE_FUNCTION,
        resource_arn=arn,
        region=REGION,
        service_context={"aws:sourcearn": _text(rule, "Arn"), "aws:sourceaccount": account},
    )
    decision = iam_evaluator.evaluate_resource_policy(policy, context, "events.amazonaws.com").decision
    if decision == ALLOW:
        return None
    return f"no resource-based policy of {arn} allows {INVOKE_FUNCTION} to events.amazonaws.com"
