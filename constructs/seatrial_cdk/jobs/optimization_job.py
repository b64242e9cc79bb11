"""An optimization job as a custom resource: it starts the job and does not wait for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aws_cdk import CustomResource, Duration, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from seatrial_base.tags import ENVIRONMENT_TAG
from seatrial_cdk.acknowledgements import acknowledge_wildcards
from seatrial_cdk.endpoint.container_network import ContainerNetwork
from seatrial_cdk.endpoint.execution_role import ImageRepository, join_network
from seatrial_cdk.jobs.request_checks import check_place, check_request, check_tags
from seatrial_cdk.jobs.runtime.jobs import FOLDER
from seatrial_cdk.place import StackPlace
from seatrial_cdk.policy import allow, policy_document, resources_of, unnamed_statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.deployment.optimization_job import OptimizationJobRequest
    from seatrial_cdk.jobs.optimization_service import OptimizationService
    from seatrial_cdk.policy import Statement

RESOURCE_TYPE = "Custom::OptimizationJob"
LONGEST_ANSWER_S = 300
NAMESPACE = "/aws/sagemaker/OptimizationJobs"
WILDCARDS = (
    "Actions on * have no resource level (seatrial_cdk.policy); the other wildcards end prefixes of objects "
    "and of log streams, or are network interfaces that are not known beforehand."
)


class OptimizationJob(Construct):
    """A SageMaker optimization job, made once for its content.

    Its name ends with the digest of what changes the artifacts. A deployment starts it when no attempt runs or is
    completed, and returns at once; a workflow follows it. A job that failed or was stopped is started again as a new
    attempt by the next change of the resource, or by `seatrial jobs start`. Deletion stops a running job, because it
    costs; completed artifacts stay for as long as the bucket.

    `AWS::SageMaker::OptimizationJob` is in CloudFormation's template reference, and in no registry schema of us-east-1
    yet (cfn-lint 1.58, 2026-10-20). So a custom resource makes the job.

    Response attributes (strings):
        JobName: Name of the attempt.
        State: As SageMaker told it at the deployment.
        Parameter: Name of the SSM parameter that tells where the job stands.

    Args:
        service: What starts and follows it.
        request: What it makes; `environment` is that of the service.
        network: The VPC of the job; default: the service's own network.
        source_key_arn: Key that the source may be encrypted with; default: none.
        tags: Tags of the job.

    Raises:
        SpecError: SEA439 with all that SageMaker would refuse, and tokens in what the digest is made of.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        service: OptimizationService,
        request: OptimizationJobRequest,
        network: ContainerNetwork | None = None,
        source_key_arn: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        network = network or ContainerNetwork()
        check_request(self, request)
        check_place(self, service.environment, request, network)
        check_tags(self, request.to_json(), tags or {})
        tags = {ENVIRONMENT_TAG: service.environment, **(tags or {})}
        statements = [*_statements(self, service, request, network, source_key_arn)]
        self.role = iam.Role(
            self,
            "Role",
            description=f"Optimization job {request.name}",
            assumed_by=iam.ServicePrincipal(
                "sagemaker.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": StackPlace.of(self).account}},
            ),
            path=service.role_options.path,
            permissions_boundary=service.role_options.permissions_boundary,
            inline_policies={"Optimize": policy_document(statements)},
        )
        acknowledge_wildcards(self.role, resources_of(statements), WILDCARDS)
        passing = _let_pass(self, service)
        self.resource = CustomResource(
            self,
            "Resource",
            resource_type=RESOURCE_TYPE,
            service_token=service.function.attr_arn,
            service_timeout=Duration.seconds(LONGEST_ANSWER_S),
            properties={
                "Phase": "job",
                "Digest": request.digest,
                "Name": request.name,
                "RoleArn": self.role.role_arn,
                "Request": _request(self, request, network, tags),
            },
        )
        for earlier in (passing, service.state_machine, service.bucket):
            self.resource.node.add_dependency(earlier)


def _request(
    scope: Construct, request: OptimizationJobRequest, network: ContainerNetwork, tags: Mapping[str, str]
) -> str:
    document = json.loads(request.to_json())
    if network.subnet_ids:
        vpc = {"SecurityGroupIds": [*network.security_group_ids], "Subnets": [*network.subnet_ids]}
        document["VpcConfig"] = vpc
    document["Tags"] = [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
    return Stack.of(scope).to_json_string(document)


def _let_pass(scope: OptimizationJob, service: OptimizationService) -> iam.CfnPolicy:
    """Allow the function to give SageMaker this job's role."""
    passing = allow(
        ["iam:PassRole"], [scope.role.role_arn], {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
    )
    return iam.CfnPolicy(
        scope,
        "PassRole",
        policy_name=f"pass-{scope.node.addr[-8:]}",
        policy_document=policy_document([passing]),
        roles=[service.role.role_name],
    )


def _statements(
    scope: Construct,
    service: OptimizationService,
    request: OptimizationJobRequest,
    network: ContainerNetwork,
    source_key_arn: str | None,
) -> Iterator[Statement]:
    """Return the rights of the job's role: its source, its own prefix of the bucket, its images, its log."""
    place = StackPlace.of(scope)
    for uri in (request.source_s3_uri, request.training_data_s3_uri):
        if uri is not None:
            yield from _reading(place, uri)
    if request.source_model_name is not None:
        yield allow(["sagemaker:DescribeModel"], [place.arn("sagemaker", f"model/{request.source_model_name}")])
    own = f"{FOLDER}/{request.digest}/*"
    yield allow(["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"], [service.bucket.arn_for_objects(own)])
    yield allow(["s3:ListBucket"], [service.bucket.bucket_arn], {"StringLike": {"s3:prefix": [own]}})
    keys = [service.key.key_arn, *([source_key_arn] if source_key_arn else [])]
    yield allow(["kms:Decrypt", "kms:GenerateDataKey"], keys)
    yield unnamed_statement("ecr:GetAuthorizationToken")
    yield allow(
        ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
        [ImageRepository.of(request.image).arn(place.partition)],
    )
    yield allow(
        ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
        [place.arn("logs", f"log-group:{NAMESPACE}"), place.arn("logs", f"log-group:{NAMESPACE}:*")],
    )
    yield unnamed_statement(
        "cloudwatch:PutMetricData", conditions={"StringEquals": {"cloudwatch:namespace": [NAMESPACE]}}
    )
    if network.subnet_ids:
        yield from join_network(place, network)


def _reading(place: StackPlace, uri: str) -> Iterator[Statement]:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    arn = f"arn:{place.partition}:s3:::{bucket}"
    yield allow(["s3:GetObject"], [f"{arn}/{prefix}*"])
    yield allow(["s3:ListBucket"], [arn], {"StringLike": {"s3:prefix": [f"{prefix}*"]}})
