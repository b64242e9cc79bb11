"""The role that SageMaker assumes to start the containers: what they need by name, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from seatrial_cdk.image_repository import ImageRepository
from seatrial_cdk.unnamed_resources import allow_unnamed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.spec.environment import Network
    from seatrial_cdk.serving_artifact import ServingArtifact

METRIC_NAMESPACES = ("AWS/SageMaker", "/aws/sagemaker/Endpoints", "/aws/sagemaker/InferenceComponents")


class ExecutionRole(Construct):
    """A role of one endpoint, usable by SageMaker in this account only.

    Args:
        endpoint_name: Whose log group it writes.
        inference_component_name: Whose log group it writes.
        image: URI of the image that it pulls.
        artifact: The packaged serving configuration that it reads; `None` when there is none.
        weights_s3_uri: S3 prefix of the weights that it reads; `None` when they come from elsewhere.
        network: The VPC that the containers join; no network rights without subnets.
        kms_key_arn: Key that the weights may be encrypted with; `None` when there is none.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        inference_component_name: str,
        image: str,
        artifact: ServingArtifact | None,
        weights_s3_uri: str | None,
        network: Network,
        kms_key_arn: str | None,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        statements = [
            *_pull(stack, image),
            *_observe(stack, endpoint_name, inference_component_name),
            *(_read(stack, artifact.bucket_name, artifact.object_key) if artifact else ()),
            *(_read_weights(stack, weights_s3_uri) if weights_s3_uri else ()),
            *(_decrypt(kms_key_arn) if kms_key_arn else ()),
            *(_join_network(stack, network) if network.subnet_ids else ()),
        ]
        self.role = iam.Role(
            self,
            "Resource",
            description=f"SageMaker containers of {endpoint_name}",
            assumed_by=iam.ServicePrincipal(
                "sagemaker.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": stack.account}}
            ),
            inline_policies={"Serve": iam.PolicyDocument(statements=statements)},
        )


def _pull(stack: Stack, image: str) -> Iterator[iam.PolicyStatement]:
    yield allow_unnamed("ecr:GetAuthorizationToken")
    yield iam.PolicyStatement(
        actions=["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
        resources=[ImageRepository.of(image).arn(stack.partition)],
    )


def _observe(stack: Stack, endpoint_name: str, inference_component_name: str) -> Iterator[iam.PolicyStatement]:
    groups = (f"Endpoints/{endpoint_name}", f"InferenceComponents/{inference_component_name}")
    prefix = f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:/aws/sagemaker"
    yield iam.PolicyStatement(
        actions=["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
        resources=[f"{prefix}/{group}{suffix}" for group in groups for suffix in ("", ":*")],
    )
    yield allow_unnamed(
        "cloudwatch:PutMetricData",
        conditions={"StringEquals": {"cloudwatch:namespace": list(METRIC_NAMESPACES)}},
    )


def _read(stack: Stack, bucket: str, keys: str) -> Iterator[iam.PolicyStatement]:
    yield iam.PolicyStatement(actions=["s3:GetObject"], resources=[f"arn:{stack.partition}:s3:::{bucket}/{keys}"])
    yield iam.PolicyStatement(
        actions=["s3:ListBucket"],
        resources=[f"arn:{stack.partition}:s3:::{bucket}"],
        conditions={"StringLike": {"s3:prefix": [keys]}},
    )


def _read_weights(stack: Stack, s3_uri: str) -> Iterator[iam.PolicyStatement]:
    bucket, _, prefix = s3_uri.removeprefix("s3://").partition("/")
    return _read(stack, bucket, f"{prefix}*")


def _decrypt(kms_key_arn: str) -> Iterator[iam.PolicyStatement]:
    yield iam.PolicyStatement(actions=["kms:Decrypt"], resources=[kms_key_arn])


def _join_network(stack: Stack, network: Network) -> Iterator[iam.PolicyStatement]:
    prefix = f"arn:{stack.partition}:ec2:{stack.region}:{stack.account}"
    interfaces = f"{prefix}:network-interface/*"
    joined = [
        *(f"{prefix}:subnet/{subnet}" for subnet in network.subnet_ids),
        *(f"{prefix}:security-group/{group}" for group in network.security_group_ids),
    ]
    yield iam.PolicyStatement(actions=["ec2:CreateNetworkInterface"], resources=[*joined, interfaces])
    yield iam.PolicyStatement(
        actions=[
            "ec2:CreateNetworkInterfacePermission",
            "ec2:DeleteNetworkInterface",
            "ec2:DeleteNetworkInterfacePermission",
        ],
        resources=[interfaces],
    )
    yield allow_unnamed(
        "ec2:DescribeDhcpOptions",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSubnets",
        "ec2:DescribeVpcs",
    )
