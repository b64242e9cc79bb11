"""Optimization jobs as custom resources: one starts a job, another has its artifacts; a stack of all of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, CustomResource, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from seatrial.deployment.optimization_job import jobs_name
from seatrial_base.tags import ENVIRONMENT_TAG
from seatrial_cdk.endpoint.container_network import ContainerNetwork
from seatrial_cdk.endpoint.execution_role import ImageRepository, join_network, role_arguments
from seatrial_cdk.jobs.optimization_service import (
    OptimizationService,
    check_environment,
    check_place,
    check_request,
    check_tags,
)
from seatrial_cdk.jobs.runtime.jobs import FOLDER
from seatrial_cdk.place import StackPlace, shared_stack
from seatrial_cdk.policy import acknowledge_wildcards, allow, policy_document, resources_of, unnamed_statement
from seatrial_cdk.service_function import ServiceStack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.deployment.document import Deployment
    from seatrial.deployment.optimization_job import OptimizationJobRequest
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial_cdk.endpoint.serving_container import ServingContainer
    from seatrial_cdk.policy import Statement


RESOURCE_TYPE = "Custom::OptimizationJob"
LONGEST_ANSWER_S = 300
NAMESPACE = "/aws/sagemaker/OptimizationJobs"
TO_SAGEMAKER = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
WILDCARDS = (
    "Actions on * have no resource level (seatrial_cdk.policy); the other wildcards end prefixes of objects "
    "and of log streams, or are network interfaces that are not known beforehand."
)
WEIGHTS_TYPE = "Custom::OptimizedWeights"
LONGEST_WEIGHTS_ANSWER_S = 120
RESPONSE_VERSION = "2"
"""Another one requests the attributes again: an earlier release's answer has no KeyArn."""


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
        State: As SageMaker reported it at the deployment.
        Parameter: Name of the SSM parameter of the job's state.

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
            **role_arguments(service.role_options),
            inline_policies={"Optimize": policy_document(statements)},
        )
        acknowledge_wildcards(self.role, resources_of(statements), WILDCARDS)
        passing = iam.CfnPolicy(  # the function gives SageMaker this job's role
            self,
            "PassRole",
            policy_name=f"pass-{self.node.addr[-8:]}",
            policy_document=policy_document([allow(["iam:PassRole"], [self.role.role_arn], TO_SAGEMAKER)]),
            roles=[service.role.role_name],
        )
        document = json.loads(request.to_json())
        if network.subnet_ids:
            vpc = {"SecurityGroupIds": [*network.security_group_ids], "Subnets": [*network.subnet_ids]}
            document["VpcConfig"] = vpc
        document["Tags"] = [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
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
                "Request": Stack.of(self).to_json_string(document),
            },
        )
        for earlier in (passing, service.state_machine, service.bucket):
            self.resource.node.add_dependency(earlier)


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
            bucket, _, prefix = uri.removeprefix("s3://").partition("/")
            arn = f"arn:{place.partition}:s3:::{bucket}"
            yield allow(["s3:GetObject"], [f"{arn}/{prefix}*"])
            yield allow(["s3:ListBucket"], [arn], {"StringLike": {"s3:prefix": [f"{prefix}*"]}})
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


class OptimizationsStack(ServiceStack):
    """The optimization service of one environment, and its jobs, each once for its content.

    The stacks of the endpoints that use the artifacts depend on it.
    """

    def __init__(self, scope: Construct, *, environment: EnvironmentSpec) -> None:
        name = jobs_name(environment.name)
        description = f"Optimization jobs of the endpoints of {environment.name}"
        super().__init__(scope, name=name, description=description, environment=environment)
        key_arn = environment.kms_key_arn
        self.environment_spec = environment
        self.service = OptimizationService(
            self,
            "Service",
            environment=environment.name,
            removal=environment.removal,
            key=None if key_arn is None else kms.Key.from_key_arn(self, "Key", key_arn),
            role_options=self._role_options,
            retention=environment.retention,
        )
        self.jobs: dict[str, OptimizationJob] = {}
        CfnOutput(self, "ArtifactsBucket", value=self.service.bucket.bucket_name)
        CfnOutput(self, "Workflow", value=self.service.state_machine.attr_arn)

    def add_job(self, request: OptimizationJobRequest) -> OptimizationJob:
        """Return the job of a request; endpoints that ask for the same artifacts share it."""
        job = self.jobs.get(request.digest)
        if job is None:
            environment = self.environment_spec
            job = self.jobs[request.digest] = OptimizationJob(
                self,
                f"Job{request.digest.upper()}",
                service=self.service,
                request=request,
                network=ContainerNetwork.of(environment.network),
                source_key_arn=environment.kms_key_arn,
                tags=environment.tags,
            )
        return job


def optimizations_stack(scope: Construct, environment: EnvironmentSpec) -> OptimizationsStack:
    """Return the stack of an environment's jobs in a stage or app; it is added when it is not there.

    Args:
        scope: A construct of the stage or app.
    """
    name = jobs_name(environment.name)
    return shared_stack(scope, name, OptimizationsStack, lambda root: OptimizationsStack(root, environment=environment))


def add_jobs(stack: Stack, deployment: Deployment) -> None:
    """Add the optimization jobs of an endpoint and of its further models to the environment's stack of them.

    Args:
        stack: The stack of the endpoint; it is deployed after them.
    """
    for each in (deployment, *deployment.guests, *deployment.variants):
        if each.optimization_job is not None:
            jobs = optimizations_stack(stack, deployment.environment)
            jobs.add_job(each.optimization_job)
            stack.add_stack_dependency(jobs)


class OptimizedWeights(Construct):
    """Where a completed job's artifacts are; a deployment fails within seconds when the job is not completed.

    The environment's `OptimizationService` answers; its function is found by its name, so that no stack exports
    anything. Compiled artifacts are refused when SageMaker recommends another image than the one that serves: they
    would not load. For others the deployment goes on with the locked image, and `ImageAdvice` is the line that a
    spec needs for the recommended one.

    Response attributes (strings):
        ArtifactUri: S3 prefix of the artifacts.
        Bucket, Attempt: Its bucket, and its last folder.
        JobName: The attempt that made them.
        RecommendedImage: URI of the image that SageMaker recommends.
        ImageAdvice: What the spec needs for it.
        KeyArn: Key that the artifacts are encrypted with, which the role that reads them may use.

    Args:
        request: What the job makes.
        endpoint: Name of the spec, for messages.
        image: The image that serves; default: that of the request.

    Raises:
        SpecError: SEA439 with all that SageMaker would refuse, and tokens in what the digest is made of.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        request: OptimizationJobRequest,
        endpoint: str,
        image: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        check_request(self, request)
        check_environment(self, request.environment)
        self.request = request
        function = f"function:{jobs_name(request.environment)}"
        self.resource = CustomResource(
            self,
            "Resource",
            resource_type=WEIGHTS_TYPE,
            service_token=StackPlace.of(self).arn("lambda", function),
            service_timeout=Duration.seconds(LONGEST_WEIGHTS_ANSWER_S),
            properties={
                "Phase": "artifacts",
                "Digest": request.digest,
                "Name": request.name,
                "Image": image or request.image,
                "NeedsImage": "true" if request.needs_image else "false",
                "MaxHours": f"{request.max_hours:g}",
                "Endpoint": endpoint,
                "Environment": request.environment,
                "ResponseVersion": RESPONSE_VERSION,
            },
        )
        self.image_advice = self.resource.get_att_string("ImageAdvice")
        self.recommended_image = self.resource.get_att_string("RecommendedImage")

    def mounted(self, container: ServingContainer) -> ServingContainer:
        """Return a container with these artifacts as its weights."""
        prefix = f"s3://{self.resource.get_att_string('Bucket')}/{FOLDER}/{self.request.digest}/"
        return replace(
            container,
            weights_s3_uri=f"{prefix}{self.resource.get_att_string('Attempt')}/",
            readable_s3_uri=prefix,
            accept_eula=False,
            hub_content_arn=None,
            readable_key_arn=self.resource.get_att_string("KeyArn"),
        )
