"""The optimization jobs of an environment's endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, Environment, Stack, Tags
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from seatrial.deployment.optimization_job import jobs_name
from seatrial_cdk.endpoint.container_network import ContainerNetwork
from seatrial_cdk.endpoint.execution_role import RoleOptions
from seatrial_cdk.jobs.optimization_job import OptimizationJob
from seatrial_cdk.jobs.optimization_service import OptimizationService
from seatrial_cdk.place import shared_stack

if TYPE_CHECKING:
    from constructs import Construct

    from seatrial.deployment.document import Deployment
    from seatrial.deployment.optimization_job import OptimizationJobRequest
    from seatrial.specs.environment import EnvironmentSpec


class OptimizationsStack(Stack):
    """The optimization service of one environment, and its jobs, each once for its content.

    The stacks of the endpoints that use the artifacts depend on it.

    Args:
        environment: Where its endpoints are.
    """

    def __init__(self, scope: Construct, *, environment: EnvironmentSpec) -> None:
        name = jobs_name(environment.name)
        super().__init__(
            scope,
            name,
            stack_name=name,
            description=f"Optimization jobs of the endpoints of {environment.name}",
            env=Environment(account=environment.account, region=environment.region),
        )
        options = RoleOptions.of(self, environment.security)
        if options.permissions_boundary is not None:  # the CDK's own functions have roles too
            iam.PermissionsBoundary.of(self).apply(options.permissions_boundary)
        key_arn = environment.kms_key_arn
        self.environment_spec = environment
        self.service = OptimizationService(
            self,
            "Service",
            environment=environment.name,
            removal=environment.removal,
            key=None if key_arn is None else kms.Key.from_key_arn(self, "Key", key_arn),
            role_options=options,
            retention=environment.retention,
        )
        self.jobs: dict[str, OptimizationJob] = {}
        CfnOutput(self, "ArtifactsBucket", value=self.service.bucket.bucket_name)
        CfnOutput(self, "Workflow", value=self.service.state_machine.attr_arn)
        for tag, value in environment.tags.items():
            Tags.of(self).add(tag, value)

    def add_job(self, request: OptimizationJobRequest) -> OptimizationJob:
        """Return the job of a request; endpoints that ask for the same artifacts share it."""
        found = self.jobs.get(request.digest)
        if found is None:
            environment = self.environment_spec
            found = self.jobs[request.digest] = OptimizationJob(
                self,
                f"Job{request.digest.upper()}",
                service=self.service,
                request=request,
                network=ContainerNetwork.of(environment.network),
                source_key_arn=environment.kms_key_arn,
                tags=environment.tags,
            )
        return found


def optimizations_stack(scope: Construct, environment: EnvironmentSpec) -> OptimizationsStack:
    """Return the stack of an environment's jobs in a stage or app; it is added when it is not there.

    Args:
        scope: A construct of the stage or app.
        environment: The environment.
    """
    name = jobs_name(environment.name)
    return shared_stack(scope, name, OptimizationsStack, lambda root: OptimizationsStack(root, environment=environment))


def add_jobs(stack: Stack, deployment: Deployment) -> None:
    """Add the optimization jobs of an endpoint and of its further models to the environment's stack of them.

    Args:
        stack: The stack of the endpoint; it is deployed after them.
        deployment: What it deploys.
    """
    for each in (deployment, *deployment.guests, *deployment.variants):
        if each.optimization_job is not None:
            jobs = optimizations_stack(stack, deployment.environment)
            jobs.add_job(each.optimization_job)
            stack.add_stack_dependency(jobs)
