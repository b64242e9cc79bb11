"""The calls of AWS, with boto3."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final

import boto3
from botocore.exceptions import ClientError

from seatrial_cdk.jobs.runtime.jobs import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

    Document = Mapping[str, object]

DENIED: Final = ("AccessDenied", "AccessDeniedException")
DENIED_S, DENIED_LOOK_S = 60.0, 5.0
"""So long a denied stop is asked for again: it depends on the job's tags, which IAM sees some time later."""
ABSENT: Final = ("ResourceNotFound", "ResourceNotFoundException", "ParameterNotFound")


class Aws:
    """The calls that `jobs.JobCalls` describes.

    Args:
        bucket: The bucket of the artifacts.
        state_machine_arn: The workflow.
    """

    def __init__(self, bucket: str, state_machine_arn: str) -> None:
        self._bucket, self._machine = bucket, state_machine_arn
        self._sagemaker = boto3.client("sagemaker")
        self._ssm = boto3.client("ssm")
        self._states = boto3.client("stepfunctions")
        self._s3 = boto3.client("s3")

    def describe_job(self, name: str) -> Document:
        """Return a job.

        Raises:
            NotFoundError: There is none.
        """
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
        """Return a parameter.

        Raises:
            NotFoundError: There is none.
        """
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
