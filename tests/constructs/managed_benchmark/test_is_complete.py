from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from seatrial_cdk.managed_benchmark.runtime.is_complete import respond
from tests.constructs.managed_benchmark.test_on_event import ARN, JOB, NAMED, absent, described

if TYPE_CHECKING:
    from botocore.stub import Stubber
    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial_cdk.managed_benchmark.runtime.job import JobEvent

OUTPUT = f"s3://results/trials/dev-chat/b/managed/{JOB}"
OVERDUE_S = 1000.0 + 2701


def test_a_job_that_runs_is_waited_for(started: JobEvent, sagemaker: SageMakerClient, service: Stubber) -> None:
    service.add_response("describe_ai_benchmark_job", described("InProgress"), NAMED)
    assert respond(started, sagemaker, now_s=1000.0 + 2700) == {"IsComplete": False}


@pytest.mark.parametrize("status", ["Completed", "Stopped"])
def test_a_job_that_is_over_gives_its_attributes(
    started: JobEvent, sagemaker: SageMakerClient, service: Stubber, status: str
) -> None:
    service.add_response("describe_ai_benchmark_job", described(status), NAMED)
    assert respond(started, sagemaker, now_s=1100.0) == {
        "IsComplete": True,
        "Data": {"JobArn": ARN, "Status": status, "OutputUri": OUTPUT, "FailureReason": "none"},
    }


def test_a_job_that_failed_is_reported_and_fails_nothing(
    started: JobEvent, sagemaker: SageMakerClient, service: Stubber
) -> None:
    failed = {**described("Failed"), "FailureReason": "The endpoint does not speak the chat API"}
    service.add_response("describe_ai_benchmark_job", failed, NAMED)
    completion = respond(started, sagemaker, now_s=1100.0)
    assert completion["IsComplete"]
    assert completion["Data"]["Status"] == "Failed"
    assert completion["Data"]["FailureReason"] == "The endpoint does not speak the chat API"


def test_a_job_that_takes_too_long_goes_on_without_the_deployment(
    started: JobEvent, sagemaker: SageMakerClient, service: Stubber
) -> None:
    service.add_response("describe_ai_benchmark_job", described("InProgress"), NAMED)
    completion = respond(started, sagemaker, now_s=OVERDUE_S)
    assert completion["IsComplete"]
    assert completion["Data"]["Status"] == "InProgress"


def test_a_job_that_somebody_deleted_is_gone(started: JobEvent, sagemaker: SageMakerClient, service: Stubber) -> None:
    absent(service)
    assert respond(started, sagemaker, now_s=1100.0)["Data"] == {
        "JobArn": "unknown",
        "Status": "unknown",
        "OutputUri": OUTPUT,
        "FailureReason": "the job is gone",
    }


def test_a_deletion_waits_until_the_job_has_stopped(
    delete: JobEvent, sagemaker: SageMakerClient, service: Stubber
) -> None:
    service.add_response("describe_ai_benchmark_job", described("Stopping"), NAMED)
    assert respond(delete, sagemaker, now_s=1100.0) == {"IsComplete": False}


def test_a_deletion_frees_the_name_of_a_job_that_is_over(
    delete: JobEvent, sagemaker: SageMakerClient, service: Stubber
) -> None:
    service.add_response("describe_ai_benchmark_job", described("Stopped"), NAMED)
    service.add_response("delete_ai_benchmark_job", {"AIBenchmarkJobArn": ARN}, NAMED)
    assert respond(delete, sagemaker, now_s=1100.0) == {"IsComplete": True}


def test_a_deletion_never_waits_for_ever(delete: JobEvent, sagemaker: SageMakerClient, service: Stubber) -> None:
    service.add_response("describe_ai_benchmark_job", described("Stopping"), NAMED)
    assert respond(delete, sagemaker, now_s=OVERDUE_S) == {"IsComplete": True}


def test_a_deletion_without_a_job_is_complete(delete: JobEvent, sagemaker: SageMakerClient, service: Stubber) -> None:
    absent(service)
    assert respond(delete, sagemaker, now_s=1100.0) == {"IsComplete": True}


def test_a_job_that_could_not_be_started_is_reported_and_fails_nothing(
    started: JobEvent, sagemaker: SageMakerClient, service: Stubber
) -> None:
    completion = respond({**started, "NotStarted": "The account's limit is 2 jobs"}, sagemaker, now_s=1000.0)
    assert completion == {
        "IsComplete": True,
        "Data": {
            "JobArn": "unknown",
            "Status": "unknown",
            "OutputUri": OUTPUT,
            "FailureReason": "The account's limit is 2 jobs",
        },
    }


def test_a_deletion_that_could_stop_nothing_is_complete(
    delete: JobEvent, sagemaker: SageMakerClient, service: Stubber
) -> None:
    assert respond({**delete, "NotStarted": "throttled"}, sagemaker, now_s=1000.0) == {"IsComplete": True}


@pytest.mark.parametrize("kind", ["Create", "Delete"])
def test_a_call_that_fails_is_made_again_until_the_wait_is_over(
    delete: JobEvent, sagemaker: SageMakerClient, service: Stubber, kind: Literal["Create", "Delete"]
) -> None:
    event: JobEvent = {**delete, "RequestType": kind}
    for _ in range(2):
        service.add_client_error("describe_ai_benchmark_job", "ThrottlingException", "Rate exceeded")
    assert respond(event, sagemaker, now_s=1000.0) == {"IsComplete": False}
    completion = respond(event, sagemaker, now_s=OVERDUE_S)
    assert completion["IsComplete"]
    assert completion.get("Data", {}).get("Status") == (None if kind == "Delete" else "unknown")
