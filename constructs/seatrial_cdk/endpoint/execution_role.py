"""The roles of an endpoint's containers and instances: which image, weights, keys and network they may use, by name."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from aws_cdk import Annotations, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from seatrial_base.errors import RenderError
from seatrial_base.frozen_model import digest
from seatrial_cdk.place import TOKEN_MARKER, StackPlace
from seatrial_cdk.policy import (
    Statement,
    acknowledge_wildcards,
    allow,
    policy_document,
    resources_of,
    unnamed_statement,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from aws_cdk import aws_ecr as ecr
    from constructs import IDependable

    from seatrial.specs.environment import Security
    from seatrial_cdk.endpoint.container_network import ContainerNetwork
    from seatrial_cdk.endpoint.serving_container import ServingArtifact


_PRIVATE_ECR = re.compile(
    r"(?P<account>[0-9]{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?"
    r"/(?P<name>[a-z0-9._/-]+)(:[\w.-]+)?(@sha256:[0-9a-f]{64})?"
)
WILDCARDS = (
    "Actions on * have no resource level (seatrial_cdk.policy); the other wildcards end a name that begins "
    "with the endpoint's, or are network interfaces and objects of a prefix that are not known beforehand."
)
METRIC_NAMESPACES = ("AWS/SageMaker", "/aws/sagemaker/Endpoints", "/aws/sagemaker/InferenceComponents")


@dataclass(frozen=True, slots=True)
class ImageRepository:
    """One private ECR repository; AWS's own containers live in accounts of AWS, one per region."""

    account: str
    region: str
    name: str

    @classmethod
    def of(cls, image: str) -> Self:
        """Read the repository out of an image URI.

        Raises:
            RenderError: SEA303 when the image is not in a private ECR repository, where SageMaker pulls from.
        """
        match = _PRIVATE_ECR.fullmatch(image)
        if match is None:
            hint = "write it as ACCOUNT.dkr.ecr.REGION.amazonaws.com/REPOSITORY:TAG"
            raise RenderError.of("SEA303", f"the image {image} is in no private ECR repository", hint=hint)
        return cls(match["account"], match["region"], match["name"])

    def arn(self, partition: str) -> str:
        """Return the repository's ARN."""
        return f"arn:{partition}:ecr:{self.region}:{self.account}:repository/{self.name}"


def repository_of(
    scope: Construct, image: str, repository: ecr.IRepository | None
) -> ImageRepository | ecr.IRepository | None:
    """Return the repository that an image is pulled from.

    An image that is a token names no repository: that is an error of the construct, reported at synthesis with all
    others.

    Raises:
        RenderError: SEA303 when the URI names no private ECR repository.
    """
    if repository is not None or TOKEN_MARKER not in image:
        return repository or ImageRepository.of(image)
    message = "SEA440: the image is a token, so its repository is unknown. Give image_repository beside it."
    Annotations.of(scope).add_error(message)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSources:
    """What a model is read from.

    Attributes:
        repository: What the image is pulled from; `None` when that is unknown.
        artifact: The packaged serving configuration; `None` when there is none.
        weights_s3_uri: S3 prefix of the weights; `None` when they come from elsewhere.
        kms_key_arn: Key that the weights may be encrypted with; `None` when there is none.
        described: What SageMaker looks up or decrypts with the role: an action, and the ARN of its resource.
    """

    repository: ImageRepository | ecr.IRepository | None
    artifact: ServingArtifact | None
    weights_s3_uri: str | None
    kms_key_arn: str | None
    described: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleOptions:
    """What an account asks of every role.

    Attributes:
        path: Path of the role's name, as `/seatrial/`; default: `/`.
        permissions_boundary: Policy that bounds what the role may do; default: none.
    """

    path: str | None = None
    permissions_boundary: iam.IManagedPolicy | None = None

    @classmethod
    def of(cls, scope: Construct, security: Security, construct_id: str = "Boundary") -> RoleOptions:
        """Return what an environment's file asks of roles.

        Args:
            construct_id: Of the policy that bounds them.
        """
        if security.permissions_boundary is None:
            return cls(path=security.role_path)
        return cls(
            path=security.role_path,
            permissions_boundary=iam.ManagedPolicy.from_managed_policy_arn(
                scope, construct_id, security.permissions_boundary
            ),
        )


NO_OPTIONS = RoleOptions()


def role_arguments(options: RoleOptions) -> dict[str, Any]:
    """Return the arguments of a role of the CDK that options stand for."""
    return {"path": options.path, "permissions_boundary": options.permissions_boundary}


class ExecutionRole(Construct):
    """A role of one model, or of an endpoint's instances, usable by SageMaker in this account only.

    SageMaker reads artifacts and image with the model's role (API reference, CreateModel, ExecutionRoleArn: "access
    model artifacts and docker image for deployment on ML compute instances"). So the role of the endpoint configuration
    (CreateEndpointConfig, ExecutionRoleArn: "perform actions on your behalf") names no model: another model does not
    change it, and the configuration is not replaced.

    What a role reads is never narrowed in place, because the old model may start copies until it is not in use. Other
    sources or another network make another role: its logical ID contains a digest of them. CloudFormation creates the
    new role and model, moves the component, and deletes the old ones in its clean-up. Rights that a later release adds
    are added in place.

    Args:
        name: The endpoint's name in its first generation; the logs of what is called so, or so with a hyphen and more
            behind it, are written.
        sources: What the model is read from; `None` for the role of the instances.
        network: The VPC that the containers join; no network rights without subnets.
        options: Path and permissions boundary.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        sources: ModelSources | None,
        network: ContainerNetwork,
        options: RoleOptions = NO_OPTIONS,
    ) -> None:
        super().__init__(scope, construct_id)
        place = StackPlace.of(self)
        statements = _serving(place, name, sources, network)
        self.rights = policy_document(statements)
        self.role = iam.Role(
            self,
            f"Role{_digest(self, sources, network)}",
            description=f"SageMaker {'instances' if sources is None else 'containers'} of {name}",
            assumed_by=iam.ServicePrincipal(
                "sagemaker.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": place.account}}
            ),
            inline_policies={"Serve": self.rights},
            **role_arguments(options),
        )
        acknowledge_wildcards(self.role, resources_of(statements), WILDCARDS)


def _serving(place: StackPlace, name: str, sources: ModelSources | None, network: ContainerNetwork) -> list[Statement]:
    reads = [] if sources is None else [*_reads(place, sources)]
    joins = [*join_network(place, network)] if network.subnet_ids else []
    return [*reads, *_observe(place, name), *joins]


def serving_role(
    scope: Construct,
    construct_id: str,
    role: iam.IRole | None,
    *,
    name: str,
    sources: ModelSources | None,
    network: ContainerNetwork,
    options: RoleOptions,
) -> tuple[iam.IRole, IDependable]:
    """Return a role that serves, ours or the one that is given, and what has to be there before it is used.

    One that is given may then do what ours may: a policy is attached to a role of this app, or of this account. One
    that may not be changed (`mutable=False`, or of another account) stays as it is, and a warning tells its owner every
    statement that it needs.

    Args:
        role: The role that is given; `None` for one of ours.
        name: As `ExecutionRole` has it, and so the others.
    """
    if role is None:
        role = ExecutionRole(scope, construct_id, name=name, sources=sources, network=network, options=options).role
        return role, role
    statements = _serving(StackPlace.of(scope), name, sources, network)
    results = [role.add_to_principal_policy(iam.PolicyStatement.from_json(each)) for each in statements]
    acknowledge_wildcards(role, resources_of(statements), WILDCARDS)
    attached = results[0].policy_dependable
    # The CDK answers `statement_added` of a role that it leaves alone too; only a policy is a construct.
    if isinstance(attached, Construct):
        return role, attached
    listed = json.dumps(Stack.of(scope).resolve(statements), sort_keys=True)
    message = f"SEA668: the role that is given may not be changed here; let its owner add these statements: {listed}"
    Annotations.of(scope).add_warning_v2("seatrial:SEA668", message)
    return role, role


def allow_reading_alarms(scope: Construct, roles: Iterable[iam.IRole], alarm_names: Sequence[str]) -> None:
    """Let roles read alarms that roll an update back.

    SageMaker reads them with the execution role (developer guide, "Auto-Rollback Configuration and Monitoring": "Ensure
    that your IAM execution role has permission to perform the cloudwatch:DescribeAlarms action on the auto-rollback
    alarms you specify"). Which one it is of an endpoint with components is not documented, so both may.

    Args:
        roles: The roles of instances and containers; one that is imported stays as it is.
    """
    if not alarm_names:
        return
    place = StackPlace.of(scope)
    arns = [place.arn("cloudwatch", f"alarm:{name}") for name in alarm_names]
    statement = iam.PolicyStatement.from_json(allow(["cloudwatch:DescribeAlarms"], arns))
    for role in roles:
        home = role.node.scope
        if isinstance(home, ExecutionRole):
            home.rights.add_statements(statement)
        else:
            role.add_to_principal_policy(statement)


def _digest(scope: Construct, sources: ModelSources | None, network: ContainerNetwork) -> str:
    """Return a digest of what a role may read and join; of the image its repository, whatever the tag."""
    named: list[object] = [*network.subnet_ids, *network.security_group_ids]
    if sources is not None:
        artifact = sources.artifact
        named += [
            _repository_arn(sources.repository, "aws"),
            [artifact.bucket_name, artifact.object_key] if artifact else None,
            sources.weights_s3_uri,
            sources.kms_key_arn,
            *(arn for _, arn in sources.described),
        ]
    text = json.dumps(named, sort_keys=True)
    # Resolving crosses into Node, and tokens alone need it: they are numbered again by each synthesis, and a digest of
    # numbers would make another role each time.
    if TOKEN_MARKER in text:
        stack = Stack.of(scope)
        text = json.dumps([None if each is None else stack.resolve(each) for each in named], sort_keys=True)
    return digest(text)[:8].upper()


def _reads(place: StackPlace, sources: ModelSources) -> Iterator[Statement]:
    if (arn := _repository_arn(sources.repository, place.partition)) is not None:
        yield unnamed_statement("ecr:GetAuthorizationToken")
        yield allow(["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"], [arn])
    if sources.artifact:
        yield from _read(place, sources.artifact.bucket_name, sources.artifact.object_key)
    if sources.weights_s3_uri:
        bucket, _, prefix = sources.weights_s3_uri.removeprefix("s3://").partition("/")
        yield from _read(place, bucket, f"{prefix}*")
    if sources.kms_key_arn:
        yield allow(["kms:Decrypt"], [sources.kms_key_arn])
    for action, arn in sources.described:
        yield allow([action], [arn])


def _repository_arn(repository: ImageRepository | ecr.IRepository | None, partition: str) -> str | None:
    if isinstance(repository, ImageRepository):
        return repository.arn(partition)
    return None if repository is None else repository.repository_arn


def _observe(place: StackPlace, name: str) -> Iterator[Statement]:
    """Allow logs and metrics of every generation of an endpoint, its components and their candidates."""
    groups = (f"Endpoints/{name}", f"Endpoints/{name}:*", f"Endpoints/{name}-*", f"InferenceComponents/{name}-*")
    prefix = f"arn:{place.partition}:logs:{place.region}:{place.account}:log-group:/aws/sagemaker"
    yield allow(
        ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
        [f"{prefix}/{group}" for group in groups],
    )
    yield unnamed_statement(
        "cloudwatch:PutMetricData",
        conditions={"StringEquals": {"cloudwatch:namespace": list(METRIC_NAMESPACES)}},
    )


def _read(place: StackPlace, bucket: str, keys: str) -> Iterator[Statement]:
    yield allow(["s3:GetObject"], [f"arn:{place.partition}:s3:::{bucket}/{keys}"])
    yield allow(
        ["s3:ListBucket"],
        [f"arn:{place.partition}:s3:::{bucket}"],
        {"StringLike": {"s3:prefix": [keys]}},
    )


def read_object(place: StackPlace, s3_uri: str) -> Iterator[Statement]:
    """Allow reading one object of S3."""
    bucket, _, key = s3_uri.removeprefix("s3://").partition("/")
    return _read(place, bucket, key)


def join_network(place: StackPlace, network: ContainerNetwork) -> Iterator[Statement]:
    """Allow what SageMaker does with a role to join a network."""
    prefix = f"arn:{place.partition}:ec2:{place.region}:{place.account}"
    interfaces = f"{prefix}:network-interface/*"
    joined = [
        *(f"{prefix}:subnet/{subnet}" for subnet in network.subnet_ids),
        *(f"{prefix}:security-group/{group}" for group in network.security_group_ids),
    ]
    yield allow(["ec2:CreateNetworkInterface"], [*joined, interfaces])
    yield allow(
        [
            "ec2:CreateNetworkInterfacePermission",
            "ec2:DeleteNetworkInterface",
            "ec2:DeleteNetworkInterfacePermission",
        ],
        [interfaces],
    )
    yield unnamed_statement(
        "ec2:DescribeDhcpOptions",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSubnets",
        "ec2:DescribeVpcs",
    )
