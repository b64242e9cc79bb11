"""The role that makes a product's resources for Service Catalog or a SageMaker Project, and the bound of their roles.

The launch role can do with the resource types of a product's template what CloudFormation's resource handlers do
(`catalog/data/resource_schemas.json`), in one environment: by the names of that environment, and by its tag where
CloudFormation chooses the name. The roles that it creates have a permissions boundary, so that none can do more than
serve models. What a handler lists and no product needs is left out, each with its reason.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING

from aws_cdk import Annotations, ArnFormat, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from seatrial_base.autoscaling import COPIES, INSTANCES
from seatrial_base.catalog.resource_types import HANDLERS, handler_actions
from seatrial_base.tags import ENVIRONMENT_TAG
from seatrial_cdk.endpoint.container_network import ContainerNetwork
from seatrial_cdk.endpoint.execution_role import METRIC_NAMESPACES, NO_OPTIONS, join_network
from seatrial_cdk.endpoint.variant_instances import SHELL_ACTIONS
from seatrial_cdk.observability.endpoint_alarms import alarm_prefix
from seatrial_cdk.place import StackPlace
from seatrial_cdk.policy import acknowledge_wildcards, allow_unnamed
from seatrial_cdk.trials.trial_service import function_arn, service_name
from seatrial_cdk.trials.trials_stack import schedule_name, schedule_role_arn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial.specs.environment import Network
    from seatrial_cdk.endpoint.execution_role import RoleOptions


SERVICE_CATALOG, CLOUDFORMATION = "servicecatalog.amazonaws.com", "cloudformation.amazonaws.com"
PROVISIONED_STACKS = "SC-*"
"""The names of the stacks that Service Catalog makes."""
WILDCARDS = (
    "Actions on * have no resource level (seatrial_cdk.policy); the other wildcards end names that teams or "
    "AWS choose after the environment's, and the permissions boundary bounds every role that is made."
)
WEIGHTS_CHARACTERS = 3_400
"""Of 6,144 characters of the boundary; a role of a model names its own weights whatever the boundary says."""
_SCALING = "sagemaker.application-autoscaling.amazonaws.com"
_SAGEMAKER = "AWS::SageMaker::"
_NAMED = (f"{_SAGEMAKER}Endpoint", f"{_SAGEMAKER}InferenceComponent")
_UNNAMED = (f"{_SAGEMAKER}EndpointConfig", f"{_SAGEMAKER}Model")
_TARGET, _POLICY = "AWS::ApplicationAutoScaling::ScalableTarget", "AWS::ApplicationAutoScaling::ScalingPolicy"
_ROLE, _ROLE_POLICY = "AWS::IAM::Role", "AWS::IAM::Policy"
_ALARM, _TOPIC = "AWS::CloudWatch::Alarm", "AWS::SNS::Topic"
_PARAMETER = "AWS::SSM::Parameter"
_DASHBOARD, _SCHEDULE = "AWS::CloudWatch::Dashboard", "AWS::Scheduler::Schedule"
PRODUCT_TYPES = (
    *_NAMED, *_UNNAMED, _TARGET, _POLICY, _ROLE, _ROLE_POLICY, _ALARM, _TOPIC, _PARAMETER, _DASHBOARD, _SCHEDULE
)  # fmt: skip
"""The resource types of a product's template, beside custom resources."""
NOT_ALLOWED: Mapping[str, str] = MappingProxyType(
    {
        "iam:*GroupPolicy": "policies of products are of roles",
        "iam:*UserPolicy": "policies of products are of roles",
        "iam:AttachRolePolicy": "roles of products have inline policies alone",
        "iam:DeleteRolePermissionsBoundary": "a role without its boundary could do more than serve models",
        "iam:DetachRolePolicy": "roles of products have inline policies alone",
        "lambda:*ProvisionedConcurrencyConfig": "targets of products scale copies, not functions",
    }
)
"""Patterns of what a handler of these types may call and no product needs, with the reason."""
_QUOTES_AND_COMMA = 3


def role_path(environment: str, path: str | None) -> str:
    """Return the path of the roles that the products of an environment create, below the path of all its roles."""
    return f"{path or '/'}seatrial/{environment}/"


def boundary_arn(environment: str, boundary: str | None) -> str:
    """Return the managed policy that bounds those roles, for `Fn::Sub`.

    A role has one boundary: where the account asks for one on every role, it is that, in place of the products' own.
    """
    own = f"arn:${{AWS::Partition}}:iam::${{AWS::AccountId}}:policy/{boundary_name(environment)}"
    return boundary or own


def boundary_name(environment: str) -> str:
    """Return the name of the products' own boundary."""
    return f"seatrial-{environment}-products-boundary"


def launch_role_name(environment: str) -> str:
    """Return the name of the launch role."""
    return f"seatrial-{environment}-products-launch"


class LaunchRole(Construct):
    """The launch role of an environment's products, and the permissions boundary of the roles that it creates.

    Service Catalog and CloudFormation assume it. Its trust has no condition: the documented trust of a launch role has
    none (Service Catalog administrator guide, launch constraints), and neither service is documented to send
    `aws:SourceAccount` when it assumes a role; with such a condition, no product might launch. A role of another
    account can't be set as a launch role without the right to pass it.

    It can't read weights or results, nor change the trial service: it may only call its function.

    Args:
        network: The VPC of the containers, which the boundary allows joining.
        role_options: Path and boundary of every role of the account. The launch role has them, and so have the roles
            that it creates: then the products' own boundary is not made.
        weights: S3 ARNs of the objects that products' models may read.
        kms_key_arns: Keys of weights, of the disks of instances and of secrets.
        secrets: Names or ARNs of the secrets that products' templates read.
        outputs: What models' roles write to (`seatrial.deployment.published.outputs_of`).
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        network: Network,
        role_options: RoleOptions = NO_OPTIONS,
        weights: tuple[str, ...] = (),
        kms_key_arns: tuple[str, ...] = (),
        secrets: tuple[str, ...] = (),
        outputs: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        stack, given = Stack.of(self), role_options.permissions_boundary
        serving: list[iam.PolicyStatement] = []
        if given is None:
            prefixes = fitting_prefixes(weights, WEIGHTS_CHARACTERS)
            if not set(prefixes) <= set(weights):
                message = (
                    f"SEA784: the boundary of product roles can't name {len(weights)} prefixes of weights in "
                    f"{WEIGHTS_CHARACTERS:,} characters; it names {', '.join(prefixes)}"
                )
                Annotations.of(self).add_warning_v2("seatrial:SEA784", message)
            serving = [
                *_serving(stack, environment, network, weights, kms_key_arns),
                *_outputs(stack, outputs, kms_key_arns),
            ]
            boundary = iam.CfnManagedPolicy(
                self,
                "Boundary",
                managed_policy_name=boundary_name(environment),
                description=f"The most that a role of a product in {environment} may do",
                policy_document=iam.PolicyDocument(statements=serving),
            ).ref
        else:
            boundary = given.managed_policy_arn
        launching = [
            *_launching(stack, environment, boundary, role_options.path),
            *_keys(stack, kms_key_arns),
            *_secrets(stack, secrets, kms_key_arns),
        ]
        self.role = iam.Role(
            self,
            "Resource",
            role_name=launch_role_name(environment),
            path=role_options.path,
            permissions_boundary=given,
            description=f"Makes the resources of products in {environment}",
            assumed_by=iam.CompositePrincipal(
                iam.ServicePrincipal(SERVICE_CATALOG),
                iam.ServicePrincipal(CLOUDFORMATION),
            ),
            inline_policies={"Launch": iam.PolicyDocument(statements=launching)},
        )
        acknowledge_wildcards(self, [one for each in (*serving, *launching) for one in each.resources], WILDCARDS)


def _serving(
    stack: Stack, environment: str, network: Network, weights: tuple[str, ...], kms_key_arns: tuple[str, ...]
) -> Iterator[iam.PolicyStatement]:
    """Return what the role of a model or of instances may do at most."""
    prefix = f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:/aws/sagemaker"
    yield allow_unnamed("ecr:GetAuthorizationToken")
    yield _allow(
        ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
        [f"arn:{stack.partition}:ecr:{stack.region}:*:repository/*"],
    )
    yield _allow(
        ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
        [f"{prefix}/{kind}/{environment}-*" for kind in ("Endpoints", "InferenceComponents")],
    )
    yield allow_unnamed(
        "cloudwatch:PutMetricData",
        conditions={"StringEquals": {"cloudwatch:namespace": list(METRIC_NAMESPACES)}},
    )
    yield _allow(["cloudwatch:DescribeAlarms"], [_alarm_arn(stack, f"{alarm_prefix(environment)}*")])
    if weights:
        yield _allow(["s3:GetObject"], list(fitting_prefixes(weights, WEIGHTS_CHARACTERS)))
        buckets = sorted({arn.partition("/")[0] for arn in weights})
        yield _allow(["s3:ListBucket"], buckets)
    if kms_key_arns:
        yield _allow(["kms:Decrypt"], list(kms_key_arns))
    if network.subnet_ids:
        for statement in join_network(StackPlace.of(stack), ContainerNetwork.of(network)):
            yield iam.PolicyStatement.from_json(statement)


def _outputs(
    stack: Stack, outputs: tuple[tuple[str, str], ...], kms_key_arns: tuple[str, ...]
) -> Iterator[iam.PolicyStatement]:
    """Return what the role of a model writes at most: answers, captures, core dumps, notices; and shells."""
    by_kind = {kind: [value for each, value in outputs if each == kind] for kind, _ in outputs}
    if prefixes := [uri.removeprefix("s3://") for uri in by_kind.get("prefix", ())]:
        begin = f"arn:{stack.partition}:s3:::"
        objects = [f"{begin}{prefix}*" for prefix in prefixes]
        yield _allow(["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"], objects)
        yield _allow(["s3:ListBucket"], sorted({f"{begin}{prefix.partition('/')[0]}" for prefix in prefixes}))
        if kms_key_arns:
            yield _allow(["kms:GenerateDataKey"], list(kms_key_arns))
    if "topic" in by_kind:
        yield _allow(["sns:Publish"], by_kind["topic"])
    if "shell" in by_kind:
        yield allow_unnamed(*SHELL_ACTIONS)


def _launching(stack: Stack, environment: str, boundary: str, path: str | None) -> Iterator[iam.PolicyStatement]:
    yield from _stacks(stack)
    yield from _roles(stack, environment, boundary, path)
    yield from _sagemaker(stack, environment)
    yield from _scaling(stack, environment)
    yield from _alarms(stack, environment)
    # The topic of a product's alarms, and the subscription of the team's address.
    topics = f"arn:{stack.partition}:sns:{stack.region}:{stack.account}:seatrial-{environment}-*-alarms"
    yield _allow(_actions("sns", _TOPIC, without={"sns:Unsubscribe"}), [topics])
    yield allow_unnamed("sns:Unsubscribe")
    yield from _dashboards_and_schedules(stack, environment, path)
    # The alias, and a call of the trial service.
    alias = stack.format_arn(service="ssm", resource="parameter", resource_name=f"seatrial/{environment}/*")
    yield _allow(_actions("ssm", _PARAMETER), [alias])
    yield allow_unnamed("ssm:DescribeParameters")
    yield _allow(["lambda:InvokeFunction"], [function_arn(stack, environment)])


def _stacks(stack: Stack) -> Iterator[iam.PolicyStatement]:
    """Allow Service Catalog its own stacks, and its copy of the template, whose bucket's name is not known."""
    yield _allow(
        [
            "cloudformation:CreateStack",
            "cloudformation:DeleteStack",
            "cloudformation:DescribeStackEvents",
            "cloudformation:DescribeStacks",
            "cloudformation:SetStackPolicy",
            "cloudformation:TagResource",
            "cloudformation:UpdateStack",
        ],
        [stack.format_arn(service="cloudformation", resource="stack", resource_name=f"{PROVISIONED_STACKS}/*")],
    )
    yield allow_unnamed("cloudformation:GetTemplateSummary", "cloudformation:ValidateTemplate")
    provisioning = {"StringEquals": {"s3:ExistingObjectTag/servicecatalog:provisioning": "true"}}
    # Service Catalog keeps its copy of a template in a bucket of its own, whose name is not documented.
    yield _allow(["s3:GetObject"], [f"arn:{stack.partition}:s3:::*"], provisioning)


def _roles(stack: Stack, environment: str, boundary: str, path: str | None) -> Iterator[iam.PolicyStatement]:
    """Allow roles below the environment's path, bounded, and passing them to SageMaker alone."""
    roles = [f"arn:{stack.partition}:iam::{stack.account}:role{role_path(environment, path)}*"]
    bounded = {"iam:CreateRole", "iam:DeleteRolePolicy", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy"}
    yield _allow(sorted(bounded), roles, {"StringEquals": {"iam:PermissionsBoundary": boundary}})
    yield _allow(_actions("iam", _ROLE, _ROLE_POLICY, without=bounded), roles)
    yield _allow(["iam:PassRole"], roles, {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}})
    linked = f"arn:{stack.partition}:iam::{stack.account}:role/aws-service-role/{_SCALING}/*"
    yield _allow(["iam:CreateServiceLinkedRole"], [linked], {"StringEquals": {"iam:AWSServiceName": _SCALING}})


def _sagemaker(stack: Stack, environment: str) -> Iterator[iam.PolicyStatement]:
    """Allow endpoints and components by name; models and configurations, which CloudFormation names, by tag.

    An update of an endpoint is on its configuration too, which is so young that its tags may not be visible yet: the
    endpoint's name bounds it. The handlers that create a model or a configuration read nothing, so that a launch needs
    no visible tag. A rollback within the seconds in which the tags are late leaves both behind (`ROLLBACK_FAILED`), and
    the next termination removes them. A pattern of the generated name can't take the tag's place: the name begins with
    the logical ID, which tells no environment (go-to-k/cdk-real-drift issue 1527, aws/aws-cli issue 4021), and without
    a tag the role could delete everybody's models.
    """
    named = [_sagemaker_arn(stack, kind, f"{environment}-*") for kind in ("endpoint", "inference-component")]
    unnamed = [_sagemaker_arn(stack, kind, "*") for kind in ("model", "endpoint-config")]
    on_request = {"StringEquals": {f"aws:RequestTag/{ENVIRONMENT_TAG}": environment}}
    tagged = {"StringEquals": {f"aws:ResourceTag/{ENVIRONMENT_TAG}": environment}}
    created = {"sagemaker:CreateInferenceComponent", "sagemaker:CreateEndpoint"}
    yield _allow(["sagemaker:CreateInferenceComponent"], named, on_request)
    yield _allow(["sagemaker:CreateEndpoint"], [named[0], unnamed[1]], on_request)
    yield _allow(_actions("sagemaker", *_NAMED, without=created), named)
    made = {"sagemaker:CreateEndpointConfig", "sagemaker:CreateModel"}
    yield _allow(sorted({*made, "sagemaker:AddTags"}), unnamed, on_request)
    yield _allow(["sagemaker:UpdateEndpoint"], unnamed[1:])
    yield _allow(_actions("sagemaker", *_UNNAMED, without=made), unnamed, tagged)


def _scaling(stack: Stack, environment: str) -> Iterator[iam.PolicyStatement]:
    """Allow the scaling of copies: a target's ARN ends with an ID that is not known beforehand."""
    targets = f"arn:{stack.partition}:application-autoscaling:{stack.region}:{stack.account}:scalable-target/*"
    copies: Mapping[str, Mapping[str, str | list[str]]] = {
        "StringEquals": {
            "application-autoscaling:service-namespace": "sagemaker",
            "application-autoscaling:scalable-dimension": [COPIES, INSTANCES],
        }
    }
    described = {each for each in _actions("application-autoscaling", _TARGET, _POLICY) if ":Describe" in each}
    tagging = ["application-autoscaling:TagResource", "application-autoscaling:UntagResource"]
    read = "application-autoscaling:ListTagsForResource"
    yield _allow(
        _actions("application-autoscaling", _TARGET, _POLICY, without={*described, *tagging, read}), [targets], copies
    )
    # What reads and writes tags carries neither of the two condition keys.
    yield _allow([read], [targets])
    yield _allow(tagging[:1], [targets], {"StringEquals": {f"aws:RequestTag/{ENVIRONMENT_TAG}": environment}})
    yield _allow(tagging, [targets], {"StringEquals": {f"aws:ResourceTag/{ENVIRONMENT_TAG}": environment}})
    yield allow_unnamed(*sorted(described), *_actions("cloudwatch", _POLICY))


def _alarms(stack: Stack, environment: str) -> Iterator[iam.PolicyStatement]:
    """Allow the environment's alarms, and those that Application Auto Scaling makes of a policy."""
    alarms = [
        _alarm_arn(stack, name)
        for name in (
            f"{alarm_prefix(environment)}*",
            "TargetTracking-endpoint/*",
            "TargetTracking-inference-component/*",
        )
    ]
    yield _allow(_actions("cloudwatch", _ALARM, _TARGET), alarms)


def _dashboards_and_schedules(stack: Stack, environment: str, path: str | None) -> Iterator[iam.PolicyStatement]:
    """Allow an endpoint's dashboard and the schedule of its trials, which runs with the environment's own role."""
    dashboards = f"arn:{stack.partition}:cloudwatch::{stack.account}:dashboard/seatrial-{environment}-*"
    tag, untag = "cloudwatch:TagResource", "cloudwatch:UntagResource"
    listed = "cloudwatch:ListTagsForResource"
    yield _allow(_actions("cloudwatch", _DASHBOARD, without={tag, untag, listed}), [dashboards])
    # The Service Authorization Reference has no dashboard among the resources of these three.
    ours = {"StringEquals": {f"aws:RequestTag/{ENVIRONMENT_TAG}": environment}}
    yield allow_unnamed(tag, conditions=ours)
    kept = {"ForAllValues:StringNotLike": {"aws:TagKeys": "seatrial:*"}}
    yield allow_unnamed(untag, conditions=kept)
    yield allow_unnamed(listed)
    schedules = stack.format_arn(
        service="scheduler",
        resource="schedule",
        resource_name=f"{service_name(environment)}/{schedule_name(environment)}-*",
    )
    yield _allow(_actions("scheduler", _SCHEDULE), [schedules])
    passed = {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}}
    yield _allow(["iam:PassRole"], [schedule_role_arn(stack, environment, path)], passed)


def _keys(stack: Stack, kms_key_arns: tuple[str, ...]) -> Iterator[iam.PolicyStatement]:
    """Allow a configuration with a key: SageMaker makes a grant on the key for its instances, in the caller's name."""
    if kms_key_arns:
        yield _allow(["kms:DescribeKey"], list(kms_key_arns))
        through = {"kms:ViaService": f"sagemaker.{stack.region}.{stack.url_suffix}"}
        conditions = {"Bool": {"kms:GrantIsForAWSResource": "true"}, "StringEquals": through}
        yield _allow(["kms:CreateGrant"], list(kms_key_arns), conditions)


def _secrets(stack: Stack, secrets: tuple[str, ...], kms_key_arns: tuple[str, ...]) -> Iterator[iam.PolicyStatement]:
    """Allow the secrets that templates name: CloudFormation reads them with this role. Their ARNs end in six signs."""
    if not secrets:
        return
    place = f"arn:{stack.partition}:secretsmanager:{stack.region}:{stack.account}:secret"
    named = [each if each.startswith("arn:") else f"{place}:{each}-??????" for each in secrets]
    yield _allow(["secretsmanager:GetSecretValue"], named)
    if kms_key_arns:
        through = {"kms:ViaService": f"secretsmanager.{stack.region}.{stack.url_suffix}"}
        yield _allow(["kms:Decrypt"], list(kms_key_arns), {"StringEquals": through})


def _actions(service: str, *resource_types: str, without: Iterable[str] = ()) -> list[str]:
    """Return what the handlers of some types may call of one service, without what has a statement of its own."""
    actions = {action for each in resource_types for handler in HANDLERS for action in handler_actions(each, handler)}
    ours = {action for action in actions if action.startswith(f"{service}:") and action != "iam:PassRole"}
    return sorted(ours.difference(without) - {action for action in ours if is_left_out(action)})


def is_left_out(action: str) -> bool:
    """Tell whether the launch role may not do what a handler lists, for one of the reasons of `NOT_ALLOWED`."""
    return any(fnmatchcase(action, pattern) for pattern in NOT_ALLOWED)


def _alarm_arn(stack: Stack, name: str) -> str:
    return stack.format_arn(
        service="cloudwatch", resource="alarm", resource_name=name, arn_format=ArnFormat.COLON_RESOURCE_NAME
    )


def _sagemaker_arn(stack: Stack, kind: str, name: str) -> str:
    return stack.format_arn(service="sagemaker", resource=kind, resource_name=name)


def _allow(
    actions: list[str], resources: list[str], conditions: Mapping[str, Mapping[str, str | list[str]]] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=actions, resources=resources, conditions=conditions)


def fitting_prefixes(arns: Iterable[str], most_characters: int) -> tuple[str, ...]:
    """Return ARNs of objects, shortened to fewer folders until all of them fit; at last to their buckets.

    Args:
        arns: ARNs of objects, as `arn:aws:s3:::weights/llama/7b/*`.
        most_characters: Characters of the list in a policy.
    """
    given = sorted(set(arns))
    deepest = max((arn.count("/") for arn in given), default=1)
    for depth in range(deepest, 1, -1):
        prefixes = _shortened(given, depth)
        if sum(len(prefix) + _QUOTES_AND_COMMA for prefix in prefixes) <= most_characters:
            return prefixes
    return _shortened(given, 1)


def _shortened(arns: Iterable[str], depth: int) -> tuple[str, ...]:
    """Return ARNs with the bucket and at most some folders less one; what another of them covers is left out."""
    prefixes = {arn if arn.count("/") <= depth else f"{'/'.join(arn.split('/')[:depth])}/*" for arn in arns}
    wild = {prefix[:-1] for prefix in prefixes if prefix.endswith("/*")}
    return tuple(
        sorted(arn for arn in prefixes if not any(arn.startswith(folder) and arn != f"{folder}*" for folder in wild))
    )
