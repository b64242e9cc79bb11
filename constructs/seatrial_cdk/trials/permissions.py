"""Permissions of the function of an environment's trials: for the endpoints of this environment, and nothing else.

An endpoint and a component belong to an environment by the beginning of their names and by their tag
(`seatrial_base.tags`). That the actions below honour `aws:ResourceTag` is told by the Service Authorization
Reference, "Amazon SageMaker": the resource types endpoint and inference-component have that key.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from aws_cdk import ArnFormat
from aws_cdk import aws_iam as iam

from seatrial_base.tags import CANDIDATE, ENVIRONMENT_TAG, OWNER_TAG, TRIAL_SERVICE
from seatrial_cdk.endpoint.endpoint_interface import BEARER_ACTION
from seatrial_cdk.observability.endpoint_alarms import alarm_prefix
from seatrial_cdk.policy import allow_unnamed
from seatrial_cdk.trials.runtime.announcements import DETAIL_TYPE, SOURCE
from seatrial_cdk.trials.runtime.store import STATE_FOLDERS, TRIALS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aws_cdk import Stack
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_s3 as s3

    from seatrial_cdk.endpoint.container_network import ContainerNetwork

FOLDERS = (TRIALS, *STATE_FOLDERS)


def statements(
    stack: Stack,
    environment: str,
    bucket: s3.IBucket,
    key: kms.IKey,
    network: ContainerNetwork,
    *,
    state_machine_name: str,
    any_stack: bool = False,
) -> Iterator[iam.PolicyStatement]:
    """Return every right of the function but that to write its log.

    With `any_stack`, the state of every stack may be read: teams, Service Catalog and SageMaker Projects name theirs.
    """
    yield from _endpoints(stack, environment)
    yield from _candidates(stack, environment)
    yield from _scaling(stack)
    yield from _results(bucket, key)
    yield from _workflow(stack, state_machine_name)
    yield from _stacks_and_events(stack, "" if any_stack else f"seatrial-{environment}-")
    yield from _measurements(stack, environment)
    yield allow_unnamed(BEARER_ACTION)
    yield _allow(
        ["ssm:GetParameter"],
        [stack.format_arn(service="ssm", resource="parameter", resource_name=f"seatrial/{environment}/*")],
    )
    if network.subnet_ids:
        yield from _network(stack, network)


def _stacks_and_events(stack: Stack, named: str) -> Iterator[iam.PolicyStatement]:
    """Allow reading the state of the stacks whose names begin so, and announcing what a trial found."""
    yield _allow(
        ["cloudformation:DescribeStacks"],
        [stack.format_arn(service="cloudformation", resource="stack", resource_name=f"{named}*/*")],
    )
    yield _allow(
        ["events:PutEvents"],
        [stack.format_arn(service="events", resource="event-bus", resource_name="default")],
        {"StringEquals": {"events:source": SOURCE, "events:detail-type": DETAIL_TYPE}},
    )


def _measurements(stack: Stack, environment: str) -> Iterator[iam.PolicyStatement]:
    """Allow reading scaling, metrics and alarms, and ending the logs of containers."""
    yield allow_unnamed(
        "application-autoscaling:DescribeScalableTargets", "cloudwatch:GetMetricData", "cloudwatch:ListMetrics"
    )
    yield _allow(
        ["cloudwatch:DescribeAlarms"],
        [
            stack.format_arn(
                service="cloudwatch",
                resource="alarm",
                resource_name=f"{alarm_prefix(environment)}*",
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            )
        ],
    )
    yield _allow(
        ["logs:DeleteLogGroup", "logs:PutRetentionPolicy"],
        [
            f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:/aws/sagemaker/{kind}/{environment}-*"
            for kind in ("Endpoints", "InferenceComponents")
        ],
    )


def publishing(topic_arn: str | None) -> Iterator[iam.PolicyStatement]:
    """Return the right to tell people of what scheduled trials found; none without a topic.

    The key of the environment's own topic is that of the results, which the function may use anyway.
    """
    if topic_arn is not None:
        yield _allow(["sns:Publish"], [topic_arn])


def _endpoints(stack: Stack, environment: str) -> Iterator[iam.PolicyStatement]:
    """Allow loading the environment's endpoints, proving what is live there, and setting a component's copies.

    A model's environment may hold the token of a hub, so models are not described: their names prove them. What is
    described is named, without a condition on its tags: what is absent, or was just created, has none, and AWS would
    answer AccessDenied in place of what it is (hashicorp/terraform-provider-aws issues 6055 and 32966).
    """
    ours = {"StringEquals": {f"aws:ResourceTag/{ENVIRONMENT_TAG}": environment}}
    endpoints, components = (
        stack.format_arn(service="sagemaker", resource=kind, resource_name=f"{environment}-*")
        for kind in ("endpoint", "inference-component")
    )
    loading = ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"]
    yield _allow(["sagemaker:DescribeEndpoint"], [endpoints])
    yield _allow(["sagemaker:DescribeInferenceComponent"], [components])
    yield _allow(loading, [endpoints], ours)
    yield _allow([*loading, "sagemaker:UpdateInferenceComponentRuntimeConfig"], [components], ours)


def _candidates(stack: Stack, environment: str) -> Iterator[iam.PolicyStatement]:
    """Allow creating candidate components, and deleting what carries the trial service's own tags.

    A creation names the endpoint too; its tags are given with it, which asks for the right to add them. That right
    holds while a component is created alone (`sagemaker:TaggingAction`): with it a live component could be tagged as a
    candidate, and then be deleted.

    A candidate of an older release has the environment's tag alone. It may be deleted by its whole name where it has
    no owner; the function asks CloudFormation first whether a stack has it.
    """
    component = partial(stack.format_arn, service="sagemaker", resource="inference-component")
    candidates = component(resource_name=f"{environment}-*{CANDIDATE}*")
    endpoints = stack.format_arn(service="sagemaker", resource="endpoint", resource_name=f"{environment}-*")
    given = {f"aws:RequestTag/{ENVIRONMENT_TAG}": environment, f"aws:RequestTag/{OWNER_TAG}": TRIAL_SERVICE}
    yield _allow(["sagemaker:CreateInferenceComponent"], [candidates, endpoints], {"StringEquals": given})
    created = {**given, "sagemaker:TaggingAction": "CreateInferenceComponent"}
    yield _allow(["sagemaker:AddTags"], [candidates], {"StringEquals": created})
    yield _allow(["sagemaker:ListTags"], [candidates])
    ours, owner = {f"aws:ResourceTag/{ENVIRONMENT_TAG}": environment}, f"aws:ResourceTag/{OWNER_TAG}"
    yield _allow(["sagemaker:DeleteInferenceComponent"], [candidates], {"StringEquals": {**ours, owner: TRIAL_SERVICE}})
    yield _allow(
        ["sagemaker:DeleteInferenceComponent"],
        [component(resource_name=f"{environment}-*{CANDIDATE}????????")],
        {"StringEquals": ours, "Null": {owner: "true"}},
    )
    yield allow_unnamed("cloudformation:DescribeStackResources", "sagemaker:ListInferenceComponents")


def _scaling(stack: Stack) -> Iterator[iam.PolicyStatement]:
    """Allow suspending and resuming the scaling of copies.

    A target's ARN ends with an ID that nobody knows beforehand, so the conditions leave the targets of copies alone.
    Registering a target of SageMaker asks for the right to scale by hand too (Application Auto Scaling user guide,
    identity-based policy examples): `_endpoints` gives it for this environment's components only.
    """
    targets = f"arn:{stack.partition}:application-autoscaling:{stack.region}:{stack.account}:scalable-target/*"
    copies = {
        "application-autoscaling:service-namespace": "sagemaker",
        "application-autoscaling:scalable-dimension": "sagemaker:inference-component:DesiredCopyCount",
    }
    yield _allow(["application-autoscaling:RegisterScalableTarget"], [targets], {"StringEquals": copies})


def _results(bucket: s3.IBucket, key: kms.IKey) -> Iterator[iam.PolicyStatement]:
    """Allow reading and writing results; listing too, without which a missing one would read as a forbidden one."""
    yield _allow(["s3:GetObject", "s3:PutObject"], [bucket.arn_for_objects(f"{folder}/*") for folder in FOLDERS])
    yield _allow(["s3:DeleteObject"], [bucket.arn_for_objects(f"{folder}/*") for folder in STATE_FOLDERS])
    yield _allow(["s3:ListBucket"], [bucket.bucket_arn])
    yield _allow(["kms:Decrypt", "kms:GenerateDataKey"], [key.key_arn])


def _workflow(stack: Stack, name: str) -> Iterator[iam.PolicyStatement]:
    """Allow starting, stopping and finding executions of the environment's own workflow."""
    machine, executions = (
        f"arn:{stack.partition}:states:{stack.region}:{stack.account}:{what}"
        for what in (f"stateMachine:{name}", f"execution:{name}:*")
    )
    yield _allow(["states:ListExecutions", "states:StartExecution"], [machine])
    yield _allow(["states:DescribeExecution", "states:StopExecution"], [executions])


def _network(stack: Stack, network: ContainerNetwork) -> Iterator[iam.PolicyStatement]:
    """Allow Lambda what it does with the function's role to join a network; the function's own code may do none of it.

    Lambda checks the role when the function is created, before there is an interface: a statement on
    `network-interface/*` does not match then, and the stack fails (hashicorp/terraform-provider-aws issue 20698).
    `*/*` and the denial are those of the Lambda developer guide, "Giving Lambda functions access to resources in an
    Amazon VPC".
    """
    prefix = f"arn:{stack.partition}:ec2:{stack.region}:{stack.account}"
    joined = [
        *(f"{prefix}:subnet/{subnet}" for subnet in network.subnet_ids),
        *(f"{prefix}:security-group/{group}" for group in network.security_group_ids),
    ]
    interfaces = ("ec2:AssignPrivateIpAddresses", "ec2:DeleteNetworkInterface", "ec2:UnassignPrivateIpAddresses")
    described = (
        "ec2:DescribeNetworkInterfaces", "ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcs"
    )  # fmt: skip
    yield _allow(["ec2:CreateNetworkInterface"], [*joined, f"{prefix}:network-interface/*"])
    yield _allow([*interfaces], [f"{prefix}:*/*"])
    yield allow_unnamed(*described)
    yield iam.PolicyStatement(
        effect=iam.Effect.DENY,
        actions=["ec2:CreateNetworkInterface", *interfaces, *described],
        resources=["*"],
        conditions={"ArnLike": {"lambda:SourceFunctionArn": f"arn:{stack.partition}:lambda:*:{stack.account}:*"}},
    )


def _allow(
    actions: list[str], resources: list[str], conditions: dict[str, dict[str, str]] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=actions, resources=resources, conditions=conditions)
