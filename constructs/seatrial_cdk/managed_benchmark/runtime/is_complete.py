"""Waits for the benchmark job and tells CloudFormation how it ended; it never fails a deployment."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from seatrial_cdk.managed_benchmark.runtime.job import UNKNOWN, JobProperties, describe, remove, words_of

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial_cdk.managed_benchmark.runtime.job import Job, JobCompletion, JobEvent


def handler(event: JobEvent, _context: object) -> JobCompletion:
    """Answer the provider framework."""
    import boto3  # noqa: PLC0415 (a second of start that tests and synth need not wait for)

    return respond(event, boto3.client("sagemaker"), now_s=time.time())


def respond(event: JobEvent, client: SageMakerClient, *, now_s: float) -> JobCompletion:
    """Complete when the job is over, or when it was waited for long enough: it then goes on and `Status` says so.

    On Delete, complete when the job is gone: the workload configuration can't be deleted while a job uses it.

    The framework takes an error for the final answer, so a call that fails is made again at the next look, as long as
    there is one.
    """
    properties = JobProperties.of(event["ResourceProperties"])
    deletes = event["RequestType"] == "Delete"
    if "NotStarted" in event:
        return {"IsComplete": True} if deletes else _without_job(properties, event["NotStarted"])
    overdue = now_s - event.get("StartedAt", now_s) > properties.wait_s
    name = event.get("PhysicalResourceId", properties.job_name)
    try:
        return _deleted(client, name, overdue=overdue) if deletes else _looked(client, name, properties, overdue)
    except Exception as error:  # noqa: BLE001 (the Lambda's boundary, as in on_event)
        if not overdue:
            return {"IsComplete": False}
        return {"IsComplete": True} if deletes else _without_job(properties, words_of(error))


def _looked(client: SageMakerClient, name: str, properties: JobProperties, overdue: bool) -> JobCompletion:  # noqa: FBT001 (one caller)
    job = describe(client, name)
    if job and not job.over and not overdue:
        return {"IsComplete": False}
    return {"IsComplete": True, "Data": _attributes(job, properties.output_uri)}


def _without_job(properties: JobProperties, why: str) -> JobCompletion:
    data = {"JobArn": UNKNOWN, "Status": UNKNOWN, "OutputUri": properties.output_uri, "FailureReason": why}
    return {"IsComplete": True, "Data": data}


def _deleted(client: SageMakerClient, name: str, *, overdue: bool) -> JobCompletion:
    """Remove a job that is over; one that will not stop is left behind, for a deletion never fails."""
    job = describe(client, name)
    if job and not job.over:
        return {"IsComplete": overdue}
    if job:
        remove(client, name)
    return {"IsComplete": True}


def _attributes(job: Job | None, output_uri: str) -> dict[str, str]:
    if job is None:
        return {"JobArn": UNKNOWN, "Status": UNKNOWN, "OutputUri": output_uri, "FailureReason": "the job is gone"}
    return {
        "JobArn": job.arn,
        "Status": job.status,
        "OutputUri": job.output_uri,
        "FailureReason": job.failure_reason or "none",
    }
