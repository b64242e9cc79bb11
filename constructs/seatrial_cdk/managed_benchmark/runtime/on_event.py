"""Starts the benchmark job of a plan, and stops it when its resource goes."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from seatrial_cdk.managed_benchmark.runtime.job import JobProperties, create, describe, remove, stop, words_of

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial_cdk.managed_benchmark.runtime.job import JobAnswer, JobEvent


class StillStoppingError(Exception):
    """A job of this name is being stopped, so that no new one can be started; the message says what to do."""


def handler(event: JobEvent, _context: object) -> JobAnswer:
    """Answer the provider framework."""
    import boto3  # noqa: PLC0415 (a second of start that tests and synth need not wait for)

    return respond(event, boto3.client("sagemaker"), now_s=time.time())


def respond(event: JobEvent, client: SageMakerClient, *, now_s: float) -> JobAnswer:
    """Start the job on Create and Update, stop it on Delete, and return at once.

    A job's name follows from plan and workload and is the resource's identity: an update to another plan is another
    resource, whose old job CloudFormation then asks to delete. A job of the same name that runs or is completed is
    that of an earlier delivery, or of the same plan and workload: it answers. One that failed or was stopped is
    replaced.

    Whatever fails here fails no deployment: an error would leave a stack stuck that is rolled back or deleted. Not
    least, the boto3 of the function's runtime may be older than the job's API.
    """
    if event["RequestType"] == "Delete":
        answer: JobAnswer = {"PhysicalResourceId": event.get("PhysicalResourceId", ""), "StartedAt": now_s}
        act = partial(_stop, client, answer["PhysicalResourceId"])
    else:
        properties = JobProperties.of(event["ResourceProperties"])
        answer = {"PhysicalResourceId": properties.job_name, "StartedAt": now_s}
        act = partial(_start, client, properties)
    try:
        act()
    except Exception as error:  # noqa: BLE001 (the Lambda's boundary: a benchmark that only reports fails nothing)
        return {**answer, "NotStarted": words_of(error)}
    return answer


def _stop(client: SageMakerClient, name: str) -> None:
    found = describe(client, name)
    if found and found.status == "InProgress":
        stop(client, name)


def _start(client: SageMakerClient, properties: JobProperties) -> None:
    """Start the job, unless there is one that answers.

    Raises:
        StillStoppingError: A job of this name is being stopped.
    """
    found = describe(client, properties.job_name)
    if found and found.status == "Stopping":
        raise StillStoppingError(f"The benchmark job {properties.job_name} is being stopped; deploy again when it is")
    if found and found.over and found.status != "Completed":
        remove(client, properties.job_name)
        found = None
    if found is None:
        create(client, properties)
