"""The one function of an environment's optimization jobs: the form of an event says which task it is."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias, TypedDict, cast

import boto3
from botocore.exceptions import ClientError

from seatrial_cdk.jobs.runtime.jobs import (
    JobAnswer,
    JobPlace,
    Next,
    NotFoundError,
    artifacts_answer,
    create,
    job_answer,
    poll,
    refused,
    start_again,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seatrial_cdk.jobs.runtime.jobs import JobCalls, JobEvent, JobOrder

    Respond: TypeAlias = Callable[[str, bytes], None]
    Document = Mapping[str, object]

PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0)
TIMEOUT_S: Final = 10.0
LONGEST_REASON: Final = 900  # consoles show 1 KB of a reason; the answer as a whole may have 4 KB
DENIED: Final = ("AccessDenied", "AccessDeniedException")
DENIED_S, DENIED_LOOK_S = 60.0, 5.0
"""How long a denied stop is requested again: it depends on the job's tags, which IAM sees some time later."""
ABSENT: Final = ("ResourceNotFound", "ResourceNotFoundException", "ParameterNotFound")


class Aws:
    """The calls that `jobs.JobCalls` describes."""

    def __init__(self, bucket: str, state_machine_arn: str) -> None:
        self._bucket, self._machine = bucket, state_machine_arn
        self._sagemaker = boto3.client("sagemaker")
        self._ssm = boto3.client("ssm")
        self._states = boto3.client("stepfunctions")
        self._s3 = boto3.client("s3")

    def describe_job(self, name: str) -> Document:
        """Return a job."""
        try:
            return {**self._sagemaker.describe_optimization_job(OptimizationJobName=name)}
        except ClientError as error:
            raise _named(error) from error

    def create_job(self, request: Document) -> None:
        """Create a job; one that is there stays as it is."""
        try:
            self._sagemaker.create_optimization_job(**request)  # type: ignore[arg-type]  # checked by the service
        except ClientError as error:
            if _code(error) not in ("ResourceInUse", "ResourceInUseException"):
                raise

    def stop_job(self, name: str) -> None:
        """Stop a job; one that has ended stays as it is."""
        until_s = time.monotonic() + DENIED_S
        while True:
            try:
                self._sagemaker.stop_optimization_job(OptimizationJobName=name)
            except ClientError as error:
                if _code(error) in DENIED and time.monotonic() < until_s:
                    time.sleep(DENIED_LOOK_S)
                    continue
                if _code(error) not in (*ABSENT, "ValidationException"):
                    raise
            return

    def has_objects(self, prefix: str) -> bool:
        """Return whether the bucket has an object under a prefix."""
        return bool(self._s3.list_objects_v2(Bucket=self._bucket, Prefix=prefix, MaxKeys=1).get("Contents"))

    def write_parameter(self, name: str, text: str) -> None:
        """Write a parameter; one of more than 4 KB is an advanced one."""
        self._ssm.put_parameter(Name=name, Value=text, Type="String", Overwrite=True, Tier="Intelligent-Tiering")

    def read_parameter(self, name: str) -> str:
        """Return a parameter."""
        try:
            return f"{self._ssm.get_parameter(Name=name)['Parameter']['Value']}"
        except ClientError as error:
            raise _named(error) from error

    def start_workflow(self, name: str, order: Document) -> None:
        """Start an execution; one of this name stays as it is."""
        try:
            self._states.start_execution(stateMachineArn=self._machine, name=name, input=json.dumps(order))
        except ClientError as error:
            if _code(error) != "ExecutionAlreadyExists":
                raise

    def stop_workflows(self, prefix: str) -> None:
        """Stop the executions whose names begin so."""
        pages = self._states.get_paginator("list_executions").paginate(
            stateMachineArn=self._machine, statusFilter="RUNNING"
        )
        for execution in [each for page in pages for each in page["executions"]]:
            if execution["name"].startswith(prefix):
                self._states.stop_execution(executionArn=execution["executionArn"])


def _named(error: ClientError) -> ClientError | NotFoundError:
    missing = _code(error) == "ValidationException" and "could not find" in f"{error}".lower()
    return NotFoundError(f"{error}") if missing or _code(error) in ABSENT else error


def _code(error: ClientError) -> str:
    return error.response["Error"]["Code"]


_cloud: Final = cache(Aws)
"""A warm function has its clients, which take long to make."""


class StepEvent(TypedDict):
    """A step of the workflow."""

    Step: str
    Order: JobOrder
    Failure: Mapping[str, str]


class StartEvent(TypedDict):
    """A job that `seatrial jobs start` asks for, by its digest."""

    Start: str
    RequestId: str


def handler(event: JobEvent | StepEvent | StartEvent, _context: object) -> Next | dict[str, str] | None:
    """Do one task in this function's region."""
    place = JobPlace(os.environ["BUCKET"], os.environ["KEY_ARN"], os.environ["PARAMETERS"])
    return dispatch(event, _cloud(place.bucket, os.environ["STATE_MACHINE"]), place, put_answer)


def dispatch(
    event: JobEvent | StepEvent | StartEvent, cloud: JobCalls, place: JobPlace, respond: Respond
) -> Next | dict[str, str] | None:
    """Do the task of an event: a request of CloudFormation, a step, or a start by hand."""
    if "Step" in event:
        step = cast("StepEvent", event)
        if step["Step"] == "refused":
            return refused(step["Order"], _why(step["Failure"]), cloud, place)
        return (create if step["Step"] == "create" else poll)(step["Order"], cloud, place)
    if "Start" in event:
        request = cast("StartEvent", event)
        state = start_again(request["Start"], request["RequestId"], cloud, place)
        return {"Job": state.job, "State": state.state}
    _answer(event, cloud, place, respond)
    return None


def _why(failure: Mapping[str, str]) -> str:
    """Return the message of a step that failed; AWS Step Functions has it as JSON."""
    cause = failure.get("Cause", failure.get("Error", "unknown"))
    try:
        document = json.loads(cause)
    except ValueError:
        return cause
    return f"{document.get('errorMessage', cause)}" if isinstance(document, dict) else cause


def _answer(event: JobEvent, cloud: JobCalls, place: JobPlace, respond: Respond) -> None:
    properties = event["ResourceProperties"]
    try:
        if properties["Phase"] == "job":
            given = job_answer(event, cloud, place)
        else:
            given = artifacts_answer(event, cloud, place, now=datetime.now(UTC))
    except Exception as error:  # noqa: BLE001 (the Lambda's boundary: CloudFormation must learn of any failure)
        print(f"{error!r}")  # noqa: T201 (the function's log)
        given = JobAnswer({}, f"The optimization job's request failed: {error!r}")
    body: dict[str, object] = {
        "Status": "SUCCESS" if given.failed_because is None else "FAILED",
        "PhysicalResourceId": f"{properties['Phase']}-{properties['Name']}",
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": {**given.data},
    }
    if given.failed_because is not None:
        body["Reason"] = given.failed_because[:LONGEST_REASON]
    respond(event["ResponseURL"], json.dumps(body).encode())


def put_answer(url: str, body: bytes) -> None:
    """Put an answer to CloudFormation's presigned URL, again and again for a while when it is not taken.

    Raises:
        OSError: It was not taken; Lambda then calls again.
    """
    request = urllib.request.Request(url, body, {"Content-Type": ""}, method="PUT")  # noqa: S310 (of CloudFormation)
    for pause_s in (*PAUSES_S, None):
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S):  # noqa: S310 (of CloudFormation)
                return
        except OSError:
            if pause_s is None:
                raise
            time.sleep(pause_s)
