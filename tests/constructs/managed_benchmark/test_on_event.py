from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

import pytest

from seatrial.local.aws.api_model import check_request
from seatrial_cdk.managed_benchmark.runtime.on_event import respond

if TYPE_CHECKING:
    from botocore.stub import Stubber
    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial_cdk.managed_benchmark.runtime.job import JobEvent

JOB = "dev-chat-0123456789ab"
ARN = f"arn:aws:sagemaker:us-east-1:123456789012:ai-benchmark-job/{JOB}"
NAMED = {"AIBenchmarkJobName": JOB}
ANSWERED = {"PhysicalResourceId": JOB, "StartedAt": 1000.0}
CREATION = {
    **NAMED,
    "BenchmarkTarget": {
        "Endpoint": {"Identifier": "dev-chat", "InferenceComponents": [{"Identifier": "dev-chat-model"}]}
    },
    "OutputConfig": {"S3OutputLocation": f"s3://results/trials/dev-chat/b/managed/{JOB}"},
    "AIWorkloadConfigIdentifier": "dev-chat-ba9876543210",
    "RoleArn": "arn:aws:iam::123456789012:role/seatrial-dev-chat-JobRole",
}


def described(status: str) -> dict[str, object]:
    target, output, config, role = (
        CREATION[name] for name in ("BenchmarkTarget", "OutputConfig", "AIWorkloadConfigIdentifier", "RoleArn")
    )
    return {
        **NAMED,
        "AIBenchmarkJobArn": ARN,
        "AIBenchmarkJobStatus": status,
        "BenchmarkTarget": target,
        "OutputConfig": output,
        "AIWorkloadConfigIdentifier": config,
        "RoleArn": role,
        "CreationTime": datetime(2026, 11, 21, tzinfo=UTC),
    }


def absent(service: Stubber) -> None:
    service.add_client_error("describe_ai_benchmark_job", "ResourceNotFound", expected_params=NAMED)


def test_the_request_is_what_the_services_model_allows() -> None:
    """Names, patterns and lengths too; the model is botocore's, and nothing was sent to the service."""
    check_request("sagemaker", "CreateAIBenchmarkJob", CREATION)


def test_a_creation_starts_the_job(create: JobEvent, sagemaker: SageMakerClient, service: Stubber) -> None:
    absent(service)
    service.add_response("create_ai_benchmark_job", {"AIBenchmarkJobArn": ARN}, CREATION)
    assert respond(create, sagemaker, now_s=1000.0) == ANSWERED


@pytest.mark.parametrize("status", ["InProgress", "Completed"])
def test_a_job_of_this_plan_and_workload_is_not_started_again(
    create: JobEvent, sagemaker: SageMakerClient, service: Stubber, status: str
) -> None:
    service.add_response("describe_ai_benchmark_job", described(status), NAMED)
    assert respond(create, sagemaker, now_s=1000.0) == ANSWERED


@pytest.mark.parametrize("status", ["Failed", "Stopped"])
def test_a_job_that_ended_badly_is_replaced(
    create: JobEvent, sagemaker: SageMakerClient, service: Stubber, status: str
) -> None:
    service.add_response("describe_ai_benchmark_job", described(status), NAMED)
    service.add_response("delete_ai_benchmark_job", {"AIBenchmarkJobArn": ARN}, NAMED)
    service.add_response("create_ai_benchmark_job", {"AIBenchmarkJobArn": ARN}, CREATION)
    assert respond(create, sagemaker, now_s=1000.0) == ANSWERED


def test_a_job_that_is_being_stopped_is_in_the_way(
    create: JobEvent, sagemaker: SageMakerClient, service: Stubber
) -> None:
    service.add_response("describe_ai_benchmark_job", described("Stopping"), NAMED)
    assert respond(create, sagemaker, now_s=1000.0) == {
        **ANSWERED,
        "NotStarted": f"The benchmark job {JOB} is being stopped; deploy again when it is",
    }


def test_two_deliveries_of_one_request_start_one_job(
    create: JobEvent, sagemaker: SageMakerClient, service: Stubber
) -> None:
    absent(service)
    service.add_client_error("create_ai_benchmark_job", "ResourceInUse", expected_params=CREATION)
    service.add_response("describe_ai_benchmark_job", described("InProgress"), NAMED)
    assert respond(create, sagemaker, now_s=1000.0) == ANSWERED


def test_a_refused_creation_is_told_in_the_services_words_and_fails_nothing(
    create: JobEvent, sagemaker: SageMakerClient, service: Stubber
) -> None:
    absent(service)
    service.add_client_error("create_ai_benchmark_job", "ResourceLimitExceeded", "The account's limit is 2 jobs")
    assert respond(create, sagemaker, now_s=1000.0) == {
        **ANSWERED,
        "NotStarted": "An error occurred (ResourceLimitExceeded) when calling the CreateAIBenchmarkJob operation: "
        "The account's limit is 2 jobs",
    }


@pytest.mark.parametrize("kind", ["Create", "Update", "Delete"])
def test_a_boto3_that_is_older_than_the_jobs_api_fails_nothing(
    delete: JobEvent, sagemaker: SageMakerClient, kind: Literal["Create", "Update", "Delete"]
) -> None:
    """A stack that is rolled back or deleted would be stuck."""
    older: Any = SimpleNamespace(exceptions=sagemaker.exceptions)
    answer = respond({**delete, "RequestType": kind}, older, now_s=1000.0)
    assert answer == {
        **ANSWERED,
        "NotStarted": "'types.SimpleNamespace' object has no attribute 'describe_ai_benchmark_job'",
    }


def test_a_deletion_stops_the_job_that_runs(delete: JobEvent, sagemaker: SageMakerClient, service: Stubber) -> None:
    service.add_response("describe_ai_benchmark_job", described("InProgress"), NAMED)
    service.add_response("stop_ai_benchmark_job", {"AIBenchmarkJobArn": ARN}, NAMED)
    assert respond(delete, sagemaker, now_s=1000.0) == ANSWERED


def test_a_deletion_leaves_a_job_that_is_over_to_is_complete(
    delete: JobEvent, sagemaker: SageMakerClient, service: Stubber
) -> None:
    service.add_response("describe_ai_benchmark_job", described("Completed"), NAMED)
    assert respond(delete, sagemaker, now_s=1000.0) == ANSWERED


def test_a_deletion_of_a_creation_that_failed_finds_no_job(
    delete: JobEvent, sagemaker: SageMakerClient, service: Stubber
) -> None:
    absent(service)
    assert respond(delete, sagemaker, now_s=1000.0) == ANSWERED
