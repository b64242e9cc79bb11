"""SageMaker's own benchmark job, started with the deployment of a plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from aws_cdk import CustomResource, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk import custom_resources as cr
from constructs import Construct

from seatrial_cdk.archive_file import archive_file
from seatrial_cdk.managed_benchmark.runtime_code import runtime_archive
from seatrial_cdk.managed_benchmark.workload_spec import digest_name, name_prefix
from seatrial_cdk.trial_service.results import log_group_of
from seatrial_cdk.trial_service.runtime.store import TRIALS

if TYPE_CHECKING:
    from constructs import IDependable

    from seatrial_cdk.llm_endpoint import LlmEndpoint
    from seatrial_cdk.managed_benchmark.workload_spec import ManagedWorkload
    from seatrial_cdk.trial_service.results import TrialResults

RUNTIME_PACKAGE = "seatrial_cdk.managed_benchmark.runtime"
LOOK_INTERVAL_S = 30
WAIT_MINUTES = 45.0
FRAMEWORK_MARGIN_S = 300  # between the last look and CloudFormation's own limit


class ManagedBenchmark(Construct):
    """An Amazon SageMaker AI benchmark job on the endpoint whenever plan or workload change; it reports, no more.

    The job runs NVIDIA AIPerf on the service's own machines, against the OpenAI-compatible chat API of the container:
    one that speaks another schema only can't be measured by it. CloudFormation has no type for the job, so a custom
    resource starts it by the API; that of the workload is `AWS::SageMaker::AIWorkloadConfig`.

    It was never run: nothing that runs on a laptop emulates it. Its requests are checked against botocore's model of
    the service, its template against CloudFormation's.

    Response attributes (strings; `unknown` where there is no value):
        JobArn: The job.
        Status: `Completed`, `Failed`, `Stopped`, or `InProgress` when it took longer than it was waited for.
        OutputUri: S3 prefix of what it measured.
        FailureReason: The service's words; `none` where there are none.

    Args:
        endpoint: What is measured.
        results: Where its output goes: beside the trials' history, encrypted with the same key.
        workload: What it sends.
        plan_digest: The job's name follows from it and the workload, so that a new plan is a new job.
        after: What must be there first, as the trial: two loads at a time would spoil both.
        wait_minutes: How long the deployment waits for the job; 50 at most: CloudFormation waits an hour.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: LlmEndpoint,
        results: TrialResults,
        workload: ManagedWorkload,
        plan_digest: str,
        after: IDependable | None = None,
        wait_minutes: float = WAIT_MINUTES,
    ) -> None:
        super().__init__(scope, construct_id)
        inline, name = workload.to_inline(), endpoint.endpoint_name
        self.job_name = digest_name(name, plan_digest, inline)
        folder = f"{TRIALS}/{name}/{plan_digest}/managed/{self.job_name}"
        self.workload_config = _workload_config(self, digest_name(name, inline), inline)
        self.job_role = _job_role(self, endpoint, results)
        wait_s = math.ceil(wait_minutes * 60)
        provider = _provider(self, wait_s, endpoint)
        self.resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::ManagedBenchmark",
            service_token=provider.service_token,
            service_timeout=Duration.seconds(wait_s + 2 * FRAMEWORK_MARGIN_S),
            properties={
                "JobName": self.job_name,
                "EndpointName": name,
                "InferenceComponentName": endpoint.inference_component_name,
                "WorkloadConfigName": self.workload_config.ai_workload_config_name,
                "RoleArn": self.job_role.role_arn,
                "OutputUri": results.bucket.s3_url_for_object(folder),
                "WaitSeconds": f"{wait_s}",
            },
        )
        self.resource.node.add_dependency(endpoint.component, self.workload_config, self.job_role)
        if after is not None:
            self.resource.node.add_dependency(after)

    def attribute(self, name: str) -> str:
        """Return a response attribute as a token."""
        return self.resource.get_att_string(name)


def _workload_config(scope: Construct, name: str, inline: str) -> sagemaker.CfnAIWorkloadConfig:
    """Define the workload; its name follows from its content, for a replacement under the same name would collide."""
    spec = sagemaker.CfnAIWorkloadConfig.WorkloadSpecProperty(inline=inline)
    return sagemaker.CfnAIWorkloadConfig(
        scope,
        "Workload",
        ai_workload_config_name=name,
        ai_workload_configs=sagemaker.CfnAIWorkloadConfig.AIWorkloadConfigsProperty(workload_spec=spec),
    )


def _job_role(scope: Construct, endpoint: LlmEndpoint, results: TrialResults) -> iam.Role:
    """Define what the service may do for the job: call this endpoint, and write under the trials' folder."""
    account = {"StringEquals": {"aws:SourceAccount": Stack.of(scope).account}}
    principal = iam.ServicePrincipal("sagemaker.amazonaws.com", conditions=account)
    role = iam.Role(scope, "JobRole", assumed_by=principal)
    endpoint.grant_invoke(role)
    endpoint.grant_describe(role)
    results.grant_write(role, (TRIALS,))
    return role


def _provider(scope: ManagedBenchmark, wait_s: int, endpoint: LlmEndpoint) -> cr.Provider:
    looks = math.ceil((wait_s + FRAMEWORK_MARGIN_S) / LOOK_INTERVAL_S)
    with archive_file("managed.zip", runtime_archive()) as path:
        code = lambda_.Code.from_asset(path)
        on_event = _function(scope, "OnEvent", "on_event", code)
        is_complete = _function(scope, "IsComplete", "is_complete", code)
    _allow(scope, endpoint, on_event, "Create", "Describe", "Stop", "Delete")
    _allow(scope, endpoint, is_complete, "Describe", "Delete")
    scope.job_role.grant_pass_role(on_event.grant_principal)
    return cr.Provider(
        scope,
        "Provider",
        on_event_handler=on_event,
        is_complete_handler=is_complete,
        query_interval=Duration.seconds(LOOK_INTERVAL_S),
        total_timeout=Duration.seconds(LOOK_INTERVAL_S * looks),
        log_group=log_group_of(scope),
        disable_waiter_state_machine_logging=True,
    )


def _function(scope: ManagedBenchmark, construct_id: str, module: str, code: lambda_.Code) -> lambda_.Function:
    """Define a handler whose role may write its own log group and what it is granted."""
    own = Construct(scope, construct_id)
    log_group = log_group_of(own)
    role = iam.Role(own, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    log_group.grant_write(role)
    return lambda_.Function(
        own,
        "Resource",
        runtime=lambda_.Runtime.PYTHON_3_13,
        architecture=lambda_.Architecture.ARM_64,
        handler=f"{RUNTIME_PACKAGE}.{module}.handler",
        code=code,
        role=role,
        timeout=Duration.minutes(1),
        memory_size=256,
        log_group=log_group,
    )


def _allow(scope: ManagedBenchmark, endpoint: LlmEndpoint, grantee: iam.IGrantable, *verbs: str) -> None:
    """Allow calls on the jobs of this endpoint: the only resource that these actions know."""
    stack = Stack.of(scope)
    arn = f"arn:{stack.partition}:sagemaker:{stack.region}:{stack.account}"
    jobs = f"{arn}:ai-benchmark-job/{name_prefix(endpoint.endpoint_name)}*"
    iam.Grant.add_to_principal(
        grantee=grantee,
        actions=[f"sagemaker:{verb}AIBenchmarkJob" for verb in verbs],
        resource_arns=[jobs],
    )
