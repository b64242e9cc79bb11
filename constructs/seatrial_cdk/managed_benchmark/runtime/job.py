"""The calls of SageMaker that start, watch and remove a benchmark job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NotRequired, Self, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_sagemaker import SageMakerClient

JobStatus = Literal["InProgress", "Completed", "Failed", "Stopping", "Stopped"]
UNKNOWN = "unknown"
LONGEST_REASON = 700


class JobEvent(TypedDict):
    """One request of CloudFormation; the framework shows `is_complete` what `on_event` returned beside it."""

    RequestType: Literal["Create", "Update", "Delete"]
    ResourceProperties: dict[str, str]
    PhysicalResourceId: NotRequired[str]
    StartedAt: NotRequired[float]
    NotStarted: NotRequired[str]


class JobAnswer(TypedDict):
    """Answer of `on_event`: whose name the resource has, since when it is waited for, and why there is no job."""

    PhysicalResourceId: str
    StartedAt: float
    NotStarted: NotRequired[str]


class JobCompletion(TypedDict):
    """Answer of `is_complete`; attributes only when complete."""

    IsComplete: bool
    Data: NotRequired[dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProperties:
    """The properties, read."""

    job_name: str
    endpoint_name: str
    inference_component_name: str
    workload_config_name: str
    role_arn: str
    output_uri: str
    wait_s: float

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """Read the properties; a missing one is a KeyError, which fails the resource with the property's name."""
        return cls(
            job_name=properties["JobName"],
            endpoint_name=properties["EndpointName"],
            inference_component_name=properties["InferenceComponentName"],
            workload_config_name=properties["WorkloadConfigName"],
            role_arn=properties["RoleArn"],
            output_uri=properties["OutputUri"],
            wait_s=float(properties["WaitSeconds"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A benchmark job as the service tells it."""

    arn: str
    status: JobStatus
    output_uri: str
    failure_reason: str

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.status in ("Completed", "Failed", "Stopped")


def words_of(error: Exception) -> str:
    """Return what went wrong in few enough words for an attribute: CloudFormation takes 4 KB of all together."""
    return (str(error) or repr(error))[:LONGEST_REASON]


def describe(client: SageMakerClient, name: str) -> Job | None:
    """Return a job; `None` when there is none of this name."""
    try:
        told = client.describe_ai_benchmark_job(AIBenchmarkJobName=name)
    except client.exceptions.ResourceNotFound:
        return None
    return Job(
        arn=told["AIBenchmarkJobArn"],
        status=told["AIBenchmarkJobStatus"],
        output_uri=told["OutputConfig"]["S3OutputLocation"],
        failure_reason=told.get("FailureReason", ""),
    )


def create(client: SageMakerClient, properties: JobProperties) -> None:
    """Start the job; one of this name that another delivery of the same request has started is the one."""
    try:
        client.create_ai_benchmark_job(
            AIBenchmarkJobName=properties.job_name,
            BenchmarkTarget={
                "Endpoint": {
                    "Identifier": properties.endpoint_name,
                    "InferenceComponents": [{"Identifier": properties.inference_component_name}],
                }
            },
            OutputConfig={"S3OutputLocation": properties.output_uri},
            AIWorkloadConfigIdentifier=properties.workload_config_name,
            RoleArn=properties.role_arn,
        )
    except client.exceptions.ResourceInUse:
        if describe(client, properties.job_name) is None:
            raise


def stop(client: SageMakerClient, name: str) -> None:
    """Stop a job; one that is gone is stopped."""
    try:
        client.stop_ai_benchmark_job(AIBenchmarkJobName=name)
    except client.exceptions.ResourceNotFound:
        return


def remove(client: SageMakerClient, name: str) -> None:
    """Delete a job that is over, so that its name is free; its output stays. One that is gone is deleted."""
    try:
        client.delete_ai_benchmark_job(AIBenchmarkJobName=name)
    except client.exceptions.ResourceNotFound:
        return
