"""Where an endpoint's optimization job stands, and a start of it by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.account.reader import aws_failures
from seatrial.deployment.optimization_job import jobs_name, jobs_parameter_path
from seatrial_base.errors import BenchError, SpecError

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_ssm import SSMClient

    from seatrial.deployment.document import Deployment
    from seatrial.deployment.optimization_job import OptimizationJobRequest

_RULE = "SEA484"


@dataclass(frozen=True, slots=True)
class LiveJob:
    """What is told of a job.

    Attributes:
        job: Name of the last attempt.
        state: As SageMaker told it; `NOT STARTED` before the first attempt is created.
        artifact_s3_uri: Where it writes.
        recommended_image: What SageMaker recommends; empty before it is completed.
        created: When it was created, ISO 8601; empty before.
        failure_reason: Why it failed; empty otherwise.
    """

    job: str
    state: str
    artifact_s3_uri: str
    recommended_image: str
    created: str
    failure_reason: str


def job_parameter(request: OptimizationJobRequest) -> str:
    """Return the name of the SSM parameter that tells where a job stands."""
    return f"{jobs_parameter_path(request.environment)}/{request.digest}"


def request_of(deployment: Deployment) -> OptimizationJobRequest:
    """Return the job of a deployment.

    Raises:
        SpecError: SEA484 when its recipe has none.
    """
    if deployment.optimization_job is None:
        hint = "a recipe has one with `job`, as `optimization: [{awq: {job: true}}]`"
        where = deployment.endpoint.name
        raise SpecError.of(_RULE, "its recipe needs no optimization job", where=where, field="optimization", hint=hint)
    return deployment.optimization_job


def job_state(parameters: SSMClient, request: OptimizationJobRequest) -> LiveJob:
    """Return where a job stands, as its parameter tells it; the workflow looks every five minutes at most.

    Raises:
        BenchError: SEA484 when no deployment asked for it; as `aws_failures` when AWS can't be asked.
    """
    with aws_failures(request.name, lambda error: _undeployed(request, f"{error}")):
        text = f"{parameters.get_parameter(Name=job_parameter(request))['Parameter']['Value']}"
    told = json.loads(text)
    return LiveJob(**{name: f"{told[name]}" for name in LiveJob.__slots__})


def start_job(function: LambdaClient, request: OptimizationJobRequest, request_id: str) -> tuple[str, str]:
    """Start a job that failed, was stopped or has lost its artifacts; one that runs or is completed stays.

    Args:
        function: A client of the environment's region.
        request: The job.
        request_id: Unique for each start; a repeated one starts nothing new.

    Returns:
        Name and state of the attempt.

    Raises:
        BenchError: SEA484 when no deployment asked for it; as `aws_failures` when AWS can't be asked.
    """
    call = json.dumps({"Start": request.digest, "RequestId": request_id}).encode()
    with aws_failures(request.name, lambda error: _undeployed(request, f"{error}")):
        told = function.invoke(FunctionName=jobs_name(request.environment), Payload=call)
        text = told["Payload"].read().decode()
    answer = json.loads(text)
    if "FunctionError" in told or not isinstance(answer, dict):
        said = answer.get("errorMessage", text) if isinstance(answer, dict) else text
        raise _undeployed(request, said)
    return f"{answer['Job']}", f"{answer['State']}"


def _undeployed(request: OptimizationJobRequest, said: str) -> BenchError:
    stack = jobs_name(request.environment)
    hint = f"deploy the jobs of this recipe: cdk deploy {stack}; else see the log of function {stack}"
    return BenchError.of(_RULE, f"nothing is known of it: {said}", where=request.name, hint=hint)
